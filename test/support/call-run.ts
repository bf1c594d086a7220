/**
 * One seeded run of calls: people start, join, move, decline, leave and end them on phones that come and go, while
 * commits end late or fail and the process is killed and started again. The seed decides who runs next, what arrives,
 * which step fails, and when. Afterwards nothing fails any more, every call comes to its end, and all that is left is
 * checked.
 */

import type { CallId, DeviceId, UserId } from '../../src/domain/ids.ts'
import { SignalError } from '../../src/errors.ts'
import type { Accept } from '../../src/transport/connection.ts'
import type { PlantedBug } from './call-bugs.ts'
import { faultsAtEnd, faultsAtRest, faultsAtStart } from './call-run-checks.ts'
import { Ledger, type RunNote } from './call-run-ledger.ts'
import type { LineManners } from './call-run-line.ts'
import type { Link } from './call-run-link.ts'
import { RunPhone } from './call-run-phone.ts'
import { type DrawnRequest, NO_CALL, type RunPerson } from './call-run-requests.ts'
import { RunServer } from './call-run-server.ts'
import { drawHabits, type Habits, sweep, takeStep } from './call-run-steps.ts'
import { diskError, MemoryStore } from './memory-store.ts'
import { SeededRandom } from './world.ts'

export interface CallRun {
  /** Broken promises; empty when none was. */
  readonly violations: readonly string[]
  /** Everything that happened, in order. */
  readonly trace: readonly string[]
  /** How many steps were drawn. */
  readonly steps: number
}

/** Without the `skipped` steps, the others are the same. */
export async function playCalls(
  seed: number,
  bug?: PlantedBug,
  skipped: readonly number[] = [],
): Promise<CallRun> {
  const run = new Run(seed, bug, new Set(skipped))
  try {
    await run.play()
  } catch (error) {
    run.violate(`the run ends with ${error instanceof Error ? error.stack : error}`)
  }
  // Lets other tasks run.
  await new Promise(resolve => setImmediate(resolve))
  return run
}

export class Run implements CallRun {
  readonly bug: PlantedBug | undefined
  readonly draw: SeededRandom
  readonly habits: Habits
  readonly violations: string[] = []
  readonly trace: string[] = []
  readonly ledger = new Ledger(what => this.violate(what))
  readonly people: readonly RunPerson[]
  readonly phones: readonly RunPhone[]
  database = new MemoryStore<RunNote>({ onWritten: this.ledger.onWritten })
  server: RunServer
  /** Connections that the server does not know to be over. */
  links: Link[] = []
  /** Clients that do not read for now. */
  readonly stalled = new Set<Link>()
  lastRequest: { readonly phone: RunPhone; readonly drawn: DrawnRequest } | undefined
  steps = 0
  readonly #seed: number
  readonly #skipped: ReadonlySet<number>
  #serial = 0

