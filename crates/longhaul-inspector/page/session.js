// One session: what it cost in words, the timeline, what was forgotten, compactions, calls, edits, steering.

import { get, query, sessionPath } from './api.js'
import { kindInWords, layers, whyInWords } from './categories.js'
import { fill, h, tabs } from './dom.js'
import { finder } from './find.js'
import { List } from './list.js'
import { steer, steeringPanel } from './steering.js'
import { ago, atClock, count, lostThinking, oneLine, percent, plural, short, usd, when } from './text.js'
import { Timeline } from './timeline.js'

/** The session in one paragraph: words and dollars. */
function inWords({ calls, cost, billed, window, compactions }) {
  if (!calls.count) return 'No request was sent yet. The timeline begins with the first one.'
  const largest = calls.view.reduce((a, b) => Math.max(a, b), 0)
  const whole = calls.full.at(-1) ?? 0
  const says = [
    `${plural(calls.count, 'call')}; the largest request had ${count(largest)} tokens${window ? `, ${percent(largest / window)} of the window of ${short(window)}` : ''}.`,
  ]
  says.push(
    compactions.length
      ? `${plural(compactions.length, 'compaction')} kept it there: the newest request has ${short(calls.view.at(-1))} tokens of a log of ${short(whole)}.`
      : 'Nothing was compacted.',
  )
  if (cost?.usd !== null && cost?.usd !== undefined) {
    const saved = cost.full_usd ? (cost.full_usd - cost.usd) / cost.full_usd : null
    const against =
      saved === null
        ? ''
        : `; with the whole log in every request it would have been ${usd(cost.full_usd)} (${saved >= 0 ? `${percent(saved)} saved` : `${percent(-saved)} more`})`
    says.push(`It cost ${usd(cost.usd)} ${billed ? 'as billed' : '(estimated)'}${against}.`)
    if (cost.summaries_usd) says.push(`Summaries by a model are ${usd(cost.summaries_usd)} of that.`)
  } else says.push('There are no prices for this model, so no cost is given.')
  return says.join(' ')
}

const heading = session => [
  h('p', { class: 'crumbs' }, h('a', { href: '#/' }, 'Sessions'), ' / '),
  h(
    'h1',
    { tabindex: -1 },
    h('bdi', {}, oneLine(session.title || 'without a title', 160)),
    session.live ? h('span', { class: 'badge live' }, 'live') : null,
  ),
  h(
    'ul',
    { class: 'facts' },
    [
      ['agent', session.agent],
      ['project', session.project],
      ['model', session.model],
      ['profile', session.profile],
      ['window', session.window && count(session.window)],
    ]
      .filter(([, value]) => value)
      .map(([name, value]) => h('li', {}, h('span', {}, name), ' ', h('bdi', {}, oneLine(value, 80)))),
    h(
      'li',
      {},
      h('span', {}, 'last'),
      ' ',
      h('time', { datetime: session.updated, title: when(session.updated) }, ago(session.updated)),
    ),
    h('li', {}, h('span', {}, 'id'), ' ', h('code', {}, oneLine(session.id, 40))),
    session.parent
      ? h('li', {}, h('a', { href: `#/s/${encodeURIComponent(session.parent)}` }, 'forked from another session'))
      : null,
  ),
]

/** Rows of a list under a head of the same columns. */
const columns = (kind, names) =>
  h(
    'div',
    { class: `row-head ${kind}`, 'aria-hidden': 'true' },
    names.map(([name, num]) => h('span', { class: num ? 'num' : null }, name)),
  )
const cells = (kind, values) =>
  h(
    'div',
    { class: `cells ${kind}` },
    values.map(([value, num]) => h('span', { class: num ? 'num' : null }, value)),
  )
const nothing = (title, text) => h('section', { class: 'empty small' }, h('h2', {}, title), h('p', {}, text))

