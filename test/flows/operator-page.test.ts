/** The operators' page in a browser: a moderator works through reports, people and calls. */

import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { DESKTOP, openBrowser, PHONE, skipWithoutChromium } from '../support/browser.ts'
import { meetPeople, type Person, settingsFor, startCall } from '../support/call-people.ts'
import { widthsOf } from '../support/client-page.ts'
import { openServer } from '../support/open-server.ts'
import { faultsOf, giveKey, newModerator, signInAs } from '../support/operator-page.ts'
import type { OpenServer } from '../support/server.ts'
import { serverKeyCommand } from '../support/server-keys.ts'

const skip = skipWithoutChromium
const browser = (await openBrowser(t)) as Browser
const dataFolder = join(t.testdir(), 'data')
const server: OpenServer = await openServer({ dataFolder, environment: settingsFor(40) })
t.teardown(() => server.end())
const key = await newModerator(dataFolder, server)

let met = 0

/** People of the test alone, who are called `Person` and a number; the first one is everybody's contact. */
async function meet(): Promise<readonly [ann: Named, bob: Named]> {
  const people = await meetPeople(server.http, 2, met)
  const [ann, bob] = people.map((person, at) => ({ ...person, number: met + at, name: `Person ${met + at}` }))
  met += 2
  return [ann!, bob!]
}

interface Named extends Person {
  readonly number: number
  readonly name: string
}

/** A tab of its own. */
async function newTab(t: Test, viewport: typeof PHONE | typeof DESKTOP = DESKTOP): Promise<Page> {
  const context = await browser.newContext({ viewport })
  t.teardown(() => context.close())
  return context.newPage()
}

async function signedIn(t: Test, place = ''): Promise<Page> {
  const page = await newTab(t)
  await signInAs(page, server, key, place)
  return page
}

/** Sends a report; resolves with its id. */
async function report(by: Person, about: Person, more: object = {}): Promise<string> {
  const body = { userId: about.userId, reason: 'threat', text: 'At night <b>', ...more }
  return (await by.app.get(201, 'POST /app/api/report', body)).reportId
}

/** The page's heading, once it is this one. */
async function headed(page: Page, name: string): Promise<void> {
  await page.getByRole('heading', { level: 1, name }).waitFor()
}

function button(page: Page, name: string) {
  return page.getByRole('button', { name })
}

t.test('only a moderator’s key opens the page, and a refusal says why', { skip }, async t => {
  const page = await newTab(t)
  await page.goto(`${server.serverApi}/operator`)
  await giveKey(page, 'password1')
  await page.getByText('That is no key of this server').waitFor()
  const backend = await serverKeyCommand(dataFolder, server, 'create', '--name', 'shop', '--scopes', 'users')
  await giveKey(page, backend)
  await page.getByText('That key is for a program').waitFor()
  await giveKey(page, `csk_${'0'.repeat(12)}_${'0'.repeat(64)}`)
  await page.getByText('That is no key of this server').waitFor()
  t.equal(await page.evaluate('sessionStorage.length'), 0)
  t.equal(await page.title(), 'Sign in · Callsign operators')
  t.same(await faultsOf(page), [])
})

t.test('the key stays nowhere, and the session ends with the key', { skip }, async t => {
  const own = await newModerator(dataFolder, server)
  const page = await newTab(t)
  await signInAs(page, server, own)
  const kept = `JSON.stringify([{ ...localStorage }, { ...sessionStorage }, location.href, document.cookie, document.body.innerHTML])`
  const [, keyId, secret] = own.split('_')
  t.notMatch(await page.evaluate(kept), secret!)
  await page.reload()
  await button(page, 'Sign out').waitFor()
  await serverKeyCommand(dataFolder, server, 'revoke', '--id', keyId!)
  await page.getByRole('link', { name: 'People' }).click()
  await page.getByText('Your key was revoked').waitFor()
  await headed(page, 'Sign in')
  t.notMatch(await page.evaluate(kept), 'cos_')
})

