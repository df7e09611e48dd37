// How numbers, times and texts from outside are written for people.

const grouped = new Intl.NumberFormat('en-US')
const dayAndTime = new Intl.DateTimeFormat('en-GB', {
  year: 'numeric',
  month: 'short',
  day: '2-digit',
  hour: '2-digit',
  minute: '2-digit',
})
const clock = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' })

const dollars = [0, 1, 2, 3, 4].map(
  digits => new Intl.NumberFormat('en-US', { minimumFractionDigits: digits, maximumFractionDigits: digits }),
)

/** What stands where there is no figure. */
export const NONE = '–'

/** `12,345`, or a dash. */
export const count = n => (n === null || n === undefined ? NONE : grouped.format(n))

/** `12.3k`, `1.25M`. */
export function short(n) {
  if (n === null || n === undefined) return NONE
  const size = Math.abs(n)
  if (size < 1000) return String(Math.round(n))
  const [unit, letter] = size < 999_500 ? [1e3, 'k'] : size < 999_500_000 ? [1e6, 'M'] : [1e9, 'G']
  const value = n / unit
  return `${value
    .toFixed(Math.abs(value) < 9.995 ? 2 : Math.abs(value) < 99.95 ? 1 : 0)
    .replace(/(\.\d*?)0+$/, '$1')
    .replace(/\.$/, '')}${letter}`
}

/** `$4.12`, `$0.0042`, or a dash. */
export function usd(n) {
  if (n === null || n === undefined) return NONE
  const size = Math.abs(n)
  const digits = size === 0 || size >= 1 ? 2 : size >= 0.1 ? 3 : 4
  const text = size > 0 && size < 0.0001 ? '< $0.0001' : `$${dollars[digits].format(size)}`
  return n < 0 ? `−${text}` : text
}

/** `47 %` of a share from 0 to 1. */
export const percent = (share, digits = 0) =>
  share === null || share === undefined || !Number.isFinite(share) ? NONE : `${(share * 100).toFixed(digits)} %`

/** `1 call`, `2 calls`. */
export const plural = (n, one, many = `${one}s`) => `${count(n)} ${n === 1 ? one : many}`

/** `the thinking of 7 steps, 3,100 tokens`: what went with an edit. */
export const lostThinking = edit =>
  `the thinking of ${plural(edit.thinking_steps, 'step')}, ${count(edit.thinking_tokens)} tokens`

/** `1.9 MB`. */
export const bytes = n =>
  n < 1000 ? `${n} characters` : n < 1e6 ? `${(n / 1e3).toFixed(1)} KB` : `${(n / 1e6).toFixed(1)} MB`

const parsed = time => {
  const date = time ? new Date(time) : null
  return date && !Number.isNaN(date.getTime()) ? date : null
}

/** `18 Nov 2026, 01:20`. */
export const when = time => (parsed(time) ? dayAndTime.format(parsed(time)) : NONE)

/** `01:20:07`. */
export const atClock = time => (parsed(time) ? clock.format(parsed(time)) : NONE)

/** `just now`, `5 min ago`, `3 days ago`. */
export function ago(time, now = Date.now()) {
  const date = parsed(time)
  if (!date) return NONE
  const seconds = Math.max(0, (now - date.getTime()) / 1000)
  if (seconds < 60) return 'just now'
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h ago`
  const days = Math.floor(seconds / 86_400)
  return days < 60 ? plural(days, 'day') + ' ago' : when(time)
}

// Control characters, format characters (bidirectional, zero-width, tags), separators that break lines unseen, halves of
// pairs, letters without a shape. Tab and line feed do what they say. A joiner inside an emoji stays: it is part of a
// picture, not of a trick.
const UNSEEN =
  /(?<=[\p{Extended_Pictographic}\ufe0f])(\u200d)(?=\p{Extended_Pictographic})|(?![\t\n])[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029\u115f\u1160\u3164\uffa0]/gu

const CONTROLS =
  'NUL SOH STX ETX EOT ENQ ACK BEL BS HT LF VT FF CR SO SI DLE DC1 DC2 DC3 DC4 NAK SYN ETB CAN EM SUB ESC FS GS RS US'.split(
    ' ',
  )

function mark(unseen) {
  const code = unseen.codePointAt(0)
  if (code < 0x20) return `⟨${CONTROLS[code]}⟩`
  return `⟨U+${code.toString(16).toUpperCase().padStart(4, '0')}⟩`
}

/** A text from outside with every character that would be unseen, or would turn the text around, as a visible mark. */
export const visible = text => String(text).replace(UNSEEN, (found, joiner) => joiner ?? mark(found))

/** One line of at most so many characters, all visible. */
export function oneLine(text, most = 200) {
  const cut = String(text)
    .slice(0, most + 1)
    .replace(/\s+/g, ' ')
    .trim()
  return visible(cut.length > most ? `${cut.slice(0, most)}…` : cut)
}

/** A snippet that begins with the line before the first hit, or shortly before it: what was found is seen at once. */
export function around(snippet, found, most = 120) {
  const hit = found?.[0]?.[0] ?? 0
  const line = snippet.lastIndexOf('\n', hit - 1)
  const before = line > 0 ? snippet.lastIndexOf('\n', line - 1) + 1 : 0
  const from = hit - before > most ? (hit - line > most ? hit - most : line + 1) : before
  if (from <= 0 || hit === 0) return [snippet, found]
  return [`…${snippet.slice(from)}`, found.map(([start, end]) => [start - from + 1, end - from + 1])]
}

/** Parts of a snippet: `[[text, found], …]`, where `found` are ranges of it in UTF-16 code units. */
export function pieces(snippet, found) {
  const out = []
  let upto = 0
  for (const [start, end] of found ?? []) {
    if (start < upto || end > snippet.length || end <= start) continue
    if (start > upto) out.push([snippet.slice(upto, start), false])
    out.push([snippet.slice(start, end), true])
    upto = end
  }
  if (upto < snippet.length) out.push([snippet.slice(upto), false])
  return out
}
