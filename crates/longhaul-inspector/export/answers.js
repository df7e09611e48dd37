// Answers of the inspector in static pages: the same as those of its server, put together from files beside the page.
// A page that was opened from disk may load scripts and nothing else, so the files are scripts that call `take`.
'use strict'

window.longhaulExport = (() => {
  const HEAD = 2000
  const FOUND = 200
  const AROUND = [80, 240]
  /** What the files said: `session`, `rows`, `messages`, `texts-N`, `calls-N`. */
  const taken = new Map()
  const waiting = new Map()

  class Refused extends Error {
    constructor(message, status) {
      super(message)
      this.status = status
    }
  }

  function load(name) {
    if (taken.has(name)) return Promise.resolve(taken.get(name))
    if (!waiting.has(name)) {
      const loads = new Promise((resolve, reject) => {
        const script = document.createElement('script')
        script.src = `data/${name}.js`
        script.onload = () => resolve(taken.get(name))
        script.onerror = () => reject(new Refused(`The file data/${name}.js is missing.`, 404))
        document.head.append(script)
      })
      waiting.set(name, loads)
    }
    return waiting.get(name)
  }

  /** The file that a number is in: files begin with these numbers. */
  const fileOf = (starts, number) => {
    let at = starts.length - 1
    while (at > 0 && starts[at] > number) at--
    return at
  }

  async function texts(numbers) {
    const { texts: starts } = await load('session')
    const files = new Set(numbers.map(number => fileOf(starts, number)))
    const loaded = new Map(await Promise.all([...files].map(async at => [at, await load(`texts-${at}`)])))
    return number => {
      const at = fileOf(starts, number)
      return loaded.get(at)[number - starts[at]]
    }
  }

  /** A block among others: a call with the name of its tool. */
  const said = (block, text) => (block.type === 'tool_call' ? `${block.name} ${text(block.text)}` : text(block.text))
  const whole = (blocks, text) => blocks.map(block => said(block, text)).join('\n')
  const numbersOf = list => list.flatMap(item => item.blocks.map(block => block.text))
  const without = ({ text, ...block }) => block

  async function call(number) {
    const { calls: starts, count } = await load('session')
    if (!(number >= 1 && number <= count))
      throw new Refused(`There is no call ${number}: the session has ${count}, counted from 1.`, 404)
    const at = fileOf(starts, number)
    const [file, rows] = await Promise.all([load(`calls-${at}`), load('rows')])
    let kept = []
    for (let n = starts[at]; n <= number; n++) {
      const [same, ...more] = file[n - starts[at]].rows
      kept = [...kept.slice(0, same), ...more]
    }
    const { rows: _, tokens, warm, ...answer } = file[number - starts[at]]
    const fresh = new Set([...answer.since.added, ...answer.since.changed])
    const parts = kept.map((row, k) => {
      const { saved, ...part } = rows[row]
      return { ...part, k, tokens: tokens[k], tokens_before: tokens[k] + saved, warm: k < warm, new: fresh.has(k) }
    })
    return { answer, parts }
  }

  async function callAnswer(number) {
    const { answer, parts } = await call(number)
    const text = await texts(numbersOf(parts))
    return {
      ...answer,
      parts: parts.map(part => {
        const all = whole(part.blocks, text)
        return { ...part, head: all.slice(0, HEAD), chars: all.length, blocks: part.blocks.map(without) }
      }),
    }
  }

  async function partAnswer(number, k) {
    const { parts } = await call(number)
    const part = parts[k]
    if (!part) throw new Refused(`Call ${number} has ${parts.length} parts, counted from 0.`, 404)
    const { messages } = await load('messages')
    const ranges = part.edits.length ? part.messages : []
    const originals = ranges.flatMap(([first, past]) => messages.slice(first, past))
    const text = await texts([...numbersOf([part]), ...numbersOf(originals)])
    const all = whole(part.blocks, text)
    return {
      k,
      text: all,
      chars: all.length,
      cut: false,
      blocks: part.blocks.map(block => ({ ...block, text: text(block.text) })),
      original: ranges.length
        ? {
            messages: originals.map(({ at, role, blocks }) => ({ at, role, text: whole(blocks, text) })),
            count: originals.length,
            tokens: originals.reduce((sum, { tokens }) => sum + tokens, 0),
            cut: false,
          }
        : null,
      recall: [],
    }
  }

  async function messageAnswer(at) {
    const { messages } = await load('messages')
    const message = messages[at]
    if (!message) throw new Refused(`There is no message ${at}: the log has ${messages.length}, counted from 0.`, 404)
    const text = await texts(numbersOf([message]))
    const all = whole(message.blocks, text)
    const blocks = message.blocks.map(block => ({ ...block, text: text(block.text) }))
    return { ...message, blocks, text: all, chars: all.length, cut: false }
  }

  function snippet(all, words) {
    const low = all.toLowerCase()
    const first = low.indexOf(words)
    if (first < 0) return null
    const start = Math.max(0, first - AROUND[0])
    const shown = all.slice(start, first + AROUND[1])
    const found = []
    for (let at = low.indexOf(words, start); at >= 0 && at + words.length <= start + shown.length; ) {
      found.push([at - start, at - start + words.length])
      at = low.indexOf(words, at + words.length)
    }
    return { snippet: shown, found }
  }

  async function findAnswer(query) {
    const words = query.toLowerCase()
    if (!words) throw new Refused('The query has no `q`.', 400)
    const [{ messages, edits: shownBy }, { answers }] = await Promise.all([load('messages'), load('session')])
    const { calls, edits } = answers.session
    const text = await texts([...numbersOf(messages), ...Object.values(shownBy)])
    const hits = []
    let total = 0
    for (const { at, role, blocks, shown } of messages) {
      const all = whole(blocks, text)
      const hit = snippet(all, words)
      if (!hit || ++total > FOUND) continue
      const says = ({ as, edit }) =>
        as === 'whole' || (edit in shownBy && text(shownBy[edit]).toLowerCase().includes(words))
      const behind = at => (at < 0 ? shown[0]?.from_call : shown[at + 1]?.from_call) ?? null
      const lastWhole = shown.findLastIndex(({ as }) => as === 'whole')
      const first = shown[0] && shown[0].from_call <= calls.count ? shown[0].from_call : null
      const sent = shown.findLast(({ as, from_call }) => as === 'whole' && from_call <= calls.count)
      const now = shown.at(-1)
      hits.push({
        at,
        role,
        ...hit,
        first_call: first,
        last_whole_call: sent ? Math.min(sent.to_call ?? calls.count, calls.count) : null,
        gone_at_call: behind(lastWhole),
        words_gone_at_call: behind(shown.findLastIndex(says)),
        as: now?.as ?? 'whole',
        edit: now?.edit == null ? null : edits[now.edit],
      })
    }
    return { messages: hits, total }
  }

  async function get(path) {
    const address = new URL(path, 'http://page/')
    const { answers } = await load('session')
    const parts = address.pathname.split('/').filter(Boolean).slice(1).map(decodeURIComponent)
    const [what, id, kind, one, more, other] = parts
    if (what === 'me' || what === 'sessions') return answers[what]
    if (what !== 'session') throw new Refused('This is not in static pages: it needs `longhaul inspect`.', 404)
    if (id !== answers.session.id) throw new Refused(`There is no session ${id} in these pages.`, 404)
    if (kind === undefined) return answers.session
    if (kind === 'figures') return answers.sessions.sessions[0]
    if (kind === 'call' && more === undefined) return callAnswer(Number(one))
    if (kind === 'call' && more === 'part') return partAnswer(Number(one), Number(other))
    if (kind === 'message') return messageAnswer(Number(one))
    if (kind === 'find') return findAnswer(address.searchParams.get('q') ?? '')
    throw new Refused('This is not in static pages: it needs `longhaul inspect`.', 404)
  }

  return { get, take: (name, value) => taken.set(name, value) }
})()