t.test('a session ends by itself, and signing out forgets it', { skip }, async t => {
  const page = await newTab(t)
  await page.clock.install()
  await signInAs(page, server, key, '#people')
  await page.getByText('15 min left').waitFor()
  await page.clock.runFor(14 * 60_000)
  await page.getByText('1 min left').waitFor()
  await page.clock.runFor(70_000)
  await page.getByText('Your session has ended').waitFor()
  t.notOk(await page.getByText('All people').count(), 'nobody is shown any more')
  await page.reload()
  await headed(page, 'Sign in')
})

t.test('a report is read, taken into review with a note, and closed', { skip }, async t => {
  const [ann, bob] = await meet()
  const reportId = await report(bob, ann, { callId: '7' })
  const page = await signedIn(t)
  await headed(page, 'Reports')
  await page.locator(`a[href="#report/${reportId}"]`).click()
  await headed(page, 'Threats or violence')
  t.equal(await page.locator('blockquote').innerText(), 'At night <b>', 'a report’s text is text')
  await page.getByText('does not know that both were in it').waitFor()
  t.same(await faultsOf(page), [])
  await page.getByLabel('Note').fill('Asked Bob')
  await button(page, 'Take into review').click()
  await page.getByText('The report is in review.').waitFor()
  t.equal(await page.getByLabel('Note').inputValue(), 'Asked Bob')
  await page.getByText('Mara', { exact: true }).nth(1).waitFor()
  await button(page, 'Resolve').click()
  await page.getByText('The report is resolved.').waitFor()
  await page.goBack()
  await headed(page, 'Reports')
  t.equal(await page.locator(`a[href="#report/${reportId}"]`).count(), 0, 'it waits no more')
  await page.getByRole('link', { name: 'Resolved' }).click()
  await page.locator(`a[href="#report/${reportId}"]`).waitFor()
})

t.test('a person is found by each of their names', { skip }, async t => {
  const [{ userId, name, number }] = await meet()
  const page = await signedIn(t, '#people')
  const find = async (text: string, found: string) => {
    await page.getByLabel('User id, your own id').fill(text)
    await button(page, 'Find').click()
    await page.getByRole('heading', { name: `By “${text}”` }).waitFor()
    t.match(await page.locator('h2:has-text("By “") + *').innerText(), found, text)
  }
  const users = await serverKeyCommand(dataFolder, server, 'create', '--name', 'shop', '--scopes', 'users')
  const changed = await fetch(`${server.serverApi}/server/api/v1/users/id:${userId}`, {
    method: 'PUT',
    headers: { authorization: `Bearer ${users}`, 'content-type': 'application/json' },
    body: JSON.stringify({ externalId: 'shop/7 ü', phone: '+14155550133' }),
  })
  t.equal(changed.status, 200)
  for (const text of [userId, 'shop/7 ü', `person${number}@example.org`, '+1 415 555 0133'])
    await find(text, name)
  await find('nobody', 'No one was found')
  await find('+', 'No one was found')
  t.same(await faultsOf(page), [])
  t.notMatch(page.url(), /shop|example|415/, 'no name or address is in the page’s own')
})

t.test('devices are checked in the browser, against the log', { skip }, async t => {
  const [ann] = await meet()
  const page = await signedIn(t, `#person/${ann.userId}`)
  await headed(page, ann.name)
  await page.getByText('✓ The log has its key').waitFor()
  t.same(await faultsOf(page), [])

  const lying = await newTab(t)
  // As a server would that shows a moderator another entry than the device's.
  await lying.route('**/devices', async route => {
    const answer = await route.fetch()
    const { items } = await answer.json()
    await route.fulfill({ json: { items: items.map((item: object) => ({ ...item, publicKeyIndex: '2' })) } })
  })
  await signInAs(lying, server, key, `#person/${ann.userId}`)
  await lying.getByText('✗ The log has a later key').waitFor()
  await lying.unrouteAll({ behavior: 'wait' })

  const forging = await newTab(t)
  await forging.route('**/key-lookups', async route => {
    const answer = await route.fetch()
    const { results } = await answer.json()
    const forged = results.map((result: { publicKey: string }) => ({
      ...result,
      publicKey: Buffer.alloc(65, 4).toString('base64'),
    }))
    await route.fulfill({ json: { results: forged } })
  })
  await signInAs(forging, server, key, `#person/${ann.userId}`)
  await forging.getByText('✗ The proof of its key does not hold').waitFor()
  await forging.unrouteAll({ behavior: 'wait' })
})

