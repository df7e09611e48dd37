// Every view of the inspector in a real browser, against a server with made-up sessions. Started by
// `crates/longhaul-cli/tests/browser.rs`, which says in INSPECTOR_UI where the server is and what it holds:
// {base, gateway, exported, plain, hostile, big, wide}: addresses, and ids of sessions.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { launch, openPage } from './browser.mjs'

const { base, gateway, exported, plain, hostile, big, wide } = JSON.parse(process.env.INSPECTOR_UI)
const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const only = process.argv[2]
const browser = await launch()
let failed = 0

async function check(name, options, does) {
  if (only && !name.includes(only)) return
  const opened = await openPage(browser, options.at ?? base, options)
  opened.page.setDefaultTimeout(30_000)
  try {
    const says = await does(opened)
    assert.deepEqual(opened.troubles, [])
    console.log(`ok: ${name}${says ? `: ${says}` : ''}`)
  } catch (error) {
    failed += 1
    console.log(
      `FAILED: ${name}\n${error.stack}\ntroubles: ${opened.troubles.join('\n') || 'none'}\nat ${opened.page.url()}`,
    )
    if (process.env.INSPECTOR_UI_SHOTS)
      await opened.page.screenshot({ path: `${process.env.INSPECTOR_UI_SHOTS}/${name.replace(/\W+/g, '-')}.png` })
  }
  await opened.close()
}

const text = (page, selector) => page.locator(selector).first().innerText()
const number = words => Number(/[\d,]+/.exec(words)[0].replaceAll(',', ''))
const session = (id, rest = '') => `#/s/${id}${rest}`
const slider = page => page.getByRole('slider', { name: 'Calls of the session' })
const at = async page => Number(await slider(page).getAttribute('aria-valuenow'))

/** Whether a canvas has more than one colour. */
const drawn = (page, selector) =>
  page
    .locator(selector)
    .first()
    .evaluate(canvas => {
      const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height)
      const colours = new Set()
      for (let i = 0; i < data.length; i += 4)
        colours.add((data[i] << 24) | (data[i + 1] << 16) | (data[i + 2] << 8) | data[i + 3])
      return colours.size
    })

// The sessions

await check('sessions: all are listed, filtered and searched', {}, async ({ page, go }) => {
  await go('#/')
  const rows = page.locator('table.sessions tbody tr')
  assert.equal(await rows.count(), 4)
  await page.getByLabel('filter').fill('ten thousand')
  assert.equal(await rows.count(), 1)
  await page.getByLabel('filter').fill('no such thing')
  assert.match(await text(page, 'main .empty'), /No session fits/)
  await page.getByLabel('filter').fill('')
  await page.locator('h1').click()
  await page.keyboard.press('/')
  await page.keyboard.type('harbourmaster')
  await page.keyboard.press('Enter')
  await page.locator('.hits mark').first().waitFor()
  assert.match(await text(page, '.hits mark'), /harbourmaster/i)
  await page.locator('.hits a.title').first().click()
  await page.locator('.finder .verdict').first().waitFor()
  assert.match(page.url(), new RegExp(plain))
})

await check('sessions: what nobody said is told to people', {}, async ({ page, go }) => {
  await go('#/search?q=zyzzyva')
  assert.match(await text(page, 'main'), /Nobody said “zyzzyva”/)
})

await check('an address that names nothing', { expected: 'api/' }, async ({ page, go }) => {
  await go(session('01a1e43d-6880-711f-8636-000000000000'))
  assert.match(await text(page, 'main .empty'), /nothing at this address/)
  await go('#/nowhere/at/all')
  assert.match(await text(page, 'main .empty'), /nothing at this address/)
  await page.getByRole('link', { name: 'All sessions' }).click()
  await page.locator('table.sessions').waitFor()
})