/** Puts what is new behind the calls that are known. */
function grown(old, fresh) {
  if (!fresh.calls.from || !old) return fresh
  const from = fresh.calls.from - 1
  const merge = (before, after) => {
    if (Array.isArray(after)) return [...(before ?? new Array(from).fill(0)).slice(0, from), ...after]
    if (after && typeof after === 'object') {
      const keys = new Set([...Object.keys(before ?? {}), ...Object.keys(after)])
      return Object.fromEntries(
        [...keys].map(key => [key, merge(before?.[key], after[key] ?? new Array(fresh.calls.count - from).fill(0))]),
      )
    }
    return after
  }
  return { ...fresh, calls: merge(old.calls, fresh.calls) }
}

export async function sessionView(page, { id, values }, { follow, tell, me, title }) {
  let session = await get(sessionPath(id))
  const to = call => `#/s/${encodeURIComponent(id)}/c/${call}`
  const open = i => {
    location.hash = to(i + 1)
  }
  title(oneLine(session.title || 'Session', 60))

  const head = h('div', { class: 'head' })
  const summary = h('p', { class: 'lead summary' })
  const opener = h('a', { class: 'button', href: '#/' }, 'Open the call')
  let calls = null
  const tools = []
  const timeline = new Timeline({
    onMove: i => {
      opener.textContent = `Open call ${count(i + 1)}`
      opener.href = to(i + 1)
      calls?.choose(i)
    },
    onOpen: open,
  })

  function compactions() {
    const list = [...session.compactions].reverse()
    if (!list.length) return nothing('Nothing was compacted', 'Every request had the whole log.')
    const kinds = new Map((session.edits ?? []).map(edit => [edit.id, edit.kind]))
    const kindsOf = ({ edits }) => {
      const by = new Map()
      for (const edit of edits) by.set(kinds.get(edit), (by.get(kinds.get(edit)) ?? 0) + 1)
      return [...by].map(([kind, times]) => `${times} × ${kindInWords(kind)}`).join(', ')
    }
    return new List({
      label: 'Compactions, newest first',
      count: list.length,
      height: 34,
      max: 380,
      head: columns('compaction', [
        ['call', true],
        ['tokens', true],
        ['edits', true],
        ['billed again', true],
        ['saved per call', true],
        ['why'],
      ]),
      row: i => {
        const each = list[i]
        return cells('compaction', [
          [h('span', { class: 'to' }, count(each.call)), true],
          [`${short(each.before)} → ${short(each.after)}`, true],
          [count(each.edits.length), true],
          [short(each.rewrites), true],
          [short(each.saves), true],
          [h('span', { title: oneLine(each.says ?? '', 500) }, `${kindsOf(each)}${each.thinking_steps ? `, and ${lostThinking(each)}` : ''}: ${whyInWords(each.why)}`)],
        ])
      },
      onChoose: i => timeline.move(list[i].call - 1),
      onOpen: i => open(list[i].call - 1),
    }).element
  }

  function callList() {
    const of = session.calls
    if (!of.count) return nothing('No call yet', 'The first request of the agent will be the first row.')
    calls = new List({
      label: 'Calls',
      count: of.count,
      height: 30,
      max: 420,
      chosen: timeline.at,
      head: columns('call', [
        ['call', true],
        ['time', true],
        ['request', true],
        ['whole log', true],
        ['read', true],
        ['written', true],
        ['new', true],
        ['output', true],
        ['cost', true],
        ['edits', true],
      ]),
      row: i => {
        const { calls } = session
        return cells('call', [
          [h('span', { class: 'to' }, count(i + 1)), true],
          [atClock(calls.at?.[i]), true],
          [count(calls.view[i]), true],
          [count(calls.full[i]), true],
          [count(calls.read?.[i]), true],
          [count(calls.written?.[i]), true],
          [count(calls.fresh?.[i]), true],
          [count(calls.output?.[i]), true],
          [usd(calls.usd?.[i]), true],
          [calls.edits?.[i] ? count(calls.edits[i]) : '', true],
        ])
      },
      onChoose: i => timeline.move(i),
      onOpen: open,
    })
    requestAnimationFrame(() => calls.choose(timeline.at))
    return calls.element
  }

  function edits() {
    const list = [...(session.edits ?? [])].reverse()
    if (!list.length) return nothing('No edits', 'Nothing was taken out of a request.')
    return new List({
      label: 'Edits, newest first. Enter brings one back or takes it out again',
      count: list.length,
      height: 38,
      max: 420,
      head: columns('edit', [['edit', true], ['call', true], ['tokens', true], ['what'], ['state'], ['']]),
      row: i => {
        const each = list[i]
        const state = each.active
          ? each.held
            ? 'held'
            : 'in force'
          : each.undone_by_person
            ? 'undone by a person'
            : 'undone'
        return cells('edit', [
          [count(each.id), true],
          [count(each.call), true],
          [`${short(each.before)} → ${short(each.after)}`, true],
          [
            h(
              'span',
              { title: whyInWords(each.why) },
              `${kindInWords(each.kind)}, ${oneLine(each.strategy, 60)}: ${each.why}`,
            ),
          ],
          [state],
          [me.can_change ? h('span', { class: 'to' }, each.active ? 'Undo …' : 'Redo …') : ''],
        ])
      },
      onOpen: i => {
        if (me.can_change) steer({ id, tell, changed }, { do: list[i].active ? 'undo' : 'redo', edit: list[i].id })
      },
    }).element
  }

  const draw = () => {
    fill(head, heading(session))
    fill(summary, inWords(session))
    timeline.element.hidden = session.calls.count === 0
    if (session.calls.count) {
      const { calls, limits, window, compactions, prices } = session
      timeline.show({ calls, layers: layers(calls, tools), limits, window, compactions, prices })
    }
  }
  // What changed may have changed every part of the page but not where somebody looks: panels are made anew, choices stay.
  const refresh = async () => {
    session = grown(session, await get(sessionPath(id) + query({ from: session.calls.count || null })))
    draw()
    for (const panel of ['compactions', 'edits', 'steering']) panels.rebuild(panel)
    if (calls?.element.isConnected) calls.resize(session.calls.count)
    else panels.rebuild('calls')
  }
  const changed = () =>
    refresh()
      .then(() => find?.again())
      .catch(error => tell(error.message))

  const panels = tabs(
    'What happened',
    [
      { id: 'compactions', label: 'Compactions', build: () => compactions() },
      { id: 'calls', label: 'Calls', build: () => callList() },
      { id: 'edits', label: 'Edits', build: () => edits() },
      { id: 'steering', label: 'Steering', build: () => steeringPanel({ id, session, me, tell, changed }) },
    ],
    values.tab,
  )

  const find = session.without_content
    ? null
    : finder({ id, session: () => session, me, tell, changed, words: values.find })
  fill(
    page,
    head,
    summary,
    find ?? h('p', { class: 'note' }, 'This session is stored without what was said: figures only.'),
    timeline.element,
    h(
      'div',
      { class: 'buttons after-timeline' },
      opener,
      me.exported ? null : h('a', { class: 'button', href: `#/s/${encodeURIComponent(id)}/whatif` }, 'What if …'),
    ),
    panels,
  )

  let waits = 0
  let behind = false
  const soon = () => {
    if (document.hidden) {
      behind = true
      return
    }
    waits ||= setTimeout(() => {
      waits = 0
      refresh().catch(() => {})
    }, 700)
  }
  const seen = () => {
    if (!document.hidden && behind) {
      behind = false
      soon()
    }
  }
  document.addEventListener('visibilitychange', seen)
  follow(id, soon)
  return {
    shown: draw,
    close: () => {
      clearTimeout(waits)
      document.removeEventListener('visibilitychange', seen)
      timeline.close()
    },
  }
}
