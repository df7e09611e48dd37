// One part of a request: where it comes from, which edit stands in its place and why, what that cost and saves, its text,
// and the original beside it.

import { address, get, sessionPath } from './api.js'
import { category, kindInWords, swatch, whyInWords } from './categories.js'
import { fill, h } from './dom.js'
import { longText } from './long_text.js'
import { count, lostThinking, oneLine, plural } from './text.js'

/** Numbers of messages: `3`, `5–9`. */
export const spans = messages =>
  (messages ?? [])
    .map(([first, past]) => (past - first === 1 ? count(first) : `${count(first)}–${count(past - 1)}`))
    .join(', ')

/** Where a part comes from, in words. */
function origin(part) {
  const which = spans(part.messages)
  const many = part.messages?.length > 1 || part.messages?.[0]?.[1] - part.messages?.[0]?.[0] > 1
  const message = `message${many ? 's' : ''} ${which} of the log`
  if (part.source === 'edit') return `stands for ${message}`
  if (part.source === 'message') return part.edits.length ? `${message}, edited` : `${message}, as it came in`
  return (
    {
      note: 'what the profile tells the model',
      rules: 'the project rules',
      host_note: 'note, sent at this place: it stays here while the messages before it are shown',
      tail: 'the tail: what changes from call to call, behind the last cache mark',
      frame: 'system prompt and tools of the agent',
    }[part.source] ?? part.source
  )
}

/** What a part is, in a word or two. */
export const named = part =>
  part.source === 'host_note'
    ? 'note of the host'
    : part.tool && ['results', 'calls'].includes(part.category)
      ? `${part.tool} ${part.category === 'results' ? 'result' : 'call'}`
      : part.category === 'system' && part.k !== 'frame'
        ? 'system message'
        : category(part.category).label

/** Lines of the original that the request has not. */
function absent(text) {
  // Numbers that a tool put before lines, and margins, are no difference.
  const bare = line => line.replace(/^\s*\d+→/, '').trim()
  const there = new Set(text.split('\n').map(bare))
  return line => (bare(line) && !there.has(bare(line)) ? 'gone' : null)
}

/** The pane that shows a part. `act(action)` asks for a change, `link(k)` is the address of a part. */
export class PartDetail {
  constructor({ id, own, frame, me, act, link, message }) {
    Object.assign(this, { id, own, frame, me, act, link })
    /** The message that somebody came for. */
    this.message = message
    this.asked = null
    this.element = h('section', { class: 'detail', 'aria-live': 'polite', 'aria-label': 'The part' })
  }

  close() {
    this.asked?.abort()
  }

  editOf(edit) {
    return h(
      'li',
      { class: 'made' },
      h(
        'p',
        {},
        h('strong', {}, `Edit ${count(edit.id)}: ${kindInWords(edit.kind)}`),
        ` by ${oneLine(edit.strategy, 60)}. `,
        `Why: ${whyInWords(edit.why)}.`,
      ),
      h(
        'p',
        { class: 'under' },
        h('span', { class: 'num' }, `${count(edit.before)} → ${count(edit.after)}`),
        ' tokens. ',
        edit.rewrites
          ? `It cost ${count(edit.rewrites)} tokens billed again, once; `
          : 'It cost nothing: nothing behind it had to be billed again; ',
        `each later call carries ${count(edit.saves)} tokens less.`,
        edit.thinking_steps ? ` With it went ${lostThinking(edit)}.` : null,
        edit.active_now === false ? h('span', { class: 'badge' }, 'undone since') : null,
      ),
      h(
        'div',
        { class: 'buttons' },
        this.me.can_change
          ? edit.active_now === false
            ? h('button', { type: 'button', on: { click: () => this.act({ do: 'redo', edit: edit.id }) } }, 'Redo …')
            : h(
                'button',
                {
                  type: 'button',
                  class: 'main',
                  on: { click: () => this.act({ do: 'undo', edit: edit.id }) },
                },
                'Undo …',
              )
          : null,
        this.me.exported
          ? null
          : (edit.handles ?? []).slice(0, 12).map(handle =>
              h(
                'a',
                {
                  class: 'button quiet',
                  href: address(sessionPath(this.id, 'recall', encodeURIComponent(handle))),
                  target: '_blank',
                  rel: 'noopener',
                },
                `recall ${oneLine(handle, 20)}`,
              ),
            ),
        edit.handles?.length > 12 ? h('span', { class: 'faint' }, `and ${edit.handles.length - 12} more`) : null,
      ),
    )
  }

