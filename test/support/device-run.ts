/**
 * One seeded run of devices: two to four people with two to six devices call each other, in virtual time, over a network that
 * delays, loses and repeats, while apps, connections and the server end and begin again. The seed decides everything.
 * Afterwards nothing fails any more, and once every timer has run out, all that was promised is checked.
 */

import type { Act } from '../../src/app/calls/act.ts'
import type { Sender } from '../../src/app/calls/device.ts'
import type { decide } from '../../src/app/calls/device-call.ts'
import type { Input } from '../../src/app/calls/input.ts'
import type { DeviceId, UserId } from '../../src/domain/ids.ts'
import { type DeviceBug, decideWith } from './device-bugs.ts'
import { faultsAtEnd, faultsAtRest, faultsAtStep } from './device-run-checks.ts'
import { Agenda, DeviceRunNet, FAULTS, type Fault } from './device-run-net.ts'
import { RunDevice } from './device-run-phone.ts'
import { DeviceRunServer } from './device-run-server.ts'
import { playGlare, takeStep } from './device-run-steps.ts'
import { SeededRandom } from './world.ts'

export interface DeviceRunResult {
  /** Broken promises; empty when none was. */
  readonly violations: readonly string[]
  /** Everything that happened, in order. */
  readonly trace: readonly string[]
  /** How many steps were drawn, and the classes of faults. */
  readonly steps: number
}

/** Without the `skipped` steps and classes of faults. */
export async function playDevices(
  seed: number,
  bug?: DeviceBug,
  skipped: readonly number[] = [],
): Promise<DeviceRunResult> {
  const run = new DeviceRun(seed, bug, new Set(skipped))
  try {
    run.play()
  } catch (error) {
    run.violate(`the run ends with ${error instanceof Error ? (error.stack ?? error.message) : error}`)
  }
  const { violations, steps } = run
  return { violations, steps, trace: violations.length === 0 ? [] : run.lines() }
}

type Traced =
  | { readonly atMs: number; readonly name: string; readonly input: Input; readonly acts: readonly Act[] }
  | { readonly atMs: number; readonly line: () => string }

export interface SealedText {
  readonly octets: string
  readonly from: Sender
  readonly to: string
  readonly callId: string
  readonly epoch: number
  readonly keyMembers: string
  /** The asking device's. */
  readonly nonce: string | undefined
}

export class DeviceRun {
  readonly decide: typeof decide
  readonly draw: SeededRandom
  readonly net: DeviceRunNet
  readonly agenda = new Agenda()
  readonly server: DeviceRunServer
  readonly devices: readonly RunDevice[]
  readonly trace: Traced[] = []
  readonly violations: string[] = []
  readonly texts = new Map<string, SealedText>()
  /** The call that a key was made for, and the key of each epoch, by `<callId> <epoch>`. */
  readonly callOfKey = new Map<string, string>()
  readonly keyOfEpoch = new Map<string, string>()
  /** Calls whose caller has never heard that they began. No request tells a device of such a call. */
  readonly unheardStarts = new Set<string>()
  steps = 0
  /** Undefined while it is there. */
  #serverGoneMs: number | undefined
  readonly #seed: number
  readonly #skipped: ReadonlySet<number>
  #count = 0
  #callCount = 0

  constructor(seed: number, bug: DeviceBug | undefined, skipped: ReadonlySet<number>) {
    this.#seed = seed
    this.#skipped = skipped
    this.decide = decideWith(bug)
    this.draw = new SeededRandom(seed)
    const drawnSteps = 4 + this.draw.below(22)
    this.steps = drawnSteps + FAULTS.length
    const hasFaults = this.draw.chance(0.8)
    const faults = FAULTS.filter((_, at) => {
      const isDrawn = this.draw.chance(0.5)
      return isDrawn && hasFaults && !skipped.has(drawnSteps + at)
    })
    this.net = new DeviceRunNet(new SeededRandom(~seed), new Set<Fault>(faults))
    const actors = drawActors(this.draw)
    this.server = new DeviceRunServer(actors, {
      nowMs: () => this.serverMs(),
      at: (atMs, run) => this.agenda.at(atMs - STARTS_AT_MS, run),
      note: line => this.note(line),
      onEpoch: (callId, epoch, texts) => this.#onEpoch(callId, epoch, texts),
    })
    this.devices = actors.map(
      actor => new RunDevice(this, actor, `${actor.userId}.${Number(actor.deviceId) % 10}`),
    )
  }

  nowMs(): number {
    return this.agenda.nowMs
  }

  serverMs(): number {
    return STARTS_AT_MS + this.agenda.nowMs
  }

  at(ms: number, run: () => void): void {
    this.agenda.at(this.agenda.nowMs + ms, run)
  }

  note(line: () => string): void {
    this.trace.push({ atMs: this.nowMs(), line })
  }

  violate(fault: string): void {
    this.note(() => `AGAINST A PROMISE: ${fault}`)
    this.violations.push(fault)
  }

  newKey(): string {
    return `key ${++this.#count}`
  }