t.test('a person is suspended, which ends their sessions, and let in again', { skip }, async t => {
  const [cat] = await meet()
  const page = await signedIn(t, `#person/${cat.userId}`)
  await page.getByText('Suspend Person').click()
  await page.getByLabel('Reason').fill('abuse')
  t.same(await faultsOf(page), [], 'with the form')
  await page.getByRole('combobox', { name: 'For' }).selectOption('7')
  await page.getByLabel('Note').fill('Three reports')
  await page.getByRole('button', { name: 'Suspend', exact: true }).click()
  await page.getByText('is suspended: signed out').waitFor()
  await page.getByText('Three reports').waitFor()
  t.same(await faultsOf(page), [])
  t.equal((await cat.app.send('GET /app/api/user')).status, 401)
  await button(page, 'Lift the suspension').click()
  await button(page, 'Yes, lift the suspension').click()
  await page.getByText('may sign in again').waitFor()
  await page.getByText('Suspend Person').waitFor()
})

t.test('signing out takes a second click', { skip }, async t => {
  const [bob] = await meet()
  const page = await signedIn(t, `#person/${bob.userId}`)
  await button(page, 'Sign out everywhere').click()
  await button(page, 'No').click()
  t.equal((await bob.app.send('GET /app/api/user')).status, 200)
  await button(page, 'Sign out everywhere').click()
  await button(page, 'Yes, sign out everywhere').click()
  await page.getByText('is signed out everywhere').waitFor()
  await page.getByText('No session:').waitFor()
  t.equal((await bob.app.send('GET /app/api/user')).status, 401)
})

t.test('the audit log has each act of a moderator, and no words', { skip }, async t => {
  const [ann] = await meet()
  const page = await signedIn(t, `#person/${ann.userId}`)
  await page.getByText('Suspend Person').click()
  await page.getByLabel('Reason').fill('spam')
  await page.getByLabel('Note').fill('sells lamps')
  await page.getByRole('button', { name: 'Suspend', exact: true }).click()
  await page.getByText('is suspended: signed out').waitFor()
  await page.getByRole('link', { name: 'Audit' }).click()
  const row = page.getByRole('listitem').filter({ hasText: `id:${ann.userId}` })
  t.match(await row.innerText(), /^Mara\s+suspend user\s+id:/)
  t.same(await faultsOf(page), [])
  t.notMatch(await page.locator('main').innerText(), /lamps|example\.org/)
  await row.getByRole('link').click()
  await headed(page, ann.name)
})

t.test('a call that failed says why, and how far its ring came', { skip }, async t => {
  const [ann, bob] = await meet()
  const { body } = await startCall(ann, [bob])
  const page = await signedIn(t, '#calls')
  await page.locator(`a[href="#call/${body.callId}"]`).click()
  await headed(page, 'Call')
  await bob.app.get(204, `POST /app/api/call/${body.callId}/decline`, {})
  await page.goto(`${server.serverApi}/operator#person/${ann.userId}`)
  await page.locator(`a[href="#call/${body.callId}"]`).click()
  await page.reload()
  await page.getByText(`${bob.name} declined.`, { exact: true }).waitFor()
  const line = page.getByRole('region', { name: 'Time line' })
  t.match(
    await line.innerText(),
    new RegExp(
      `${ann.name}\\s+${bob.name}[^]*starts the call[^]*is invited by ${ann.name}[^]*declines[^]*the call is over`,
    ),
  )
  t.same(await faultsOf(page), [])
  await page.goto(`${server.serverApi}/operator#calls/ended`)
  await page.locator(`a[href="#call/${body.callId}"]`).waitFor()
})

