// Keys that work everywhere, and the table of all keys.

import { fill, h } from './dom.js'

const KEYS = [
  [
    'everywhere',
    [
      ['?', 'this table'],
      ['/', 'search everything that was said'],
      ['f', 'find in this session'],
      ['s', 'all sessions'],
      ['u', 'one level up'],
      ['Esc', 'close'],
    ],
  ],
  [
    'timeline',
    [
      ['← →', 'call before, next call'],
      ['Page Up, Page Down', 'ten times that, or a screenful'],
      ['Home, End', 'first call, last call'],
      ['+ − 0', 'zoom in, zoom out, all'],
      ['Enter', 'open the call'],
    ],
  ],
  [
    'a call',
    [
      ['[ ]', 'call before, next call'],
      ['↑ ↓', 'part before, next part'],
      ['Enter', 'go to the part'],
    ],
  ],
  [
    'lists, tabs',
    [
      ['↑ ↓ Home End', 'move'],
      ['← →', 'another tab'],
    ],
  ],
]

const typing = target => target.closest?.('input, textarea, select, [contenteditable]')

export function installKeys(searchBox, button) {
  const dialog = h('dialog', { class: 'sheet', 'aria-labelledby': 'keys-title' })
  fill(
    dialog,
    h(
      'form',
      { method: 'dialog' },
      h('h2', { id: 'keys-title' }, 'Keys'),
      KEYS.map(([where, keys]) =>
        h(
          'section',
          {},
          h('h3', {}, where),
          h(
            'dl',
            { class: 'keys' },
            keys.map(([key, does]) => h('div', {}, h('dt', {}, h('kbd', {}, key)), h('dd', {}, does))),
          ),
        ),
      ),
      h('div', { class: 'buttons' }, h('button', { autofocus: true }, 'Close')),
    ),
  )
  document.body.append(dialog)
  const show = () => {
    if (!dialog.open) dialog.showModal()
  }
  button.addEventListener('click', show)
  document.addEventListener('keydown', event => {
    if (event.altKey || event.ctrlKey || event.metaKey || event.defaultPrevented) return
    if (typing(event.target) || document.querySelector('dialog[open]')) return
    const does = {
      '?': show,
      '/': () => searchBox.select(),
      f: () => document.getElementById('find')?.select(),
      s: () => {
        location.hash = '#/'
      },
      u: () => {
        location.hash = above()
      },
      '[': () => document.querySelector('[data-key="["]')?.click(),
      ']': () => document.querySelector('[data-key="]"]')?.click(),
    }[event.key]
    if (!does) return
    event.preventDefault()
    does()
  })
}

function above() {
  const session = /^#\/s\/[^/?]+/.exec(location.hash)?.[0]
  return session && location.hash !== session ? session : '#/'
}
