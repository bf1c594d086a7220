/** `<callsign-notices>` and the words of the elements around a call, in headless Chromium. */

import { createHash, generateKeyPairSync } from 'node:crypto'
import type { Browser } from 'playwright-core'
import t from 'tap'
import { openBrowser, skipWithoutChromium } from '../support/browser.ts'
import { button } from '../support/client-page.ts'
import { newPerson, openHome, signInAs } from '../support/home-page.ts'
import { faultsOf } from '../support/operator-page.ts'
import { SDK_MODULE } from '../support/sdk-module.ts'

const browser = (await openBrowser(t)) as Browser

/** A key of a log of the same name, as the server had it before it was reset. */
async function staleKey(url: string): Promise<string> {
  const { log } = (await (await fetch(`${url}/app/api/meta`)).json()) as { log: { vkey: string } }
  const [name] = log.vkey.split('+')
  const { publicKey } = generateKeyPairSync('ed25519')
  const key = Buffer.concat([Buffer.of(1), publicKey.export({ format: 'der', type: 'spki' }).subarray(-32)])
  const id = createHash('sha256').update(`${name}\n`).update(key).digest('hex').slice(0, 8)
  return `${name}+${id}+${key.toString('base64')}`
}

t.test('stale pins say what to do on a development server', { skip: skipWithoutChromium }, async t => {
  const house = await openHome(t, browser)
  const page = await newPerson(
    { ...house, url: `${house.url}?vkey=${encodeURIComponent(await staleKey(house.server.http))}` },
    'Ann',
  )
  await page.getByText('The server shows another key log than this app was built for').waitFor()
  await page.getByText('put the keys that its console at /dev shows into the app’s pins').waitFor()
  t.same(await faultsOf(page), [])
  await button(page, 'Close').click()
  t.equal(await page.locator('.notice').count(), 0)
})

t.test(
  'lost keys are said, and a developer deletes what the page keeps',
  { skip: skipWithoutChromium },
  async t => {
    const house = await openHome(t, browser)
    const page = await newPerson(house, 'Ann')
    await page.evaluate(`import('${SDK_MODULE}').then(({ CallsignError }) =>
    document.querySelector('callsign-notices').tell(new CallsignError('DEVICE_KEYS_LOST', 'lost')))`)
    await button(page, 'Delete what this page keeps').click()
    await page.getByRole('heading', { name: 'Sign in' }).waitFor()
    t.equal(await page.evaluate('me.userId'), undefined)
  },
)

t.test(
  'a page of localhost with another log’s pins deletes nothing',
  { skip: skipWithoutChromium },
  async t => {
    const house = await openHome(t, browser)
    const page = await (await house.newContext()).newPage()
    await page.goto(
      `${house.url}?vkey=${encodeURIComponent('calls.example.org+1c14b4a8+AUMhQLo4Ikyo3d8aeLmHtHNtRkPUhSlMs1VPN1nrTKH1')}`,
    )
    await page.getByLabel('Email or phone').waitFor()
    await page.evaluate(`import('${SDK_MODULE}').then(({ CallsignError }) =>
    document.querySelector('callsign-notices').tell(new CallsignError('DEVICE_KEYS_LOST', 'lost')))`)
    await button(page, 'Close').waitFor()
    t.equal(await button(page, 'Delete what this page keeps').count(), 0)
  },
)

t.test('notices taken out of the page hear of no call any more', { skip: skipWithoutChromium }, async t => {
  const page = await newPerson(await openHome(t, browser), 'Ann')
  const heard = await page.evaluate(`(async () => {
    const listeners = new Set()
    const call = {
      hostUserId: '1',
      on(name, listener) {
        listeners.add(listener)
        return () => listeners.delete(listener)
      },
    }
    const me = { on: () => () => {}, nameOf: () => '', contacts: {}, connection: 'connected', calls: [call] }
    const notices = Object.assign(document.createElement('callsign-notices'), { me })
    document.body.append(notices)
    await notices.updateComplete
    const before = listeners.size
    notices.remove()
    const without = listeners.size
    document.body.append(notices)
    await notices.updateComplete
    return [before, without, listeners.size]
  })()`)
  t.same(heard, [1, 0, 1])
})

t.test('a session that begins elsewhere is said, and ended', { skip: skipWithoutChromium }, async t => {
  const house = await openHome(t, browser)
  const ann = await newPerson(house, 'Ann')
  const other = await newPerson(house, 'Ann')
  await ann.getByText('Signed in as you: Chrome on Linux').waitFor()
  await button(ann, 'End that session').click()
  await other.getByText('You are signed out. Sign in again.').waitFor()
})

for (const [lang, address, send, devices] of [
  ['de', 'E-Mail oder Telefon', 'Code schicken', 'Deine Geräte'],
  ['vi', 'Email hoặc số điện thoại', 'Gửi mã cho tôi', 'Thiết bị của bạn'],
] as const) {
  t.test(`the elements speak ${lang}`, { skip: skipWithoutChromium }, async t => {
    const house = await openHome(t, browser)
    const page = await (await house.newContext({ viewport: { width: 320, height: 640 } })).newPage()
    await page.goto(`${house.url}?lang=${lang}`)
    await page.getByLabel(address).fill('ann@example.org')
    await button(page, send).click()
    await page.locator('button.main').click()
    await page.getByRole('heading', { name: devices }).waitFor()
    t.same(await faultsOf(page), [])
    const [width, window] = (await page.evaluate(
      '[document.documentElement.scrollWidth, innerWidth]',
    )) as number[]
    t.equal(width, window, 'nothing is wider than the phone')
  })
}

t.test('a question is answered once, and is not the next user’s', { skip: skipWithoutChromium }, async t => {
  const house = await openHome(t, browser)
  const page = await newPerson(house, 'Ann')
  const ask = `import('${SDK_MODULE}').then(({ CallsignError }) => {
    globalThis.accepted = 0
    me.contacts.acceptKeys = async () => { accepted += 1 }
    document.querySelector('callsign-notices').tell(new CallsignError('KEYS_RESET', 'new keys', { members: { userId: '7', listHash: 'x' } }))
  })`
  await page.evaluate(ask)
  await button(page, 'Go on').click()
  await button(page, 'Go on').waitFor({ state: 'detached' })
  t.equal(await page.evaluate('accepted'), 1)

  await page.evaluate(ask)
  await page.evaluate(`document.querySelector('callsign-notices').show('bad', 'For Ann alone')`)
  await button(page, 'Go on').waitFor()
  await button(page, 'Sign out').click()
  await signInAs(page, 'Bob')
  t.equal(await page.getByText('For Ann alone').count(), 0)
  t.equal(await button(page, 'Go on').count(), 0)
})
