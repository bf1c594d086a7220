/**
 * D6: days of calls pass in seconds of a clock that the test moves, with all that is kept for a time and then ended. Once
 * as much ends as begins, the file stays as it is. `CALLSIGN_CALLS_PER_DAY` sets how many calls a day has (1,200).
 */

import { statSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { Call } from '../../../src/domain/calls/call.ts'
import {
  type CallActor,
  type CallCommand,
  type CallFacts,
  NO_FACTS,
} from '../../../src/domain/calls/call-command.ts'
import { decide } from '../../../src/domain/calls/call-decision.ts'
import { type CallId, newId, type UserId } from '../../../src/domain/ids.ts'
import type { CallStore, KeptReply } from '../../../src/store/calls/call-store.ts'
import { newDevice, newUser, openWorld } from '../../support/application.ts'
import { newCallKey } from '../../support/call-people.ts'

const CALLS_PER_DAY = Number(process.env.CALLSIGN_CALLS_PER_DAY ?? 1_200)
const DAY_MS = 86_400_000
/** Calls that go on at the same time. */
const CALLS_AT_ONCE = 60
const SWEPT_AT_ONCE = 1_000

/** Two people who call each other all day. One device of the callee is never there. */
class BusyPair {
  readonly world
  readonly #calls: CallStore
  readonly #file: string
  readonly #devices: CallActor[] = []
  isSwept = true

  private constructor(folder: string) {
    // What these changes write is rehearsed in the tests of each store, and need not be at thousands of calls.
    this.world = openWorld(folder, undefined, { rehearses: false })
    this.#calls = this.world.calls
    this.#file = join(folder, 'store', 'data.mdb')
  }

  /** `caller`, `callee`, and the callee's device that is never there. */
  static async open(folder: string): Promise<BusyPair> {
    const pair = new BusyPair(folder)
    const [caller, callee] = [await newUser(pair.world), await newUser(pair.world)]
    for (const { userId } of [caller, callee, callee]) {
      const { deviceId, publicKeyHash, keyAlgorithm } = await newDevice(pair.world, userId)
      pair.#devices.push({ userId, deviceId, publicKeyHash, keyAlgorithm })
    }
    return pair
  }

  get fileBytes(): number {
    return statSync(this.#file).size
  }

  rows(): Record<string, number> {
    const { database } = this.world
    return Object.fromEntries(
      database.tableNames().map(name => [name, database.rowCount(database.storedRows(name))]),
    )
  }

  /** Messages of the device that takes none. */
  get waitingAsleep(): number {
    const { database, inbox } = this.world
    const { userId, deviceId } = this.#devices[2]!
    return database.view(view => inbox.head(view, userId, deviceId)).count
  }

  async day(): Promise<void> {
    const groups = Math.ceil(CALLS_PER_DAY / CALLS_AT_ONCE)
    for (let group = 0; group < groups; group++) {
      await Promise.all(Array.from({ length: CALLS_AT_ONCE }, (_, at) => this.#callOnce(at % 3)))
      await this.#fetch()
      this.world.tick(DAY_MS / groups)
      if (this.isSwept) await this.#sweep()
    }
  }

  /** The call is joined and ended, declined, or given up. */
  async #callOnce(kind: number): Promise<void> {
    const [caller, callee, asleep] = this.#devices as [CallActor, CallActor, CallActor]
    const { randomBytes, nowMs } = this.world
    const callId = newId(randomBytes) as CallId
    const keys = [callee, asleep].map(({ userId, deviceId }) => [`${userId}_${deviceId}`, newCallKey()])
    const start: CallCommand = {
      kind: 'start',
      by: caller,
      nowMs: nowMs(),
      callId,
      isVideo: true,
      calleeIds: [callee.userId],
      encryptedAESKeys: Object.fromEntries(keys),
    }
    const request = { scope: `start ${caller.userId}`, key: `${callId}`, hash: randomBytes(32) }
    const ringing = await this.#run(undefined, start, this.#facts(), { request, reply: '{"status":201}' })
    if (kind === 0) return void this.#run(ringing, { kind: 'end', by: caller, nowMs: nowMs() })
    if (kind === 1) return void this.#run(ringing, { kind: 'decline', by: callee, nowMs: nowMs() })
    const joining = { ...NO_FACTS, actor: callee }
    const active = await this.#run(ringing, { kind: 'join', by: callee, nowMs: nowMs() }, joining)
    await this.#run(active, { kind: 'end', by: caller, nowMs: nowMs() })
  }

  async #run(
    call: Call | undefined,
    command: CallCommand,
    facts?: CallFacts,
    kept?: KeptReply,
  ): Promise<Call> {
    const decision = decide(call, command, facts)
    if (decision.kind === 'refused') throw new Error(`${command.kind}: ${decision.detail}`)
    await this.#calls.apply(decision, command.nowMs, { kept })
    return decision.call
  }

  #facts(): CallFacts {
    const [caller, callee, asleep] = this.#devices as [CallActor, CallActor, CallActor]
    const deviceIds = [callee.deviceId, asleep.deviceId]
    return {
      actor: caller,
      displayName: 'Ann',
      callees: [
        {
          userId: callee.userId as UserId,
          displayName: 'Bob',
          caller: { isContact: true },
          mayBeCalled: true,
          isWithheld: false,
          deviceIds,
        },
      ],
      ownDevices: [caller.deviceId],
      otherCallId: undefined,
      callsBetween: [],
      isRoomInUse: false,
      freeRoomId: Number(newId(this.world.randomBytes)),
    }
  }

  /** Connected devices take their waiting messages, and pushes leave. */
  async #fetch(): Promise<void> {
    const { database, inbox, nowMs } = this.world
    for (const { userId, deviceId } of this.#devices.slice(0, 2)) {
      const waiting = database.view(view =>
        inbox.after(view, userId, deviceId, { offset: 0, limit: SWEPT_AT_ONCE, nowMs: nowMs() }),
      )
      const offsets = waiting.map(({ offset }) => offset)
      if (offsets.length > 0) await database.change(change => inbox.settle(change, userId, deviceId, offsets))
    }
    for (const lane of ['apns', 'fcm', 'apns-calls', 'fcm-calls'] as const) {
      const pushes = this.world.outbox.queue(lane)
      await pushes.settle(pushes.take(nowMs(), SWEPT_AT_ONCE).map(waiting => ({ waiting })))
    }
  }

  async #sweep(): Promise<void> {
    const { database, expiries, nowMs } = this.world
    while ((await expiries.sweep(database, nowMs(), SWEPT_AT_ONCE)) === SWEPT_AT_ONCE);
  }
}

