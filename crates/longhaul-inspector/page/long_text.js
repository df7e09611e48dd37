// A text of any length, as lines that can be read. What is far below is not laid out (`content-visibility`), a line that
// is too long for anybody is cut until somebody asks for the rest, and no more than one step of the text is in the page
// before somebody asks for more.

import { h } from './dom.js'
import { bytes, count, visible } from './text.js'

const CHUNK = 8_000
const LONGEST_LINE = 2_000
const STEPS = [60_000, 500_000, 2_000_000]

/**
 * A block with the text in it. `mark(line)` may give a class for a line (lines alike are drawn as one run); `plain`
 * breaks lines anywhere, for the rest of a line that was cut.
 */
export function longText(text, { mark = null, plain = false, label = null } = {}) {
  const block = h('div', {
    class: plain ? 'text plain' : 'text',
    tabindex: plain ? null : 0,
    role: plain ? null : 'group',
    'aria-label': label,
  })
  let upto = 0
  let step = 0
  const more = () => {
    const end = Math.min(text.length, upto + STEPS[Math.min(step, STEPS.length - 1)])
    step += 1
    upto = write(block, text, upto, end, mark, plain)
    if (upto >= text.length) return
    const button = h(
      'button',
      {
        type: 'button',
        class: 'more',
        on: {
          click: () => {
            button.remove()
            more()
          },
        },
      },
      `Show more: ${count(upto)} of ${count(text.length)} characters are shown`,
    )
    block.append(button)
  }
  more()
  if (text.length === 0) block.append(h('span', { class: 'faint' }, 'No text.'))
  return block
}

/** A chunk need not be laid out before it is near: until then it is about as high as its lines. */
function laid(chunk, lines) {
  chunk.classList.add('far')
  chunk.style.setProperty('contain-intrinsic-size', `auto ${lines * 20}px`)
}

/** Writes lines from one place of the text on until `end` is passed, and says how far it came. */
function write(block, text, from, end, mark, plain) {
  let at = from
  let chunk = null
  let room = 0
  let run = null
  let lines = 0
  const put = (piece, kind) => {
    if (!chunk || room <= 0) {
      if (chunk) laid(chunk, lines)
      chunk = h('div', { class: 'chunk' })
      block.append(chunk)
      lines = 0
      room = CHUNK
      run = null
    }
    if (kind && run?.className === kind) run.append(visible(piece))
    else if (kind) chunk.append((run = h('span', { class: kind }, visible(piece))))
    else {
      run = null
      chunk.append(visible(piece))
    }
    room -= piece.length
    lines += 1 + Math.floor(piece.length / 110)
  }
  while (at < end) {
    const feed = text.indexOf('\n', at)
    const past = feed < 0 ? text.length : feed + 1
    if (past - at <= LONGEST_LINE) {
      const line = text.slice(at, past)
      put(line, mark?.(line.trimEnd()))
      at = past
    } else if (plain) {
      const piece = Math.min(past, at + CHUNK, end)
      put(text.slice(at, piece))
      at = piece
    } else {
      put(text.slice(at, at + LONGEST_LINE / 2), mark?.('\u0000'))
      const rest = [at + LONGEST_LINE / 2, past]
      const button = h(
        'button',
        {
          type: 'button',
          class: 'more inline',
          on: { click: () => button.replaceWith(longText(text.slice(...rest), { plain: true })) },
        },
        `… ${bytes(rest[1] - rest[0])} more in this line: show`,
      )
      chunk.append(button, '\n')
      laid(chunk, lines + 1)
      chunk = null
      at = past
    }
  }
  return at
}