t.test('a call is ended by a moderator, and by the record it was them', { skip }, async t => {
  const [ann, bob] = await meet()
  const { body } = await startCall(ann, [bob])
  const page = await signedIn(t, `#call/${body.callId}`)
  await button(page, 'End the call').click()
  await button(page, 'Yes, end the call').click()
  await page.getByText('A moderator or the backend ended it.').waitFor()
  t.equal((await ann.app.send(`GET /app/api/call/${body.callId}`)).body.code, 'CALL_ENDED')
  await page.getByRole('link', { name: 'Audit' }).click()
  await page
    .getByRole('listitem')
    .filter({ hasText: `call:${body.callId}` })
    .waitFor()
})

t.test('a key opens the views that it has the scopes for', { skip }, async t => {
  const [ann] = await meet()
  const page = await newTab(t)
  await signInAs(page, server, await newModerator(dataFolder, server, ['console', 'reports']))
  await headed(page, 'Reports')
  const links = page.getByRole('navigation', { name: 'Views' }).getByRole('link')
  t.same(await links.allInnerTexts(), ['Reports'])
  await page.goto(`${server.serverApi}/operator#person/${ann.userId}`)
  await page.getByText('Your key does not open this').waitFor()
  const none = await newTab(t)
  await signInAs(none, server, await newModerator(dataFolder, server, ['console']))
  await headed(none, 'Nothing to see')
})

t.test('the keyboard reaches everything, and the next view begins at its heading', { skip }, async t => {
  await meet()
  const page = await signedIn(t)
  await headed(page, 'Reports')
  const focused = 'document.activeElement.textContent.trim()'
  const reached: string[] = []
  for (let presses = 0; presses < 20 && !reached.includes('Refresh'); presses++) {
    await page.keyboard.press('Tab')
    reached.push(await page.evaluate(focused))
  }
  t.same(reached.slice(0, 6), ['Reports', 'People', 'Calls', 'Audit', 'Sign out', 'Refresh'])
  for (let presses = 0; presses < 4; presses++) await page.keyboard.press('Shift+Tab')
  await page.keyboard.press('Enter')
  await headed(page, 'People')
  await page.locator('h1:focus', { hasText: 'People' }).waitFor()
  await page.locator('.rows a').first().press('Enter')
  await page.locator('h1:focus', { hasText: 'Person ' }).waitFor()
})

t.test('no view is wider than a phone, in either scheme, and each is accessible', { skip }, async t => {
  const [ann, bob] = await meet()
  const { body } = await startCall(ann, [bob])
  const reportId = await report(ann, bob, { text: `${'long'.repeat(100)} ${'words '.repeat(60)}` })
  const VIEWS = [
    ['reports', 'Reports'],
    [`report/${reportId}`, 'Threats'],
    ['people', 'People'],
    [`person/${ann.userId}`, ann.name],
    ['audit', 'Audit'],
    ['calls', 'Calls'],
    [`call/${body.callId}`, 'Call'],
  ] as const
  for (const colorScheme of ['dark', 'light'] as const) {
    const page = await newTab(t, PHONE)
    await page.emulateMedia({ colorScheme })
    await signInAs(page, server, key)
    for (const [place, name] of VIEWS) {
      await page.goto(`${server.serverApi}/operator#${place}`)
      await headed(page, name)
      await page.locator('[aria-busy=true]').first().waitFor({ state: 'detached' })
      t.same(await widthsOf(page), [PHONE.width, PHONE.width], `${place}, ${colorScheme}`)
      t.same(await faultsOf(page), [], `${place}, ${colorScheme}`)
    }
  }
})