  /** In the form of a sealed key. */
  newCallId(): string {
    return String(++this.#callCount)
  }

  sealedText(sealed: SealedText): string {
    const text = String(++this.#count).padStart(TEXT_CHARS, 'A')
    this.texts.set(text, sealed)
    return text
  }

  devicesOf(userId: string): readonly RunDevice[] {
    return this.devices.filter(one => one.userId === userId)
  }

  checkStep(device: RunDevice): void {
    for (const fault of faultsAtStep(this, device)) this.violate(fault)
  }

  play(): void {
    this.#beginStep(-1)
    for (const device of this.devices) device.connectSoon()
    this.pass(3_000)
    const drawnSteps = this.steps - FAULTS.length
    if (this.#seed % GLARE_EVERY === 0) playGlare(this)
    for (let step = 0; step < drawnSteps; step++) {
      if (this.#skipped.has(step)) continue
      this.#beginStep(step)
      takeStep(this)
      this.pass(drawPauseMs(this.draw))
      if (this.violations.length > 0) return
    }
    this.#beginStep(drawnSteps)
    this.#comeToRest()
  }

  get isServerUp(): boolean {
    return this.#serverGoneMs === undefined
  }

  /** It ends with all its connections. */
  stopServer(): void {
    this.#serverGoneMs = this.nowMs()
    for (const device of this.devices) device.disconnect()
  }

  startServer(): void {
    if (this.#serverGoneMs === undefined) return
    this.server.restart(this.nowMs() - this.#serverGoneMs)
    this.#serverGoneMs = undefined
    this.note(() => 'the server is back')
  }

  pass(ms: number): void {
    this.agenda.runUntil(this.agenda.nowMs + ms)
  }

  lines(): string[] {
    return this.trace.map(each => {
      const time = `${(each.atMs / 1000).toFixed(3)} s`
      if ('line' in each) return `${time} ${each.line()}`
      return `${time} ${each.name}: ${inputInWords(each.input)}${each.acts.map(actInWords).join('')}`
    })
  }

  #beginStep(step: number): void {
    this.draw.beginStep(this.#seed, step)
    this.net.draw.beginStep(~this.#seed, step)
  }

  /** Nothing fails any more, and everybody is there. */
  #comeToRest(): void {
    this.note(() => 'no more faults')
    this.net.faults = new Set()
    this.startServer()
    for (const device of this.devices) {
      device.hasNetwork = true
      if (device.isOn) device.connectSoon()
      else device.begin()
    }
    this.pass(REST_MS)
    // A timer of the server may just have run out.
    if (faultsAtRest(this).length > 0) this.pass(AFTER_REST_MS)
    for (const fault of faultsAtRest(this)) this.violate(fault)
    if (this.violations.length > 0) return
    for (const device of this.devices)
      for (const { callId } of device.device.calls)
        device.command(command => ({ on: 'leave', command, callId }))
    this.pass(END_MS)
    for (const fault of faultsAtEnd(this)) this.violate(fault)
  }

  #onEpoch(callId: string, epoch: number, texts: Readonly<Record<string, string>>): void {
    for (const text of Object.values(texts)) {
      const { octets } = this.texts.get(text)!
      const owner = this.callOfKey.get(octets)
      if (owner !== undefined && owner !== callId)
        this.violate(`a key of call ${owner} is sent in call ${callId}`)
      this.callOfKey.set(octets, callId)
      const before = this.keyOfEpoch.get(`${callId} ${epoch}`)
      if (before !== undefined && before !== octets)
        this.violate(`epoch ${epoch} of call ${callId} has two keys`)
      this.keyOfEpoch.set(`${callId} ${epoch}`, octets)
    }
  }
}

function drawActors(draw: SeededRandom) {
  const people = 2 + draw.below(3)
  const devices = Math.max(people, 2 + draw.below(5))
  return Array.from({ length: devices }, (_, at) => {
    const user = at < people ? at + 1 : 1 + draw.below(people)
    const deviceId = BigInt(100 * user + 10 * at + (at < people ? 1 : at)) as DeviceId
    const publicKeyHash = `hash of ${deviceId}`
    return { userId: BigInt(user) as UserId, deviceId, publicKeyHash, keyAlgorithm: 'P-256' as const }
  })
}

/** Mostly so short that the step before is still under way. */
function drawPauseMs(draw: SeededRandom): number {
  const way = draw.below(10)
  if (way < 4) return draw.below(200)
  if (way < 8) return draw.below(3_000)
  return way < 9 ? draw.below(20_000) : draw.below(100_000)
}

function inputInWords(input: Input): string {
  const { on, ...more } = input
  return `${on} ${JSON.stringify(more, shortened)}`
}

function actInWords(act: Act): string {
  const { do: name, ...more } = act
  return `\n    ${name} ${JSON.stringify(more, shortened)}`
}

/** Only the members that tell something of a call. */
function shortened(name: string, value: unknown): unknown {
  if (DULL.has(name)) return undefined
  if (typeof value === 'string' && value.length === TEXT_CHARS) return value.replace(/^A+/, 'text ')
  if (name === 'participants' && Array.isArray(value))
    return value.map(one => `${one.userId} ${one.state ?? ''} ${one.deviceId ?? ''}`)
  return value
}

const DULL: ReadonlySet<string> = new Set([
  ...[
    'v',
    'eventId',
    'roomId',
    'isVideo',
    'createdAt',
    'maxParticipants',
    'media',
    'displayName',
    'mediaName',
  ],
  ...['callerName', 'publicKeyHash', 'ringTimeoutIn', 'keyRotationIn', 'startedAt', 'sentAt', 'expiresAt'],
])
const STARTS_AT_MS = 1_700_000_000_000
const TEXT_CHARS = 88
const GLARE_EVERY = 8
/** A ring, an absence, and three asks after it. */
const REST_MS = 300_000
const AFTER_REST_MS = 8_000
/** An empty call, and a ring without an answer. */
const END_MS = 200_000
