// Search over everything that was ever said in any session: by the index of the store.

import { get, query } from './api.js'
import { fill, h } from './dom.js'
import { around, count, oneLine, pieces, plural, visible } from './text.js'

/** A snippet with what was found marked. */
export const snippet = (text, found) =>
  h(
    'span',
    { class: 'snippet' },
    h(
      'bdi',
      {},
      pieces(...around(text, found)).map(([piece, hit]) => (hit ? h('mark', {}, visible(piece)) : visible(piece))),
    ),
  )

export async function searchView(page, { values }, { follow, title }) {
  const words = (values.q ?? '').trim()
  title(words ? `Search: ${oneLine(words, 40)}` : 'Search')
  const box = document.getElementById('search')
  if (box.value.trim() !== words) box.value = words
  const { hits } = words ? await get(`search${query({ q: words, limit: 100 })}`) : { hits: [] }
  const sessions = new Set(hits.map(hit => hit.session)).size
  fill(
    page,
    h('h1', { tabindex: -1 }, 'Search'),
    h(
      'p',
      { class: 'lead' },
      words
        ? hits.length
          ? `${plural(hits.length, 'message')} in ${plural(sessions, 'session')} say “${oneLine(words, 80)}”, newest first.`
          : `Nobody said “${oneLine(words, 80)}”.`
        : 'Type words into the box above: all of them must be in one message.',
    ),
    hits.length === 0 && words
      ? h(
          'section',
          { class: 'empty' },
          h('h2', {}, 'Nothing found'),
          h(
            'p',
            {},
            'All words must be in one message; ',
            h('code', {}, 'pars*'),
            ' finds what starts so. What tools answered is not in this index: open a session and use “find in this session”, which looks through everything.',
          ),
        )
      : null,
    h(
      'ol',
      { class: 'hits' },
      hits.map(hit => {
        const to = `#/s/${encodeURIComponent(hit.session)}`
        return h(
          'li',
          {},
          h(
            'a',
            { class: 'title', href: `${to}?find=${encodeURIComponent(words)}` },
            h('bdi', {}, oneLine(hit.title || 'without a title', 120)),
          ),
          h(
            'span',
            { class: 'under' },
            hit.message === null ? 'a session that cannot be read' : `message ${count(hit.message)}`,
            hit.call ? [' · ', h('a', { href: `${to}/c/${hit.call}` }, `call ${count(hit.call)}`)] : null,
          ),
          snippet(hit.snippet, hit.found),
        )
      }),
    ),
  )
  follow(null, () => {})
  return {}
}
