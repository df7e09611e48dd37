// "It forgot": finds a message in the whole log of a session, says which call was the first without it and why, and
// brings it back.

import { get, query, sessionPath } from './api.js'
import { kindInWords, shownInWords, whyInWords } from './categories.js'
import { fill, h } from './dom.js'
import { snippet } from './search.js'
import { steer } from './steering.js'
import { count, oneLine, plural, short } from './text.js'

const FIRST = 20

/** The sentence that answers the question, in the order people ask: is it there, since when not, why. */
function verdict(hit, edit, calls) {
  const gone = hit.gone_at_call
  if (gone && edit && edit.active === false) {
    return [
      h('strong', { class: 'good' }, 'It is back.'),
      ` From call ${count(gone)} on it was ${kindInWords(edit.kind)}; that edit is undone, and the next request has it whole.`,
    ]
  }
  if (gone) {
    // A summary often keeps the very line that somebody looks for.
    const words = hit.words_gone_at_call
    const still =
      words === undefined || words === gone
        ? ''
        : words === null
          ? ' The words that you look for still stand in what replaced it.'
          : ` The words that you look for stood in what replaced it until call ${count(words - 1)}.`
    const before = hit.last_whole_call
      ? `Requests had it whole up to call ${count(hit.last_whole_call)}. `
      : 'No request ever had it whole. '
    return [
      h('strong', { class: 'bad' }, `Not whole since call ${count(gone)}.`),
      ' ',
      before,
      edit
        ? `There it was ${hit.as ? shownInWords(hit.as) : kindInWords(edit.kind)} (${edit.strategy}, ${short(edit.before)} → ${short(edit.after)} tokens): ${whyInWords(edit.why)}.`
        : '',
      still,
    ]
  }
  if (hit.last_whole_call)
    return [
      h('strong', { class: 'good' }, 'It is there.'),
      ` Every request since has it whole, the newest (call ${count(calls)}) too.`,
    ]
  return [h('strong', {}, 'Not sent yet.'), ' It came after the newest request.']
}

/** The line that the words stand in: a cheap thing to pin where the whole message is dear to bring back. */
function lineOf({ snippet, found }) {
  const [start, end] = found?.[0] ?? [0, 0]
  const past = snippet.indexOf('\n', end)
  return snippet
    .slice(snippet.lastIndexOf('\n', Math.max(0, start - 1)) + 1, past < 0 ? snippet.length : past)
    .replace(/^\s*(\d+→)?/, '')
    .trim()
}

/** The box, and what it found. `session()` gives the newest answer about the session. */
export function finder({ id, session, me, tell, changed, words = '' }) {
  const results = h('div', { class: 'found', 'aria-live': 'polite' })
  const box = h('input', {
    id: 'find',
    type: 'search',
    value: words,
    placeholder: 'a name, a path, a sentence',
    autocomplete: 'off',
    spellcheck: 'false',
  })
  let asked = null

  const after = words => ({
    id,
    tell,
    changed: () => {
      changed()
      look(words)
    },
  })
  const draw = (messages, words, most = FIRST) => {
    if (messages.length === 0) {
      fill(
        results,
        h(
          'p',
          { class: 'note' },
          `“${oneLine(words, 80)}” is nowhere in this session: nobody said it and no tool answered it.`,
        ),
      )
      return
    }
    const edits = new Map((session().edits ?? []).map(edit => [edit.id, edit]))
    fill(
      results,
      h('p', { class: 'lead' }, `${plural(messages.length, 'message')} ${messages.length === 1 ? 'has' : 'have'} it.`),
      h(
        'ol',
        { class: 'hits' },
        messages.slice(0, most).map(hit => {
          const edit =
            typeof hit.edit === 'object' && hit.edit
              ? { ...hit.edit, ...edits.get(hit.edit.id) }
              : (edits.get(hit.edit) ?? null)
          const to = call => `#/s/${encodeURIComponent(id)}/c/${call}?message=${hit.at}`
          return h(
            'li',
            { data: { message: hit.at } },
            h('span', { class: 'under' }, `message ${count(hit.at)} · ${oneLine(hit.role, 30)}`),
            snippet(hit.snippet, hit.found),
            h('p', { class: 'verdict' }, verdict(hit, edit, session().calls.count)),
            h(
              'div',
              { class: 'buttons' },
              hit.gone_at_call
                ? h('a', { class: 'button', href: to(hit.gone_at_call) }, `Show call ${count(hit.gone_at_call)}`)
                : null,
              hit.last_whole_call
                ? h(
                    'a',
                    { class: 'button', href: to(hit.last_whole_call) },
                    hit.gone_at_call
                      ? `Last call that had it: ${count(hit.last_whole_call)}`
                      : `Show it in call ${count(hit.last_whole_call)}`,
                  )
                : null,
              edit && hit.gone_at_call && edit.active !== false && me.can_change
                ? h(
                    'button',
                    {
                      type: 'button',
                      class: 'main',
                      on: { click: () => steer(after(words), { do: 'restore', message: hit.at }) },
                    },
                    'Bring it back …',
                  )
                : null,
              hit.gone_at_call && me.can_change
                ? h(
                    'button',
                    { type: 'button', on: { click: () => steer(after(words), { do: 'pin', text: lineOf(hit) }) } },
                    'Pin the line …',
                  )
                : null,
            ),
          )
        }),
      ),
      messages.length > most
        ? h(
            'button',
            { type: 'button', on: { click: () => draw(messages, words, most * 5) } },
            `Show more: ${most} of ${count(messages.length)} are shown`,
          )
        : null,
    )
  }
  const look = async words => {
    asked?.abort()
    if (!words) return fill(results)
    asked = new AbortController()
    fill(results, h('p', { class: 'wait' }, 'Looking through the whole log …'))
    try {
      const { messages } = await get(sessionPath(id, `find${query({ q: words })}`), asked.signal)
      draw(messages, words)
    } catch (error) {
      if (error.name !== 'AbortError') fill(results, h('p', { class: 'note bad' }, error.message))
    }
    return undefined
  }
  const element = h(
    'section',
    { class: 'finder' },
    h(
      'form',
      {
        role: 'search',
        'aria-label': 'In this session',
        on: {
          submit: event => {
            event.preventDefault()
            const words = box.value.trim()
            history.replaceState(null, '', `#/s/${encodeURIComponent(id)}${query({ find: words })}`)
            look(words)
          },
        },
      },
      h('label', { for: 'find' }, 'Did it forget something?'),
      box,
      h('button', {}, 'Find'),
    ),
    results,
  )
  if (words) look(words)
  return element
}