await check('keys: the whole page without a mouse', {}, async ({ page, go }) => {
  await go('#/')
  await page.keyboard.press('?')
  assert.ok(await page.getByRole('heading', { name: 'Keys' }).isVisible())
  await page.keyboard.press('Escape')
  assert.ok(!(await page.getByRole('heading', { name: 'Keys' }).isVisible()))
  await page.reload()
  await page.locator('table.sessions').waitFor()
  await page.keyboard.press('Tab')
  assert.equal(await page.evaluate(() => document.activeElement.className), 'skip')
  await page.keyboard.press('Enter')
  assert.equal(await page.evaluate(() => document.activeElement.id), 'main')
  // Every stop of the tabulator can be seen.
  for (let i = 0; i < 12; i++) {
    await page.keyboard.press('Tab')
    const outlined = await page.evaluate(
      () =>
        document.activeElement === document.body || getComputedStyle(document.activeElement).outlineStyle !== 'none',
    )
    assert.ok(outlined, `stop ${i} shows no focus`)
  }
})

// A session

await check('session: words, timeline, keys', {}, async ({ page, go }) => {
  await go(session(plain))
  assert.match(await text(page, '.summary'), /\d+ calls; the largest request had [\d,]+ tokens, \d+ % of the window/)
  assert.match(await text(page, '.summary'), /It cost \$[\d.]+ \(estimated\)/)
  assert.ok((await drawn(page, '.plot canvas')) > 6, 'the timeline has colours')
  assert.ok((await drawn(page, '.plot-cost canvas')) > 4, 'the costs have colours')
  const field = slider(page)
  const last = Number(await field.getAttribute('aria-valuemax'))
  assert.equal(await at(page), last)
  await field.focus()
  for (const [key, is] of [
    ['Home', 1],
    ['ArrowRight', 2],
    ['ArrowRight', 3],
    ['ArrowLeft', 2],
    ['End', last],
    ['ArrowRight', last],
  ]) {
    await page.keyboard.press(key)
    assert.equal(await at(page), is, key)
  }
  await page.keyboard.press('PageUp')
  assert.ok((await at(page)) < last - 1)
  await page.keyboard.press('+')
  await page.keyboard.press('0')
  // The chart may be drawn anew while the mouse comes: then it comes again.
  for (let tries = 0; ; tries++) {
    const hovered = await page.locator('.plot .u-over').first().boundingBox()
    await page.mouse.move(hovered.x + hovered.width * 0.25, hovered.y + 40 + (tries % 3))
    const isThere = page.waitForFunction(
      ([most]) => {
        const now = Number(document.querySelector('[role=slider]').getAttribute('aria-valuenow'))
        return now > most * 0.2 && now < most * 0.3
      },
      [last],
      { timeout: 3_000 },
    )
    const missed = await isThere.then(
      () => null,
      error => error,
    )
    if (!missed) break
    if (tries === 9) throw missed
  }
  const here = await at(page)
  await field.focus()
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: `Call ${here}`, exact: true }).waitFor()
})

await check('session: compactions, calls and edits are lists', {}, async ({ page, go }) => {
  await go(session(plain))
  const last = Number(await slider(page).getAttribute('aria-valuemax'))
  const compactions = page.getByRole('listbox', { name: /Compactions/ })
  await compactions.focus()
  await page.keyboard.press('End')
  const first = await compactions.getByRole('option', { selected: true }).innerText()
  assert.equal(await at(page), number(first))
  await page.getByRole('tab', { name: 'Calls' }).click()
  const calls = page.getByRole('listbox', { name: 'Calls' })
  await calls.focus()
  await page.keyboard.press('Home')
  assert.equal(await at(page), 1)
  await page.keyboard.press('End')
  assert.equal(await at(page), last)
  await page.getByRole('tab', { name: 'Edits' }).click()
  assert.ok((await page.getByRole('listbox', { name: /Edits/ }).getByRole('option').count()) > 0)
})

