// Asks the server that the page came from, and nobody else.

const root = new URL('api/', document.baseURI)

/** In a session that was exported as static pages there is no server: the answers are in the pages. */
const stored = window.longhaulExport ?? null

/** What the server said no to, in its own sentence. */
export class Refused extends Error {
  constructor(message, status) {
    super(message)
    this.status = status
  }
}

async function asked(path, options) {
  let answer
  try {
    answer = await fetch(new URL(path, root), { cache: 'no-store', ...options })
  } catch (error) {
    if (error.name === 'AbortError') throw error
    throw new Refused('The server does not answer. Is `longhaul` still running?', 0)
  }
  if (answer.ok) return answer
  const said = await answer.json().catch(() => null)
  if (answer.status === 401)
    throw new Refused(said?.error ?? 'This page needs its token: open it by the address that `longhaul` printed.', 401)
  throw new Refused(said?.error ?? `The server answered ${answer.status}.`, answer.status)
}

/** JSON of an address below `api/`. */
export const get = async (path, signal) => (stored ? stored.get(`api/${path}`) : (await asked(path, { signal })).json())

/** The text of an address below `api/`. */
export const getText = async (path, signal) => (await asked(path, { signal })).text()

/** The whole address, for links. */
export const address = path => new URL(path, root).href

let known = null
/** Who we are to the server: version, profiles, and what changes are proved with. */
export const me = () =>
  (known ??= get('me').catch(error => {
    known = null
    throw error
  }))

/** A change, or the preview of one. */
export async function post(path, body) {
  const { csrf } = await me()
  const headers = { 'content-type': 'application/json', 'x-longhaul-inspect': csrf }
  const answer = await asked(path, { method: 'POST', headers, body: JSON.stringify(body) })
  return answer.json()
}

/** The path of a session below `api/`. */
export const sessionPath = (id, ...rest) => ['session', encodeURIComponent(id), ...rest].join('/')

/** A query of what is set. */
export function query(values) {
  const set = new URLSearchParams()
  for (const [name, value] of Object.entries(values))
    if (value !== null && value !== undefined && value !== '') set.set(name, value)
  const text = set.toString()
  return text ? `?${text}` : ''
}

/**
 * Tells of sessions that got entries, until `stop()` is called. The browser connects anew by itself when the link breaks;
 * `onLink` says whether it stands.
 */
export function listen(session, onSession, onLink) {
  if (stored) return () => {}
  const source = new EventSource(new URL(`events${query({ session })}`, root))
  source.addEventListener('session', event => {
    try {
      onSession(JSON.parse(event.data))
    } catch {
      /* half a line at the end of a connection: the next event tells the same again */
    }
  })
  source.addEventListener('open', () => onLink(true))
  source.addEventListener('error', () => onLink(false))
  return () => source.close()
}
