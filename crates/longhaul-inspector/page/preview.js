// What a change would make of the next request, before it is done.

import { category, kindInWords, swatch, whyInWords } from './categories.js'
import { h } from './dom.js'
import { List } from './list.js'
import { count, lostThinking, oneLine, plural, usd } from './text.js'

const difference = (before, after) => {
  const by = after - before
  return by === 0 ? 'as large as it is' : `${count(Math.abs(by))} tokens ${by > 0 ? 'larger' : 'smaller'}`
}

/** The next request, part by part. */
function partsOf(parts) {
  const list = new List({
    label: 'Parts of the next request',
    count: parts.length,
    height: 30,
    max: 240,
    row: i => {
      const part = parts[i]
      return [
        swatch(category(part.category)),
        h('span', { class: 'what' }, category(part.category).label),
        h('span', { class: 'head' }, h('bdi', {}, oneLine(part.head ?? '', 120))),
        part.new ? h('span', { class: 'badge new' }, 'new') : null,
        h('span', { class: 'num' }, count(part.tokens)),
      ]
    },
  })
  return list.element
}

/** What a change would make of the next request: in a sentence, in tokens, in dollars, edit by edit, part by part. */
export function shownPreview(preview) {
  return [
    h(
      'dl',
      { class: 'figures' },
      h(
        'div',
        {},
        h('dt', {}, 'next request'),
        h(
          'dd',
          {},
          h('span', { class: 'num' }, `${count(preview.view_before)} → ${count(preview.view_after)}`),
          ` tokens: ${difference(preview.view_before, preview.view_after)}`,
        ),
      ),
      h(
        'div',
        {},
        h('dt', {}, 'billed again'),
        h(
          'dd',
          {},
          preview.billed_again
            ? [
                h('span', { class: 'num' }, count(preview.billed_again)),
                ' tokens: the cache ends where the change begins',
              ]
            : 'nothing: the cache stays of use',
        ),
      ),
      h(
        'div',
        {},
        h('dt', {}, 'price'),
        h(
          'dd',
          {},
          preview.usd === null || preview.usd === undefined
            ? 'not known: this model has no prices'
            : [
                'the next request costs ',
                h('span', { class: 'num' }, usd(preview.usd)),
                preview.usd_before === undefined ? '' : ` in the place of ${usd(preview.usd_before)}`,
              ],
        ),
      ),
    ),
    h('p', { class: 'says' }, oneLine(preview.says ?? '', 2000)),
    preview.edits?.length
      ? h(
          'details',
          {},
          h('summary', {}, plural(preview.edits.length, 'edit')),
          h(
            'ul',
            { class: 'plain-list' },
            preview.edits
              .slice(0, 200)
              .map(edit =>
                h(
                  'li',
                  {},
                  typeof edit === 'object'
                    ? `edit ${edit.id}: ${kindInWords(edit.kind)}, ${count(edit.before)} → ${count(edit.after)} tokens${edit.thinking_steps ? `, and ${lostThinking(edit)}` : ''}; ${whyInWords(edit.why)}`
                    : `edit ${edit}`,
                ),
              ),
          ),
        )
      : null,
    preview.parts?.length
      ? h(
          'details',
          {},
          h('summary', {}, `The next request: ${plural(preview.parts.length, 'part')}`),
          partsOf(preview.parts),
        )
      : null,
  ]
}