  constructor(seed: number, bug: PlantedBug | undefined, skipped: ReadonlySet<number>) {
    this.#seed = seed
    this.#skipped = skipped
    this.bug = bug
    this.draw = new SeededRandom(seed)
    this.habits = drawHabits(this.draw)
    this.people = Array.from({ length: 2 + this.draw.below(3) }, (_, at) => this.#makePerson(at + 1))
    this.phones = this.people.flatMap(({ phones }) => phones)
    this.server = new RunServer(this, STARTS_AT_MS)
    this.#registerPhones()
  }

  readonly serial = (): number => ++this.#serial

  readonly accept: Accept = link => {
    this.links.push(link as Link)
    return this.server.signalling.accept(link)
  }

  nowMs(): number {
    return this.server.world.nowMs()
  }

  note(event: string): void {
    this.trace.push(event)
  }

  violate(what: string): void {
    this.note(`AGAINST A PROMISE: ${what}`)
    this.violations.push(what)
  }

  isSettling({ actor }: RunPhone, offset: number): boolean {
    return this.server.stores.deviceInbox.isSettling(actor.userId, actor.deviceId, offset)
  }

  /** Phones whose user has them still. */
  get phonesInUse(): RunPhone[] {
    return this.phones.filter(({ ledger }) => !ledger.isErased)
  }

  async play(): Promise<void> {
    this.steps = 15 + this.draw.below(36)
    for (let step = 0; step < this.steps; step++) {
      if (this.#skipped.has(step)) continue
      this.#beginStep(step)
      takeStep(this)
      await breathe()
      if (!this.draw.chance(this.habits.haste)) continue
      await this.rest()
      if (this.draw.chance(0.1)) await this.#checkAtRest()
    }
    this.#beginStep(this.steps)
    await this.#comeToEnd()
  }

  #beginStep(step: number): void {
    this.draw.beginStep(this.#seed, step)
    this.server.world.draw.beginStep(~this.#seed, step)
  }

  /** Puts a request to the server as HTTP would. */
  submit(phone: RunPhone, { callId: knownId, request: drawn, key }: DrawnRequest): void {
    const { server } = this
    // A start that names no id gets a new one each time that it comes.
    const isNameless = drawn.kind === 'start' && knownId === NO_CALL
    const callId = isNameless ? (BigInt(FIRST_CALL_ID + this.serial()) as CallId) : knownId
    const request = drawn.kind === 'start' ? { ...drawn, callId } : drawn
    const name = `${phone.name} ${request.kind} ${callId}${key === undefined ? '' : ` ${key}`}`
    this.note(`${name}?`)
    server.submit(phone, callId, request, key).then(
      reply => this.note(`${name}: ${typeof reply === 'string' ? 'as before' : reply.kind}`),
      (error: unknown) => {
        const code = error instanceof SignalError ? error.code : String(error)
        this.note(`${name}: ${code}`)
        if (code === 'OVERLOADED') this.ledger.unsure.add(`${request.kind} ${phone.actor.userId} ${key}`)
        const isDue: Partial<Record<string, boolean>> = {
          STORE_UNAVAILABLE: server.hasFailed,
          DEVICE_NOT_REGISTERED: phone.ledger.isErased,
        }
        if (!(isDue[code] ?? EXPECTED_CODES.has(code))) this.violate(`${name} is refused with ${code}`)
      },
    )
  }

  /** So many of the oldest commits that are not written find no room. */
  refuse(count: number): void {
    this.note(`${count} of ${this.database.waiting} commits are refused`)
    this.server.hasFailed = true
    this.database.refuseWaiting(count, diskError(28))
  }

  /** The process is killed, and started again after a while. */
  crash(awayMs: number): void {
    this.note(`killed, and away for ${awayMs} ms`)
    const startsAtMs = this.nowMs() + awayMs
    this.database = this.database.crash()
    for (const link of this.links) link.die()
    this.links = []
    this.server = new RunServer(this, startsAtMs)
    for (const fault of faultsAtStart(this)) this.violate(fault)
  }

  pass(ms: number): void {
    this.note(`${ms} ms pass`)
    this.server.world.jump(ms)
  }

  /** Lets everything that is under way come to its end. */
  async rest(): Promise<void> {
    for (let round = 0; round < ROUNDS_TO_REST_MAX; round++) {
      this.server.world.run()
      this.database.settleAll()
      for (const link of this.links) this.stalled.has(link) ? link.flowUp() : link.flow()
      this.links = this.links.filter(link => !link.isClosed)
      await breathe()
      if (!this.#isResting) continue
      await breathe(DEEPEST_PROMISE)
      if (this.#isResting) return
    }
    this.violate('it does not come to rest')
  }

  get #isResting(): boolean {
    const { waiting, written } = this.database
    return (
      this.server.world.isIdle &&
      waiting + written === 0 &&
      this.links.every(link => !link.isBusy || this.stalled.has(link))
    )
  }

  async #checkAtRest(): Promise<void> {
    // A due deadline has a tick, and after a failed write a pause.
    const ticks = this.server.hasFailed ? 3 : 1
    for (let tick = 0; tick < ticks; tick++) await this.#passAndRest(100)
    for (const fault of faultsAtRest(this)) this.violate(`at rest: ${fault}`)
  }

  /** Without further failures, time passes until every call has ended. */
  async #comeToEnd(): Promise<void> {
    this.note('no more faults')
    this.stalled.clear()
    await this.#connectObediently(phone => phone.line === undefined)
    await this.#checkAtRest()
    await this.#passAndRest(66_000)
    if (this.ledger.live().some(({ status }) => status === 'ringing')) this.violate('a call rings on')
    await this.#leaveAll()
    const waits = this.draw.chance(0.1) ? [86_400_000] : [91_000, 31_000]
    for (const ms of waits) await this.#passAndRest(ms)
    if (this.ledger.live().length > 0) this.violate('a call goes on without anybody')
    await this.#connectObediently(() => true)
    await this.#checkAtRest()
    await this.#leaveAll()
    await this.#passAndRest(61_000)
    for (const fault of faultsAtEnd(this)) this.violate(fault)
  }

  /** Connects devices with waiting messages, and some without. */
  async #connectObediently(isMeant: (phone: RunPhone) => boolean): Promise<void> {
    const nowMs = this.nowMs()
    for (const phone of this.phonesInUse.filter(isMeant)) {
      if (phone.ledger.waiting(nowMs).length > 0 || this.draw.chance(0.2)) phone.connect(OBEDIENT)
    }
    await this.rest()
  }

  async #leaveAll(): Promise<void> {
    for (const phone of this.phones) phone.line?.link.cut()
    await this.rest()
  }