  heading(part) {
    return [
      h(
        'h2',
        {},
        swatch(category(part.category)),
        part.k === 'frame' ? 'System and tools' : `Part ${count(part.k)}: ${oneLine(named(part), 60)}`,
        h('a', { class: 'anchor', href: this.link(part.k), 'aria-label': 'Link to this part' }, '#'),
      ),
      h(
        'p',
        { class: 'under' },
        origin(part),
        part.role ? ` · ${part.role}` : '',
        ` · ${count(part.tokens)} tokens`,
        part.tokens_before > part.tokens ? ` of ${count(part.tokens_before)}` : '',
        ' · ',
        part.warm ? 'read from the cache' : 'not in the cache',
        part.new ? ' · new in this call' : '',
      ),
      part.edits.length
        ? h(
            'ul',
            { class: 'plain-list edits' },
            part.edits.map(edit => this.editOf(edit)),
          )
        : null,
    ]
  }

  async show(part) {
    this.asked?.abort()
    if (!part) return fill(this.element, h('p', { class: 'faint' }, 'This request has no parts.'))
    if (part.k === 'frame') return this.showFrame(part)
    this.asked = new AbortController()
    const { signal } = this.asked
    try {
      const whole = await get(`${this.own}/part/${part.k}`, signal)
      if (signal.aborted) return undefined
      const original = whole.original && part.edits.length ? whole.original.messages : null
      const sent = h(
        'div',
        { class: 'side' },
        h('h3', {}, original ? 'As it was sent' : 'Text'),
        longText(whole.text, { label: 'As it was sent' }),
        whole.cut ? h('p', { class: 'note' }, 'The text goes on: the raw JSON has all of it.') : null,
      )
      fill(
        this.element,
        this.heading(part),
        original
          ? h(
              'div',
              { class: 'sides' },
              sent,
              h(
                'div',
                { class: 'side' },
                h('h3', {}, `Original, ${count(whole.original.tokens)} tokens; marked lines were not sent`),
                this.originals(whole, original),
              ),
            )
          : sent,
      )
      // Somebody came for one message of many: it is brought into sight.
      const box = this.element.querySelector('.originals')
      const wanted = box?.querySelector('[data-wanted]')
      if (wanted) box.scrollTop = wanted.offsetTop - box.offsetTop
    } catch (error) {
      if (error.name !== 'AbortError')
        fill(this.element, this.heading(part), h('p', { class: 'note bad', role: 'alert' }, error.message))
    }
    return undefined
  }

  /** What a part stands for; of many messages each is opened by a press, the one that somebody came for at once. */
  originals(whole, messages) {
    const mark = absent(whole.text)
    const body = message => longText(message.text, { mark, label: `Original of message ${message.at}` })
    if (messages.length === 1) return body(messages[0])
    const open = messages.some(message => message.at === this.message) ? this.message : messages[0].at
    const one = message => {
      const box = h(
        'details',
        { data: message.at === this.message ? { wanted: '' } : {} },
        h(
          'summary',
          {},
          `message ${count(message.at)} · ${oneLine(message.role, 30)} `,
          h('span', { class: 'faint' }, oneLine(message.text, 80)),
        ),
      )
      const build = () => {
        if (box.open && box.children.length === 1) box.append(body(message))
      }
      box.addEventListener('toggle', build)
      box.open = message.at === open
      build()
      return box
    }
    return h(
      'div',
      { class: 'originals' },
      messages.map(one),
      whole.original.cut || whole.original.count > messages.length
        ? h(
            'p',
            { class: 'note' },
            `${count(messages.length)} of ${count(whole.original.count)} messages are shown here; a mark that names a handle has all of it.`,
          )
        : null,
    )
  }

  showFrame(part) {
    const { system, tools } = this.frame
    fill(
      this.element,
      this.heading(part),
      h('h3', {}, 'System prompt'),
      system ? longText(system, { label: 'System prompt' }) : h('p', { class: 'faint' }, 'None was recorded.'),
      h('h3', {}, plural(tools?.length ?? 0, 'tool')),
      (tools ?? []).slice(0, 300).map(tool =>
        h(
          'details',
          { class: 'tool' },
          h(
            'summary',
            {},
            h('code', {}, oneLine(tool.name, 80)),
            ' ',
            h('span', { class: 'faint' }, oneLine(tool.description ?? '', 90)),
          ),
          longText(`${tool.description ?? ''}\n\n${JSON.stringify(tool.schema ?? null, null, 2)}`, {
            label: `Tool ${tool.name}`,
          }),
        ),
      ),
    )
  }
}
