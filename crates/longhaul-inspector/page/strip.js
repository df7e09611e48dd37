// A whole request as one strip: each part as wide as its tokens, in the colour of its category; below it what the provider
// had in its cache. For eyes and mice: the list of parts says the same to everybody.

import { category, paint } from './categories.js'
import { h } from './dom.js'
import { count, percent } from './text.js'

const HIGH = 26
const BELOW = 5

export class Strip {
  /** `onPick(i)` when somebody presses a part. */
  constructor(parts, onPick) {
    this.parts = parts
    this.total = parts.reduce((sum, part) => sum + part.tokens, 0) || 1
    this.canvas = h('canvas', {
      class: 'strip',
      'aria-hidden': 'true',
      on: {
        click: event => onPick(this.at(event)),
        mousemove: event => {
          this.canvas.title = this.words(this.at(event))
        },
      },
    })
    const cached = parts.reduce((sum, part) => sum + (part.warm ? part.tokens : 0), 0)
    this.element = h(
      'div',
      { class: 'strip-box' },
      this.canvas,
      h(
        'p',
        { class: 'hint' },
        `${percent(cached / this.total)} of this request stood in the provider's cache (the line below it); edited parts have a notch.`,
      ),
    )
    this.watch = new ResizeObserver(() => this.draw(this.chosen))
    this.watch.observe(this.canvas)
  }

  close() {
    this.watch.disconnect()
  }

  words(i) {
    const part = this.parts[i]
    return part ? `${category(part.category).label}, ${count(part.tokens)} tokens` : ''
  }

  /** Which part is at a place. */
  at(event) {
    let upto = (event.offsetX / this.canvas.clientWidth) * this.total
    return Math.max(
      0,
      this.parts.findIndex(part => (upto -= part.tokens) <= 0),
    )
  }

  draw(chosen) {
    this.chosen = chosen
    const { canvas, parts } = this
    const ratio = devicePixelRatio || 1
    const wide = canvas.clientWidth
    if (!wide) return
    canvas.width = wide * ratio
    canvas.height = (HIGH + BELOW + 4) * ratio
    const draw = canvas.getContext('2d')
    draw.scale(ratio, ratio)
    const style = getComputedStyle(canvas)
    const [ink, accent, paper] = ['--ink', '--accent', '--paper'].map(name => style.getPropertyValue(name).trim())
    let x = 0
    let ring = null
    for (const [i, part] of parts.entries()) {
      const width = (part.tokens / this.total) * wide
      const { colour, pattern } = category(part.category)
      draw.fillStyle = paint(draw, colour, pattern)
      draw.fillRect(x, 2, Math.max(width, 0.4), HIGH)
      if (width > 3) {
        draw.fillStyle = paper
        draw.fillRect(x + width - 0.5, 2, 0.5, HIGH)
      }
      if (part.edits.length) {
        draw.fillStyle = ink
        draw.fillRect(x, 2, Math.max(2, Math.min(width, 4)), 5)
      }
      if (part.warm) {
        draw.fillStyle = accent
        draw.fillRect(x, HIGH + 4, width, BELOW - 2)
      }
      if (i === chosen) ring = [x, width]
      x += width
    }
    if (!ring) return
    draw.strokeStyle = ink
    draw.lineWidth = 2
    draw.strokeRect(Math.max(1, Math.min(ring[0], wide - 5)), 1, Math.max(4, ring[1]), HIGH + 2)
  }
}