// What issue 20 is done by: which call no longer had it, why, and back with a click.
await check('find: which call no longer had it, why; undo and redo', {}, async ({ page, go }) => {
  await go(session(plain))
  await page.getByLabel('Did it forget something?', { exact: true }).fill('MOORING_LINE_7')
  await page.keyboard.press('Enter')
  const hit = page.locator('.finder .hits li').filter({ hasText: 'Gone since call' }).first()
  const says = await hit.locator('.verdict').innerText()
  // A summary may have said it for a while, or the fold that took it left it out.
  const [, gone, whole, shorter = gone, said = whole] =
    /Gone since call ([\d,]+)\. Requests had it whole up to call ([\d,]+)(?:; from call ([\d,]+) on .* said it until call ([\d,]+))?\./.exec(
      says,
    ) ?? assert.fail(says)
  assert.equal(number(shorter), number(whole) + 1)
  assert.equal(number(gone), number(said) + 1)
  // What was sent tells the same: of the message, and of the words in what replaced it.
  const sent = async call =>
    JSON.stringify(await (await fetch(`${base}api/session/${plain}/call/${call}/raw?api=anthropic`)).json())
  assert.match(await sent(number(whole)), /quay 1, berth 89: boat_1_89/)
  assert.doesNotMatch(await sent(number(shorter)), /quay 1, berth 89: boat_1_89/)
  assert.match(await sent(number(said)), /MOORING_LINE_7/)
  assert.doesNotMatch(await sent(number(gone)), /MOORING_LINE_7/)
  await hit.getByRole('link', { name: `Show call ${gone}` }).click()
  await page.getByRole('heading', { name: `Call ${gone}`, exact: true }).waitFor()
  await page.locator('.detail .made').first().waitFor()
  assert.match(
    await page.locator('.detail').innerText(),
    /MOORING_LINE_7 is at the north pier/,
    'the original stands beside it',
  )
  await page.goBack()
  await hit.getByRole('button', { name: 'Bring it back' }).click()
  const sheet = page.getByRole('dialog')
  const way = name => sheet.locator('.way').filter({ has: page.getByRole('heading', { name }) })
  await way('Whole, in its place').getByText('billed again', { exact: true }).waitFor()
  for (const name of ['As a pin', 'Whole, in its place']) {
    assert.match(await way(name).innerText(), /next request\s+[\d,]+ → [\d,]+ tokens: [\d,]+ tokens larger/)
    assert.match(await way(name).innerText(), /price\s+the next request costs (< )?\$[\d.]+ in the place of/)
  }
  assert.match(await way('Whole, in its place').innerText(), /Too much for the window/)
  await sheet.getByRole('button', { name: 'Leave it as it is' }).click()
  assert.equal(await page.locator('.verdict .good').count(), 0, 'a preview changes nothing')
  await hit.getByRole('button', { name: 'Bring it back' }).click()
  assert.match(await sheet.getByRole('textbox').inputValue(), /^MOORING_LINE_7 is at the north pier$/)
  await sheet.getByRole('button', { name: 'Pin it' }).click()
  await page.locator('.verdict').filter({ hasText: 'It is back, as a pin' }).waitFor()
  await page.locator('.finder').getByRole('button', { name: 'Bring it back' }).first().click()
  await sheet.getByRole('button', { name: 'Undo what took it out' }).click()
  await page.locator('.verdict').filter({ hasText: 'It is back. From call' }).first().waitFor()
  await page.getByRole('tab', { name: 'Edits' }).click()
  const undone = page.getByRole('option').filter({ hasText: 'undone by a person' })
  await undone.first().waitFor()
  const before = await undone.count()
  await undone.first().click()
  await sheet.getByRole('button', { name: 'Take it out' }).click()
  await page.locator('.verdict').filter({ hasText: 'It is back, as a pin' }).waitFor()
  await page.waitForFunction(
    most =>
      [...document.querySelectorAll('[role=option]')].filter(row => row.textContent.includes('undone')).length < most,
    before,
  )
})

