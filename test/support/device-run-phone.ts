/**
 * One device of a seeded run: carries out the acts of `decide` as `src/app/calls/calls.ts` and
 * `src/app/connection/connection.ts` do. Keys are tokens; a sealed text is known to the run by its number.
 */

import type { Act, Receivers } from '../../src/app/calls/act.ts'
import { type Device, type Kept, type Sender, stateOf } from '../../src/app/calls/device.ts'
import { newDevice, nextDeadlineMs } from '../../src/app/calls/device-call.ts'
import type { Input, Outcome } from '../../src/app/calls/input.ts'
import type { Failure } from '../../src/app/callsign-error.ts'
import type { KeyHolder } from '../../src/app/devices/call-key.ts'
import { keyMembersOf, readKeyMembers } from '../../src/app/devices/key-members.ts'
import type { CallRecord, CallTopicEvent, QueueEvent } from '../../src/app/wire.ts'
import type { CallActor } from '../../src/domain/calls/call-command.ts'
import type { DeviceRun } from './device-run.ts'
import { faultsAfterMessage } from './device-run-checks.ts'
import type { Line } from './device-run-server.ts'

export interface RunCommand {
  readonly on: string
  readonly atMs: number
  settled: number
  callId?: string | undefined
  error?: Failure | undefined
}

interface Watch {
  readonly callId: string
  readonly act: number
  isOn: boolean
}

interface Waiting {
  readonly offset: number
  readonly event: QueueEvent
  readonly line: Line
}

export class RunDevice {
  readonly name: string
  readonly actor: CallActor
  readonly userId: string
  readonly deviceId: string
  readonly #run: DeviceRun
  device: Device
  kept: Kept = {}
  /** Whether the app runs, and whether it has a network. */
  isOn = true
  hasNetwork = true
  line: Line | undefined
  readonly octets = new Map<number, string>()
  commands = new Map<number, RunCommand>()
  /** Counts starts of the app. */
  life = 0
  /** The last start that has had a connection. */
  #connectedLife = 0
  /** The offset of its clock. */
  readonly #bootMs: number
  #count = 0
  #connections = 0
  #watches = new Map<number, Watch>()
  #unwatches = new Map<string, number>()
  #waiting: Waiting[] = []
  #isBusy = false
  #seen = new Set<string>()
  #isConnecting = false
  #dueMs: number | undefined

  constructor(run: DeviceRun, actor: CallActor, name: string) {
    this.#run = run
    this.actor = actor
    this.name = name
    this.userId = String(actor.userId)
    this.deviceId = String(actor.deviceId)
    this.#bootMs = run.draw.below(100_000)
    this.device = newDevice(this.userId, this.deviceId)
  }

  get nowMs(): number {
    return this.#run.nowMs() + this.#bootMs
  }

