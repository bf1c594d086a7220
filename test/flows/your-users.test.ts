/** docs/start/your-users.md as a new company follows it: users imported, called, told of, known to an API, reported and suspended. */

import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { Callsign } from '../../src/app/callsign.ts'
import { memoryStorage } from '../../src/app/storage/storage.ts'
import { verifyToken } from '../../src/backend/server.ts'
import { webSocket } from '../support/app-connections.ts'
import { openBrowser, skipWithoutChromium } from '../support/browser.ts'
import { openServer } from '../support/open-server.ts'
import { newModerator, signInAs } from '../support/operator-page.ts'
import type { OpenServer } from '../support/server.ts'
import { newServerKey } from '../support/server-keys.ts'
import { long } from '../support/size.ts'
import { PROJECT_ROOT } from '../support/vectors.ts'
import { blocksOf, Reader } from '../support/your-users.ts'

const blocks = blocksOf('start/your-users.md')
const consoles = blocks.filter(({ language }) => language === 'console').map(({ text }) => text)
const [starting = '', users = '', circle = '', webhook = '', running = '', moderating = ''] = consoles
/** The variables of the page's first command. */
const settings = Object.fromEntries(
  [...starting.matchAll(/(CALLSIGN_\w+)=(\S+)/g)].map(([, name, value]) => [name!, value!]),
)
/** A call with its fingerprint, as the page shows it. */
const ACTIVE = /^active \d{5}(?: \d{5}){5}$/

t.test('the page’s programs are those of the example', async t => {
  const shown = blocks.filter(({ file }) => file !== undefined)
  t.ok(shown.length > 8)
  for (const { file = '', text } of shown) {
    const whole = readFileSync(join(PROJECT_ROOT, 'examples/express', file), 'utf8')
    // The page shows parts of the two long ones.
    if (/^(?:backend|app)\./.test(file)) t.ok(whole.includes(text), file)
    else t.equal(text, whole, file)
  }
  t.equal(blocks.length, shown.length + consoles.length + 1, 'and the settings of a provider')
})

t.test('the page, followed', { skip: skipWithoutChromium }, t =>
  follow(t, '0', reader => reader.follows(t, moderating)),
)

t.test('the page, followed with two fronts, and a moderator', long({ skip: skipWithoutChromium }), t =>
  follow(t, '2', async (reader, server) => {
    const page = await (await openBrowser(t))!.newPage()
    await signInAs(page, server, await newModerator(reader.dataFolder, server))
    await page.getByRole('link', { name: 'Bullying or harassment' }).click()
    await page.getByRole('link', { name: 'Person 1' }).first().click()
    await page.getByText('Suspend Person').click()
    await page.getByLabel('Reason').fill('harassment')
    await page.getByRole('button', { name: 'Suspend', exact: true }).click()
  }),
)

/** `suspend` is the moderator's, who finds a report of person 1. */
async function follow(
  t: Test,
  fronts: string,
  suspend: (reader: Reader, server: OpenServer) => Promise<void>,
): Promise<void> {
  const folder = t.testdir()
  const dataFolder = join(folder, 'data')
  t.match(starting, /\$ npm start\n$/)
  const server = await openServer({ dataFolder, environment: { ...settings, CALLSIGN_FRONTS: fronts } })
  t.teardown(() => server.end())
  const reader = await Reader.beside(server, dataFolder, join(folder, 'reader'))
  for (const block of [users, circle, webhook]) await reader.follows(t, block)
  await reader.follows(t, users.replace(/.*export.*\n/, '').replace('created', 'unchanged'))
  const backend = await reader.starts(t, running)
  const [address = ''] = backend.lines

  const browser = (await openBrowser(t))!
  const signIn = async (at: number): Promise<Page> => {
    const page = await (await browser.newContext()).newPage()
    await page.goto(address)
    await page.getByLabel('id').fill(`acme-${at}`)
    await page.getByLabel('password').fill(`secret ${at}`)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('button', { name: 'My orders' }).waitFor()
    return page
  }
  const [ann, bob] = [await signIn(1), await signIn(2)]
  await ann.getByLabel('with').fill('acme-2')
  await ann.getByRole('button', { name: 'Book' }).click()
  await ann.getByRole('button', { name: 'Call Person 2' }).click()
  await bob.getByText('Person 1 calls').waitFor()
  await bob.getByRole('button', { name: 'Answer' }).click()
  const [anns, bobs] = await Promise.all([ann, bob].map(page => page.getByText(ACTIVE).innerText()))
  t.equal(anns, bobs, 'one key')
  await bob.getByRole('button', { name: 'My orders' }).click()
  await bob.getByText('Orders of acme-2').waitFor()

  await bob.getByText('Report', { exact: true }).click()
  await bob.getByRole('button', { name: 'Bullying or harassment' }).click()
  await bob.getByText('A moderator looks at it').waitFor()
  await suspend(reader, server)
  await bob.getByText('The call has ended: hangup').waitFor()
  await ann.getByText('Your account is suspended.').waitFor()
  for (const type of ['report.created', 'user.suspended', 'call.ended']) await backend.printed(type)
  const [, call = ''] = /^call.started (.+)$/m.exec(backend.lines.join('\n')) ?? []
  t.match(call, /^call:\d+$/)
  const ofCall = backend.lines.filter(line => line.endsWith(` ${call}`)).map(line => line.split(' ')[0])
  t.same(ofCall, ['call.started', 'call.answered', 'call.ended'])
}

t.test('users of an OpenID provider, which the page has in twenty lines', async t => {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const listener = createServer().listen(0, '127.0.0.1')
  t.teardown(() => listener.close())
  await once(listener, 'listening')
  const issuer = `http://127.0.0.1:${(listener.address() as AddressInfo).port}`
  const { text = '' } = blocks.find(({ language }) => language === 'sh') ?? {}
  const [, name = '', providers = ''] = /^(\w+)=(.+)$/m.exec(text) ?? []
  const environment = { ...settings, [name]: providers.replace('https://id.acme.example', issuer) }
  const folder = t.testdir()
  const dataFolder = join(folder, 'data')
  const server = await openServer({ dataFolder, environment })
  t.teardown(() => server.end())
  const reader = await Reader.beside(server, dataFolder, join(folder, 'reader'))
  process.env.ISSUER = issuer
  process.env.ISSUER_KEY = privateKey.export({ type: 'pkcs8', format: 'pem' }) as string
  process.env.SERVER_API_URL = server.serverApi
  process.env.SERVER_KEY = await newServerKey(dataFolder, server, ['users'])
  const load = (file: string) => import(pathToFileURL(join(reader.folder, 'examples/express', file)).href)
  const { app, idTokenOf } = await load('issuer.mjs')
  listener.on('request', app)
  const person = { id: 'acme-7', name: 'Person 7' }
  const pins = { vkey: server.vkey, vrfPublicKey: server.vrfPublicKey }
  const me = new Callsign({ server: server.http, pins, storage: memoryStorage(), webSocket })
  t.teardown(() => me.close())
  const { displayName } = await me.signInByProvider('acme', { idToken: await idTokenOf(person) })
  t.equal(displayName, person.name)

  const [audience = ''] = /https:\/\/api\S+/.exec(settings.CALLSIGN_TOKEN_AUDIENCES!) ?? []
  const options = { jwksUrl: `${server.http}/.well-known/jwks.json`, audience }
  const { userId } = await verifyToken(await me.tokenFor(audience), options)
  t.equal(userId, me.userId)
  const { link } = await load('link.mjs')
  t.match(await link(userId, person), { userId, externalId: person.id, ownsSignIn: true })
})
