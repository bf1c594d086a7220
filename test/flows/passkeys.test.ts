/**
 * Passkeys in Chromium, with its own authenticator of WebAuthn: what `navigator.credentials` makes of the server's options, and
 * what the server makes of its answers. The pages of a development server take part by their origin alone.
 */

import type { Browser, Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { App } from '../support/app.ts'
import { Authenticator } from '../support/authenticator.ts'
import { addAuthenticator, openBrowser, skipWithoutChromium } from '../support/browser.ts'
import { DevPerson } from '../support/dev-person.ts'
import { openServer } from '../support/open-server.ts'

/** The page, as far as the functions below use it: they run there. */
interface PageWindow {
  readonly PublicKeyCredential: Readonly<Record<string, (options: unknown) => unknown>>
  readonly navigator: {
    readonly credentials: Readonly<
      Record<'create' | 'get', (options: object) => Promise<{ toJSON(): unknown }>>
    >
  }
}

const browser = (await openBrowser(t)) as Browser

/** A page of the server at `localhost`, whose passkeys development takes, and an authenticator that asks for nothing. */
async function setUp(t: Test) {
  const server = await openServer({ dataFolder: t.testdir() })
  t.teardown(() => server.end())
  const http = server.http.replace('127.0.0.1', 'localhost')
  const context = await browser.newContext()
  t.teardown(() => context.close())
  const page = await context.newPage()
  await page.goto(`${http}/docs`)
  const devtools = await context.newCDPSession(page)
  await devtools.send('WebAuthn.enable')
  const ann = await DevPerson.signIn(server.http, 'Ann')
  await ann.prove()
  return { server, page, devtools, ann }
}

/** `navigator.credentials.create` with the server's options; the answer as JSON. */
function create(page: Page, options: object): Promise<unknown> {
  return page.evaluate(async options => {
    const { PublicKeyCredential, navigator } = globalThis as unknown as PageWindow
    const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON!(options)
    return (await navigator.credentials.create({ publicKey })).toJSON()
  }, options)
}

/** `navigator.credentials.get` likewise. */
function get(page: Page, options: object): Promise<unknown> {
  return page.evaluate(async options => {
    const { PublicKeyCredential, navigator } = globalThis as unknown as PageWindow
    const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON!(options)
    return (await navigator.credentials.get({ publicKey })).toJSON()
  }, options)
}

t.test(
  'a passkey of the browser is added, signs in, and is gone when it is removed',
  { skip: skipWithoutChromium },
  async t => {
    const { server, page, devtools, ann } = await setUp(t)
    const authenticatorId = await addAuthenticator(devtools)
    const { app } = ann
    const making = await app.get(200, 'POST /app/api/user/passkeys/options')
    const credential = await create(page, making.options)
    const added = await app.get(201, 'POST /app/api/user/passkeys', { credential, label: 'Chromium' })
    t.match(added, { kind: 'passkey', label: 'Chromium', primary: false })

    const again = await app.get(200, 'POST /app/api/user/passkeys/options')
    await t.rejects(
      create(page, again.options),
      /InvalidStateError/,
      'the authenticator knows that it has one',
    )

    const fresh = await app.get(200, 'POST /app/api/passkey/options')
    t.equal(fresh.options.allowCredentials.length, 1, 'with a session the passkey is named')
    const newcomer = new App(server.http)
    const asked = await newcomer.get(200, 'POST /app/api/passkey/options')
    const proof = await get(page, asked.options)
    const signedIn = newcomer.take(
      await newcomer.get(200, 'POST /app/api/login/passkey', { credential: proof }),
    )
    t.match(signedIn, { isNewUser: false, user: { userId: ann.userId, displayName: 'Ann' } })
    t.equal(
      await newcomer.outcome('POST /app/api/login/passkey', { credential: proof }),
      '410 PASSKEY_CHALLENGE_GONE',
    )

    await app.get(204, `DELETE /app/api/user/login-methods/${added.id}`)
    const late = await get(page, (await newcomer.get(200, 'POST /app/api/passkey/options')).options)
    t.match(late, { type: 'public-key' }, 'the authenticator does not know')
    await devtools.send('WebAuthn.removeVirtualAuthenticator', { authenticatorId })
  },
)

t.test(
  'a page that does not ask for the PIN is refused by the server',
  { skip: skipWithoutChromium },
  async t => {
    const { page, devtools, ann } = await setUp(t)
    await addAuthenticator(devtools, false)
    const { options } = await ann.app.get(200, 'POST /app/api/user/passkeys/options')
    await t.rejects(create(page, options), /NotAllowedError|ConstraintError/, 'the authenticator has none')
    const authenticatorSelection = { residentKey: 'required', userVerification: 'discouraged' }
    const credential = await create(page, { ...options, authenticatorSelection })
    t.equal(await ann.app.outcome('POST /app/api/user/passkeys', { credential }), '403 PASSKEY_NOT_VERIFIED')
  },
)

t.test('a passkey that counts back is named in the log, and signs in', async t => {
  const server = await openServer({ dataFolder: t.testdir() })
  t.teardown(() => server.end())
  const ann = await DevPerson.signIn(server.http, 'Ann')
  await ann.prove()
  const { app, userId } = ann
  const authenticator = new Authenticator('http://localhost')
  const { options } = await app.get(200, 'POST /app/api/user/passkeys/options')
  await app.get(201, 'POST /app/api/user/passkeys', { credential: authenticator.create(options) })
  const other = new App(server.http)
  for (const counter of [5, 4]) {
    const asked = await other.get(200, 'POST /app/api/passkey/options')
    const credential = authenticator.get(asked.options, { counter })
    await other.get(200, 'POST /app/api/login/passkey', { credential })
  }
  // A server with fronts is another process: by its end all of its lines are here.
  await server.end()
  const lines = server.stderr().match(/.*passkey-counter-back.*/g) ?? []
  t.equal(lines.length, 1)
  t.match(JSON.parse(lines[0] ?? ''), { userId })
})
