// The timeline: a column for each call, stacked by category, and one for what it cost. Axes, scales, cursor and the choice
// of a stretch are uPlot's; columns are drawn here. Where several calls share a pixel the largest of them is drawn, so
// that no peak is lost: the work goes by the pixels, not by the calls.

import { add, fill, h } from './dom.js'
import { paint, PAID, swatch } from './categories.js'
import { atClock, count, percent, short, usd } from './text.js'

const { uPlot } = window
const NARROWEST = 12

const colours = () => {
  const style = getComputedStyle(document.documentElement)
  const of = name => style.getPropertyValue(name).trim()
  return {
    text: of('--faint'),
    grid: of('--line-soft'),
    limit: of('--limit'),
    hard: of('--bad'),
    full: of('--ink'),
    mark: of('--mark'),
    paper: of('--paper'),
  }
}

/** Sums of layers: `tops[i]` is where layer i ends, for each call. */
function stack(layers, n) {
  const tops = []
  let below = new Float64Array(n)
  for (const layer of layers) {
    const top = new Float64Array(n)
    for (let i = 0; i < n; i++) top[i] = below[i] + (layer.values[i] || 0)
    tops.push(top)
    below = top
  }
  return { tops, total: below }
}

export class Timeline {
  /** `onMove(i)` when another call is looked at, `onOpen(i)` when it is to be opened; calls are counted from 0. */
  constructor({ onMove, onOpen }) {
    Object.assign(this, { onMove, onOpen, at: -1, off: new Set(), range: null })
    this.sizes = h('div', { class: 'plot' })
    this.costs = h('div', { class: 'plot plot-cost' })
    this.legend = h('ul', { class: 'legend', 'aria-label': 'What fills a request' })
    this.costLegend = h('ul', { class: 'legend' })
    this.readout = h('dl', { class: 'readout' })
    this.field = h(
      'div',
      {
        class: 'field',
        role: 'slider',
        tabindex: 0,
        'aria-label': 'Calls of the session',
        'aria-orientation': 'horizontal',
        'aria-describedby': 'timeline-keys',
        on: { keydown: event => this.key(event), dblclick: () => this.zoom(null) },
      },
      h('h2', { class: 'plot-title' }, 'Tokens of each request'),
      this.sizes,
      (this.costTitle = h('h2', { class: 'plot-title' })),
      this.costs,
    )
    const button = (label, title, does) =>
      h('button', { type: 'button', class: 'quiet', title, on: { click: does } }, label)
    this.element = h(
      'section',
      { class: 'timeline', 'aria-label': 'Timeline' },
      h(
        'div',
        { class: 'timeline-head' },
        this.legend,
        h(
          'div',
          { class: 'zoom', role: 'group', 'aria-label': 'Zoom' },
          button('−', 'Zoom out (−)', () => this.scaleBy(2)),
          button('+', 'Zoom in (+)', () => this.scaleBy(0.5)),
          button('all', 'All calls (0)', () => this.zoom(null)),
        ),
      ),
      this.field,
      this.costLegend,
      this.readout,
      h(
        'p',
        { class: 'hint', id: 'timeline-keys' },
        '← → move, Page Up and Page Down by a screenful, Home and End, + − 0 zoom, Enter opens the call. Drag to zoom, double-click for all.',
      ),
    )
    this.watch = new ResizeObserver(() => this.fit())
    this.watch.observe(this.field)
    this.scheme = matchMedia('(prefers-color-scheme: dark)')
    this.onScheme = () => {
      this.colours = colours()
      this.redraw()
    }
    this.scheme.addEventListener('change', this.onScheme)
  }

  close() {
    this.watch.disconnect()
    this.scheme.removeEventListener('change', this.onScheme)
    this.top?.destroy()
    this.low?.destroy()
  }

  /** Shows these calls; keeps the place that is looked at, and follows the end if it was there. */
  show({ calls, layers, limits, window, compactions, prices }) {
    const n = calls.count
    const atEnd = this.at < 0 || this.at >= (this.n ?? 0) - 1
    Object.assign(this, { calls, limits, windowSize: window, n, compactions, all: layers, colours: colours() })
    this.marks = new Map(compactions.map(each => [each.call - 1, each]))
    const money = prices !== null && prices !== undefined
    const price = { read: prices?.read, written: prices?.write, fresh: prices?.input, output: prices?.output }
    this.paid = PAID.map(each => ({
      ...each,
      values: money
        ? Array.from(calls[each.key] ?? [], tokens => ((tokens ?? 0) * (price[each.key] ?? 0)) / 1e6)
        : (calls[each.key] ?? []),
    }))
    this.money = money
    this.costTitle.textContent = money ? 'Cost of each call' : 'Tokens billed at each call'
    this.legends()
    this.make()
    this.move(atEnd ? n - 1 : this.at)
  }

