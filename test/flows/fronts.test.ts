/** Several processes that serve one port: the same server to its clients, also when one of the processes is killed. */

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { endStory, friends, startCall } from '../support/call-story.ts'
import { RegisterClient } from '../support/register-client.ts'
import { Rehearsal } from '../support/rehearsal.ts'
import { freshPublicKey, startServer } from '../support/server.ts'

/** The processes that the server has started. */
function frontsOf(pid: number): number[] {
  return readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .map(Number)
    .filter(each => isFrontOf(each, pid))
}

function isFrontOf(pid: number, parent: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const [, parentPid] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return Number(parentPid) === parent && readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('front.js')
  } catch {
    return false
  }
}

t.test('a call goes on while one front after another is killed', async t => {
  const environment = { CALLSIGN_FRONTS: '2' }
  const story = await Rehearsal.start(t, { dataFolder: join(t.testdir(), 'data'), environment })
  const [ann, bob] = await friends(story)
  await ann.connect()
  await bob.connect()
  const { callId, callKey } = await startCall(ann, bob)
  await bob.next('call_invitation')
  await ann.watch(callId)
  const joined = await bob.get(200, `POST /app/api/call/${callId}/join`)
  t.same(await bob.open(joined.encryptedAESKey, ann.userId, ann.deviceId), callKey)
  t.ok(await ann.next('participant_joined'))
  const fronts = frontsOf(story.server.process.pid!)
  t.equal(fronts.length, 2)
  for (const pid of fronts) process.kill(pid, 'SIGKILL')
  for (const phone of [ann, bob]) await phone.closed()
  // Until a front is back, connecting fails.
  for (const phone of [ann, bob]) {
    for (;;) {
      try {
        await fetch(`${story.server.http}/app/api/meta`)
        await phone.connect()
        break
      } catch {}
    }
  }
  t.match(await ann.get(200, `GET /app/api/call/${callId}`), { status: 'active' })
  await ann.get(200, 'POST /app/api/call/end', { callId })
  t.match((await bob.next('call_ended')).body, { callId, status: 'ended' })
  await endStory(t, story, ann, bob)
})

t.test('a key that was registered is found by the next lookup, whichever front takes it', async t => {
  const server = await startServer({ dataFolder: t.testdir(), environment: { CALLSIGN_FRONTS: '2' } })
  t.teardown(() => server.end('SIGKILL'))
  const { http, grpc, admin } = server
  const client = new RegisterClient(grpc)
  t.teardown(() => client.close())
  for (let deviceId = 1n; deviceId <= 40n; deviceId++) {
    const { vrfHash: publicKeyHash } = await client.register(5n, deviceId, freshPublicKey())
    const answer = await fetch(`${http}/api/get-public-keys`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', connection: 'close' },
      body: JSON.stringify({ targets: [{ publicKeyHash }] }),
    })
    t.equal(answer.status, 200, await answer.text())
  }
  const metrics = await (await fetch(`${admin}/metrics`)).text()
  t.match(metrics, /^callsign_fronts\{process="writer"\} 2$/m)
  for (const front of ['front-1', 'front-2'])
    t.match(metrics, new RegExp(`^callsign_connections\\{process="${front}"\\} 0$`, 'm'))
  t.equal(await server.end(), 0)
})
