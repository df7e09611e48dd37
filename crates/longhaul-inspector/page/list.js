// A list of any length: only the rows that can be seen are in the page. Rows are of one height. Arrow keys, Page Up,
// Page Down, Home and End move the choice, Enter opens it.

import { h, newId } from './dom.js'

const BEYOND = 6

/**
 * `count` rows of `height` pixels, each made by `row(i)` (children of the row). `onChoose(i)` is called when the choice
 * moved, `onOpen(i)` for Enter and a click.
 */
export class List {
  constructor({ label, count, height, row, onChoose, onOpen, chosen = -1, max = 560, head = null }) {
    Object.assign(this, { count, height, row, onChoose, onOpen, chosen, max })
    this.id = newId('list')
    this.rows = new Map()
    this.space = h('div', { class: 'list-space', role: 'presentation' })
    this.box = h(
      'div',
      {
        class: 'list-box',
        role: 'listbox',
        tabindex: 0,
        'aria-label': label,
        on: {
          scroll: () => this.draw(),
          keydown: event => this.key(event),
          click: event => {
            const row = event.target.closest('[role=option]')
            if (!row || event.target.closest('a,button')) return
            this.choose(Number(row.dataset.i), true)
            this.onOpen?.(this.chosen)
          },
        },
      },
      this.space,
    )
    this.element = h('div', { class: 'list' }, head, this.box)
    new ResizeObserver(() => this.draw()).observe(this.box)
    this.resize(count)
  }

  /** Another number of rows; those that are shown are made anew. */
  resize(count) {
    this.count = count
    this.space.style.height = `${count * this.height}px`
    this.box.style.height = `${Math.min(this.max, Math.max(1, count) * this.height + 2)}px`
    if (this.chosen >= count) this.chosen = count - 1
    this.clear()
  }

  /** Makes the rows that are shown anew. */
  clear() {
    this.space.replaceChildren()
    this.rows.clear()
    this.draw()
  }

  draw() {
    const first = Math.max(0, Math.floor(this.box.scrollTop / this.height) - BEYOND)
    const past = Math.min(
      this.count,
      Math.ceil((this.box.scrollTop + (this.box.clientHeight || this.max)) / this.height) + BEYOND,
    )
    for (const [i, row] of this.rows) {
      if (i >= first && i < past) continue
      row.remove()
      this.rows.delete(i)
    }
    for (let i = first; i < past; i++) {
      if (this.rows.has(i)) continue
      const row = h(
        'div',
        {
          class: 'row',
          role: 'option',
          id: `${this.id}-${i}`,
          data: { i },
          'aria-selected': i === this.chosen,
          'aria-setsize': this.count,
          'aria-posinset': i + 1,
          style: { top: `${i * this.height}px`, height: `${this.height}px` },
        },
        this.row(i),
      )
      this.rows.set(i, row)
      this.space.append(row)
    }
    if (this.rows.has(this.chosen)) this.box.setAttribute('aria-activedescendant', `${this.id}-${this.chosen}`)
    else this.box.removeAttribute('aria-activedescendant')
  }

  /** Chooses a row and brings it into sight. */
  choose(i, told = false) {
    if (this.count === 0) return
    const to = Math.min(this.count - 1, Math.max(0, i))
    this.rows.get(this.chosen)?.setAttribute('aria-selected', 'false')
    this.chosen = to
    const [top, seen] = [to * this.height, this.box.clientHeight || this.max]
    if (top < this.box.scrollTop) this.box.scrollTop = top
    else if (top + this.height > this.box.scrollTop + seen) this.box.scrollTop = top + this.height - seen
    this.draw()
    this.rows.get(to)?.setAttribute('aria-selected', 'true')
    if (told) this.onChoose?.(to)
  }

  key(event) {
    if (event.target !== this.box || event.altKey || event.ctrlKey || event.metaKey) return
    const page = Math.max(1, Math.floor(this.box.clientHeight / this.height) - 1)
    const to = {
      ArrowDown: this.chosen + 1,
      ArrowUp: this.chosen - 1,
      PageDown: this.chosen + page,
      PageUp: this.chosen - page,
      Home: 0,
      End: this.count - 1,
    }[event.key]
    if (to !== undefined) {
      event.preventDefault()
      this.choose(to, true)
    } else if (event.key === 'Enter' && this.chosen >= 0) {
      event.preventDefault()
      this.onOpen?.(this.chosen)
    }
  }
}
