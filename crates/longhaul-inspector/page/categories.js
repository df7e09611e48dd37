// What fills a request: names, colours and patterns. Colours are those of Okabe and Ito, which colour-blind people can
// tell apart; where two are alike, the pattern differs. Words for edits and reasons are here too: each once.

import { h } from './dom.js'

/** Categories of a request, from the bottom of a column to its top. Results of tools stand before `summaries`. */
const CATEGORIES = [
  ['system', 'system and tools', '#7d8590', 'solid'],
  ['rules', 'rules', '#b9a7e0', 'rising'],
  ['user', 'user', '#e69f00', 'solid'],
  ['own', "model's words", '#009e73', 'solid'],
  ['thinking', 'thinking', '#cc79a7', 'dots'],
  ['calls', 'calls', '#d9c900', 'falling'],
]
const LAST = [
  ['summaries', 'summaries', '#d55e00', 'cross'],
  ['tail', 'tail', '#8c6d4f', 'level'],
]
const RESULTS = [
  ['#0072b2', 'solid'],
  ['#56b4e9', 'solid'],
  ['#0072b2', 'rising'],
  ['#56b4e9', 'dots'],
  ['#0072b2', 'level'],
  ['#56b4e9', 'falling'],
  ['#0072b2', 'cross'],
  ['#56b4e9', 'level'],
]

/** What is paid for at a call. */
export const PAID = [
  ['read', 'read from cache', '#56b4e9', 'solid'],
  ['written', 'written to cache', '#e69f00', 'rising'],
  ['fresh', 'new, not cached', '#d55e00', 'cross'],
  ['output', 'output', '#009e73', 'dots'],
].map(([key, label, colour, pattern]) => ({ key, label, colour, pattern }))

/**
 * The layers of a session's timeline with their figures: `{key, label, colour, pattern, values}`. `tools` is the order of
 * tools, the one that filled most first; those that are not in it yet are added to it, so that colours stay as calls come.
 */
export function layers(calls, tools) {
  const made = ([key, label, colour, pattern]) => ({ key, label, colour, pattern, values: calls.shares?.[key] ?? [] })
  const filled = tool => calls.results[tool].reduce((sum, value) => sum + value, 0)
  const added = Object.keys(calls.results ?? {}).filter(tool => !tools.includes(tool))
  tools.push(...added.sort((a, b) => (a === 'other') - (b === 'other') || filled(b) - filled(a)))
  const results = tools.map((tool, i) => {
    const values = calls.results[tool] ?? []
    const [colour, pattern] = RESULTS[i % RESULTS.length]
    return {
      key: `results ${tool}`,
      label: tool === 'other' ? 'other results' : `${tool} results`,
      colour,
      pattern,
      values,
    }
  })
  return [...CATEGORIES.map(made), ...results, ...LAST.map(made)].filter(layer => layer.values.some(value => value > 0))
}

/** Name, colour and pattern of a part's category. */
export function category(name) {
  const [, label, colour, pattern] = [...CATEGORIES, ...LAST].find(([key]) => key === name) ?? [
    name,
    name ?? 'other',
    '#0072b2',
    'solid',
  ]
  return { label: name === 'results' ? 'result' : label, colour, pattern }
}

const tiles = new Map()

/** A fill for a canvas: the colour, with its pattern in a darker or lighter shade on it. */
export function paint(context, colour, pattern) {
  if (pattern === 'solid') return colour
  const key = `${colour} ${pattern}`
  if (!tiles.has(key)) tiles.set(key, tile(colour, pattern))
  return context.createPattern(tiles.get(key), 'repeat')
}

function tile(colour, pattern) {
  const size = 8
  const canvas = document.createElement('canvas')
  canvas.width = canvas.height = size
  const draw = canvas.getContext('2d')
  draw.fillStyle = colour
  draw.fillRect(0, 0, size, size)
  draw.strokeStyle = draw.fillStyle = 'rgba(0, 0, 0, 0.36)'
  draw.lineWidth = 1.3
  const line = (x0, y0, x1, y1) => {
    draw.beginPath()
    draw.moveTo(x0, y0)
    draw.lineTo(x1, y1)
    draw.stroke()
  }
  const rising = () => {
    line(-1, 9, 9, -1)
    line(-1, 1, 1, -1)
    line(7, 9, 9, 7)
  }
  const falling = () => {
    line(-1, -1, 9, 9)
    line(7, -1, 9, 1)
    line(-1, 7, 1, 9)
  }
  if (pattern === 'rising') rising()
  else if (pattern === 'falling') falling()
  else if (pattern === 'cross') {
    rising()
    falling()
  } else if (pattern === 'level') {
    line(0, 2, 8, 2)
    line(0, 6, 8, 6)
  } else if (pattern === 'dots')
    for (const [x, y] of [
      [2, 2],
      [6, 6],
    ]) {
      draw.beginPath()
      draw.arc(x, y, 1.3, 0, 7)
      draw.fill()
    }
  return canvas
}

/** A small square with colour and pattern, for legends. */
export function swatch({ colour, pattern }) {
  const canvas = h('canvas', { class: 'swatch', width: 14, height: 14, 'aria-hidden': 'true' })
  const draw = canvas.getContext('2d')
  draw.fillStyle = paint(draw, colour, pattern)
  draw.fillRect(0, 0, 14, 14)
  return canvas
}

const KINDS = {
  digest: 'shortened',
  'digest of arguments': 'arguments shortened',
  'thinking dropped': 'thinking left out',
  'answer of the host': 'answered by the host',
  fold: 'folded into a summary',
  hide: 'hidden',
}
const BADGES = {
  digest: 'shortened',
  'digest of arguments': 'shortened',
  'thinking dropped': 'less thinking',
  fold: 'summary',
  hide: 'hidden',
}
const WHYS = {
  entry: 'before it was first sent: noise, repetition or size',
  rule: 'the profile asks for it at every call',
  'model switch': 'the new model cannot read it',
  host: 'the host had the answer',
  'forced (trigger)': 'the request had reached the size where compaction starts',
  'forced (hard limit)': 'the request would not have fitted the window',
  forced: 'a limit was reached',
  cold: "the provider's cache was lost anyway, so it cost nothing extra",
  'pays back': 'it saves more than it costs to send the rest again',
  'pays-back': 'it saves more than it costs to send the rest again',
  asked: 'somebody asked for it',
}

/** What kind of edit it is, in words. */
export const kindInWords = kind => KINDS[kind] ?? kind ?? 'edited'
/** The same in a word or two. */
export const kindInShort = kind => BADGES[kind] ?? kind ?? 'edited'
/** Why an edit was made, in words. */
export const whyInWords = why => WHYS[why] ?? why ?? 'no reason is recorded'
