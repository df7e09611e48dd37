// One call: the request as it was sent, as a list of parts; what changed since the call before, what the whole log has and it
// has not, the provider's JSON, and the answer.

import { address, get, getText, query, sessionPath } from './api.js'
import { category, kindInShort, kindInWords, swatch, whyInWords } from './categories.js'
import { fill, h, tabs } from './dom.js'
import { List } from './list.js'
import { longText } from './long_text.js'
import { named, PartDetail, spans } from './part.js'
import { steer } from './steering.js'
import { Strip } from './strip.js'
import { count, oneLine, percent, plural, usd, when } from './text.js'

const APIS = [
  ['anthropic', 'Anthropic Messages'],
  ['openai', 'OpenAI Chat'],
  ['openai-responses', 'OpenAI Responses'],
]

export async function callView(page, params, { follow, tell, me, title }) {
  const { id, call: n } = params
  const own = sessionPath(id, 'call', n)
  const session = `#/s/${encodeURIComponent(id)}`
  let call = await get(own)
  const about = { calls: call.calls ?? null, title: call.title ?? null }
  title(`Call ${n}`)

  const frame = {
    k: 'frame',
    source: 'frame',
    category: 'system',
    messages: [],
    edits: [],
    tokens: call.frame?.tokens ?? 0,
    tokens_before: call.frame?.tokens ?? 0,
    warm: call.frame?.warm,
    new: n === 1,
    head: call.frame?.system ?? '',
  }
  const parts = call.frame ? [frame, ...call.parts] : call.parts
  const partAt = k => parts.findIndex(part => String(part.k) === String(k))
  const holding = message =>
    parts.findIndex(part => part.messages?.some(([first, past]) => message >= first && message < past))

  const wanted = values => (values.message === undefined ? null : Number(values.message))
  const detail = new PartDetail({
    id,
    own,
    frame: call.frame,
    me,
    act: action => steer({ id, tell, changed }, action),
    link: k => `${session}/c/${n}/p/${k}`,
    message: wanted(params.values),
  })
  const show = part => detail.show(part)
  const changed = async () => {
    call = await get(own)
    const fresh = new Map(call.parts.map(part => [part.k, part]))
    for (const part of parts) if (fresh.has(part.k)) part.edits = fresh.get(part.k).edits
    show(parts[list.chosen])
  }

  const list = new List({
    label: 'Parts of the request',
    count: parts.length,
    height: 46,
    max: 640,
    row: i => {
      const part = parts[i]
      return [
        swatch(category(part.category)),
        h(
          'span',
          { class: 'what' },
          h('span', {}, oneLine(named(part), 34)),
          h(
            'span',
            { class: 'marks' },
            part.new ? h('span', { class: 'badge new' }, 'new') : null,
            part.edits.length ? h('span', { class: 'badge edited' }, kindInShort(part.edits[0].kind)) : null,
            part.warm ? h('span', { class: 'badge warm' }, 'cached') : null,
          ),
        ),
        h('span', { class: 'head' }, h('bdi', {}, oneLine(part.head ?? '', 110))),
        h('span', { class: 'num' }, count(part.tokens)),
      ]
    },
    onChoose: i => {
      history.replaceState(null, '', `${session}/c/${n}/p/${parts[i].k}`)
      strip.draw(i)
      show(parts[i])
    },
    onOpen: () => detail.element.querySelector('.text, .more, button, a')?.focus({ preventScroll: innerWidth > 900 }),
  })

  const strip = new Strip(parts, i => list.choose(i, true))

  const linkTo = k => h('span', { class: 'to' }, k === 'frame' ? 'frame' : `part ${count(k)}`)

  function changes() {
    if (n === 1) return h('p', { class: 'note' }, 'This is the first call: all of it is new.')
    const { added = [], removed = [], changed = [] } = call.since ?? {}
    const tokens = keys => keys.reduce((sum, k) => sum + (parts[partAt(k)]?.tokens ?? 0), 0)
    const group = (heading, keys, kind) => [
      h('h3', {}, `${heading}: ${plural(keys.length, 'part')}, ${count(tokens(keys))} tokens`),
      keys.length === 0
        ? null
        : new List({
            label: heading,
            count: keys.length,
            height: 34,
            max: 320,
            row: i => {
              const part = parts[partAt(keys[i])]
              return part
                ? [
                    h('span', { class: `sign ${kind}` }, kind === 'plus' ? '+' : '~'),
                    swatch(category(part.category)),
                    linkTo(part.k),
                    h('span', { class: 'what' }, oneLine(named(part), 30)),
                    h('span', { class: 'head' }, h('bdi', {}, oneLine(part.head, 110))),
                    h('span', { class: 'num' }, count(part.tokens)),
                  ]
                : []
            },
            onOpen: i => {
              location.hash = `${session}/c/${n}/p/${keys[i]}`
            },
          }).element,
    ]
    return h(
      'div',
      {},
      h(
        'p',
        { class: 'lead' },
        call.broke
          ? 'This request does not extend the one before: from the first change on, all was billed again.'
          : 'This request extends the one before: what stood there was read from the cache.',
      ),
      group('Added', added, 'plus'),
      group('Changed', changed, 'tilde'),
      h(
        'h3',
        {},
        `Taken out: ${plural(removed.length, 'part')}, ${count(removed.reduce((sum, each) => sum + (each.tokens ?? 0), 0))} tokens`,
      ),
      removed.length
        ? new List({
            label: 'Taken out',
            count: removed.length,
            height: 34,
            max: 320,
            row: i => [
              h('span', { class: 'sign minus' }, '−'),
              h('span', { class: 'what' }, `message ${spans(removed[i].messages)}`),
              h('span', { class: 'head' }, h('bdi', {}, oneLine(removed[i].was ?? '', 140))),
              h('span', { class: 'num' }, count(removed[i].tokens)),
            ],
          }).element
        : null,
    )
  }

  function against() {
    const gone = call.gone ?? []
    if (!gone.length) return h('p', { class: 'note' }, 'Nothing is left out: this request is the whole log.')
    const edits = new Map(parts.flatMap(part => part.edits.map(edit => [edit.id, { ...edit, k: part.k }])))
    return h(
      'div',
      {},
      h(
        'p',
        { class: 'lead' },
        `The whole log has ${count(call.full)} tokens, this request ${count(call.view)} (${percent(call.view / call.full)}). What it has not, by the edit that took it out:`,
      ),
      new List({
        label: 'Left out',
        count: gone.length,
        height: 38,
        max: 520,
        row: i => {
          const edit = edits.get(gone[i].edit)
          return [
            h('span', { class: 'sign minus' }, '−'),
            h('span', { class: 'what' }, `message ${spans(gone[i].messages)}`),
            h(
              'span',
              { class: 'head' },
              edit
                ? `${kindInWords(edit.kind)} by ${oneLine(edit.strategy, 40)}: ${whyInWords(edit.why)}`
                : `edit ${gone[i].edit}`,
            ),
            edit ? linkTo(edit.k) : null,
            h('span', { class: 'num' }, count(gone[i].tokens)),
          ]
        },
        onOpen: i => {
          const edit = edits.get(gone[i].edit)
          if (edit) location.hash = `${session}/c/${n}/p/${edit.k}`
        },
      }).element,
    )
  }

  function raw() {
    const out = h('div', { class: 'raw' })
    const choose = h(
      'select',
      { id: 'raw-api', on: { change: () => load() } },
      APIS.map(([name, label]) => h('option', { value: name, selected: name === call.api }, label)),
    )
    const path = () => `${own}/raw${query({ api: choose.value })}`
    const load = async () => {
      fill(out, h('p', { class: 'wait' }, 'Writing the request …'))
      try {
        const text = await getText(path())
        fill(
          out,
          h(
            'div',
            { class: 'buttons' },
            h(
              'button',
              {
                type: 'button',
                on: {
                  click: async () => {
                    await navigator.clipboard.writeText(text).then(
                      () => tell('Copied.'),
                      () => tell('The browser does not allow to copy here: use the download.'),
                    )
                  },
                },
              },
              'Copy',
            ),
            h('a', { class: 'button', href: address(`${path()}&download`), download: '' }, 'Download'),
            h('span', { class: 'faint' }, `${count(text.length)} characters`),
          ),
          longText(text, { label: "The request in the provider's format" }),
        )
      } catch (error) {
        fill(out, h('p', { class: 'note bad', role: 'alert' }, error.message))
      }
    }
    load()
    return h('div', {}, h('p', {}, h('label', { for: 'raw-api' }, 'The request as JSON of '), choose), out)
  }

  function answered() {
    const { answer } = call
    if (!answer)
      return h('p', { class: 'note' }, 'No answer is recorded: the call failed, or the answer has not come yet.')
    return h(
      'div',
      {},
      h(
        'p',
        { class: 'under' },
        `message ${(answer.messages ?? []).map(count).join(', ')} of the log${call.output ? ` · ${count(call.output)} tokens` : ''}`,
      ),
      longText(answer.text ?? '', { label: 'The answer' }),
    )
  }

  const last = about.calls
  const step = (to, label, key) =>
    to >= 1 && (last === null || to <= last)
      ? h('a', { class: 'button', href: `${session}/c/${to}`, data: { key }, title: `${label} (${key})` }, label)
      : h('span', { class: 'button off', 'aria-disabled': 'true' }, label)
  const figures = [
    ['request', `${count(call.view)}${call.window ? ` (${percent(call.view / call.window, 1)})` : ''}`],
    ['whole log', count(call.full)],
    ['read', count(call.read)],
    ['written', count(call.written)],
    ['new', count(call.fresh)],
    ['output', count(call.output)],
    [call.billed ? 'cost, as billed' : 'cost, estimated', usd(call.usd)],
  ]

  fill(
    page,
    h(
      'p',
      { class: 'crumbs' },
      h('a', { href: '#/' }, 'Sessions'),
      ' / ',
      h('a', { href: session }, h('bdi', {}, oneLine(about.title || 'the session', 70))),
      ' / ',
    ),
    h(
      'div',
      { class: 'title-row' },
      h('h1', { tabindex: -1 }, `Call ${count(n)}`),
      h('span', { class: 'faint' }, when(call.at)),
      h(
        'nav',
        { class: 'buttons', 'aria-label': 'Calls' },
        step(n - 1, '← call before', '['),
        step(n + 1, 'next call →', ']'),
      ),
    ),
    h(
      'dl',
      { class: 'readout' },
      figures.map(([name, value]) => h('div', {}, h('dt', {}, name), h('dd', {}, value))),
    ),
    tabs(
      'The call',
      [
        {
          id: 'request',
          label: 'Request',
          count: count(parts.length),
          build: () => [strip.element, h('div', { class: 'parts' }, list.element, detail.element)],
        },
        { id: 'changes', label: 'Changes since the call before', build: changes },
        { id: 'log', label: 'Against the whole log', build: against },
        { id: 'raw', label: 'Raw JSON', build: raw },
        { id: 'answer', label: 'Answer', build: answered },
      ].filter(tab => tab.id !== 'raw' || !me.exported),
      params.values.tab,
    ),
  )

  const pick = to => {
    const wanted =
      to.part !== null ? partAt(to.part) : to.values.message !== undefined ? holding(Number(to.values.message)) : -1
    const first = parts.findIndex(part => part.new && part.k !== 'frame')
    return wanted >= 0 ? wanted : first >= 0 ? first : 0
  }
  const tabbed = page.querySelector('.tabbed')
  follow(id, () => {})
  return {
    shown: () => {
      list.choose(pick(params))
      strip.draw(list.chosen)
      return show(parts[list.chosen])
    },
    update: to => {
      if (to.id !== id || to.call !== n) return false
      detail.message = wanted(to.values)
      tabbed.show('request')
      list.choose(pick(to))
      strip.draw(list.chosen)
      show(parts[list.chosen])
      return true
    },
    close: () => {
      detail.close()
      strip.close()
    },
  }
}