  command(inputOf: (command: number) => Input): RunCommand {
    const command = ++this.#count
    const input = inputOf(command)
    const noted: RunCommand = { on: input.on, atMs: this.#run.nowMs(), settled: 0 }
    this.commands.set(command, noted)
    this.take(input)
    return noted
  }

  take(input: Input): void {
    const { nowMs } = this
    const { device, acts } = this.#run.decide(this.device, input, nowMs)
    this.device = device
    this.#run.trace.push({ atMs: this.#run.nowMs(), name: this.name, input, acts })
    for (const act of acts) this.#carryOut(act)
    this.#run.checkStep(this)
    this.#wakeInTime()
  }

  connectSoon(): void {
    if (this.#isConnecting) return
    this.#isConnecting = true
    const { net } = this.#run
    this.#later(net.delayMs() + net.draw.below(2_000), () => {
      this.#isConnecting = false
      if (!this.isOn || this.line !== undefined) return
      if (!this.hasNetwork || !this.#run.isServerUp) return this.connectSoon()
      this.#connect()
    })
  }

  /** The socket is gone; the server may see that later. */
  disconnect(): void {
    const { line } = this
    this.line = undefined
    this.#waiting = []
    if (line === undefined) return
    if (this.isOn && this.device.connection !== undefined) this.take({ on: 'disconnected' })
    const { net } = this.#run
    const seenInMs = net.has('half-open', 0.5) ? net.draw.below(20_000) : net.draw.below(50)
    this.#run.at(seenInMs, () => this.#run.server.disconnect(line))
    if (this.isOn) this.connectSoon()
  }

  /** The app ends as it is. */
  stop(): void {
    this.isOn = false
    this.disconnect()
    this.life += 1
    this.commands = new Map()
    this.octets.clear()
    this.#watches = new Map()
    this.#unwatches = new Map()
    this.#seen = new Set()
    this.#isBusy = false
    this.#isConnecting = false
    this.#dueMs = undefined
  }

  begin(): void {
    if (this.isOn) return
    this.isOn = true
    this.device = newDevice(this.userId, this.deviceId)
    this.take({ on: 'restarted', kept: this.kept })
    this.connectSoon()
  }

  #later(ms: number, run: () => void): void {
    const { life } = this
    this.#run.at(ms, () => {
      if (life === this.life) run()
    })
  }

  #connect(): void {
    const { net, server } = this.#run
    const connection = ++this.#connections
    const paces = { queue: 0, topic: 0 }
    const arrives = (channel: keyof typeof paces, run: () => void) => {
      paces[channel] = Math.max(paces[channel], this.#run.nowMs() + net.delayMs())
      const ms = paces[channel] - this.#run.nowMs()
      this.#later(ms, () => {
        if (this.line === line) run()
      })
    }
    const line: Line = {
      device: this.actor,
      onMessage: ({ offset }, body) =>
        arrives('queue', () => {
          this.#waiting.push({ offset, event: body as QueueEvent, line })
          this.#handleWaiting()
        }),
      onTopic: (callId, body) =>
        arrives('topic', () => {
          for (const watch of this.#watches.values())
            if (watch.callId === callId && watch.isOn)
              return this.take({ on: 'topic', callId, event: body as CallTopicEvent })
        }),
    }
    this.line = line
    this.#connectedLife = this.life
    server.connect(line)
    const watchedInMs = [...this.#watches.keys()].map(id => this.#subscribe(id))
    this.#later(Math.max(0, ...watchedInMs) + net.delayMs(), () => {
      if (this.line !== line) return
      const aheadMs = this.#run.serverMs() - this.nowMs - net.draw.below(60)
      if (!this.device.clock.isKnown) this.take({ on: 'clock', aheadMs, isKnown: true })
      this.#becomeReady(line, connection, READ_AGAIN_MS)
    })
  }

  /** Until it has succeeded, or the connection is gone. */
  #becomeReady(line: Line, connection: number, waitMs: number): void {
    const { kept } = this
    const noted = this.command(command => ({ on: 'connected', command, connection, kept }))
    const look = () => {
      if (this.line !== line) return
      if (noted.settled === 0) return this.#later(LOOK_MS, look)
      if (noted.error === undefined) return
      this.#later(waitMs, () => {
        if (this.line === line) this.#becomeReady(line, connection, 2 * waitMs)
      })
    }
    look()
  }

  #handleWaiting(): void {
    if (this.#isBusy) return
    const next = this.#waiting.shift()
    if (next === undefined) return
    this.#isBusy = true
    const done = () => {
      this.#run.at(this.#run.net.delayMs(), () => {
        if (this.line === next.line) this.#run.server.acknowledge(this.actor, next.offset)
      })
      this.#isBusy = false
      this.#handleWaiting()
    }
    if (this.#seen.has(next.event.eventId)) return done()
    this.#seen.add(next.event.eventId)
    const { life } = this
    const command = ++this.#count
    const noted = new QueueCommand(next.event.type, this.#run.nowMs(), () => {
      if (life === this.life) this.#later(0, done)
    })
    this.commands.set(command, noted)
    this.take({ on: 'queue', command, event: next.event })
    for (const fault of faultsAfterMessage(this, next.event)) this.#run.violate(fault)
  }

  #carryOut(act: Act): void {
    const { net } = this.#run
    switch (act.do) {
      case 'request':
        return this.#request(act)
      case 'send': {
        const { line } = this
        const callId = act.destination.split('/')[3]!
        return this.#run.at(net.delayMs(), () => {
          if (line !== undefined && this.#run.isServerUp) this.#run.server.send(this.actor, callId)
        })
      }
      case 'watch':
        this.#watches.set(act.act, { callId: act.callId, act: act.act, isOn: false })
        if (this.line !== undefined) this.#subscribe(act.act)
        return
      case 'unwatch': {
        const id = this.#unwatches.get(act.callId)
        this.#unwatches.delete(act.callId)
        if (id === undefined) return
        this.#watches.delete(id)
        const isLeft = [...this.#watches.values()].some(({ callId }) => callId === act.callId)
        if (this.line !== undefined && !isLeft) this.#run.server.unwatch(this.line, act.callId)
        return
      }
      case 'open':
        return this.#open(act)
      case 'make':
        return void this.octets.set(act.key, this.#run.newKey())
      case 'seal':
        return this.#seal(act)
      case 'wipe':
        for (const key of act.keys) this.octets.delete(key)
        return
      case 'settle':
        return this.#settle(act)
      case 'keep':
        this.kept = {
          ...(act.callId && { callId: act.callId }),
          ...(act.leaving && { leaving: act.leaving }),
          ...(act.opened && { opened: act.opened }),
          ...(act.accepted && { accepted: act.accepted }),
        }
        return
      case 'emit':
        // The person says yes.
        if (act.name === 'key-asked')
          this.#later(500, () =>
            this.command(command => ({ on: 'grant', command, callId: act.callId, ask: act.value })),
          )
        return
    }
  }

  #request({ act, operation, callId, nonce, ...said }: Extract<Act, { do: 'request' }>): void {
    const run = this.#run
    const body = nonce === undefined ? said.body : { nonce: this.#nonce(nonce) }
    const { net } = run
    const { life } = this
    const fails = (ms: number) => {
      if (life === this.life) this.#outcome(ms, { on: 'failed', act, failure: { code: 'NO_ANSWER' } })
    }
    if (!this.hasNetwork) return fails(100 + net.draw.below(3_000))
    const key = `${this.deviceId} ${this.life} ${act}`
    const carriesOut = () => {
      // Connections end with their app: what the server has not had by the next start's connection never comes.
      if (!run.isServerUp || life < this.#connectedLife) return undefined
      run.note(() => `the server does ${operation} ${callId ?? ''} of ${this.name}`)
      const answer = run.server.handle(this.actor, operation, callId, body, key)
      if (operation === 'POST call/start' && 'body' in answer)
        run.unheardStarts.add((answer.body as CallRecord).callId)
      return answer
    }
    if (net.has('lost', 0.06)) {
      const upMs = net.delayMs()
      if (net.draw.chance(0.6)) run.at(upMs, carriesOut)
      return fails(upMs + net.silenceMs())
    }
    if (net.has('late', 0.03)) {
      const silenceMs = net.silenceMs()
      run.at(silenceMs - 1, carriesOut)
      return fails(silenceMs)
    }
    const isTwice = net.has('twice', 0.05)
    run.at(net.delayMs(), () => {
      const first = carriesOut()
      const answer = isTwice && operation !== 'GET call/pending' ? carriesOut() : first
      if (answer === undefined) return fails(net.silenceMs())
      if (life !== this.life) return
      this.#later(net.delayMs(), () => {
        if (!this.hasNetwork) return fails(net.silenceMs())
        if ('code' in answer) {
          const { code, members = {} } = answer
          this.take({ on: 'failed', act, failure: { code, members: members as never } })
        } else {
          if (operation === 'POST call/start') run.unheardStarts.delete((answer.body as CallRecord).callId)
          this.take({ on: 'done', act, body: answer.body })
        }
      })
    })
  }

  #outcome(ms: number, input: Input): void {
    this.#later(ms, () => this.take(input))
  }

  /** Gives when the server has it. */
  #subscribe(id: number): number {
    const { line } = this
    const { net, server } = this.#run
    const inMs = net.delayMs()
    this.#later(inMs, () => {
      const watch = this.#watches.get(id)
      if (line === undefined || this.line !== line || watch === undefined) return
      const refusal = server.watch(line, watch.callId)
      if (refusal !== undefined) {
        this.#watches.delete(id)
        if (!watch.isOn)
          this.#outcome(net.delayMs(), { on: 'failed', act: watch.act, failure: { code: refusal } })
      } else if (!watch.isOn) {
        watch.isOn = true
        this.#later(net.delayMs(), () => {
          this.#unwatches.set(watch.callId, id)
          this.take({ on: 'done', act: watch.act })
        })
      }
    })
    return inMs
  }

  #open({ act, key, text, from, callId, epoch, nonce }: Extract<Act, { do: 'open' }>): void {
    const { net, texts } = this.#run
    if (this.#cannotVerify(act)) return
    const sealed = texts.get(text)
    const asked = nonce === undefined ? undefined : this.#nonce(nonce)
    const isMine =
      sealed?.to === this.deviceId &&
      sealed.callId === callId &&
      sealed.epoch === epoch &&
      sealed.nonce === asked
    const sender = from.find(
      one => one.deviceId === sealed?.from.deviceId && one.userId === sealed.from.userId,
    )
    if (!isMine || sender === undefined)
      return this.#outcome(net.draw.below(50), { on: 'failed', act, failure: { code: 'CALL_KEY_INVALID' } })
    this.#later(net.draw.below(50), () => {
      const number = [...this.octets].find(([, octets]) => octets === sealed.octets)?.[0] ?? key
      this.octets.set(number, sealed.octets)
      const { keyMembers } = sealed
      const members = readKeyMembers(keyMembers).map(({ name }) => name)
      this.take({ on: 'done', act, key: number, from: sender, keyMembers, members })
    })
  }

  #nonce(number: number): string {
    return Buffer.from(`${this.deviceId} ${this.life} ${number}`.padEnd(16, '.').slice(0, 16)).toString(
      'base64',
    )
  }

  #seal({ act, key, to, callId, epoch, nonce }: Extract<Act, { do: 'seal' }>): void {
    const { net } = this.#run
    const octets = this.octets.get(key)
    if (octets === undefined) return this.#run.violate(`${this.name} seals key ${key}, which is wiped`)
    if (this.#cannotVerify(act)) return
    const held = 'keyMembers' in to ? to.keyMembers : undefined
    const isReceiver = ({ userId, deviceId }: RunDevice) =>
      held === undefined || readKeyMembers(held).some(({ name }) => name === `${userId}_${deviceId}`)
    const receivers = receiversOf(to, this, this.#run.devices).filter(isReceiver)
    const keyMembers = held ?? keyMembersOf([this, ...receivers].map(holderOf))
    const members = readKeyMembers(keyMembers).map(({ name }) => name)
    const sealed = { octets, from: this.sender, callId, epoch, keyMembers, nonce }
    const texts = Object.fromEntries(
      receivers.map(one => [
        `${one.userId}_${one.deviceId}`,
        this.#run.sealedText({ ...sealed, to: one.deviceId }),
      ]),
    )
    const [text] = Object.values(texts)
    this.#outcome(net.draw.below(50), {
      on: 'done',
      act,
      ...('deviceId' in to ? { text: text! } : { texts, keyMembers, members }),
    } satisfies Input & Outcome)
  }

  get sender(): Sender {
    return { userId: this.userId, deviceId: this.deviceId }
  }

  /** The log of keys can't be read. */
  #cannotVerify(act: number): boolean {
    const { net } = this.#run
    const isLost = net.has('unsealed', 0.05) || (!this.hasNetwork && net.has('unsealed', 0.5))
    if (isLost) this.#outcome(net.silenceMs(), { on: 'failed', act, failure: { code: 'NO_ANSWER' } })
    return isLost
  }

  #settle({ command, callId, error }: Extract<Act, { do: 'settle' }>): void {
    const noted = this.commands.get(command)
    if (noted === undefined)
      return this.#run.violate(`${this.name} settles command ${command}, which is not there`)
    noted.callId = callId
    noted.error = error
    noted.settled += 1
    if (noted.settled > 1) this.#run.violate(`${this.name} settles ${noted.on} twice`)
  }

  #wakeInTime(): void {
    const dueMs = nextDeadlineMs(this.device)
    if (dueMs === this.#dueMs) return
    this.#dueMs = dueMs
    if (dueMs === undefined) return
    this.#later(Math.max(0, Math.ceil(dueMs - this.nowMs)), () => {
      if (this.#dueMs !== dueMs) return
      this.#dueMs = undefined
      this.take({ on: 'time' })
    })
  }
}

