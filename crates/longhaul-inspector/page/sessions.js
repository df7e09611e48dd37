// All sessions that the store holds, newest first; the table follows agents at work.

import { get, query, sessionPath } from './api.js'
import { fill, h } from './dom.js'
import { ago, count, oneLine, plural, short, usd, when } from './text.js'

const STEP = 100

/** A small bar: how much of the window the request takes. */
function meter(view, window) {
  if (!view || !window) return h('span', { class: 'faint' }, '–')
  const share = Math.min(1, view / window)
  return h(
    'span',
    { class: 'meter', title: `${count(view)} of ${count(window)} tokens` },
    h(
      'span',
      { class: 'meter-bar', 'aria-hidden': 'true' },
      h('span', { style: { width: `${(share * 100).toFixed(1)}%` } }),
    ),
    h('span', { class: 'num' }, `${short(view)} / ${short(window)}`),
  )
}

function row(session) {
  const name = oneLine(session.title || 'without a title', 140)
  return h(
    'tr',
    { data: { id: session.id } },
    h(
      'th',
      { scope: 'row' },
      h('a', { href: `#/s/${encodeURIComponent(session.id)}`, class: 'title' }, h('bdi', {}, name)),
      h(
        'span',
        { class: 'under' },
        session.live ? h('span', { class: 'badge live' }, 'live') : null,
        session.without_content ? h('span', { class: 'badge' }, 'figures only') : null,
        session.parent ? h('span', { class: 'badge' }, 'fork') : null,
        h('bdi', {}, oneLine([session.agent, session.project].filter(Boolean).join(' · '), 90)),
      ),
    ),
    h('td', { class: 'wide-only model' }, h('bdi', {}, oneLine(session.model ?? '–', 40))),
    h('td', { class: 'num', data: { label: 'calls' } }, count(session.calls)),
    h('td', { class: 'num', data: { label: 'request / window' } }, meter(session.view, session.window)),
    h('td', { class: 'num', data: { label: 'cost' } }, usd(session.cost)),
    h('td', { class: 'num', data: { label: 'not sent' } }, session.saved_tokens ? short(session.saved_tokens) : '–'),
    h(
      'td',
      { class: 'num', data: { label: 'last' } },
      h('time', { datetime: session.updated, title: when(session.updated) }, ago(session.updated)),
    ),
  )
}

const choice = (id, label, values, chosen, onChange) =>
  h(
    'label',
    { class: 'choice' },
    h('span', {}, label),
    h(
      'select',
      { id, on: { change: event => onChange(event.target.value) } },
      h('option', { value: '' }, 'all'),
      values.map(value => h('option', { value, selected: value === chosen }, oneLine(value, 60))),
    ),
  )

export async function sessionsView(page, { values }, { follow, title }) {
  title('Sessions')
  let wanted = { agent: values.agent ?? '', project: values.project ?? '', words: '' }
  let limit = STEP
  const body = h('tbody')
  const controls = h('div', { class: 'filters' })
  const foot = h('div', { class: 'foot' })
  const summary = h('p', { class: 'lead' })
  const table = h(
    'table',
    { class: 'sessions' },
    h('caption', { class: 'away' }, 'Sessions, the one written to last first'),
    h(
      'thead',
      {},
      h(
        'tr',
        {},
        h('th', { scope: 'col' }, 'session'),
        h('th', { scope: 'col', class: 'wide-only' }, 'model'),
        ...['calls', 'request / window', 'cost', 'not sent', 'last'].map(name =>
          h('th', { scope: 'col', class: 'num' }, name),
        ),
      ),
    ),
    body,
  )
  const empty = h('div')
  let answer = null
  let closed = false

  const draw = () => {
    const words = wanted.words.toLowerCase()
    const rows = answer.sessions.filter(
      each =>
        !words ||
        [each.title, each.agent, each.project, each.model, each.id].some(text => text?.toLowerCase().includes(words)),
    )
    const held = document.activeElement?.closest?.('tr')?.dataset.id
    fill(
      body,
      rows.map(each => row({ ...each, ...figures.get(key(each)) })),
    )
    if (held)
      [...body.rows]
        .find(each => each.dataset.id === held)
        ?.querySelector('a')
        ?.focus({ preventScroll: true })
    table.hidden = rows.length === 0
    const total = answer.total ?? answer.sessions.length
    const live = answer.sessions.filter(each => each.live).length
    fill(
      summary,
      total === 0
        ? 'Nothing is stored yet.'
        : `${plural(total, 'session')}${live ? `, ${live} at work` : ''}. The one written to last stands first.`,
    )
    fill(
      empty,
      rows.length > 0
        ? null
        : total === 0 && !wanted.agent && !wanted.project
          ? h(
              'section',
              { class: 'empty' },
              h('h2', {}, 'No session yet'),
              h('p', {}, 'What an agent says behind the gateway is shown here while it works:'),
              h('pre', {}, 'longhaul wrap claude'),
              h('p', {}, 'Or look at a recorded session of Claude Code, Codex, pi and others:'),
              h('pre', {}, 'longhaul inspect session.jsonl'),
            )
          : h(
              'section',
              { class: 'empty' },
              h('h2', {}, 'No session fits'),
              h('p', {}, 'Take a filter away, or search everything that was said above.'),
            ),
    )
    fill(
      foot,
      answer.sessions.length < total
        ? h(
            'button',
            {
              type: 'button',
              on: {
                click: () => {
                  limit += STEP
                  load()
                },
              },
            },
            `Show more: ${count(answer.sessions.length)} of ${count(total)} are shown`,
          )
        : null,
    )
  }
  // Figures of sessions that the server has not looked at yet come one after another, behind the table.
  const figures = new Map()
  let looking = false
  const key = each => `${each.id} ${each.updated}`
  const complete = async () => {
    if (looking) return
    looking = true
    try {
      for (
        let next;
        (next = answer.sessions.find(
          each => each.view === null && each.calls > 0 && !each.without_content && !figures.has(key(each)),
        )) && !closed;
      ) {
        figures.set(key(next), await get(sessionPath(next.id, 'figures')).catch(() => ({})))
        draw()
      }
    } finally {
      looking = false
    }
  }
  const load = async () => {
    answer = await get(`sessions${query({ agent: wanted.agent, project: wanted.project, limit })}`)
    draw()
    complete()
  }
  const set = change => {
    wanted = { ...wanted, ...change }
    load()
  }

  await load()
  fill(
    controls,
    h(
      'label',
      { class: 'choice grow' },
      h('span', {}, 'filter'),
      h('input', {
        type: 'search',
        placeholder: 'title, agent, project, model',
        autocomplete: 'off',
        spellcheck: 'false',
        on: {
          input: event => {
            wanted.words = event.target.value.trim()
            draw()
          },
        },
      }),
    ),
    choice('agent', 'agent', answer.agents ?? [], wanted.agent, agent => set({ agent })),
    choice('project', 'project', answer.projects ?? [], wanted.project, project => set({ project })),
  )
  fill(
    page,
    h('h1', { tabindex: -1 }, 'Sessions'),
    summary,
    controls,
    h('div', { class: 'scroll' }, table),
    empty,
    foot,
  )

  // Many sessions may be at work: the table is asked for once a second at most.
  let waits = 0
  follow(null, () => {
    waits ||= setTimeout(() => {
      waits = 0
      load().catch(() => {})
    }, 700)
  })
  const clock = setInterval(draw, 60_000)
  return {
    close: () => {
      closed = true
      clearTimeout(waits)
      clearInterval(clock)
    },
  }
}