await check('steering: pin, unpin, goal, a compaction that is only looked at', {}, async ({ page, go }) => {
  await go(session(plain, '?tab=steering'))
  const sheet = page.getByRole('dialog')
  const give = async (opens, words, does) => {
    await page.getByRole('button', { name: opens }).click()
    await sheet.getByRole('textbox').fill(words)
    await sheet.getByRole('button', { name: 'Show what it would do' }).click()
    await sheet.getByText('billed again', { exact: true }).waitFor()
    await sheet.getByRole('button', { name: does }).click()
    await sheet.waitFor({ state: 'detached' })
  }
  await give('Pin a text', 'Never move the <b>red</b> buoy', 'Pin it')
  await page.locator('.pins li').filter({ hasText: 'Never move the <b>red</b> buoy' }).waitFor()
  await give(/goal/, 'All boats are in by noon', 'Set it')
  await page.locator('.steering .quote').filter({ hasText: 'All boats are in by noon' }).waitFor()
  for (let pins = await page.locator('.pins li').count(); pins > 0; pins--) {
    await page.getByRole('button', { name: 'Take away' }).first().click()
    await sheet.getByRole('button', { name: 'Take it away' }).click()
    await page.waitForFunction(most => document.querySelectorAll('.pins li').length < most, pins)
  }
  await page.getByText('Nothing is pinned').waitFor()
  await page.getByRole('button', { name: 'Compact …' }).click()
  await sheet.getByRole('textbox').fill('the piers')
  await sheet.getByRole('button', { name: 'Show what it would do' }).click()
  await sheet.getByRole('button', { name: 'Compact', exact: true }).waitFor()
  await page.keyboard.press('Escape')
  await sheet.waitFor({ state: 'detached' })
})

// A call

