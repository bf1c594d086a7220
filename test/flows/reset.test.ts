/** "Reset everything": a development server forgets all that it holds and goes on at the same addresses with a new log. */

import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { RegisterClient } from '../../scripts/support/register-client.ts'
import { generateKeys } from '../../src/log/keys.ts'
import { App } from '../support/app.ts'
import { openBrowser, skipWithoutChromium } from '../support/browser.ts'
import { meetPeople, settingsFor } from '../support/call-people.ts'
import { freePort } from '../support/free-port.ts'
import { openServer } from '../support/open-server.ts'
import {
  freshPublicKey,
  postJson,
  type RunningServer,
  type StartOptions,
  startServer,
} from '../support/server.ts'
import { bySize, sized } from '../support/size.ts'

interface Ready {
  readonly http: string
  readonly vkey: string
}

/** On a port that it was told: one that the kernel chose can't be had again at once. */
async function start(t: Test, options: Partial<StartOptions> = {}) {
  const dataFolder = join(t.testdir(), 'data')
  const CALLSIGN_HTTP_PORT = `${await freePort()}`
  const environment = { CALLSIGN_HTTP_PORT, ...options.environment }
  const server = await startServer({ dataFolder, ...options, environment })
  t.teardown(() => server.end('SIGKILL'))
  return { server, dataFolder }
}

/** The next ready line of the process. */
async function nextReady({ process }: RunningServer): Promise<Ready> {
  let text = ''
  for (;;) {
    const [bytes] = await once(process.stdout!, 'data')
    text += bytes
    if (text.includes('\n')) return JSON.parse(text)
  }
}

const reset = (http: string, body: unknown = { confirm: 'reset everything' }) =>
  postJson<{ code?: string; detail?: string }>(`${http}/dev/reset`, body)

interface Meta {
  readonly log: { readonly vkey: string; readonly vrfPublicKey: string }
}

async function metaOf(http: string): Promise<Meta> {
  const answer = await fetch(`${http}/app/api/meta`)
  return (await answer.json()) as Meta
}

t.test(
  'everything is forgotten, also by those who were connected, and the addresses stay',
  sized(),
  async t => {
    const { server, dataFolder } = await start(t, {
      environment: { CALLSIGN_STOMP_TCP_PORT: '0', ...settingsFor(4) },
    })
    writeFileSync(join(dataFolder, 'notes.txt'), 'mine')
    const register = new RegisterClient(server.grpc)
    await register.register(1n, 1n, freshPublicKey())
    register.close()
    const [ann] = await meetPeople(server.http, 2)
    const before = await metaOf(server.http)
    for (let round = 0; round < bySize({ short: 2, long: 3 }); round++) {
      const ready = nextReady(server)
      t.equal((await reset(server.http)).status, 202)
      t.equal((await ready).http, server.http)
    }
    const after = await metaOf(server.http)
    t.not(after.log.vkey, before.log.vkey, 'it is another log')
    t.not(after.log.vrfPublicKey, before.log.vrfPublicKey)
    t.equal(await ann!.app.outcome('GET /app/api/user'), '401 TOKEN_INVALID')
    t.match(await (await fetch(`${server.http}/checkpoint`)).text(), /^localhost\/callsign-dev\n0\n/)
    t.equal(readFileSync(join(dataFolder, 'notes.txt'), 'utf8'), 'mine', 'what is not ours stays')
    await meetPeople(server.http, 2)
    t.equal(await server.end(), 0)
  },
)

t.test('a reset that was promised happens, however the server ends', async t => {
  const { server, dataFolder } = await start(t)
  const before = await metaOf(server.http)
  t.equal((await reset(server.http)).status, 202)
  server.process.kill('SIGKILL')
  await server.end('SIGKILL')
  const next = await openServer({ dataFolder })
  t.teardown(() => next.end())
  t.not((await metaOf(next.http)).log.vkey, before.log.vkey)
  t.notOk(existsSync(join(dataFolder, 'reset')))
})

t.test('a reset that a crash cut short is finished by the next start', async t => {
  const { server, dataFolder } = await start(t)
  const before = await metaOf(server.http)
  await server.end()
  writeFileSync(join(dataFolder, 'reset'), '')
  const next = await openServer({ dataFolder })
  t.teardown(() => next.end())
  t.not((await metaOf(next.http)).log.vkey, before.log.vkey)
  t.same(readdirSync(dataFolder).sort(), ['development-keys.env', 'lock', 'store'])
})

t.test('nothing is reset without its words, from elsewhere, or under keys of the settings', async t => {
  const server = await openServer({ dataFolder: join(t.testdir(), 'data') })
  t.teardown(() => server.end())
  for (const body of ['', '{', 'null', '"reset everything"', {}, { confirm: true }, { confirm: 'reset' }]) {
    const { status, body: problem } = await reset(server.http, body)
    t.match([status, problem], [422, { code: 'VALIDATION_FAILED' }], JSON.stringify(body))
  }
  const elsewhere = { 'content-type': 'application/json', origin: 'https://evil.example' }
  const body = { confirm: 'reset everything' }
  t.equal((await postJson(`${server.http}/dev/reset`, body, elsewhere)).status, 403)
  const { origin, ktPrivateKey, vrfPrivateKey, secret } = generateKeys('kt.example.org/dev', randomBytes)
  const keys = { CALLSIGN_ORIGIN: origin, KT_PRIVATE_KEY: ktPrivateKey, VRF_PRIVATE_KEY: vrfPrivateKey }
  const given = await openServer({
    dataFolder: join(t.testdirName, 'given'),
    environment: { ...keys, CALLSIGN_SECRET: secret },
  })
  t.teardown(() => given.end())
  const { status, body: problem } = await reset(given.http)
  t.match([status, problem.detail], [422, /would be a fork/])
  const app = new App(given.http)
  t.equal(await app.outcome('GET /app/api/meta'), '200')
})

t.test('the console asks first, and goes on with the new log', { skip: skipWithoutChromium }, async t => {
  const { server } = await start(t)
  const browser = (await openBrowser(t))!
  const page = await browser.newPage()
  await page.goto(`${server.http}/dev`)
  const before = await metaOf(server.http)
  await page.getByRole('button', { name: 'Reset everything' }).click()
  await page.getByRole('button', { name: 'Keep it' }).click()
  t.equal((await metaOf(server.http)).log.vkey, before.log.vkey)
  await page.getByRole('button', { name: 'Reset everything' }).click()
  const ready = nextReady(server)
  await page.getByRole('button', { name: 'Delete everything' }).click()
  const { vkey } = await ready
  await page.getByRole('button', { name: 'Keys to pin' }).click()
  await page.getByText(vkey, { exact: true }).first().waitFor()
  t.not(vkey, before.log.vkey)
})
