// Pictures of four pages for the docs: node pictures.mjs [path of longhaul]. The session is the one of `longhaul demo`,
// taken through the engine in a window of 32,000 tokens; the folder is docs/pictures.

import { spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { gunzipSync } from 'node:zlib'
import { launch, openPage } from './browser.mjs'
import { withPalette } from './palette.mjs'

const here = import.meta.dirname
const root = path.join(here, '../../../..')
const longhaul =
  process.argv[2] ?? ['release', 'debug'].map(kind => path.join(root, 'target', kind, 'longhaul')).find(existsSync)
if (!longhaul) throw new Error('no longhaul: build it, or name its path')
const folder = mkdtempSync(path.join(tmpdir(), 'longhaul-pictures-'))
const env = { ...process.env, LONGHAUL_STORE: path.join(folder, 'sessions.db'), HOME: folder }

// The demo's model is called `demo` and has no prices: here it gets those of a real one.
const demo = path.join(folder, 'session.jsonl')
const recorded = gunzipSync(readFileSync(path.join(root, 'crates/longhaul-cli/demo/session.jsonl.gz'))).toString()
writeFileSync(demo, recorded.replaceAll('"model":"demo"', '"model":"claude-sonnet-4-5"'))

const stored = window => {
  const args = [
    'sessions',
    'import',
    demo,
    '--window',
    window,
    '--agent',
    'longhaul',
    '--project',
    'tidewater',
    '--json',
  ]
  const { status, stdout, stderr } = spawnSync(longhaul, args, { env, encoding: 'utf8' })
  if (status !== 0) throw new Error(stderr)
  return JSON.parse(stdout).session
}
stored('128000')
stored('64000')
const session = stored('32000')

const server = spawn(longhaul, ['inspect'], { env, stdio: ['ignore', 'pipe', 'inherit'] })
const base = await new Promise((resolve, reject) => {
  server.stdout.on('data', said => {
    const found = /http:\S+/.exec(said)
    if (found) resolve(found[0])
  })
  server.on('exit', () => reject(new Error('the inspector ended')))
})

const browser = await launch()
const opened = await openPage(browser, base, { height: 820 })
const { page, go } = opened
const take = async (name, height = 820) => {
  await page.setViewportSize({ width: 1280, height })
  await page.waitForTimeout(400)
  const file = path.join(root, 'docs/pictures', `inspector-${name}.png`)
  writeFileSync(file, withPalette(await page.screenshot()))
  console.log(`${path.relative(root, file)}: ${(statSync(file).size / 1000).toFixed(0)} KB`)
}
try {
  await go('#/')
  await page.waitForFunction(() =>
    [...document.querySelectorAll('table.sessions tbody tr')].every(row => row.textContent.includes('$')),
  )
  await take('sessions', 480)

  // The story of docs/inspector.md: a time that the agent no longer knows.
  await go(`#/s/${session}?find=${encodeURIComponent('gw-07 at 06:15:11')}`)
  await page.locator('.finder .verdict').first().waitFor()
  await take('session', 1180)

  await page
    .locator('.finder .hits li')
    .filter({ hasText: 'Gone since call' })
    .first()
    .getByRole('link', { name: /Show call/ })
    .click()
  await page.locator('.detail .made').first().waitFor()
  await take('call', 860)

  await page.goBack()
  await page
    .locator('.finder .hits li')
    .filter({ hasText: 'Gone since call' })
    .first()
    .getByRole('button', { name: 'Bring it back' })
    .click()
  await page.getByRole('dialog').getByText('billed again', { exact: true }).first().waitFor()
  await take('back', 740)
  await page.keyboard.press('Escape')

  await go(`#/s/${session}/whatif?profile=mini&window=64000`)
  await page.locator('.figures-table').waitFor({ timeout: 120_000 })
  await take('what-if', 1210)
  if (opened.troubles.length) throw new Error(opened.troubles.join('\n'))
} finally {
  await browser.close()
  server.kill()
  rmSync(folder, { recursive: true, force: true })
}
