// The page: which view the address names, the bar above it, and what is said to people when something fails.

import { listen, me } from './api.js'
import { callView } from './call.js'
import { fill, h } from './dom.js'
import { installKeys } from './keys.js'
import { searchView } from './search.js'
import { sessionView } from './session.js'
import { sessionsView } from './sessions.js'
import { whatIfView } from './what_if.js'

const main = document.getElementById('main')
const link = document.getElementById('link')
const told = document.getElementById('told')
const searchBox = document.getElementById('search')

/** Addresses, the first that fits. A view with the same key is told of the new address instead of being made anew. */
const ROUTES = [
  [/^\/$/, sessionsView, () => ({})],
  [/^\/search$/, searchView, () => ({})],
  [/^\/s\/([^/]+)$/, sessionView, ([, id]) => ({ id })],
  [/^\/s\/([^/]+)\/whatif$/, whatIfView, ([, id]) => ({ id })],
  [
    /^\/s\/([^/]+)\/c\/(\d+)(?:\/p\/(\d+|frame))?$/,
    callView,
    ([, id, call, part]) => ({ id, call: Number(call), part: part ?? null }),
  ],
]

function place() {
  const [path, search = ''] = (location.hash.slice(1) || '/').split('?', 2)
  const values = Object.fromEntries(new URLSearchParams(search))
  for (const [pattern, view, named] of ROUTES) {
    const found = pattern.exec(path)
    if (!found) continue
    try {
      const params = Object.fromEntries(
        Object.entries(named(found)).map(([key, value]) => [
          key,
          typeof value === 'string' ? decodeURIComponent(value) : value,
        ]),
      )
      return { view, params: { ...params, values } }
    } catch {
      break
    }
  }
  return null
}

let shown = null
let turn = 0
let stop = null

/** Listens to a session, or to all of them; one connection at a time. */
function follow(session, onSession) {
  stop?.()
  stop = listen(session, onSession, up => {
    link.textContent = up ? 'connected' : 'not connected'
    link.className = up ? 'link up' : 'link down'
  })
}

/** Says something in the corner, and to screen readers. */
let fades = 0
function tell(text) {
  told.textContent = text
  clearTimeout(fades)
  fades = setTimeout(() => {
    told.textContent = ''
  }, 6000)
}

function failure(error) {
  const gone = error.status === 404
  const words = gone
    ? 'There is nothing at this address'
    : error.status === 401
      ? 'This page needs its token'
      : 'That did not work'
  fill(
    main,
    h(
      'section',
      { class: 'empty', role: 'alert' },
      h('h1', { tabindex: -1 }, words),
      h('p', {}, error.message),
      h(
        'p',
        {},
        h('a', { href: '#/' }, 'All sessions'),
        ' · ',
        h('button', { type: 'button', on: { click: () => open(true) } }, 'Try again'),
      ),
    ),
  )
}

async function open(anew = false) {
  const to = place()
  const mine = ++turn
  if (!to)
    return failure(
      Object.assign(new Error('The address of this page names no session, call or search.'), { status: 404 }),
    )
  if (!anew && shown?.view === to.view && shown.live?.update?.(to.params)) return undefined
  shown?.live?.close?.()
  stop?.()
  stop = null
  shown = { view: to.view, live: null }
  const page = h('div', { class: 'page' })
  main.setAttribute('aria-busy', 'true')
  const waits = setTimeout(() => {
    if (mine === turn) fill(main, h('p', { class: 'wait' }, 'Loading …'))
  }, 250)
  try {
    const known = await me()
    const live = await to.view(page, to.params, { follow, tell, me: known, title })
    if (mine !== turn) return live?.close?.()
    if (known.exported) document.querySelector('.bar-search').hidden = true
    shown.live = live
    fill(main, page)
    window.scrollTo(0, 0)
    live?.shown?.()
    // The first view leaves the focus to the browser: the first stop is the way past the bar.
    if (mine > 1 && (document.activeElement === document.body || document.activeElement === null))
      main.querySelector('h1')?.focus({ preventScroll: true })
  } catch (error) {
    if (mine === turn) failure(error)
    if (!('status' in error)) throw error
  } finally {
    clearTimeout(waits)
    if (mine === turn) main.removeAttribute('aria-busy')
  }
  return undefined
}

function title(text) {
  document.title = text ? `${text} · Longhaul inspector` : 'Longhaul inspector'
}

document.querySelector('.bar-search').addEventListener('submit', event => {
  event.preventDefault()
  const words = searchBox.value.trim()
  if (words) location.hash = `#/search?q=${encodeURIComponent(words)}`
})
// `#main` is no address of ours: the hash has the view.
document.querySelector('.skip').addEventListener('click', event => {
  event.preventDefault()
  main.focus()
})
window.addEventListener('hashchange', () => open())
installKeys(searchBox, document.getElementById('help'))
open()
