// "It forgot": finds a message in the whole log of a session, says which call was the first without it and why, and
// brings it back.

import { get, query, sessionPath } from './api.js'
import { bringBack } from './bring_back.js'
import { kindInWords, whyInWords } from './categories.js'
import { fill, h } from './dom.js'
import { snippet } from './search.js'
import { count, oneLine, plural, short } from './text.js'

const FIRST = 20

/** The edits that ever stood over a message, the oldest first. */
const over = (edits, at) => edits.filter(edit => edit.messages?.some(([first, past]) => at >= first && at < past))

/** The call at which requests lost it: the words, if that is known, else the whole message. */
const lostAt = hit => (hit.words_gone_at_call === undefined ? hit.gone_at_call : hit.words_gone_at_call)

/** The sentence that answers the question, in the order people ask: is it there, since when not, why. */
function verdict(hit, edits, session) {
  const whole = hit.gone_at_call
  if (whole && isPinned(hit, session))
    return [
      h('strong', { class: 'good' }, 'It is back, as a pin.'),
      ` Not whole since call ${count(whole)}, but every request has the pin from the next on.`,
    ]
  if (whole) {
    const lost = lostAt(hit)
    const edit =
      edits.find(each => each.call === (lost ?? whole)) ?? edits.find(each => each.call === whole) ?? hit.edit
    const why = edit
      ? ` At call ${count(edit.call)} it was ${kindInWords(edit.kind)} (${oneLine(edit.strategy, 40)}, ${short(edit.before)} → ${short(edit.after)} tokens): ${whyInWords(edit.why)}.`
      : ''
    const upto = hit.last_whole_call
      ? ` Requests had it whole up to call ${count(hit.last_whole_call)}`
      : ' No request had it whole'
    // A summary often keeps the very line that somebody looks for.
    if (lost === null)
      return [
        h('strong', { class: 'part' }, 'Only in part.'),
        `${upto}; since call ${count(whole)} something shorter stands in its place, which still says it.`,
        why,
      ]
    return [
      h('strong', { class: 'bad' }, `Gone since call ${count(lost)}.`),
      lost > whole
        ? `${upto}; from call ${count(whole)} on something shorter stood in its place, which said it until call ${count(lost - 1)}.`
        : `${upto}.`,
      why,
    ]
  }
  if (isBack(hit, edits))
    return [
      h('strong', { class: 'good' }, 'It is back.'),
      ` From call ${count(edits[0].call)} on it was ${kindInWords(edits[0].kind)}; that is undone, and the next request has it whole.`,
    ]
  if (hit.last_whole_call)
    return [
      h('strong', { class: 'good' }, 'It is there.'),
      ` Every request since has it whole, the newest (call ${count(session.calls.count)}) too.`,
    ]
  return [h('strong', {}, 'Not sent yet.'), ' It came after the newest request.']
}

/** Whether a pin has the words. */
function isPinned(hit, { pins = [] }) {
  const words = hit.snippet.slice(...(hit.found?.[0] ?? [0, 0])).toLowerCase()
  return words !== '' && pins.some(pin => pin.text.toLowerCase().includes(words))
}

/** Whether it was taken out, and nothing stands over it any more. */
const isBack = (hit, edits) => !hit.gone_at_call && edits.length > 0 && edits.every(edit => !edit.active)

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
    const missing = messages.filter(hit => hit.gone_at_call).length
    fill(
      results,
      h(
        'p',
        { class: 'lead' },
        `${plural(messages.length, 'message')} ${messages.length === 1 ? 'has' : 'have'} it, ${missing ? `${count(missing)} no longer whole in requests` : 'all still whole in requests'}.`,
      ),
      h(
        'ol',
        { class: 'hits' },
        messages.slice(0, most).map(hit => {
          const edits = over(session().edits ?? [], hit.at)
          const to = call => `#/s/${encodeURIComponent(id)}/c/${call}?message=${hit.at}`
          return h(
            'li',
            { data: { message: hit.at } },
            h('span', { class: 'under' }, `message ${count(hit.at)} · ${oneLine(hit.role, 30)}`),
            snippet(hit.snippet, hit.found),
            h('p', { class: 'verdict' }, verdict(hit, edits, session())),
            h(
              'div',
              { class: 'buttons' },
              hit.gone_at_call
                ? h(
                    'a',
                    { class: 'button', href: to(lostAt(hit) ?? hit.gone_at_call) },
                    `Show call ${count(lostAt(hit) ?? hit.gone_at_call)}`,
                  )
                : null,
              hit.last_whole_call && !isBack(hit, edits)
                ? h(
                    'a',
                    { class: 'button', href: to(hit.last_whole_call) },
                    hit.gone_at_call
                      ? `Last call that had it whole: ${count(hit.last_whole_call)}`
                      : `Show it in call ${count(hit.last_whole_call)}`,
                  )
                : null,
              hit.gone_at_call && me.can_change
                ? h(
                    'button',
                    {
                      type: 'button',
                      class: 'main',
                      on: { click: () => bringBack({ id, tell, changed }, hit, isPinned(hit, session())) },
                    },
                    'Bring it back …',
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
  /** Looks again, behind a change. */
  element.again = () => look(box.value.trim())
  return element
}
