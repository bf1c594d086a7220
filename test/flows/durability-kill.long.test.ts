/**
 * D2: kill -9 at any moment under load. Everything that was acknowledged is there in the server that comes after it, in
 * order, and of nothing is there only one half. `CALLSIGN_KILLS_UNDER_LOAD` sets the number of kills (2),
 * `CALLSIGN_SEED` replays their moments.
 */

import { cpSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { LmdbStore } from '../../src/store/engine/lmdb-store.ts'
import { meetPeople, settingsFor, startCall } from '../support/call-people.ts'
import { cannotTrace, traceCommand } from '../support/disk-trace.ts'
import { forcedLmdb } from '../support/forced-lmdb.ts'
import { KillLoad } from '../support/kill-load.ts'
import { sendFrame } from '../support/naive-client.ts'
import { headerOf } from '../support/naive-stomp.ts'
import { randomFrom, seedOf } from '../support/seed.ts'
import { startServer } from '../support/server.ts'
import { shiftedClock } from '../support/shifted-clock.ts'
import { SocketClient } from '../support/socket-client.ts'
import { auditStore } from '../support/store-audit.ts'
import { storedTable } from '../support/stored-table.ts'

const KILLS = Number(process.env.CALLSIGN_KILLS_UNDER_LOAD ?? 2)
const ACKNOWLEDGED_MAX = 450
const SETTINGS = { CALLSIGN_STOMP_TCP_PORT: '0', CALLSIGN_LOG_LEVEL: 'error', ...settingsFor(2) }
const QUEUE = '/user/queue/dev.durable'

t.test(`nothing acknowledged is lost, and nothing is half there, after ${KILLS} kills`, async t => {
  const seed = seedOf()
  const random = randomFrom(seed)
  const folder = t.testdir()
  const dataFolder = join(folder, 'data')
  const load = await KillLoad.start(dataFolder)
  t.teardown(() => load.end())
  for (let kill = 0; kill < KILLS; kill++) {
    await load.runUntilKilled(1 + Math.floor(random() * ACKNOWLEDGED_MAX))
    const { faults, counts } = await auditStore(dataFolder)
    t.same(faults, [], `seed ${seed}, kill ${kill}: whole are ${JSON.stringify(counts)}`)
    await load.startServer()
    t.same(await load.lost(), [], `seed ${seed}, kill ${kill}: ${JSON.stringify(load.counts)}`)
    await load.hangUp()
  }
  await load.end()

  const copy = join(folder, 'copy')
  for (const table of ['contacts', 'devices', 'call-history', 'call-history-calls']) {
    cpSync(dataFolder, copy, { recursive: true })
    await removeOneRow(copy, table)
    const { faults } = await auditStore(copy)
    t.ok(faults.length > 0, `positive control: ${faults.length} faults without one row of ${table}`)
  }
})

async function removeOneRow(dataFolder: string, name: string): Promise<void> {
  const database = LmdbStore.open(dataFolder)
  const table = storedTable(name)
  await database.change(change => {
    for (const key of [...change.keys(table, { limit: 1 })]) change.remove(table, key)
  })
  await database.close()
}

t.test(
  'positive control: what a server says before it has written it is missed',
  { skip: cannotTrace() },
  async t => {
    const folder = t.testdir()
    const load = await KillLoad.start(join(folder, 'data'))
    t.teardown(() => load.end())
    await load.end()
    // The slow disk holds the writes back, so that the kill comes between word and deed.
    const wrapper = traceCommand({ to: join(folder, 'trace'), syncDelayMs: 40 })
    await load.startServer({ wrapper, environment: forcedLmdb({ isEarly: true }) })
    await load.sendUntilKilled(4)
    await load.startServer()
    t.match(await load.lost(), [/^\d+ sent 1 to \d, acknowledged, and has $/])
  },
)

/** The texts that wait in a queue of the device's own, which are settled thereby. */
async function textsIn(stompTcp: string, accessToken: string): Promise<string[]> {
  const client = await SocketClient.connect('tcp', stompTcp, accessToken)
  await client.subscribe(QUEUE, 'all')
  await client.send(QUEUE, 'end')
  await client.until(() => String(client.frames.at(-1)?.body) === 'end')
  client.destroy()
  return client.frames.slice(0, -1).map(({ body }) => String(body))
}

t.test(
  'E-23, J-11: killed after a RECEIPT while it rings, it has the messages, and rings as long as it was to',
  async t => {
    const dataFolder = t.testdir()
    const first = await startServer({ dataFolder, environment: SETTINGS })
    const [ann, bob] = await meetPeople(first.http, 2)
    const { body: call } = await startCall(ann!, [bob!])
    const ringEndsMs = Date.parse(call.participants[1].invitedAt) + 65_000
    const client = await SocketClient.connect('tcp', first.stompTcp!, ann!.app.accessToken!)
    client.onFrame = frame => {
      if (headerOf(frame, 'receipt-id') === 'r2') first.process.kill('SIGKILL')
    }
    const sends = ['r1', 'r2', 'r3'].map(receipt => sendFrame(QUEUE, receipt, `receipt:${receipt}\n`))
    client.write(sends.join(''))
    await client.closed()
    await first.end('SIGKILL')
    const receipts = client.frames.map(frame => headerOf(frame, 'receipt-id'))
    t.same(receipts.slice(0, 2), ['r1', 'r2'])

    const aheadMs = ringEndsMs - Date.now() - 3_000
    const environment = { ...SETTINGS, ...shiftedClock(aheadMs) }
    const second = await startServer({ dataFolder, environment })
    t.teardown(() => second.end())
    const readyAtMs = Date.now() + aheadMs
    const texts = await textsIn(second.stompTcp!, ann!.app.accessToken!)
    t.same(texts.slice(0, 2), ['r1', 'r2'])
    const phone = await SocketClient.connect('tcp', second.stompTcp!, bob!.app.accessToken!)
    await phone.subscribe('/user/queue/calls', 'calls')
    const missed = JSON.parse(String((await phone.message()).body))
    t.match(missed, { type: 'call_missed', callId: call.callId })
    const missedAtMs = Date.parse(missed.at)
    t.ok(missedAtMs >= ringEndsMs, 'not before its time')
    t.ok(missedAtMs - Math.max(ringEndsMs, readyAtMs) < 5_000, 'nor long after it')
    phone.destroy()
  },
)

t.test(
  'H-04, H-05: 500 messages in one burst are stored, whether the client waits for it or is gone',
  async t => {
    const dataFolder = t.testdir()
    const numbers = Array.from({ length: 500 }, (_, at) => `${at}`)
    const burst = numbers.map(number => sendFrame(QUEUE, number)).join('')
    const first = await startServer({ dataFolder, environment: SETTINGS })
    const [ann, bob] = await meetPeople(first.http, 2)
    const hasty = await SocketClient.connect('tcp', first.stompTcp!, ann!.app.accessToken!)
    hasty.write(burst)
    hasty.destroy()
    const patient = await SocketClient.connect('tcp', first.stompTcp!, bob!.app.accessToken!)
    patient.write(`${burst}DISCONNECT\nreceipt:all\n\n\0`)
    await patient.receipt('all')
    t.equal((await fetch(`${first.admin}/readyz`)).status, 200)
    t.equal(first.stderr().includes('"fault"'), false)
    first.process.kill('SIGKILL')
    await first.end('SIGKILL')

    const second = await startServer({ dataFolder, environment: SETTINGS })
    t.teardown(() => second.end())
    t.same(await textsIn(second.stompTcp!, bob!.app.accessToken!), numbers)
    const received = await textsIn(second.stompTcp!, ann!.app.accessToken!)
    t.same(received, numbers.slice(0, received.length), `${received.length} were received`)
  },
)