await check('call: parts, deep links, tabs, the next call', {}, async ({ page, go }) => {
  await go(session(plain, '/c/20'))
  const parts = page.getByRole('listbox', { name: 'Parts of the request' })
  await parts.focus()
  await page.keyboard.press('Home')
  await page.getByRole('heading', { name: 'System and tools' }).waitFor()
  await page.keyboard.press('ArrowDown')
  await page.keyboard.press('ArrowDown')
  const heading = await parts.getByRole('option', { selected: true }).getAttribute('aria-posinset')
  assert.equal(heading, '3')
  await page.locator('.detail .text').first().waitFor()
  const linked = page.url()
  assert.match(linked, /\/c\/20\/p\/\d+$/)
  const shown = await text(page, '.detail h2')
  await go(new URL(linked).hash)
  assert.equal(await text(page, '.detail h2'), shown, 'a link opens the same part')
  for (const [tab, says] of [
    ['Changes since', /Added: \d+ part/],
    ['Against the whole log', /whole log/],
    ['Answer', /message \d+ of the log/],
  ]) {
    await page.getByRole('tab', { name: tab }).click()
    assert.match(await page.getByRole('tabpanel').innerText(), says)
  }
  await page.getByRole('tab', { name: 'Raw JSON' }).click()
  await page.locator('.raw .text').waitFor()
  assert.match(await page.locator('.raw .text').evaluate(block => block.textContent), /"messages": \[/)
  await page.locator('h1').focus()
  await page.keyboard.press(']')
  await page.getByRole('heading', { name: 'Call 21', exact: true }).waitFor()
  await page.keyboard.press('u')
  await slider(page).waitFor()
})

// What if

await check('what if: another profile and window, side by side', {}, async ({ page, go }) => {
  await go(session(plain, '/whatif'))
  await page.getByLabel('profile').selectOption('mini')
  await page.getByLabel('window, tokens').fill('16000')
  await page.getByRole('button', { name: 'Compare' }).click()
  const row = name =>
    page.locator('.figures-table tr').filter({ has: page.getByRole('rowheader', { name: new RegExp(`^${name}`) }) })
  await page.getByText('what if: mini, 16k').waitFor({ timeout: 120_000 })
  const [was, would] = await row('largest request').locator('td.num').allInnerTexts()
  assert.ok(number(would) < number(was) && number(would) <= 16_000, `${was} and ${would}`)
  assert.match((await row('lines kept').locator('td.num').allInnerTexts()).join(' '), /[\d.]+ % [\d.]+ %/)
  assert.ok((await drawn(page, '.what-if canvas')) > 3)
})

// What comes from outside

const MARKUP = '<img src=x onerror=alert(1)>'
await check('hostile contents are text and harm nothing', {}, async ({ page, go }) => {
  await go('#/')
  await page.locator('tr').filter({ hasText: MARKUP }).waitFor()
  await go(session(hostile))
  assert.ok((await text(page, 'h1')).includes(MARKUP))
  await page.getByLabel('Did it forget something?', { exact: true }).fill('onerror')
  await page.keyboard.press('Enter')
  await page.locator('.finder .hits li').first().waitFor()
  await go(session(hostile, '/c/3'))
  const parts = page.getByRole('listbox', { name: 'Parts of the request' })
  await parts.focus()
  await page.keyboard.press('Home')
  const count = Number(await parts.getByRole('option').first().getAttribute('aria-setsize'))
  let seen = ''
  for (let i = 0; i < count; i++) {
    await page.keyboard.press('ArrowDown')
    await page.waitForTimeout(120)
    seen += await page.locator('.detail').innerText()
  }
  for (const mark of [MARKUP, '<script>alert(2)</script>', '⟨U+202E⟩', '⟨ESC⟩[31m', '⟨BEL⟩', '⟨U+200B⟩'])
    assert.ok(seen.includes(mark), `${mark} is shown`)
  for (const tab of ['Changes since', 'Against the whole log', 'Raw JSON', 'Answer'])
    await page.getByRole('tab', { name: tab }).click()
  const elements = await page.evaluate(() => document.querySelectorAll('img, script:not([src]), iframe, object').length)
  assert.equal(elements, 0)
  assert.ok(
    !/[\u202a-\u202e\u2066-\u2069\u0000-\u0008]/.test(await page.evaluate(() => document.body.textContent)),
    'no unseen character is in the page',
  )
})

await check('a line of 50 MB opens, and the page stays small', {}, async ({ page, go }) => {
  const begun = Date.now()
  await go(session(hostile, '/c/5'))
  await page.locator('.detail .text').first().waitFor()
  const first = Date.now() - begun
  const parts = page.getByRole('listbox', { name: 'Parts of the request' })
  await parts.focus()
  const count = Number(await parts.getByRole('option').first().getAttribute('aria-setsize'))
  let longest = 0
  for (let i = 0; i < count; i++) {
    await page.keyboard.press(i ? 'ArrowDown' : 'Home')
    await page.waitForTimeout(200)
    const more = page.locator('.detail .more')
    if ((await more.count()) && /MB|KB/.test(await more.first().innerText())) {
      await more.first().click()
      longest = Math.max(longest, (await page.locator('.detail').evaluate(each => each.textContent)).length)
    }
  }
  const nodes = await page.evaluate(() => document.querySelectorAll('*').length)
  assert.ok(longest > 50_000 && longest < 5_000_000, `${longest} characters of it are in the page`)
  assert.ok(nodes < 20_000, `${nodes} elements`)
  return `${first} ms to open, ${longest} characters and ${nodes} elements in the page`
})

// Size

await check('ten thousand calls', {}, async ({ page, go }) => {
  const cdp = await page.context().newCDPSession(page)
  await cdp.send('Performance.enable')
  const begun = Date.now()
  await go(session(big))
  await page.locator('.plot canvas').first().waitFor()
  const ready = Date.now() - begun
  const paint = await page.evaluate(() =>
    Math.round(performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? -1),
  )
  assert.equal(await slider(page).getAttribute('aria-valuemax'), '10000')
  await slider(page).focus()
  const moves = await page.evaluate(async () => {
    const field = document.querySelector('[role=slider]')
    const begun = performance.now()
    for (let i = 0; i < 200; i++) {
      field.dispatchEvent(
        new KeyboardEvent('keydown', { key: i < 100 ? 'ArrowLeft' : 'PageUp', bubbles: true, cancelable: true }),
      )
      if (i % 10 === 0) await new Promise(requestAnimationFrame)
    }
    return (performance.now() - begun) / 200
  })
  const zoom = await page.evaluate(async () => {
    const field = document.querySelector('[role=slider]')
    const begun = performance.now()
    for (let i = 0; i < 20; i++) {
      field.dispatchEvent(new KeyboardEvent('keydown', { key: i % 4 < 2 ? '+' : '-', bubbles: true, cancelable: true }))
      await new Promise(requestAnimationFrame)
    }
    return (performance.now() - begun) / 20
  })
  await page.getByRole('tab', { name: 'Calls' }).click()
  const calls = page.getByRole('listbox', { name: 'Calls' })
  await calls.focus()
  const scrolls = Date.now()
  await calls.evaluate(box => {
    box.scrollTop = box.scrollHeight
  })
  await calls.locator('[aria-posinset="10000"]').waitFor()
  const scrolled = Date.now() - scrolls
  assert.ok((await calls.getByRole('option').count()) < 100, 'only what can be seen is in the page')
  await page.evaluate(() => window.gc?.())
  const { metrics } = await cdp.send('Performance.getMetrics')
  const heap = metrics.find(each => each.name === 'JSHeapUsedSize').value
  return `first paint ${paint} ms, timeline there after ${ready} ms, a move ${moves.toFixed(2)} ms, a zoom ${zoom.toFixed(1)} ms, scrolled to the end in ${scrolled} ms, ${(heap / 1e6).toFixed(1)} MB of JavaScript memory`
})

await check('a request of more than 200,000 tokens opens', {}, async ({ page, go }) => {
  await go(session(wide))
  const last = Number(await slider(page).getAttribute('aria-valuemax'))
  const opened = await page.evaluate(
    async to => {
      const begun = performance.now()
      location.hash = to
      while (!document.querySelector('.detail .text')) await new Promise(requestAnimationFrame)
      return performance.now() - begun
    },
    session(wide, `/c/${last}`),
  )
  const tokens = number(await page.locator('.readout dd').first().innerText())
  assert.ok(tokens > 200_000, `${tokens} tokens`)
  return `${tokens} tokens in ${Math.round(opened)} ms, from the session to the text of a part`
})

// Live

const listing = step =>
  Array.from({ length: 60 }, (_, line) => `quay_${step}/boat_${line}.rs: fn name_${step}_${line}() {}`).join('\n')
function request(steps) {
  const messages = [{ role: 'user', content: 'Count the boats of every quay, live.' }]
  for (let step = 0; step < steps; step++) {
    messages.push({
      role: 'assistant',
      content: [{ type: 'tool_use', id: `c${step}`, name: 'bash', input: { command: `ls quay_${step}` } }],
    })
    messages.push({ role: 'user', content: [{ type: 'tool_result', tool_use_id: `c${step}`, content: listing(step) }] })
  }
  return {
    model: 'claude-sonnet-4-5',
    max_tokens: 1000,
    system: 'You count boats.',
    messages,
    tools: [{ name: 'bash', input_schema: { type: 'object' } }],
  }
}
const send = async steps => {
  const answer = await fetch(`${gateway}v1/messages`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-api-key': 'sk-made-up' },
    body: JSON.stringify(request(steps)),
  })
  assert.equal(answer.status, 200, await answer.text())
  return answer.headers.get('x-longhaul-session')
}

