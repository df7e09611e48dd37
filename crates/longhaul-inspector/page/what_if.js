// The same session under another profile or window, side by side.

import { get, query, sessionPath } from './api.js'
import { fill, h } from './dom.js'
import { count, NONE, oneLine, percent, short, usd } from './text.js'

const { uPlot } = window
const LINES = [
  ['#0072b2', []],
  ['#d55e00', [8, 4]],
]

/** Sizes of both, call by call. */
function chart(target, a, b) {
  const n = Math.max(a.view.length, b.view.length)
  const x = Array.from({ length: n }, (_, i) => i + 1)
  const style = getComputedStyle(document.documentElement)
  const [text, line] = ['--faint', '--line-soft'].map(name => style.getPropertyValue(name).trim())
  const axis = {
    stroke: text,
    grid: { stroke: line, width: 1 },
    ticks: { show: false },
    font: '12px system-ui, sans-serif',
  }
  const of = (side, [stroke, dash]) => ({
    label: side.profile,
    stroke,
    dash,
    width: 2,
    points: { show: false },
    paths: uPlot.paths.linear(),
  })
  const plot = new uPlot(
    {
      width: target.clientWidth || 600,
      height: 280,
      legend: { show: false },
      padding: [10, 10, 0, 0],
      cursor: { points: { show: false }, drag: { x: true, y: false } },
      scales: { x: { time: false }, y: { range: (_, __, most) => [0, (most || 1) * 1.08] } },
      axes: [
        { ...axis, size: 26 },
        { ...axis, size: 62, values: (_, at) => at.map(short) },
      ],
      series: [{}, of(a, LINES[0]), of(b, LINES[1])],
    },
    [x, Array.from(x, (_, i) => a.view[i] ?? null), Array.from(x, (_, i) => b.view[i] ?? null)],
    target,
  )
  const watch = new ResizeObserver(() => {
    if (target.clientWidth && target.clientWidth !== plot.width)
      plot.setSize({ width: target.clientWidth, height: 280 })
  })
  watch.observe(target)
  return () => {
    watch.disconnect()
    plot.destroy()
  }
}

const sum = list => list.reduce((total, each) => total + (each ?? 0), 0)
const most = list => list.reduce((a, b) => Math.max(a, b ?? 0), 0)
const kept = name => side => percent(side.kept?.[name], 1)

/** Rows of the comparison: name, what it means, figure of a side, which direction is better (-1 smaller, 1 larger). */
const ROWS = [
  ['cost', 'all prompts; answers cost the same on both sides', side => usd(side.usd), side => side.usd, -1],
  [
    'share of full cost',
    'of what it costs to send the whole log every time',
    side => percent(side.share, 1),
    side => side.share,
    -1,
  ],
  ['tokens sent', 'all requests together', side => short(sum(side.view)), side => sum(side.view), -1],
  ['largest request', 'tokens', side => count(most(side.view)), side => most(side.view), -1],
  ['compactions', 'times that something was taken out', side => count(side.compactions), null, 0],
  ['prefix breaks', 'calls that do not extend the one before', side => count(side.breaks), side => side.breaks, -1],
  [
    'lines kept',
    'of what was needed from far back: the whole line was there',
    kept('in_line'),
    side => side.kept?.in_line,
    1,
  ],
  [
    'names kept',
    'of what was needed from far back: the name was there',
    kept('retention'),
    side => side.kept?.retention,
    1,
  ],
  ['near kept', 'of what was last seen within six steps', kept('near'), side => side.kept?.near, 1],
  ['reachable', 'in the request, or under a mark in it', kept('reachable'), side => side.kept?.reachable, 1],
]

function verdict(row, a, b) {
  const [, , , value, better] = row
  const [x, y] = value ? [value(a), value(b)] : [null, null]
  if (!better || typeof x !== 'number' || typeof y !== 'number' || Math.abs(x - y) < 1e-9) return NONE
  const good = (y - x) * better > 0
  const by =
    better === 1 || row[0].startsWith('share of')
      ? `${Math.abs((y - x) * 100).toFixed(1)} points`
      : x
        ? percent(Math.abs(y - x) / Math.abs(x))
        : 'more'
  return h('span', { class: good ? 'good' : 'bad' }, `${y > x ? '▲' : '▼'} ${by}, ${good ? 'better' : 'worse'}`)
}