/** A message's, which is acknowledged as soon as it is settled. */
class QueueCommand implements RunCommand {
  readonly on: string
  readonly atMs: number
  callId?: string | undefined
  error?: Failure | undefined
  readonly #onSettled: () => void
  #settled = 0

  constructor(on: string, atMs: number, onSettled: () => void) {
    this.on = on
    this.atMs = atMs
    this.#onSettled = onSettled
  }

  get settled(): number {
    return this.#settled
  }

  set settled(count: number) {
    this.#settled = count
    if (count === 1) this.#onSettled()
  }
}

function receiversOf(to: Receivers, self: RunDevice, devices: readonly RunDevice[]): readonly RunDevice[] {
  const others = devices.filter(one => one !== self)
  if ('deviceId' in to) return others.filter(({ deviceId }) => deviceId === to.deviceId)
  const userIds = 'userIds' in to ? (to.userIds ?? []) : []
  const participants = 'participants' in to ? to.participants : []
  return others.filter(({ userId, deviceId }) => {
    if (userIds.includes(userId)) return true
    const own = participants.filter(one => one.userId === userId && userId !== self.userId)
    return own.some(
      ({ state, ...one }) => RECEIVING.includes(state) && (state !== 'joined' || one.deviceId === deviceId),
    )
  })
}

function holderOf({ userId, deviceId }: RunDevice): KeyHolder {
  const key = { kind: 'P-256', point: NOTHING } as const
  return { userId, deviceId, name: `${userId}_${deviceId}`, key, keyHash: new Uint8Array(32) }
}

/** The calls of a device in a line. */
export function inWords({ device, name, isOn }: RunDevice): string {
  const calls = device.calls.map(({ callId, phase, key }) => {
    const [newest] = key.held
    return `${stateOf(phase)} (${phase.kind}) in ${callId} with epoch ${newest?.epoch ?? 'none'}`
  })
  return `${name}${isOn ? '' : ' off'}: ${calls.join(', ') || 'no call'}`
}

const NOTHING = new Uint8Array()
const RECEIVING: readonly string[] = ['joined', 'invited', 'ringing']
const READ_AGAIN_MS = 10_000
const LOOK_MS = 500