await check('live: the pages follow an agent at work', {}, async ({ page, go }) => {
  await go('#/')
  assert.equal(await page.locator('tr').filter({ hasText: 'Count the boats' }).count(), 0)
  const id = await send(0)
  await page.locator('tr').filter({ hasText: 'Count the boats' }).waitFor()
  await send(1)
  await page.locator(`tr[data-id="${id}"] td.num`).filter({ hasText: /^2$/ }).waitFor()
  await go(session(id))
  for (let steps = 2; steps < 12; steps++) {
    await send(steps)
    await page.waitForFunction(
      most => Number(document.querySelector('[role=slider]')?.getAttribute('aria-valuemax')) === most,
      steps + 1,
    )
  }
  assert.equal(await at(page), 12, 'the end is followed')
  assert.match(await text(page, '.summary'), /^12 calls/)
  // Pinned here, the agent's next request has it.
  await page.getByRole('tab', { name: 'Steering' }).click()
  await page.getByRole('button', { name: 'Pin a text' }).click()
  const sheet = page.getByRole('dialog')
  await sheet.getByRole('textbox').fill('Do not count the lighthouse')
  await sheet.getByRole('button', { name: 'Show what it would do' }).click()
  await sheet.getByRole('button', { name: 'Pin it' }).click()
  await page.locator('.pins li').filter({ hasText: 'lighthouse' }).waitFor()
  assert.equal(await send(12), id)
  await page.waitForFunction(() => Number(document.querySelector('[role=slider]').getAttribute('aria-valuemax')) === 13)
  const raw = await fetch(`${base}api/session/${id}/call/13/raw?api=anthropic`)
  assert.match(await raw.text(), /Do not count the lighthouse/)
})

