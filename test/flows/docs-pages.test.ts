/**
 * The documentation of a running server in a browser: `/docs` shows the documents and finds words in them, `/docs/events`
 * has all of the AsyncAPI document, `/docs/api` shows the OpenAPI document, and none loads anything from elsewhere.
 */

import type { Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { DESKTOP, openBrowser, PHONE, skipWithoutChromium } from '../support/browser.ts'
import { openServer } from '../support/open-server.ts'
import { faultsOf } from '../support/operator-page.ts'
import { long } from '../support/size.ts'

const skip = skipWithoutChromium

interface AsyncApi {
  readonly channels: Readonly<Record<string, { readonly address: string; readonly messages: object }>>
}

const server = skip ? undefined : await openServer({ dataFolder: t.testdir() })
const browser = skip ? undefined : await openBrowser(t)
t.teardown(() => server?.end())

/** A page that fails the test when it requests another server's files. */
async function open(t: Test, viewport: { readonly width: number; readonly height: number } = DESKTOP) {
  const { http } = server!
  const permissions = ['clipboard-read', 'clipboard-write']
  const context = await browser!.newContext({ viewport, permissions })
  t.teardown(() => context.close())
  const page = await context.newPage()
  page.on('request', request => {
    const { protocol, origin } = new URL(request.url())
    if (protocol !== 'data:' && origin !== http) t.fail(`the page asks for ${request.url()}`)
  })
  return { http, page }
}

async function openEvents(t: Test, hash = '', viewport: typeof DESKTOP | typeof PHONE = DESKTOP) {
  const { http, page } = await open(t, viewport)
  await page.goto(`${http}/docs/events${hash}`)
  await page.locator('.message').first().waitFor({ state: 'attached' })
  const document = (await (await fetch(`${http}/asyncapi.json`)).json()) as AsyncApi
  return { page, document }
}

function idsOf(page: Page, selector: string): Promise<string[]> {
  return page
    .locator(selector)
    .evaluateAll(elements => (elements as unknown as { readonly id: string }[]).map(({ id }) => id))
}

t.test(
  'every channel and message of the document is on the page, with a table or none and an example',
  {
    skip,
  },
  async t => {
    const { page, document } = await openEvents(t)
    const channels = Object.entries(document.channels)
    t.same(await idsOf(page, '.channel'), Object.keys(document.channels))
    t.same(
      await idsOf(page, '.message'),
      channels.flatMap(([id, { messages }]) => Object.keys(messages).map(name => `${id}/${name}`)),
    )
    t.same(
      await page.locator('.channel h3 > code').allTextContents(),
      channels.map(([, { address }]) => address),
    )
    t.equal(await page.locator('.message figure').count(), await page.locator('.message').count())
    t.equal(
      await page.locator('nav a[href^="#"]').count(),
      11 + 55,
      'eleven channels, and what the server sends',
    )
    t.notMatch(await page.locator('main').innerText(), /undefined|\[object|\$ref/)
  },
)

t.test(
  'members are shown with type, values and bounds, nested ones under their holder',
  long({ skip }),
  async t => {
    const { page } = await openEvents(t, '#callTopic/participant_joined')
    const rows = page.locator('[id="callTopic/participant_joined"] table').first().locator('tbody tr')
    const texts = (await rows.allInnerTexts()).map(text => text.replaceAll(/\s+/g, ' '))
    t.match(texts, [/^v integer Always 1$/, /^type string "participant_joined"$/])
    t.ok(texts.some(text => /^state string "invited" "ringing" "joined"/.test(text)))
    t.ok(texts.includes('joinedAt optional string, date-time'))
    t.equal(await rows.locator('.depth-1').count(), 13, 'the members of participant')
    const problem = page.locator('[id="errors/error"] table').first()
    t.match(await problem.textContent(), /urn:problem/, 'a reference is resolved')
  },
)

t.test('a link to a message opens it and goes there, whatever the filter says', long({ skip }), async t => {
  const { page } = await openEvents(t, '#keys/keys')
  const message = page.locator('[id="keys/keys"]')
  t.equal(await message.getAttribute('open'), '')
  const top = `document.getElementById('keys/keys').getBoundingClientRect().top`
  await page.waitForFunction(`${top} >= 0 && ${top} < innerHeight`)
  await page.getByRole('searchbox').fill('call_ended')
  t.equal(await message.count(), 0)
  await page.evaluate(`location.hash = '#keys'`)
  await message.waitFor()
  t.equal(await page.getByRole('searchbox').inputValue(), '')
})

t.test('the filter leaves entries with all of its words', long({ skip }), async t => {
  const { page } = await openEvents(t)
  await page.getByRole('searchbox').fill('encryptedAESKey rejoin')
  t.same(await idsOf(page, '.message'), ['calls/participant_accept_rejoin', 'acceptRejoin/acceptRejoin'])
  t.equal(await page.locator('.tools [role=status]').innerText(), '2 messages at 2 destinations')
  await page.getByRole('searchbox').fill('nothing of the kind')
  t.match(await page.locator('.tools [role=status]').innerText(), '0 messages')
})

t.test('an example is copied as JSON', long({ skip }), async t => {
  const { page } = await openEvents(t, '#calls/call_ended')
  await page.getByRole('button', { name: 'Copy the example of call_ended' }).click()
  await page.getByText('Copied').waitFor()
  const copied = await page.evaluate<string>('navigator.clipboard.readText()')
  t.match(JSON.parse(copied), { v: 1, type: 'call_ended', endReason: 'hangup' })
})

t.test('it is used with the keyboard alone, and fits a phone', long({ skip }), async t => {
  const { page } = await openEvents(t, '', PHONE)
  await page.locator('nav summary').focus()
  await page.keyboard.press('Enter')
  await page.keyboard.press('Tab')
  await page.keyboard.press('Tab')
  await page.keyboard.press('Enter')
  await page.waitForFunction(`location.hash === '#calls/call_invitation'`)
  t.equal(await page.locator('[id="calls/call_invitation"]').getAttribute('open'), '')
  await page.getByRole('button', { name: 'Open all' }).click()
  const width = await page.evaluate<number>('document.documentElement.scrollWidth')
  t.ok(width <= PHONE.width, `${width} of ${PHONE.width} pixels`)
})

t.test('/docs/api shows the operations, and is dark where the system is', { skip }, async t => {
  const { http, page } = await open(t)
  await page.emulateMedia({ colorScheme: 'dark' })
  await page.goto(`${http}/docs/api`)
  await page.getByText('/app/api/login', { exact: true }).waitFor()
  const operations = await page.locator('.opblock').count()
  t.ok(operations > 50, `${operations} operations`)
  t.equal(await page.locator('html').getAttribute('class'), 'dark-mode')
  await page.locator('.opblock-summary-control').first().click()
  await page.getByRole('button', { name: 'Execute' }).waitFor()
})

const CALLS = '/docs/protocol/calls'

t.test('the keyboard alone finds a passage and goes there', { skip }, async t => {
  const { http, page } = await open(t)
  await page.goto(`${http}/docs`)
  await page.keyboard.press('/')
  const field = page.getByRole('combobox', { name: 'Search the documents' })
  await field.pressSequentially('fingerprint')
  const options = page.getByRole('listbox', { name: 'Found' }).getByRole('option')
  await options.nth(1).waitFor()
  t.equal(await field.inputValue(), 'fingerprint', 'the slash is no part of it')
  t.same(await faultsOf(page), [])
  await page.keyboard.press('ArrowDown')
  t.equal(await field.getAttribute('aria-activedescendant'), 'result-1')
  t.equal(await options.nth(1).getAttribute('aria-selected'), 'true')
  const at = await options.nth(1).getAttribute('data-at')
  await page.keyboard.press('Enter')
  await page.waitForURL(`${http}${at}`)
  const anchor = new URL(page.url()).hash.slice(1)
  t.ok(await page.locator(`[id="${anchor}"]`).isVisible(), anchor)
})

t.test('words in any order and a slip of the pen are found, nonsense is not', long({ skip }), async t => {
  const { http, page } = await open(t)
  await page.goto(`${http}${CALLS}`)
  const field = page.getByRole('combobox')
  for (const words of ['CALLSIGN_HTTP_PORT', 'certificate renew', 'fingreprint']) {
    await field.fill(words)
    await page.getByRole('option').first().waitFor()
  }
  await field.fill('zyxwvut')
  await page.getByText('Nothing found').waitFor()
  await field.press('Escape')
  t.equal(await page.getByRole('option').count(), 0)
})

t.test('a block of commands is copied without prompts and output', long({ skip }), async t => {
  const { http, page } = await open(t)
  await page.goto(`${http}/docs/start/first-call`)
  const block = page.locator('.block').first()
  await block.getByRole('button', { name: 'Copy this block' }).click()
  await page.getByText('Copied').first().waitFor()
  const copied = await page.evaluate<string>('navigator.clipboard.readText()')
  t.ok(copied.length > 5)
  t.notMatch(copied, /^\$ /m)
  t.ok((await block.locator('code').innerText()).includes(copied.split('\n')[0]!))
})

for (const colorScheme of ['light', 'dark'] as const) {
  t.test(
    `documents fit from 320 to 1920 pixels, without a fault of axe-core, ${colorScheme}`,
    long({ skip }),
    async t => {
      for (const width of [320, 844, 1280, 1920]) {
        const { http, page } = await open(t, { width, height: width === 844 ? 390 : 800 })
        await page.emulateMedia({ colorScheme })
        for (const path of ['/docs/api', '/docs', CALLS, '/docs/reference/settings', '/docs/changelog']) {
          await page.goto(http + path)
          const whole = await page.evaluate<number>('document.documentElement.scrollWidth')
          t.ok(whole <= width, `${path}: ${whole} of ${width} pixels`)
          t.same(await faultsOf(page), [], `${path} at ${width}`)
        }
        const sections = page.getByRole('navigation', { name: 'Documents' })
        if (width < 960) await page.getByRole('button', { name: 'Documents' }).click()
        t.ok(await sections.getByRole('link', { name: 'Glossary' }).isVisible())
        if (width < 960) t.same(await faultsOf(page), [], `sections at ${width}`)
      }
    },
  )
}

t.test('pages do not move while they load', long({ skip }), async t => {
  const { http, page } = await open(t, PHONE)
  await page.addInitScript(`globalThis.moved = 0
    new PerformanceObserver(list => { for (const { value } of list.getEntries()) moved += value })
      .observe({ type: 'layout-shift', buffered: true })`)
  await page.goto(`${http}${CALLS}`)
  await page.getByRole('button', { name: 'Copy this block' }).first().waitFor({ state: 'attached' })
  t.equal(await page.evaluate<number>('moved'), 0)
})