  async #passAndRest(ms: number): Promise<void> {
    this.pass(ms)
    if (ms > 1_000) sweep(this)
    await this.rest()
  }

  #makePerson(at: number): RunPerson {
    const userId = BigInt(1_000 + at) as UserId
    const count = 1 + this.draw.below(1 + this.draw.below(3))
    const phones = Array.from({ length: count }, (_, of) => {
      const deviceId = BigInt(10_000 * at + of + 1) as DeviceId
      const publicKeyHash = `hash of ${deviceId}`
      return new RunPhone({ userId, deviceId, publicKeyHash, keyAlgorithm: 'P-256' }, this)
    })
    return { userId, phones }
  }

  #registerPhones(): void {
    const { devices } = this.server.stores
    void this.database.change(change => {
      for (const { actor } of this.phones) devices.put(change, actor.userId, deviceOf(actor))
    })
    this.database.settleAll()
  }
}

function deviceOf({ deviceId, publicKeyHash, keyAlgorithm }: RunPhone['actor']) {
  return {
    deviceId,
    publicKeyHash,
    info: { platform: 'ios' },
    publicKey: '',
    publicKeyIndex: 0,
    keyAlgorithm,
    createdAtMs: 0,
    lastSeenAtMs: 0,
  }
}

/** Lets promises settle that are chained so deep; most are no deeper than those of an ask. */
async function breathe(depth = 8): Promise<void> {
  for (let left = depth; left > 0; left--) await undefined
}

const OBEDIENT: LineManners = {
  mode: 'client-individual',
  window: 32,
  hasHeartBeat: false,
  goesOn: false,
  isObedient: true,
}
const FIRST_CALL_ID = 9_000_000_000
const STARTS_AT_MS = 1_700_000_000_000
const DEEPEST_PROMISE = 24
const ROUNDS_TO_REST_MAX = 200
const EXPECTED_CODES: ReadonlySet<string> = new Set([
  'OVERLOADED',
  'CALL_NOT_FOUND',
  'CALL_ENDED',
  'CALL_FULL',
  'CALL_NOT_ACTIVE',
  'REJOIN_REQUIRED',
  'NOT_PARTICIPANT',
  'NOT_HOST',
  'USER_NOT_FOUND',
  'VALIDATION_FAILED',
  'NO_ACTIVE_PARTICIPANT',
  'RATE_LIMITED',
  'DEVICE_LIST_MISMATCH',
  'EPOCH_CONFLICT',
  'ROOM_IN_USE',
  'ALREADY_IN_CALL',
  'CALL_CROSSED',
  'CALL_ID_TAKEN',
])