// Without a server

await check('an exported session is the same pages, from the disk', { at: exported }, async ({ page, go }) => {
  await go(session(plain))
  assert.ok((await drawn(page, '.plot canvas')) > 6)
  await page.getByLabel('Did it forget something?', { exact: true }).fill('MOORING_LINE_7')
  await page.keyboard.press('Enter')
  const hit = page.locator('.finder .hits li').filter({ hasText: 'Gone since call' })
  await hit.waitFor()
  assert.match(await hit.innerText(), /MOORING_LINE_7 is at the \[redacted\]/)
  assert.equal(await page.getByRole('button', { name: 'Bring it back' }).count(), 0)
  await hit.getByRole('link', { name: /Show call/ }).click()
  await page.locator('.detail .made').first().waitFor()
  assert.equal(await page.getByRole('tab', { name: 'Raw JSON' }).count(), 0)
  await page.getByRole('tab', { name: 'Changes since' }).click()
})

// For everybody

const VIEWS = [
  ['sessions', '#/'],
  ['search', '#/search?q=harbourmaster'],
  ['session', session(plain, '?find=MOORING_LINE_7')],
  ['calls', session(plain, '?tab=calls')],
  ['edits', session(plain, '?tab=edits')],
  ['steering', session(plain, '?tab=steering')],
  ['call', session(plain, '/c/40')],
  ['changes', session(plain, '/c/40?tab=changes')],
  ['raw', session(plain, '/c/40?tab=raw')],
  ['what if', session(plain, '/whatif?profile=mini&window=16000')],
  ['hostile', session(hostile, '/c/3')],
]
for (const options of [{ scheme: 'light' }, { scheme: 'dark' }, { width: 400, height: 800 }]) {
  await check(`axe-core: ${options.width ? '400 px' : options.scheme}`, options, async ({ page, go }) => {
    const found = []
    const look = async name => {
      await page.evaluate(AXE)
      const { violations } = await page.evaluate(() => window.axe.run())
      for (const each of violations)
        if (['serious', 'critical'].includes(each.impact))
          found.push(
            `${name}: ${each.id}: ${each.nodes
              .map(node => node.target.join(' '))
              .slice(0, 3)
              .join(', ')}`,
          )
    }
    for (const [name, hash] of VIEWS) {
      await go(hash)
      if (name === 'what if') await page.locator('.figures-table').waitFor({ timeout: 120_000 })
      if (name === 'session') await page.locator('.verdict').first().waitFor()
      if (name === 'call') await page.locator('.detail h2').first().waitFor()
      await look(name)
      const over = await page.evaluate(
        () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
      )
      assert.ok(over <= 0, `${name} is ${over} px wider than the screen`)
    }
    await page.keyboard.press('?')
    await look('keys')
    await page.keyboard.press('Escape')
    await go(session(plain, '?tab=steering'))
    await page.getByRole('button', { name: 'Pin a text' }).click()
    await look('dialog')
    assert.deepEqual(found, [])
  })
}

await browser.close()
console.log(failed ? `${failed} failed` : 'all passed')
process.exit(failed ? 1 : 0)