  legends() {
    fill(
      this.legend,
      this.all.map(layer =>
        h(
          'li',
          {},
          h(
            'button',
            {
              type: 'button',
              class: 'key',
              'aria-pressed': !this.off.has(layer.key),
              title: 'Show or leave out',
              on: {
                click: () => {
                  if (!this.off.delete(layer.key)) this.off.add(layer.key)
                  this.legends()
                  this.make()
                  this.move(this.at)
                },
              },
            },
            swatch(layer),
            layer.label,
          ),
        ),
      ),
    )
    add(this.legend, [
      h('li', { class: 'key still' }, h('span', { class: 'dash', 'aria-hidden': 'true' }), 'the whole log'),
      this.compactions.length
        ? h('li', { class: 'key still' }, h('span', { class: 'tri', 'aria-hidden': 'true' }, '▼'), 'compaction')
        : null,
    ])
    fill(
      this.costLegend,
      this.paid.map(each => h('li', { class: 'key still' }, swatch(each), each.label)),
    )
  }

  make() {
    this.top?.destroy()
    this.low?.destroy()
    const { n } = this
    const layers = this.all.filter(layer => !this.off.has(layer.key))
    this.sizeStack = { layers, ...stack(layers, n) }
    this.costStack = { layers: this.paid, ...stack(this.paid, n) }
    const x = Float64Array.from({ length: n }, (_, i) => i + 1)
    const largest = this.sizeStack.total.reduce((a, b) => Math.max(a, b), 1)
    // Limits far above all that was ever sent would press the columns flat.
    const hard = this.limits?.hard ?? this.windowSize ?? 0
    const ceiling = largest > hard / 3 ? Math.max(largest, hard, this.windowSize ?? 0) * 1.04 : largest * 1.12
    this.top = this.plot(this.sizes, [x, this.sizeStack.total], ceiling, short, u => this.drawSizes(u), 264)
    const dearest = this.costStack.total.reduce((a, b) => Math.max(a, b), 0) || 1
    this.low = this.plot(
      this.costs,
      [x, this.costStack.total],
      dearest * 1.1,
      this.money ? value => `$${Number(value.toFixed(4))}` : short,
      u => this.drawStack(u, this.costStack),
      132,
    )
  }