t.test('the file stays as it is once as much ends as begins', async t => {
  const pair = await BusyPair.open(t.testdir())
  t.teardown(() => pair.world.database.close())
  await pair.day()
  await pair.day()
  const [rows, fileBytes] = [pair.rows(), pair.fileBytes]
  await pair.day()
  t.same([rows['call-history'], pair.waitingAsleep], [2_000, 500], 'what is kept by number is full')
  t.same(growing(rows, pair.rows()), [])
  const growth = pair.fileBytes / fileBytes
  // Pages that are free are used again, though not each at once: it takes a week until there are always enough.
  t.ok(growth < 1.05, `${fileBytes} bytes became ${Math.round((growth - 1) * 100)} % more`)

  pair.isSwept = false
  const [sweptRows, sweptBytes] = [pair.rows(), pair.fileBytes]
  await pair.day()
  t.same(
    growing(sweptRows, pair.rows()),
    ['calls-by-end', 'calls-ended', 'expiries', 'idempotency'],
    'positive control: no sweep',
  )
  t.ok(pair.fileBytes / sweptBytes > 1.1, `positive control: ${sweptBytes} bytes became ${pair.fileBytes}`)
})

/** Tables with more rows than before, but for rows that end at the very moment. */
function growing(before: Record<string, number>, after: Record<string, number>): string[] {
  return Object.keys(after).filter(name => after[name]! > before[name]! + 2)
}
