/** The page `/dev` in a browser, beside a development server that people use. */

import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { transform } from 'esbuild'
import type { Browser, Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { WebSocket } from 'ws'
import { RegisterClient } from '../../scripts/support/register-client.ts'
import { App, newPublicKey } from '../support/app.ts'
import { DESKTOP, openBrowser, PHONE, skipWithoutChromium } from '../support/browser.ts'
import { DevPerson } from '../support/dev-person.ts'
import { freePort } from '../support/free-port.ts'
import { until } from '../support/nodes.ts'
import { openServer } from '../support/open-server.ts'
import { faultsOf } from '../support/operator-page.ts'
import type { OpenOptions, OpenServer } from '../support/server.ts'
import { long } from '../support/size.ts'
import { PROJECT_ROOT } from '../support/vectors.ts'

const skip = skipWithoutChromium
const browser = (await openBrowser(t)) as Browser

async function startDev(t: Test, options: Partial<OpenOptions> = {}): Promise<OpenServer> {
  const server = await openServer({ dataFolder: join(t.testdir(), 'data'), ...options })
  t.teardown(() => server.end())
  return server
}

/** The console once it shows the server, with storage and clipboard of its own. */
async function openConsole(t: Test, http: string, viewport: typeof PHONE | typeof DESKTOP = DESKTOP) {
  const context = await browser.newContext({ viewport, permissions: ['clipboard-read', 'clipboard-write'] })
  const page = await context.newPage()
  t.teardown(async () => {
    await page.unrouteAll({ behavior: 'ignoreErrors' })
    await context.close()
  })
  await page.goto(`${http}/dev`)
  await page.getByText('live ·').waitFor()
  return page
}

/** Registers keys of made-up users, all in the log once this resolves, the first before the rest. */
async function registerKeys(server: OpenServer, count: number, firstUser = 1): Promise<void> {
  const client = new RegisterClient(server.grpc)
  const publicKey = newPublicKey('P-256 SPKI')
  const register = (user: number) => client.register(BigInt(user), 1n, publicKey)
  await register(firstUser)
  await Promise.all(Array.from({ length: count - 1 }, (_, others) => register(firstUser + 1 + others)))
  client.close()
}

// Code for the page is text here: tests are compiled without the types of browsers.

/** Changes the root hash of the checkpoint that the page remembers. */
const FORGE = `{
  const [name] = Object.keys(localStorage)
  const { rootHash, ...rest } = JSON.parse(localStorage.getItem(name))
  const forged = (rootHash.startsWith('A') ? 'B' : 'A') + rootHash.slice(1)
  localStorage.setItem(name, JSON.stringify({ ...rest, rootHash: forged }))
}`
const COUNT_CONTROLS = `[...document.querySelectorAll('a, button, input, summary, [tabindex="0"]')]
  .filter(one => one.checkVisibility() && !one.matches(':disabled')).length`
/** The place of the focused element among all, or of the body for none. */
const FOCUSED = '[...document.body.querySelectorAll("*")].indexOf(document.activeElement)'
const NOWHERE = -1
const FOCUSED_TEXT = 'document.activeElement.textContent'

/** The result of `Verify`: each step with its mark, such as `✓ signature`. */
async function verify(page: Page, fields: Readonly<Record<string, string>> = {}): Promise<string[]> {
  for (const [name, value] of Object.entries(fields)) await page.locator(`[name=${name}]`).fill(value)
  const runs = Number(await page.locator('.steps').getAttribute('data-runs'))
  await page.getByRole('button', { name: 'Verify', exact: true }).click()
  await page.locator(`.steps[data-runs="${runs + 1}"]`).waitFor({ state: 'attached' })
  const steps = await page.locator('.steps > li').all()
  return Promise.all(
    steps.map(async step => (await step.locator(':scope > span').allInnerTexts()).slice(0, 2).join(' ')),
  )
}

t.test('an empty console says what to do next', long({ skip }), async t => {
  const page = await openConsole(t, (await startDev(t)).http)
  t.match(await page.locator('#codes').innerText(), /No code yet[\s\S]*curl -s http/)
  t.match(await page.locator('#calls').innerText(), /No call yet/)
  t.match(await page.locator('#pushes').innerText(), /No push yet/)
  t.match(await page.locator('#devices').innerText(), /No device is connected/)
  t.match(await page.locator('#log').innerText(), /The log is empty[\s\S]*register\.js/)
  t.match(await page.locator('#simulator').innerText(), /not running/)
  for (const path of ['/dev/client', '/docs', '/docs/api', '/docs/events']) {
    t.ok(await page.locator(`header nav a[href="${path}"]`).isVisible(), path)
  }
})

t.test('the code of a sign-in appears, is said aloud and copied', { skip }, async t => {
  const { http } = await startDev(t)
  const page = await openConsole(t, http)
  const app = new App(http)
  await app.get(200, 'POST /app/api/login', { email: 'ann@example.org' })
  const code = page.locator('.codes .code strong')
  await code.waitFor()
  const { items } = await app.get(200, 'GET /dev/inbox?to=ann@example.org')
  const { otp } = items[0]
  t.equal(await code.innerText(), otp)
  t.same(await faultsOf(page), [])
  t.equal(
    await page.locator('[aria-live=polite]').innerText(),
    `code ${[...otp].join(' ')} for ann@example.org`,
  )
  await page.getByRole('button', { name: `Copy code ${otp}` }).click()
  await page.locator('.copy[data-copied]').waitFor()
  t.equal(await page.evaluate('navigator.clipboard.readText()'), otp)
  await page.locator('.codes .opening').click()
  t.match(await page.locator('.codes .message').innerText(), otp)
})

t.test('codes of simulated people are counted, and hide no real one', long({ skip }), async t => {
  const { http } = await startDev(t)
  const page = await openConsole(t, http)
  const app = new App(http)
  for (const email of ['simulator-00112233445566ff@example.org', 'simulator@example.org']) {
    await app.get(200, 'POST /app/api/login', { email })
  }
  await page.getByText('and 1 code for simulated people').waitFor()
  await page.locator('.codes').getByText('simulator@example.org').waitFor()
  t.equal(await page.locator('.codes .code').count(), 1)
})

t.test('a push appears with its size, and opens to headers and payload', { skip }, async t => {
  const { http } = await startDev(t)
  const page = await openConsole(t, http)
  const [ann, bob] = [await DevPerson.signIn(http, 'Ann'), await DevPerson.signIn(http, 'Bob')]
  await ann.app.get(201, 'POST /app/api/friend-request/by-id', { targetUserId: bob.userId })
  const push = page.locator('.pushes > li').first()
  await push.waitFor()
  const { items } = await bob.app.get(200, `GET /dev/pushes?userId=${bob.userId}`)
  const [{ kind, bytes, provider }] = items
  const row = await push.innerText()
  t.match(row, kind)
  t.match(row, provider)
  t.match(row, `${bytes} B / 4.1 kB`)
  t.ok(await push.getByRole('img', { name: `${bytes} of ` }).isVisible(), 'its size is drawn')
  await push.getByRole('button').click()
  t.match(await push.locator('pre').innerText(), /"displayName": "Ann"/)
  t.match(await push.locator('.facts').innerText(), bob.device)
})

t.test('a call is a time line of what its room was told and said, to its end', { skip }, async t => {
  const { http } = await startDev(t)
  const page = await openConsole(t, http)
  const [ann, bob] = [await DevPerson.signIn(http, 'Ann'), await DevPerson.signIn(http, 'Bob')]
  await ann.befriend(bob)
  const callId = await ann.call(bob)
  const call = page.locator('.calls article')
  await call.locator('.badge.ringing').first().waitFor()
  await bob.app.get(200, `POST /app/api/call/${callId}/join`)
  await call.locator('.badge.active').first().waitFor()
  await ann.app.get(200, 'POST /app/api/call/end', { callId })
  await call.locator('.badge.over').first().waitFor()

  t.match(await call.locator('thead').innerText(), /room\s+Ann[\s\S]*Bob/)
  const commands = await call.locator('td.room .what:first-child').allInnerTexts()
  t.same(commands, ['start', 'join', 'end'])
  const start = call.locator('tbody tr').first().locator('td')
  t.match(await start.nth(2).getAttribute('class'), /from/, 'Ann starts it')
  t.equal((await start.nth(3).innerText()).trim(), 'call_invitation', 'Bob is told')
  t.match(await call.getAttribute('aria-label'), `call ${callId}, ended`)
  t.match(await call.innerText(), /Ann left\s+Bob left/, 'it stays to be read')
})

t.test('devices come and go, and actors have figures', long({ skip }), async t => {
  const { http } = await startDev(t)
  const page = await openConsole(t, http)
  const ann = await DevPerson.signIn(http, 'Ann')
  const peer = await ann.connect(t)
  const device = page.locator('#devices tbody tr')
  await device.getByText(ann.deviceId).waitFor()
  t.match(await device.innerText(), /^Ann/)
  t.match(await page.locator('#actors').innerText(), /stomp-connection\s+1/)
  await peer.disconnect()
  await page.locator('#devices .comings').getByText('left').waitFor()
  await device.waitFor({ state: 'detached' })
})

t.test('the log is drawn as it grows, and verified in the browser', { skip }, async t => {
  const server = await startDev(t, { environment: { CALLSIGN_INDEX_SECONDS: '1' } })
  const page = await openConsole(t, server.http)
  t.same(await verify(page), ['✓ keys', '✓ signature', '– consistency', '– inclusion'], 'an empty log')
  t.match(await page.locator('#log').innerText(), /Index: (begins with the first entry|1 leaf, )/)

  const ann = await DevPerson.signIn(server.http, 'Ann')
  await registerKeys(server, 4)
  await page.getByRole('img', { name: 'tree of size 5: perfect subtrees of 4, 1' }).waitFor()
  t.match(await page.locator('.tiles').innerText(), '5 of 256 · tile/0/000.p/5')
  t.match(await page.locator('.checkpoints li').first().innerText(), /5\s+\+\d lea/)

  await until(async () => (await fetch(`${server.http}/index/checkpoint`)).ok)
  const steps = ['✓ keys', '✓ signature', '✓ consistency', '✓ inclusion', '✓ owner', '✓ completeness']
  t.same(await verify(page, { leaf: '0', device: ann.device }), steps)
  t.match(await page.locator('.steps').innerText(), `the VRF proof holds for ${ann.device}`)
  t.match(await page.locator('#log').innerText(), /This page remembers tree size 5/)
  t.match(
    await page.locator('#log').innerText(),
    /Index: (is being built, |\d+ lea\w+, the newest over )\d of 5 entries/,
  )
  const others = [...steps.slice(0, 4), '✗ vrf']
  t.same(await verify(page, { leaf: '1' }), others, 'the key of another is not hers')
  await registerKeys(server, 260, 10)
  await page.getByRole('img', { name: 'tree of size 265: perfect subtrees of 256, 8, 1' }).waitFor()
  t.same(await verify(page, { leaf: '1', device: '1_1' }), steps, 'after a tile has filled up')
  t.match(await page.locator('.steps').innerText(), /the tree of 265 begins with that of 5/)
  await registerKeys(server, 1)
  t.same(await verify(page, { leaf: '1', device: '1_1' }), steps, 'a key that is no longer the newest')
  t.match(await page.locator('.steps').innerText(), /completeness\s+Leaf 265: It is the newest/)
})

t.test('a key of an unconnected user is no fault of the log', long({ skip }), async t => {
  const server = await startDev(t)
  const page = await openConsole(t, server.http)
  const ann = await DevPerson.signIn(server.http, 'Ann')
  await ann.connect(t)
  await page.locator('#devices tbody tr').getByText(ann.deviceId).waitFor()
  await registerKeys(server, 1)
  t.equal((await verify(page)).at(-1), '– owner')
  t.ok((await verify(page, { leaf: '0' })).includes('✓ owner'))
})

t.test('Verify tells of a log that is no extension of what the page remembers', long({ skip }), async t => {
  const server = await startDev(t)
  const page = await openConsole(t, server.http)
  await registerKeys(server, 3)
  await verify(page)
  await page.evaluate(FORGE)
  const bad = ['✓ keys', '✓ signature']
  t.same(await verify(page), [...bad, '✗ fork'], 'two roots of one size')

  await registerKeys(server, 2, 10)
  t.same(await verify(page), [...bad, '✗ consistency'])
  t.match(await page.locator('.steps').innerText(), /the log is not an extension of what this page remembers/)
  t.match(
    await page.locator('#log').innerText(),
    /remembers tree size 3/,
    'it goes on remembering what it did',
  )
  await page.getByText('Two signed notes').click()
  t.match(await page.locator('.steps pre').innerText(), /— localhost\/callsign-dev/)

  await page.getByRole('button', { name: 'Forget it' }).click()
  t.equal((await verify(page))[2], '– consistency', 'as if it had never looked')
})

t.test('the page says that the server is away, and goes on when it is back', long({ skip }), async t => {
  const dataFolder = join(t.testdir(), 'data')
  const environment = { CALLSIGN_HTTP_PORT: `${await freePort()}` }
  const first = await startDev(t, { dataFolder, environment })
  const page = await openConsole(t, first.http)
  await DevPerson.signIn(first.http, 'Ann')
  await page.locator('.codes .code').waitFor()
  await first.end()
  await page.getByRole('alert').getByText('The server does not answer').waitFor()
  t.ok(await page.locator('.codes .code').isVisible(), 'what it has shown is still there')

  const second = await startDev(t, { dataFolder, environment })
  await page.getByText('live ·').waitFor()
  await page.getByText('No code yet').waitFor()
  await new App(second.http).get(200, 'POST /app/api/login', { email: 'bob@example.org' })
  await page.locator('.codes').getByText('bob@example.org').waitFor()
  t.equal(await page.locator('.codes .code').count(), 1, 'and shows this one from its beginning')
})

t.test('Hold stops the page where it is, until it is to go on', long({ skip }), async t => {
  const { http } = await startDev(t)
  const page = await openConsole(t, http)
  await page.getByRole('button', { name: 'Hold' }).click()
  const another = await openConsole(t, http)
  await new App(http).get(200, 'POST /app/api/login', { email: 'ann@example.org' })
  await another.locator('.codes').getByText('ann@example.org').waitFor()
  t.match(await page.locator('#codes').innerText(), /No code yet/)
  await page.getByRole('button', { name: 'Go on' }).click()
  await page.locator('.codes').getByText('ann@example.org').waitFor()
})

t.test('the simulator obeys the panel, which shows its people', long({ skip }), async t => {
  const { http } = await startDev(t)
  const page = await openConsole(t, http)
  const told: unknown[] = []
  await page.route('**/dev/simulator', async route => {
    told.push(route.request().postDataJSON())
    await route.fulfill({ status: 202, json: {} })
  })
  const people = [
    { userId: '77', displayName: 'Zoe', behaviour: 'answer', isOnline: true, doing: 'idle' },
    { userId: '78', displayName: 'Yan', behaviour: 'time-out', isOnline: false, doing: 'ringing' },
  ]
  const simulator = {
    people,
    calls: { started: 3, answered: 2, ended: 2, failed: 1 },
    load: { users: 20, online: 18, callsPerSecond: 1.5, callsUnderWay: 4, ringMs: { p50: 16, p99: 76.5 } },
    trouble: 'Yan is tired',
  }
  await page.route('**/dev/state', async route => {
    const state = await (await route.fetch()).json()
    await route.fulfill({ json: { ...state, simulator } })
  })
  const panel = page.locator('#simulator')
  await panel.getByText('Zoe').waitFor()
  t.match(await panel.innerText(), /3 started · 2 answered · 2 ended · 1 failed/)
  t.match(
    await panel.innerText(),
    /18 of 20 people connected · 1.5 calls a second ·\s+4 under way · rings after 16 ms, 99 of 100 within 76.5 ms/,
  )
  t.match(await panel.getByRole('alert').innerText(), 'Yan is tired')
  t.match(
    await panel.locator('tbody').innerText(),
    /Zoe …?77\s+answer\s+idle[\s\S]*Yan …?78\s+let it ring\s+ringing/,
  )

  await panel.getByLabel('decline').fill('2')
  await panel.getByRole('button', { name: 'Make them' }).click()
  const link = `${http}/c/c_0123456789abcdefghijkl`
  await panel.getByLabel('Your share link').fill(link)
  await panel.getByRole('button', { name: 'Befriend me' }).click()
  await panel.getByLabel('Your user id').fill('5')
  await panel.getByRole('button', { name: 'Let Zoe call you' }).click()
  await panel.getByRole('button', { name: 'Start' }).click()
  await panel.getByRole('button', { name: 'Stop' }).click()
  await panel.locator('form:not([aria-busy=true])').first().waitFor()
  t.same(told, [
    { kind: 'people', behaviours: ['answer', 'decline', 'decline'] },
    { kind: 'befriend', shareToken: 'c_0123456789abcdefghijkl' },
    { kind: 'call', from: '77', to: '5', isVideo: false },
    { kind: 'load', users: 20, callsPerSecond: 1 },
    { kind: 'stop' },
  ])
})

t.test('a refused request shows at once, with both bodies behind it', { skip }, async t => {
  const { http } = await startDev(t)
  const page = await openConsole(t, http)
  const panel = page.locator('#requests')
  await panel.getByText('No request yet').waitFor()
  const ann = await DevPerson.signIn(http, 'Ann')
  await ann.app.send('POST /app/api/login', { emial: 'bob@example.org' })
  const row = panel.locator('li').first()
  await row.getByText('VALIDATION_FAILED').waitFor()
  t.match(await row.innerText(), /422\s+POST\s+\/app\/api\/login[\s\S]*unknown: \/emial/)
  await row.locator('.opening').click()
  await row.getByText('bob@example.org').waitFor()
  await row.getByText('urn:problem:validation-failed').waitFor()
  await panel.getByRole('button', { name: '1 refused' }).click()
  await panel.locator('li').nth(1).waitFor({ state: 'detached' })
  t.equal(await panel.locator('li').count(), 1)
  await panel.getByRole('button', { name: '1 refused' }).click()
  const verify = panel.locator('li', { hasText: 'verify-login' })
  await verify.locator('.opening').click()
  await verify.getByText('"otp": "(secret, 6 characters)"').waitFor()
})

t.test(
  'the card has the addresses and keys of this server, and code that connects to it',
  long({ skip }),
  async t => {
    const server = await startDev(t)
    const page = await openConsole(t, server.http)
    const card = page.locator('#connect')
    const { port } = new URL(server.http)
    await card.getByText(`http://10.0.2.2:${port}`, { exact: true }).waitFor()
    await card.getByRole('button', { name: 'Keys to pin' }).click()
    for (const key of [server.vkey, server.vrfPublicKey]) await card.getByText(key, { exact: true }).waitFor()
    await card.getByRole('button', { name: 'Code to begin with' }).click()
    const code = card.locator('pre')
    for (const [language, address] of [
      ['Swift', server.http],
      ['Kotlin', `http://10.0.2.2:${port}`],
      ['TypeScript', server.http],
    ] as const) {
      await card.getByRole('button', { name: language }).click()
      await card.getByRole('button', { name: language, pressed: true }).waitFor()
      const text = await code.innerText()
      // The Swift package finds the socket by itself.
      const sockets = language === 'Swift' ? [] : [`${address.replace('http', 'ws')}/ws`]
      for (const part of [address, ...sockets, server.vkey, server.vrfPublicKey])
        t.ok(text.includes(JSON.stringify(part)), `${language}: ${part}`)
    }

    const program = join(PROJECT_ROOT, 'dist', `connect-${process.pid}.mjs`)
    const { code: javaScript } = await transform(await code.innerText(), { loader: 'ts', format: 'esm' })
    writeFileSync(program, javaScript)
    t.teardown(() => rmSync(program))
    Object.assign(globalThis, { WebSocket })
    const { start } = await import(program)
    const client = await start('ann@example.org', () => page.locator('.code strong').first().innerText())
    t.teardown(() => client.deactivate())
    await page.locator('#devices').getByText('ann').first().waitFor()
  },
)

t.test(
  'the keyboard reaches every control, and stays on it while the page grows',
  long({ skip }),
  async t => {
    const { http } = await startDev(t)
    const page = await openConsole(t, http)
    const [ann, bob] = [await DevPerson.signIn(http, 'Ann'), await DevPerson.signIn(http, 'Bob')]
    await ann.befriend(bob)
    await ann.call(bob)
    await page.locator('.calls .time-line').waitFor()
    const controls = await page.evaluate<number>(COUNT_CONTROLS)
    const reached = new Set<number>()
    for (let presses = 0; presses <= controls; presses++) {
      await page.keyboard.press('Tab')
      reached.add(await page.evaluate<number>(FOCUSED))
    }
    // Between the last and the first, the focus is on no element of the page.
    reached.delete(NOWHERE)
    t.equal(reached.size, controls)

    await page.locator('.codes .opening').first().focus()
    const before = await page.evaluate(FOCUSED_TEXT)
    await ann.app.send('POST /app/api/login', { email: 'cem@example.org' })
    await page.locator('.codes').getByText('cem@example.org').waitFor()
    t.equal(await page.evaluate(FOCUSED_TEXT), before, 'a code came in front of it')
  },
)

t.test('it fits a phone', long({ skip }), async t => {
  const { http } = await startDev(t)
  const page = await openConsole(t, http, PHONE)
  const [ann, bob] = [await DevPerson.signIn(http, 'Ann'), await DevPerson.signIn(http, 'Bob')]
  await ann.befriend(bob)
  await ann.call(bob)
  await page.locator('.calls .time-line').waitFor()
  await page.locator('.pushes .opening').first().click()
  t.equal(await page.evaluate('document.documentElement.scrollWidth'), PHONE.width)
})
