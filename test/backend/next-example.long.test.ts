/**
 * `examples/next`, installed with the packed SDK, built and served: it signs a user in, knows them, and takes webhooks. A page that
 * is put beside it has the worker of calls' media.
 */

import { createHmac } from 'node:crypto'
import { cpSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { Callsign } from '../../src/app/callsign.ts'
import { memoryStorage } from '../../src/app/storage/storage.ts'
import { CallsignServer } from '../../src/backend/server.ts'
import { webSocket } from '../support/app-connections.ts'
import { openBrowser } from '../support/browser.ts'
import { freePort } from '../support/free-port.ts'
import { openServer } from '../support/open-server.ts'
import { builtProgram, runProgram, spawnBound } from '../support/programs.ts'
import { newServerKey } from '../support/server-keys.ts'
import { PROJECT_ROOT } from '../support/vectors.ts'
import { Started } from '../support/your-users.ts'

const AUDIENCE = 'https://api.acme.example'
const SESSION_SECRET = 'of your own login'
const environment = { ...strings(process.env), NEXT_TELEMETRY_DISABLED: '1', NODE_OPTIONS: '' }
const run = (file: string, ...args: string[]) => runProgram(file, args, { environment })
const asked = await run('npm', 'view', 'next', 'version')
const skip = asked.code !== 0 && 'needs the packages of Next.js, and npm reaches no registry'

const LAYOUT = `export default function Layout({ children }) {
  return <html lang="en"><body>{children}</body></html>
}
`
const MEDIA_PAGE = `'use client'
import { GatewayMedia } from '@callsign/sdk/app/media'
import { useEffect } from 'react'

export default function Page() {
  useEffect(() => {
    window.answer = new GatewayMedia({ callId: '1' }).statistics().then(({ participants }) => participants.size)
  }, [])
  return null
}
`

t.test('the example in Next.js', { skip }, async t => {
  const folder = t.testdir()
  const example = join(folder, 'example')
  cpSync(join(PROJECT_ROOT, 'examples/next'), example, { recursive: true })
  mkdirSync(join(example, 'app/media'))
  writeFileSync(join(example, 'app/layout.jsx'), LAYOUT)
  writeFileSync(join(example, 'app/media/page.jsx'), MEDIA_PAGE)
  const packed = await run(process.execPath, builtProgram('scripts/support/pack-sdk'), folder)
  const flags = ['--ignore-scripts', '--no-audit', '--no-fund', '--prefix', example]
  const installed = await run('npm', 'install', ...flags, packed.stdout.trim())
  t.equal(installed.code, 0, 'it is installed')
  const next = join(example, 'node_modules/next/dist/bin/next')
  const built = await run(process.execPath, next, 'build', example)
  if (built.code !== 0) t.comment(built.stdout + built.stderr)
  t.equal(built.code, 0, 'it is built')

  const port = await freePort()
  const address = `http://127.0.0.1:${port}`
  const dataFolder = join(folder, 'data')
  const server = await openServer({ dataFolder, environment: { CALLSIGN_TOKEN_AUDIENCES: AUDIENCE } })
  t.teardown(() => server.end())
  const key = await newServerKey(dataFolder, server, ['users', 'sign-in'])
  const webhook = (...args: string[]) =>
    runProgram(
      process.execPath,
      [builtProgram('scripts/webhook'), ...args, '--dev', '--url', server.serverApi],
      { environment: { CALLSIGN_DATA_DIR: dataFolder } },
    )
  const made = await webhook('create', '--endpoint', `${address}/webhooks/callsign`)
  const child = spawnBound(process.execPath, [next, 'start', example, '-p', `${port}`, '-H', '127.0.0.1'], {
    env: {
      ...environment,
      SERVER_URL: server.http,
      SERVER_API_URL: server.serverApi,
      SERVER_KEY: key,
      SESSION_SECRET,
      WEBHOOK_SECRET: made.stdout.trim(),
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  t.teardown(() => child.kill())
  await new Started(child).printed('✓ Ready')

  const page = await (await openBrowser(t))?.newPage()
  await page?.goto(`${address}/media`)
  await page?.waitForFunction('window.answer')
  t.equal(await page?.evaluate('answer'), page && 0, 'the worker answers')

  const callsign = new CallsignServer({ url: server.serverApi, key })
  await callsign.users.put({ ext: 'acme-1' }, { displayName: 'Ann' })
  const signature = createHmac('sha256', SESSION_SECRET).update('acme-1').digest('base64url')
  const trade = (cookie: string) =>
    fetch(`${address}/callsign-token`, { method: 'POST', headers: { cookie } })
  for (const cookie of ['', 'person=acme-1', `person=acme-2.${signature}`])
    t.equal((await trade(cookie)).status, 401, 'a stranger')
  const { token } = (await (await trade(`person=acme-1.${signature}`)).json()) as { token: string }
  const pins = { vkey: server.vkey, vrfPublicKey: server.vrfPublicKey }
  const me = new Callsign({ server: server.http, pins, storage: memoryStorage(), webSocket })
  t.teardown(() => me.close())
  t.match(await me.signInByToken(token), { displayName: 'Ann' })

  const orders = (token: string) =>
    fetch(`${address}/orders`, { headers: { authorization: `Bearer ${token}` } })
  t.same(await (await orders(await me.tokenFor(AUDIENCE))).json(), { ordersOf: 'acme-1' })
  t.equal((await orders(token)).status, 401, 'another token')
  const [, id = ''] = /(wh_[0-9a-f]{12})/.exec(made.stderr) ?? []
  t.equal((await webhook('test', '--id', id)).code, 0)
  t.equal((await fetch(`${address}/webhooks/callsign`, { method: 'POST', body: '{}' })).status, 401)
})

function strings(environment: NodeJS.ProcessEnv): Record<string, string> {
  return Object.fromEntries(
    Object.entries(environment).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  )
}
