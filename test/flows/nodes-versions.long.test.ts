/** Nodes of two versions on one PostgreSQL, as while a cluster is upgraded, and versions that can't be side by side. */

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { befriend, type Person, signInPerson, startCall } from '../support/call-people.ts'
import { Cluster, eventually, finds, register, type TestNode, until } from '../support/nodes.ts'
import { buildPrevious, buildWith, type OtherConstant, skipWithoutPrevious } from '../support/other-builds.ts'
import { productionEnvironment } from '../support/outside-world.ts'
import { sharedPostgres, skipWithoutPostgres } from '../support/postgres.ts'
import { SocketClient } from '../support/socket-client.ts'

/** A version without a release. */
const OLD = '0.0.1'

function newFolder(t: Test): string {
  const folder = mkdtempSync(join(tmpdir(), 'callsign-versions-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true, maxRetries: 10 }))
  return folder
}

/** A call from one node to the other. */
async function callAcross(
  t: Test,
  caller: Person,
  callee: Person,
  from: TestNode,
  to: TestNode,
): Promise<void> {
  caller.app.http = from.server.http
  callee.app.http = to.server.http
  const phone = await SocketClient.connect('websocket', to.server.http, callee.app.accessToken!)
  await phone.subscribe('/user/queue/calls', 'calls')
  const { status, body } = await startCall(caller, [callee])
  t.equal(status, 201)
  const { callId } = body
  // Events of an earlier call that were not acknowledged come first.
  const hears = async (type: string) => {
    for (;;) {
      const event = JSON.parse(String((await phone.message()).body))
      if (event.callId === callId && event.type === type) return
    }
  }
  await hears('call_invitation')
  await callee.app.get(200, `POST /app/api/call/${callId}/join`, {})
  await caller.app.get(200, 'POST /app/api/call/end', { callId })
  await hears('call_ended')
  phone.destroy()
}

t.test(
  'nodes of this version and the one before',
  { skip: skipWithoutPostgres || skipWithoutPrevious },
  async t => {
    const program = buildPrevious(newFolder(t), OLD)
    const cluster = await Cluster.start(t, { running: 0 })
    const { one, two } = cluster
    await one.start({ program })
    await two.start()
    t.match(await cluster.lease(), { node: 'one', version: OLD })
    const [ann, bob] = [await signInPerson(one.server.http, 0), await signInPerson(two.server.http, 1)]
    await befriend(ann, bob)
    const keys = [await register(one), await register(two)]
    for (const node of cluster.nodes) await finds(node, keys)
    await callAcross(t, ann, bob, one, two)
    await callAcross(t, bob, ann, two, one)
    t.pass('the old one writes')

    t.equal(await one.end(), 0)
    await two.said('writer')
    keys.push(await register(two))
    t.pass('the writer goes last, and hands over')

    await one.start({ program })
    keys.push(await register(one), await register(two))
    for (const node of cluster.nodes) await finds(node, keys)
    await callAcross(t, ann, bob, one, two)
    await callAcross(t, bob, ann, two, one)
    t.pass('the new one writes')

    t.equal(await two.end(), 0)
    await until(async () => (await cluster.writer()) === one)
    keys.push(await eventually(() => register(one)))
    await finds(one, keys)
    t.pass('the old one goes on from what the new one has written')
  },
)

interface Unknown extends OtherConstant {
  readonly what: string
  readonly refusal: RegExp
}

/** Forms that a newer program may have changed. */
const UNKNOWN: readonly Unknown[] = [
  {
    what: 'tables and rows',
    file: 'src/store/engine/store-form',
    from: 'STORE_FORM = ',
    to: 'STORE_FORM = 1 + ',
    refusal: /the database is not of form \d+, .*: run the version that made it, or begin with an empty one/,
  },
  {
    what: 'bodies of changes',
    file: 'src/store/postgres/written-rows',
    from: "import { STORE_FORM } from '../engine/store-form.js';",
    to: 'const STORE_FORM = 200;',
    refusal: /the body of a change is of form 200, this program reads form \d+: run one version on all nodes/,
  },
  {
    what: 'the link between nodes',
    file: 'src/fronts/link/link',
    from: 'const LINK_FORM = ',
    to: 'const LINK_FORM = 1000 + ',
    refusal:
      /writer of version .* speaks form 10\d\d between processes, this program form \d+; stop all nodes/,
  },
]

t.test('a node beside one whose form it does not know', { skip: skipWithoutPostgres }, async t => {
  const postgres = await sharedPostgres(t)
  const refusals = UNKNOWN.map(async ({ what, refusal, ...constant }) => {
    const folder = newFolder(t)
    const { one, two } = await Cluster.start(t, { postgres, folder: join(folder, 'data'), running: 0 })
    await one.start({ program: buildWith(folder, constant) })
    const keys = [await register(one)]
    await t.rejects(two.start(), { message: refusal }, `${what}: it does not start`)
    keys.push(await register(one))
    await finds(one, keys)
    t.pass(`${what}: the other one goes on`)
  })
  await Promise.all(refusals)
})

t.test('a node with the keys of another log', { skip: skipWithoutPostgres }, async t => {
  const { two } = await Cluster.start(t, { running: 1 })
  const environment = productionEnvironment()
  await t.rejects(two.start({ environment }), { message: /was made with vkey .*, not / }, 'it does not start')
})
