// Brings back what requests no longer have, in one of two ways: the words as a pin, which costs what they are long, or
// the message in its place, by undoing what took it out, which costs all that is sent anew. Both have their price beside
// them before anything is done.

import { get, post, sessionPath } from './api.js'
import { fill, h } from './dom.js'
import { shownPreview } from './preview.js'
import { count, oneLine } from './text.js'

/** A message that is no longer than this is pinned whole, of a longer one the line that was looked for. */
const SHORT = 1_500
const PAUSE_MS = 400

/** The line that the words stand in, without the number that a tool put before it. */
function lineOf({ snippet, found }) {
  const [start, end] = found?.[0] ?? [0, 0]
  const past = snippet.indexOf('\n', end)
  const first = start === 0 ? 0 : snippet.lastIndexOf('\n', start - 1) + 1
  return snippet
    .slice(first, past < 0 ? snippet.length : past)
    .replace(/^\s*\d+→/, '')
    .trim()
}

/** Opens the dialog for a message that `find` gave; a pin may have its words already. `changed` is called behind a change. */
export function bringBack({ id, tell, changed }, hit, isPinned) {
  const opener = document.activeElement
  const body = h(
    'div',
    { class: 'sheet-body ways' },
    h('p', { class: 'wait' }, 'Making the next request, without sending it …'),
  )
  const dialog = h(
    'dialog',
    { class: 'sheet broad', 'aria-labelledby': 'back-title' },
    h('h2', { id: 'back-title' }, 'Bring it back'),
    h('p', { class: 'under' }, `message ${count(hit.at)} · ${oneLine(hit.role, 30)}`),
    body,
    h(
      'div',
      { class: 'buttons' },
      h('button', { type: 'button', on: { click: () => dialog.close() } }, 'Leave it as it is'),
    ),
  )
  let open = true
  dialog.addEventListener('close', () => {
    open = false
    dialog.remove()
    if (opener?.isConnected) opener.focus()
  })
  const preview = action => post(sessionPath(id, 'preview'), action)
  const act = async (action, button, says) => {
    button.disabled = true
    try {
      await post(sessionPath(id, 'act'), action)
      dialog.close()
      tell(says)
      changed()
    } catch (error) {
      button.disabled = false
      tell(error.message)
    }
  }
  const price = answer => (answer.error ? h('p', { class: 'note bad' }, answer.error) : shownPreview(answer))
  const asked = action => preview(action).catch(error => ({ error: error.message }))

  function pinWay(text, first, isBest) {
    const box = h('textarea', { id: 'back-text', rows: 4 })
    box.value = text
    const figures = h('div', {}, price(first))
    let waits = 0
    box.addEventListener('input', () => {
      clearTimeout(waits)
      waits = setTimeout(async () => {
        const words = box.value.trim()
        if (!words || !open) return
        const answer = await asked({ do: 'pin', text: words })
        if (open && box.value.trim() === words) fill(figures, price(answer))
      }, PAUSE_MS)
    })
    const button = h('button', { type: 'button', class: isBest ? 'main' : null }, 'Pin it')
    button.addEventListener('click', () => {
      const words = box.value.trim()
      if (words) act({ do: 'pin', text: words }, button, 'It is pinned: every request has it from the next on.')
      else box.focus()
    })
    return h(
      'section',
      { class: 'way' },
      h('h3', {}, 'As a pin'),
      h('label', { for: 'back-text' }, 'Stays in every request, whatever is compacted'),
      box,
      figures,
      h('div', { class: 'buttons' }, button),
    )
  }

  function undoWay(answer, isBest) {
    const button = h('button', { type: 'button', class: isBest ? 'main' : null }, 'Undo what took it out')
    button.addEventListener('click', () =>
      act({ do: 'restore', message: hit.at }, button, 'It is back: the next request has it whole.'),
    )
    return h(
      'section',
      { class: 'way' },
      h('h3', {}, 'Whole, in its place'),
      answer.over_limit
        ? h(
            'p',
            { class: 'note bad' },
            `Too much for the window: ${count(answer.view_after)} tokens, and ${count(answer.over_limit)} fit. It would be compacted again before it is sent.`,
          )
        : null,
      price(answer),
      answer.error ? null : h('div', { class: 'buttons' }, button),
    )
  }

  document.body.append(dialog)
  dialog.showModal()
  const load = async () => {
    try {
      const undone = await asked({ do: 'restore', message: hit.at })
      const fits = !undone.error && !undone.over_limit
      const ways = [undoWay(undone, fits || isPinned)]
      if (!isPinned) {
        const message = await get(sessionPath(id, 'message', hit.at))
        const text = message.text.length <= SHORT ? message.text.trim() : lineOf(hit)
        ways.unshift(pinWay(text, await asked({ do: 'pin', text }), !fits))
      }
      if (!open) return
      fill(body, ways)
      body.querySelector('button.main')?.focus()
    } catch (error) {
      fill(body, h('p', { class: 'note bad', role: 'alert' }, error.message))
    }
  }
  load()
}
