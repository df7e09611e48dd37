// Steering: pin, unpin, goal, undo, redo, compact now. Whatever it is, the next request is shown with its price before
// anything is done.

import { post, sessionPath } from './api.js'
import { fill, h } from './dom.js'
import { shownPreview } from './preview.js'
import { oneLine } from './text.js'

const WORDS = {
  pin: ['Pin a text', 'Pin it', 'Pinned'],
  unpin: ['Take a pin away', 'Take it away', 'The pin is gone'],
  goal: ['Set the goal', 'Set it', 'The goal is set'],
  undo: ['Undo an edit', 'Undo it', 'Undone'],
  redo: ['Make an edit again', 'Take it out', 'It is out again'],
  compact: ['Compact now', 'Compact', 'Compacted'],
}
const ASKS = {
  pin: ['text', 'Text that stays in every request', 'as in: never touch the file schema.sql', true],
  goal: ['text', 'The goal, in every request', 'what the agent is to reach', true],
  compact: ['focus', 'Focus (may be empty)', 'what the summary should keep', false],
}

/**
 * Opens the dialog for an action: asks for its text if it needs one, shows the preview, does it when that is confirmed.
 * `changed` is called behind a change.
 */
export function steer({ id, tell, changed }, action) {
  const [heading, confirm, done] = WORDS[action.do]
  const opener = document.activeElement
  const body = h('div', { class: 'sheet-body' })
  const buttons = h('div', { class: 'buttons' })
  const dialog = h(
    'dialog',
    { class: 'sheet', 'aria-labelledby': 'steer-title' },
    h('h2', { id: 'steer-title' }, heading),
    body,
    buttons,
  )
  const cancel = h('button', { type: 'button', on: { click: () => dialog.close() } }, 'Leave it as it is')
  dialog.addEventListener('close', () => {
    dialog.remove()
    if (opener?.isConnected) opener.focus()
  })

  const ask = () => {
    const [field, label, placeholder, needed] = ASKS[action.do]
    const box = h('textarea', { id: 'steer-text', rows: 3, placeholder, required: needed })
    box.value = action[field] ?? ''
    const form = h(
      'form',
      {
        on: {
          submit: event => {
            event.preventDefault()
            const text = box.value.trim()
            if (needed && !text) return box.focus()
            return preview({ ...action, [field]: text || null })
          },
        },
      },
      h('label', { for: 'steer-text' }, label),
      box,
      h('div', { class: 'buttons' }, cancel, h('button', { class: 'main' }, 'Show what it would do')),
    )
    fill(body, form)
    fill(buttons)
    box.focus()
  }
  const failed = error => fill(body, h('p', { class: 'note bad', role: 'alert' }, error.message))
  const preview = async action => {
    fill(body, h('p', { class: 'wait' }, 'Making the next request, without sending it …'))
    fill(buttons, cancel)
    try {
      const answer = await post(sessionPath(id, 'preview'), action)
      const act = h('button', { type: 'button', class: 'main', on: { click: () => commit(action, act) } }, confirm)
      fill(body, shownPreview(answer))
      fill(buttons, cancel, act)
      act.focus()
    } catch (error) {
      failed(error)
    }
  }
  const commit = async (action, button) => {
    button.disabled = true
    try {
      await post(sessionPath(id, 'act'), action)
      dialog.close()
      tell(`${done}. The next request has it so.`)
      changed()
    } catch (error) {
      failed(error)
      fill(buttons, cancel)
    }
  }

  document.body.append(dialog)
  dialog.showModal()
  if (ASKS[action.do]) ask()
  else preview(action)
}

/** Goal, pins and "compact now" of a session, as a panel. */
export function steeringPanel({ id, session, me, tell, changed }) {
  const may = me.can_change && !session.without_content
  const button = (label, action, main = false) =>
    h(
      'button',
      { type: 'button', class: main ? 'main' : null, on: { click: () => steer({ id, tell, changed }, action) } },
      label,
    )
  return h(
    'div',
    { class: 'steering' },
    may
      ? null
      : h(
          'p',
          { class: 'note' },
          session.without_content
            ? 'This session is stored without what was said: it cannot be changed.'
            : me.exported
              ? 'This is a copy of a session: nothing can be changed here.'
              : 'This page may only look: the server allows no changes.',
        ),
    me.temporary
      ? h('p', { class: 'note' }, 'This session comes from a file: changes last as long as the inspector runs.')
      : null,
    h(
      'section',
      {},
      h('h2', {}, 'Goal'),
      session.goal
        ? h('p', { class: 'quote' }, h('bdi', {}, oneLine(session.goal, 600)))
        : h('p', { class: 'faint' }, 'No goal is set.'),
      may
        ? button(session.goal ? 'Change the goal …' : 'Set a goal …', { do: 'goal', text: session.goal ?? '' })
        : null,
    ),
    h(
      'section',
      {},
      h('h2', {}, 'Pins'),
      session.pins?.length
        ? h(
            'ul',
            { class: 'pins' },
            session.pins.map(pin =>
              h(
                'li',
                {},
                h('p', { class: 'quote' }, h('bdi', {}, oneLine(pin.text, 600))),
                may ? button('Take away …', { do: 'unpin', name: pin.name }) : null,
              ),
            ),
          )
        : h('p', { class: 'faint' }, 'Nothing is pinned. A pinned text stays in every request, whatever is compacted.'),
      may ? button('Pin a text …', { do: 'pin', text: '' }) : null,
    ),
    h(
      'section',
      {},
      h('h2', {}, 'Compact now'),
      h(
        'p',
        { class: 'faint' },
        'Takes out what the next requests need least, before a limit asks for it. A focus says what the summary should keep.',
      ),
      may ? button('Compact …', { do: 'compact', focus: null }) : null,
    ),
  )
}
