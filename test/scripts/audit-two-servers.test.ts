/** Two servers that sign with one key, as after a copied data folder: an auditor proves the fork, though one hides its tiles. */

import { cpSync, readdirSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import { newStateFile } from '../support/audit.ts'
import { registerUsers, startLog } from '../support/live-log.ts'
import { runProgram, startedProgram } from '../support/programs.ts'

interface Proxy {
  readonly url: string
  /** The status that it answers to tiles in place of the server's answer. */
  tileStatus: number | undefined
}

async function proxyOf(t: Test, target: string): Promise<Proxy> {
  const server = createServer(async (request, response) => {
    if (proxy.tileStatus !== undefined && request.url!.startsWith('/tile/')) {
      response.writeHead(proxy.tileStatus).end()
      return
    }
    const answer = await fetch(`${target}${request.url}`)
    response.writeHead(answer.status).end(Buffer.from(await answer.arrayBuffer()))
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const proxy: Proxy = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    tileStatus: undefined,
  }
  return proxy
}

function runAudit(args: readonly string[]) {
  return runProgram(process.execPath, [startedProgram('scripts/audit'), ...args])
}

t.test('a fork between servers is pending while tiles are hidden, and proven by a mirror', async t => {
  const folder = t.testdir({ one: {} })
  const [one, two] = [join(folder, 'one'), join(folder, 'two')]
  const young = await startLog(t, one)
  await registerUsers(young.client, 1, 10)
  young.client.close()
  await young.end()
  cpSync(one, two, { recursive: true })
  const [shown, hidden] = [await startLog(t, one), await startLog(t, two)]
  t.equal(shown.vkey, hidden.vkey)
  await registerUsers(shown.client, 100, 5)
  await registerUsers(hidden.client, 200, 300)
  const proxy = await proxyOf(t, hidden.http)
  const stateFile = newStateFile(t)
  const args = ['--url', shown.http, '--vkey', shown.vkey, '--state', stateFile, '--gossip', proxy.url]
  const kept = (kind: string) => readdirSync(dirname(stateFile)).filter(name => name.includes(`.${kind}-`))

  proxy.tileStatus = 404
  const first = await runAudit(args)
  t.equal(first.code, 2, first.stdout)
  t.match(first.stdout, /"check":"gossip","ok":null/)
  t.equal(kept('pending').length, 1)
  t.equal((await runAudit(['explain', join(dirname(stateFile), kept('pending')[0]!)])).code, 1)

  const second = await runAudit([...args, '--mirror', hidden.http])
  t.equal(second.code, 1, second.stdout)
  t.match(second.stdout, /"check":"gossip","ok":false/)
  const explained = await runAudit([
    'explain',
    join(dirname(stateFile), kept('evidence')[0]!),
    '--vkey',
    shown.vkey,
  ])
  t.equal(explained.code, 0)
  t.match(explained.stdout, /The tree of size 310 begins with a tree of size 15 whose root is /)
})
