// A Chromium for the tests and the pictures, and pages that notice everything that must not happen.

import { existsSync } from 'node:fs'
import { chromium } from 'playwright-core'

const PLACES = [process.env.CHROMIUM, '/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome']
const FLAGS = [
  '--headless=new',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--enable-precise-memory-info',
  '--js-flags=--expose-gc',
]

/** Starts it, with a fresh folder of user data. */
export function launch() {
  const executablePath = PLACES.find(place => place && existsSync(place))
  if (!executablePath) throw new Error('no chromium: set CHROMIUM to its path')
  return chromium.launch({ executablePath, args: FLAGS })
}

/**
 * A page of its own. `troubles` collects console errors, errors of scripts, dialogs, and requests to anywhere but the
 * inspector; an answer that was expected to fail is named by `expected` (a part of its address).
 */
export async function openPage(browser, base, { width = 1280, height = 900, scheme = 'light', expected = null } = {}) {
  const context = await browser.newContext({
    viewport: { width, height },
    colorScheme: scheme,
    reducedMotion: 'reduce',
    locale: 'en-GB',
    timezoneId: 'UTC',
  })
  const page = await context.newPage()
  const troubles = []
  const home = base.startsWith('file:') ? new URL('.', base).href : `${new URL(base).origin}/`
  page.on('console', message => {
    const fine = expected && message.location().url.includes(expected)
    if (['error', 'warning'].includes(message.type()) && !fine)
      troubles.push(`console: ${message.text()} (${message.location().url})`)
  })
  page.on('pageerror', error => troubles.push(`script: ${error.stack}`))
  page.on('dialog', dialog => {
    troubles.push(`dialog: ${dialog.message()}`)
    dialog.dismiss()
  })
  page.on('request', request => {
    if (!request.url().startsWith(home) && !request.url().startsWith('data:'))
      troubles.push(`request to ${request.url()}`)
  })
  page.on('popup', () => troubles.push('a window opened'))
  const go = async hash => {
    // A hash alone loads nothing anew: every test begins with an empty page.
    await page.goto('about:blank')
    await page.goto(`${base}${hash}`)
    await page.locator('main h1').first().waitFor()
  }
  return { page, go, troubles, close: () => context.close() }
}
