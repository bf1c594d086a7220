/** The document as the built server serves it: everything in it is there, in every spelling, and answers as it says. */

import t, { type Test } from 'tap'
import { RegisterClient } from '../../scripts/support/register-client.ts'
import { plainOperations } from '../../src/api/documents/log-operations.ts'
import { DocumentedAnswers } from '../support/documented.ts'
import { openServer } from '../support/open-server.ts'
import { type OpenServer, postJson } from '../support/server.ts'

async function start(t: Test): Promise<OpenServer> {
  const server = await openServer({ dataFolder: t.testdir() })
  t.teardown(() => server.end())
  return server
}

t.test('every operation of the document is served, in both spellings of its path', async t => {
  const { http } = await start(t)
  const { paths } = (await (await fetch(`${http}/openapi.json`)).json()) as {
    paths: Record<string, Record<string, unknown>>
  }
  const places = Object.entries(paths).flatMap(([path, item]) =>
    METHODS.filter(method => method in item).map(method => ({ method: method.toUpperCase(), path })),
  )
  t.ok(places.length > 40)
  const missing: string[] = []
  for (const { method, path } of places.filter(({ path }) => !isFile(path))) {
    const spellings = path.startsWith('/app/api/') ? [path, path.slice('/app'.length), `${path}/`] : [path]
    for (const spelling of spellings) {
      const filled = spelling.replace('{indexKey}', '7'.repeat(64)).replaceAll(/\{\w+\}/g, '7')
      const answer = await fetch(`${http}${filled}`, { method })
      const { code } = answer.status === 204 ? {} : ((await answer.json()) as { code?: string })
      if (code === 'NOT_FOUND' || code === 'METHOD_NOT_ALLOWED') missing.push(`${method} ${spelling}`)
    }
  }
  t.same(missing, [])
})

t.test('meta and lookups answer as they are documented', async t => {
  const { http, grpc } = await start(t)
  const documented = new DocumentedAnswers(plainOperations(false))
  const check = (method: string, path: string, answer: { status: number; body: unknown }) =>
    t.doesNotThrow(() => documented.check(method, path, answer), path)

  const meta = await fetch(`${http}/app/api/meta`)
  check('GET', '/app/api/meta', { status: meta.status, body: await meta.json() })
  const client = new RegisterClient(grpc)
  t.teardown(() => client.close())
  const { vrfHash } = await client.register(1n, 2n, Buffer.alloc(32, 7).toString('base64'))
  const publicKeyHash = Buffer.from(vrfHash).toString('base64')
  const targets = [{ publicKeyHash }]
  check('POST', '/api/get-public-keys', await postJson(`${http}/api/get-public-keys`, { targets }))
  check('POST', '/api/get-key-history', await postJson(`${http}/api/get-key-history`, { publicKeyHash }))
  const absent = { publicKeyHash: Buffer.alloc(64).toString('base64') }
  check('POST', '/api/get-key-history', await postJson(`${http}/api/get-key-history`, absent))
})

t.test('the page of operations is whole after a build', async t => {
  const { http } = await start(t)
  const page = await (await fetch(`${http}/docs/api`)).text()
  const files = [...page.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, path]) => path!)
  t.equal(files.length, 5)
  for (const path of [...files, '/docs/api/LICENSE', '/docs/api/NOTICE']) {
    t.equal((await fetch(`${http}${path}`)).status, 200, path)
  }
})

t.test('every page names an icon that is there, and one that browsers ask for by themselves is', async t => {
  const { http, serverApi, stderr } = await start(t)
  const before = stderr()
  const shareLink = `/c/c_${'A'.repeat(22)}`
  const pages = [
    ...['/dev', '/dev/client', '/docs', '/docs/start/first-call', '/docs/api', '/docs/events', shareLink].map(
      path => http + path,
    ),
    `${serverApi}/operator`,
  ]
  for (const url of pages) {
    const page = await (await fetch(url)).text()
    const [, icon = 'none'] = /<link rel="icon"[^>]* href="([^"]+)"/.exec(page) ?? []
    const answer = await fetch(new URL(icon, url))
    t.same([answer.status, answer.headers.get('content-type')], [200, 'image/svg+xml'], `${url}: ${icon}`)
  }
  for (const url of [http, serverApi]) t.equal((await fetch(`${url}/favicon.ico`)).status, 200)
  t.notMatch(stderr().slice(before.length), /"level":"?(?:[45]\d|warn|error)|favicon/)
})

function isFile(path: string): boolean {
  return /^(\/index)?\/(checkpoint$|tile\/)/.test(path)
}

const METHODS = ['get', 'post', 'put', 'delete']