  plot(target, data, ceiling, values, draw, height) {
    const grid = { stroke: () => this.colours.grid, width: 1 }
    const axis = { stroke: () => this.colours.text, grid, ticks: { show: false }, font: '12px system-ui, sans-serif' }
    const wheel = u =>
      u.over.addEventListener(
        'wheel',
        event => {
          if (!event.ctrlKey && !event.shiftKey) return
          event.preventDefault()
          this.scaleBy(event.deltaY > 0 ? 1.25 : 0.8, u.posToVal(event.offsetX, 'x'))
        },
        { passive: false },
      )
    const options = {
      width: this.field.clientWidth || 600,
      height,
      legend: { show: false },
      padding: [14, 22, 0, 0],
      cursor: { y: false, points: { show: false }, drag: { x: true, y: false, setScale: false }, focus: { prox: -1 } },
      scales: { x: { time: false, range: () => this.seen() }, y: { range: () => [0, ceiling] } },
      axes: [
        {
          ...axis,
          size: 26,
          incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000],
          values: (_, at) => at.map(v => (v < 1 ? '' : count(v))),
        },
        { ...axis, size: 62, values: (_, at) => at.map(values) },
      ],
      series: [{}, { paths: () => null, points: { show: false } }],
      hooks: {
        ready: [wheel],
        draw: [draw],
        setCursor: [
          u => {
            if (this.told || u.cursor.left < 0) return
            this.move(Math.round(u.posToVal(u.cursor.left, 'x')) - 1)
          },
        ],
        setSelect: [
          u => {
            if (u.select.width < 4) return
            this.zoom([u.posToVal(u.select.left, 'x'), u.posToVal(u.select.left + u.select.width, 'x')])
            u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false)
          },
        ],
      },
    }
    const plot = new uPlot(options, data, target)
    plot.over.addEventListener('click', () => {
      if (this.at >= 0 && !this.dragged) this.onOpen?.(this.at)
    })
    plot.over.addEventListener('pointerdown', event => {
      this.pressed = event.clientX
      this.dragged = false
    })
    plot.over.addEventListener('pointermove', event => {
      if (event.buttons && Math.abs(event.clientX - this.pressed) > 3) this.dragged = true
    })
    return plot
  }

  /** The stretch of calls that is shown. */
  seen() {
    const [from, past] = this.range ?? [0.5, this.n + 0.5]
    return [from, Math.max(past, from + Math.min(1, this.n))]
  }

  zoom(range) {
    if (range) {
      let [from, past] = range
      const width = Math.max(Math.min(NARROWEST, this.n), past - from)
      const middle = (from + past) / 2
      from = Math.max(0.5, Math.min(middle - width / 2, this.n + 0.5 - width))
      past = Math.min(this.n + 0.5, from + width)
      this.range = past - from >= this.n ? null : [from, past]
    } else this.range = null
    this.redraw()
    this.move(this.at)
  }

  scaleBy(factor, around = this.at + 1) {
    const [from, past] = this.seen()
    const middle = around >= from && around <= past ? around : (from + past) / 2
    this.zoom([middle - (middle - from) * factor, middle + (past - middle) * factor])
  }

  redraw() {
    const [min, max] = this.seen()
    for (const plot of [this.top, this.low]) {
      plot?.setScale('x', { min, max })
      plot?.redraw(false, true)
    }
  }

  fit() {
    const width = this.field.clientWidth
    if (!this.top || !width || this.top.width === width) return
    this.top.setSize({ width, height: this.top.height })
    this.low.setSize({ width, height: this.low.height })
    this.move(this.at)
  }

  drawSizes(u) {
    this.drawStack(u, this.sizeStack)
    const { ctx, bbox } = u
    const ratio = devicePixelRatio || 1
    const y = value => u.valToPos(value, 'y', true)
    ctx.save()
    ctx.beginPath()
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height)
    ctx.clip()
    this.drawFull(u, ratio)
    ctx.font = `${11 * ratio}px system-ui, sans-serif`
    ctx.textAlign = 'right'
    ctx.textBaseline = 'bottom'
    const lines = [
      ['window', this.windowSize, this.colours.hard, []],
      ['hard limit', this.limits?.hard, this.colours.hard, [8, 3]],
      ['compacts at', this.limits?.trigger, this.colours.limit, [5, 4]],
      ['down to', this.limits?.target, this.colours.limit, [2, 3]],
    ]
    let last = -Infinity
    for (const [label, value, colour, dash] of lines) {
      if (!value || y(value) < bbox.top - 1) continue
      ctx.strokeStyle = ctx.fillStyle = colour
      ctx.lineWidth = ratio
      ctx.setLineDash(dash.map(each => each * ratio))
      ctx.beginPath()
      ctx.moveTo(bbox.left, Math.round(y(value)) + 0.5)
      ctx.lineTo(bbox.left + bbox.width, Math.round(y(value)) + 0.5)
      ctx.stroke()
      if (y(value) - last > 13 * ratio) {
        const text = `${label} ${short(value)}`
        const wide = ctx.measureText(text).width
        const right = bbox.left + bbox.width - 6 * ratio
        ctx.fillStyle = this.colours.paper
        ctx.globalAlpha = 0.85
        const foot = y(value) - 14 * ratio < bbox.top ? y(value) + 15 * ratio : y(value) - 2 * ratio
        ctx.fillRect(right - wide - 3 * ratio, foot - 12 * ratio, wide + 6 * ratio, 13 * ratio)
        ctx.globalAlpha = 1
        ctx.fillStyle = colour
        ctx.fillText(text, right, foot)
        last = y(value)
      }
    }
    ctx.restore()
    this.drawMarks(u, ratio)
  }

  /** What the request would have been with nothing taken out. */
  drawFull(u, ratio) {
    const { ctx } = u
    const { full } = this.calls
    if (!full?.length) return
    const [from, past] = this.seen()
    const step = Math.max(1, Math.floor((past - from) / (u.bbox.width / ratio)))
    ctx.strokeStyle = this.colours.full
    ctx.lineWidth = 1.5 * ratio
    ctx.setLineDash([4 * ratio, 3 * ratio])
    ctx.beginPath()
    for (let i = Math.max(0, Math.floor(from) - 1); i < Math.min(this.n, past + step); i += step)
      ctx.lineTo(u.valToPos(i + 1, 'x', true), u.valToPos(full[i], 'y', true))
    ctx.stroke()
    ctx.setLineDash([])
  }

  drawMarks(u, ratio) {
    const { ctx, bbox } = u
    ctx.save()
    ctx.fillStyle = ctx.strokeStyle = this.colours.mark
    ctx.lineWidth = ratio
    let last = -Infinity
    for (const [i] of this.marks) {
      const x = u.valToPos(i + 1, 'x', true)
      if (x < bbox.left || x > bbox.left + bbox.width || x - last < 5 * ratio) continue
      last = x
      ctx.beginPath()
      ctx.moveTo(x - 5 * ratio, bbox.top - 11 * ratio)
      ctx.lineTo(x + 5 * ratio, bbox.top - 11 * ratio)
      ctx.lineTo(x, bbox.top - 3 * ratio)
      ctx.fill()
    }
    ctx.restore()
  }

  /** Columns: one for each call, or one for each pixel with the largest call of those that share it. */
  drawStack(u, { layers, tops, total }) {
    const { ctx, bbox } = u
    const [from, past] = this.seen()
    const wide = bbox.width / (past - from)
    const first = Math.max(0, Math.floor(from - 0.5))
    const end = Math.min(this.n, Math.ceil(past))
    const picked = []
    if (wide >= 1.5) for (let i = first; i < end; i++) picked.push([i, bbox.left + (i + 0.5 - from) * wide, wide])
    else {
      let column = null
      for (let i = first; i < end; i++) {
        const here = Math.floor((i + 0.5 - from) * wide)
        if (here !== column) picked.push([i, bbox.left + here, 1])
        else if (total[i] > total[picked.at(-1)[0]]) picked.at(-1)[0] = i
        column = here
      }
    }
    const gap = wide >= 5 ? Math.min(2, wide * 0.18) : 0
    const zero = u.valToPos(0, 'y', true)
    const scale = zero - u.valToPos(1, 'y', true)
    ctx.save()
    ctx.beginPath()
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height)
    ctx.clip()
    layers.forEach((layer, k) => {
      ctx.fillStyle = paint(ctx, layer.colour, layer.pattern)
      ctx.beginPath()
      for (const [i, x, width] of picked) {
        const bottom = k === 0 ? 0 : tops[k - 1][i]
        const high = (tops[k][i] - bottom) * scale
        if (high > 0.2) ctx.rect(x + gap / 2, zero - tops[k][i] * scale, Math.max(1, width - gap), Math.max(high, 0.5))
      }
      ctx.fill()
    })
    ctx.restore()
  }

  /** Looks at a call. */
  move(i) {
    if (!this.n) return
    this.at = Math.min(this.n - 1, Math.max(0, i))
    const [from, past] = this.seen()
    if (this.range && (this.at + 1 < from || this.at + 1 > past)) {
      const width = past - from
      this.range = [Math.max(0.5, this.at + 1 - width / 2), Math.max(0.5, this.at + 1 - width / 2) + width]
      this.redraw()
    }
    this.told = true
    for (const plot of [this.top, this.low])
      plot.setCursor({ left: plot.valToPos(this.at + 1, 'x'), top: 1 }, true, false)
    // uPlot tells its hooks of the cursor when it next draws.
    cancelAnimationFrame(this.untold)
    this.untold = requestAnimationFrame(() => {
      this.told = false
    })
    this.tell()
    this.onMove?.(this.at)
  }

  tell() {
    const { calls, at } = this
    const of = key => calls[key]?.[at]
    const mark = this.marks.get(at)
    const share = this.windowSize ? ` (${percent(of('view') / this.windowSize, 1)})` : ''
    const items = [
      ['call', `${count(at + 1)} of ${count(this.n)}`],
      ['time', atClock(of('at'))],
      ['request', `${count(of('view'))}${share}`],
      ['whole log', count(of('full'))],
      ['read', count(of('read'))],
      ['written', count(of('written'))],
      ['new', count(of('fresh'))],
      ['output', count(of('output'))],
      ['cost', of('usd') === null || of('usd') === undefined ? '–' : usd(of('usd'))],
      [
        'compaction',
        mark
          ? `${short(mark.before)} → ${short(mark.after)}, ${mark.edits.length} edits: ${mark.why}`
          : of('broke')
            ? 'none; prefix broke'
            : 'none',
      ],
    ]
    fill(
      this.readout,
      items.map(([name, value]) =>
        h('div', { class: name === 'compaction' ? 'broad' : null }, h('dt', {}, name), h('dd', {}, value)),
      ),
    )
    const field = this.field
    field.setAttribute('aria-valuemin', 1)
    field.setAttribute('aria-valuemax', this.n)
    field.setAttribute('aria-valuenow', at + 1)
    field.setAttribute(
      'aria-valuetext',
      `Call ${at + 1} of ${this.n}: ${count(of('view'))} tokens${share}, ${usd(of('usd'))}${mark ? `, compacted from ${count(mark.before)}` : ''}`,
    )
  }

  key(event) {
    if (event.altKey || event.ctrlKey || event.metaKey) return
    const [from, past] = this.seen()
    const page = Math.max(1, Math.round((past - from) / (this.range ? 1 : 10)))
    const to = {
      ArrowLeft: this.at - 1,
      ArrowRight: this.at + 1,
      PageUp: this.at - page,
      PageDown: this.at + page,
      Home: 0,
      End: this.n - 1,
    }[event.key]
    if (to !== undefined) this.move(to)
    else if (event.key === '+' || event.key === '=') this.scaleBy(0.5)
    else if (event.key === '-') this.scaleBy(2)
    else if (event.key === '0') this.zoom(null)
    else if (event.key === 'Enter') this.onOpen?.(this.at)
    else return
    event.preventDefault()
  }
}