export async function whatIfView(page, { id, values }, { me, title, follow }) {
  const session = await get(sessionPath(id))
  title('What if')
  const here = `#/s/${encodeURIComponent(id)}`
  const profile = values.profile ?? me.profiles.find(each => each.name !== session.profile)?.name ?? session.profile
  const window = Number(values.window) || session.window || 200_000
  const out = h('div', { class: 'what-if', 'aria-live': 'polite' })
  let close = () => {}
  const asked = new AbortController()

  const about = h('p', { class: 'hint' })
  const tellProfile = name => {
    about.textContent = oneLine(me.profiles.find(each => each.name === name)?.about ?? '', 300)
  }
  const which = h(
    'select',
    { id: 'profile', on: { change: event => tellProfile(event.target.value) } },
    me.profiles.map(each => h('option', { value: each.name, selected: each.name === profile }, each.name)),
  )
  const size = h('input', {
    id: 'window',
    type: 'number',
    min: 1000,
    max: 10_000_000,
    step: 1000,
    value: window,
    list: 'windows',
  })
  tellProfile(profile)
  const form = h(
    'form',
    {
      class: 'filters',
      on: {
        submit: event => {
          event.preventDefault()
          location.hash = `${here}/whatif${query({ profile: which.value, window: size.value })}`
        },
      },
    },
    h('label', { class: 'choice' }, h('span', {}, 'profile'), which),
    h('label', { class: 'choice' }, h('span', {}, 'window, tokens'), size),
    h(
      'datalist',
      { id: 'windows' },
      [32_000, 64_000, 128_000, 200_000, 1_000_000].map(value => h('option', { value })),
    ),
    h('button', { class: 'main' }, 'Compare'),
  )

  const draw = ({ a, b }) => {
    const plot = h('div', { class: 'plot' })
    const name = side => `${side.profile}, ${short(side.window)}`
    const keyed = (side, [colour], i) =>
      h(
        'span',
        { class: 'key still' },
        h('span', { class: i ? 'stroke dashed' : 'stroke', style: { 'border-color': colour }, 'aria-hidden': 'true' }),
        name(side),
      )
    fill(
      out,
      h(
        'section',
        { class: 'timeline' },
        h('h2', { class: 'plot-title' }, 'Tokens of each request'),
        plot,
        h('p', { class: 'legend' }, keyed(a, LINES[0], 0), keyed(b, LINES[1], 1)),
      ),
      h(
        'div',
        { class: 'scroll', tabindex: 0, role: 'group', 'aria-label': 'Figures of both' },
        h(
          'table',
          { class: 'figures-table' },
          h('caption', { class: 'away' }, 'Figures of both'),
          h(
            'thead',
            {},
            h(
              'tr',
              {},
              h('th', { scope: 'col' }, 'figure'),
              h('th', { scope: 'col', class: 'num' }, 'as it was: ', name(a)),
              h('th', { scope: 'col', class: 'num' }, 'what if: ', name(b)),
              h('th', { scope: 'col' }, 'difference'),
            ),
          ),
          h(
            'tbody',
            {},
            ROWS.map(row =>
              h(
                'tr',
                {},
                h('th', { scope: 'row' }, row[0], h('span', { class: 'under' }, row[1])),
                h('td', { class: 'num', data: { label: 'as it was' } }, row[2](a)),
                h('td', { class: 'num', data: { label: 'what if' } }, row[2](b)),
                h('td', { data: { label: 'difference' } }, verdict(row, a, b)),
              ),
            ),
          ),
        ),
      ),
      h(
        'p',
        { class: 'hint' },
        'Both sides are replayed with the meter of the model: what the agent would have answered to other requests is not known, so its recorded answers are taken.',
      ),
    )
    requestAnimationFrame(() => {
      close = chart(plot, a, b)
    })
  }
  const run = async () => {
    fill(
      out,
      h(
        'div',
        { class: 'wait-long', role: 'status' },
        h(
          'p',
          {},
          `Replaying ${count(session.calls.count)} calls under ${profile} with a window of ${count(window)} tokens …`,
        ),
        h('progress', { 'aria-label': 'Replaying' }),
      ),
    )
    try {
      draw(await get(sessionPath(id, `whatif${query({ profile, window })}`), asked.signal))
    } catch (error) {
      if (error.name !== 'AbortError') fill(out, h('p', { class: 'note bad', role: 'alert' }, error.message))
    }
  }
  fill(
    page,
    h(
      'p',
      { class: 'crumbs' },
      h('a', { href: '#/' }, 'Sessions'),
      ' / ',
      h('a', { href: here }, h('bdi', {}, oneLine(session.title || 'the session', 70))),
      ' / ',
    ),
    h('h1', { tabindex: -1 }, 'What if'),
    h(
      'p',
      { class: 'lead' },
      'The same session under another profile or another window: what it would have sent, what that would have cost, and what it would have kept of what was needed later.',
    ),
    form,
    about,
    out,
  )
  follow(id, () => {})
  return {
    shown: () => {
      if (session.calls.count) run()
      else fill(out, h('p', { class: 'note' }, 'No request was sent yet: there is nothing to compare.'))
    },
    close: () => {
      asked.abort()
      close()
    },
  }
}
