/**
 * The calls of this device: those that ring, and the one that it is in. `device-call.ts` decides; this carries out its
 * acts one after the other, and reports their outcomes.
 */

import { decodeBase64, encodeBase64 } from '../../log/base64.ts'
import { CallsignError, type Failure, hasCode } from '../callsign-error.ts'
import type { Connection } from '../connection/connection.ts'
import type { KeyBinding } from '../devices/call-key.ts'
import type { Names } from '../names.ts'
import { randomId } from '../random-id.ts'
import type { OperationName } from '../session/operations.ts'
import type { Server } from '../session/server.ts'
import type { Session } from '../session/session.ts'
import { type AppStorage, readStored, writeStored } from '../storage/storage.ts'
import type { CallTopicEvent, ListCallHistoryReply, QueueEvent } from '../wire.ts'
import type { Act, Receivers } from './act.ts'
import type { Call, EpochKey, InviteOptions } from './call.ts'
import { CallKeys } from './call-keys.ts'
import type { Device, DeviceCall, Kept, Opened } from './device.ts'
import { decide, newDevice, nextDeadlineMs } from './device-call.ts'
import type { CallCommand, Input } from './input.ts'
import type { KeyExchange, SealedKeys } from './key-exchange.ts'
import { leavingOut, type OnLeftOut } from './leaving-out.ts'
import { type CallShell, LiveCall } from './live-call.ts'
import { invitationIn, type PushAction, type PushMembers } from './push.ts'

export interface CallsDeps {
  readonly server: Server
  readonly session: Session
  readonly connection: Connection
  readonly exchange: KeyExchange
  readonly names: Names
  readonly userId: string
  readonly deviceId: string
  readonly storage: AppStorage
  /** As `readKept` gives it. */
  readonly kept: Kept
  readonly onRinging: (call: Call) => void
  /** A call of before a restart goes on. */
  readonly onResumed: (call: Call) => void
  readonly onChanged: () => void
  readonly onLeftOut: OnLeftOut
}

export interface StartOptions extends InviteOptions {
  readonly video?: boolean
  /** The media gateway's room; left out: the server assigns one. */
  readonly roomId?: number
}

interface Command {
  readonly resolve: (call: LiveCall | undefined) => void
  readonly reject: (error: CallsignError) => void
}

export class Calls implements CallShell {
  readonly #deps: CallsDeps
  #device: Device
  readonly #live = new Map<string, LiveCall>()
  readonly #keys = new CallKeys()
  readonly #nonces = new Map<number, Uint8Array>()
  readonly #commands = new Map<number, Command>()
  #commandCount = 0
  readonly #unwatches = new Map<string, () => void>()
  /** Inputs that came during another input. */
  readonly #inputs: Input[] = []
  #isBusy = false
  #timer: ReturnType<typeof setTimeout> | undefined
  /** The last value is the one that stays. */
  #kept: Promise<void> = Promise.resolve()

  constructor(deps: CallsDeps) {
    this.#deps = deps
    const { userId, deviceId, kept } = deps
    this.#device = decide(newDevice(userId, deviceId), { on: 'restarted', kept }, performance.now()).device
  }

  get userId(): string {
    return this.#deps.userId
  }

  get names(): Names {
    return this.#deps.names
  }

  get all(): readonly Call[] {
    return [...this.#live.values()]
  }

  /** Rejects unless every device of every callee verifies. */
  async start(
    people: readonly string[],
    { video = false, roomId, without }: StartOptions = {},
  ): Promise<Call> {
    const options = { isVideo: video, ...(roomId !== undefined && { roomId }) }
    const started = await this.leaveOut(people, without, userIds =>
      this.#command(command => ({ on: 'start', command, callId: randomId(), userIds, options })),
    )
    return started!
  }

  leaveOut<Value>(
    people: readonly string[],
    without: InviteOptions['without'],
    ask: (userIds: readonly string[]) => Promise<Value>,
  ): Promise<Value> {
    return without === 'leave-out' ? leavingOut(people, ask, this.#deps.onLeftOut) : ask(people)
  }

  /** Brings the user's call to this device: from another device, or one that they had left or missed. */
  async join(callId: string): Promise<Call> {
    return (await this.ask({ on: 'join', callId }))!
  }

  ask(asked: CallCommand): Promise<LiveCall | undefined> {
    return this.#command(command => ({ ...asked, command }))
  }

  keysOf({ callId, key, phase }: DeviceCall): readonly EpochKey[] {
    return phase.kind === 'ended' ? [] : key.held.map(held => this.#keys.epochKey(callId, held))
  }

  /** After each connection: ringing calls, and the call that this device was in. */
  async onConnected(): Promise<void> {
    const kept = await this.#newestKept()
    const connection = this.#deps.connection.connectedAtMs ?? 0
    await this.#command(command => ({ on: 'connected', command, connection, kept }))
  }

  /** A call may be left while the storage is read. */
  async #newestKept(): Promise<Kept> {
    for (;;) {
      const before = this.#kept
      await before
      const kept = await readKept(this.#deps.storage, this.#deps.userId)
      if (this.#kept === before) return kept
    }
  }

  onDisconnected(): void {
    if (this.#device.connection !== undefined) this.#take({ on: 'disconnected' })
  }

  async onMessage(event: QueueEvent): Promise<void> {
    await this.#command(command => ({ on: 'queue', command, event })).catch(error => {
      if (!hasCode(error, 'CALL_ENDED')) throw error
    })
  }

  /** A push of this device's was judged. */
  onPush(action: PushAction, members: PushMembers): void {
    const invitation = action.show === 'ringing' ? invitationIn(members) : undefined
    if (invitation !== undefined) this.#take({ on: 'invited', invitation })
    if (action.show !== 'stop-ringing') return
    const { callId, reason } = action
    this.#take({ on: 'cancelled', callId, reason: reason === 'ended' ? 'unknown' : reason })
  }

  /** People of calls may have other names now. */
  onNames(): void {
    for (const call of this.#live.values()) call.tell('changed', undefined)
  }

  history(params: { readonly limit?: number; readonly cursor?: string } = {}): Promise<ListCallHistoryReply> {
    return this.#deps.session.request('GET call/history', undefined, params)
  }

  /** Missed calls count in the badge no more. */
  async markHistorySeen(): Promise<void> {
    await this.#deps.session.request('POST call/history/seen', undefined)
  }

  /** Forgets one call, or all. */
  async forgetHistory(callId?: string): Promise<void> {
    const { session } = this.#deps
    if (callId === undefined) await session.request('DELETE call/history', undefined)
    else await session.request('DELETE call/history/{callId}', undefined, { callId })
  }

  /** The session has ended, the app is closed, or another tab goes on: the next start asks the server. */
  closeAll(reason: 'left' | 'moved' | 'suspended'): void {
    this.#take({ on: 'close', reason })
  }

  #command(inputOf: (command: number) => Input): Promise<LiveCall | undefined> {
    return new Promise((resolve, reject) => {
      const command = ++this.#commandCount
      this.#commands.set(command, { resolve, reject })
      this.#take(inputOf(command))
    })
  }

  /** One input at a time, each with all its acts. */
  #take(input: Input): void {
    this.#inputs.push(input)
    if (this.#isBusy) return
    this.#isBusy = true
    try {
      for (let next = this.#inputs.shift(); next !== undefined; next = this.#inputs.shift()) this.#step(next)
    } finally {
      this.#isBusy = false
      this.#wakeInTime()
    }
  }

  #step(input: Input): void {
    const nowMs = performance.now()
    const { server } = this.#deps
    const clock = { aheadMs: server.nowMs() - nowMs, isKnown: server.isTimeKnown }
    const { aheadMs, isKnown } = this.#device.clock
    if (isKnown !== clock.isKnown || Math.abs(aheadMs - clock.aheadMs) > CLOCK_TOLERANCE_MS)
      this.#device = decide(this.#device, { on: 'clock', ...clock }, nowMs).device
    const { device, acts } = this.#decide(input, nowMs)
    this.#device = device
    const calls = device.calls.map(call => {
      const live = this.#live.get(call.callId)
      const shown = live ?? new LiveCall(this, call)
      const isNews = shown.become(call) || live === undefined
      if (call.phase.kind === 'ended') this.#live.delete(call.callId)
      else this.#live.set(call.callId, shown)
      return [call.callId, { shown, isNews }] as const
    })
    const shown = new Map(calls)
    for (const act of acts) this.#carryOut(act, callId => shown.get(callId)?.shown)
    const changed = calls.filter(([, { isNews }]) => isNews)
    for (const [, { shown }] of changed) if (shown.state !== 'ended') shown.tell('changed', undefined)
    if (changed.length > 0) this.#deps.onChanged()
  }

  /** A server that tells nonsense fails the request or the command that it answers, and nothing else. */
  #decide(input: Input, nowMs: number): ReturnType<typeof decide> {
    const device = this.#device
    try {
      return decide(device, input, nowMs)
    } catch (cause) {
      const failure = new CallsignError('ANSWER_INVALID', 'The server tells nonsense of a call.', { cause })
      if (input.on === 'done') return decide(device, { on: 'failed', act: input.act, failure }, nowMs)
      if ('command' in input)
        return { device, acts: [{ do: 'settle', command: input.command, error: failure }] }
      const isKnown = input.on === 'topic' && this.#live.has(input.callId)
      const told: Act[] = isKnown ? [{ do: 'emit', callId: input.callId, name: 'error', value: failure }] : []
      return { device, acts: told }
    }
  }

  #carryOut(act: Act, callOf: (callId: string) => LiveCall | undefined): void {
    switch (act.do) {
      case 'request': {
        const { operation, callId, nonce } = act
        const body = nonce === undefined ? act.body : { nonce: encodeBase64(this.#nonce(nonce)) }
        const { session, userId } = this.#deps
        const request = session.request as Request
        const params = callId === undefined ? undefined : { callId }
        return this.#answer(act.act, async () => {
          if (session.userId !== userId)
            throw new CallsignError('SIGNED_OUT', 'The call’s user has signed out.')
          return { body: await request.call(session, operation, body, params) }
        })
      }
      case 'send':
        return void this.#deps.connection.send(act.destination, {}).catch(() => {})
      case 'watch':
        return this.#answer(act.act, () => this.#watch(act.callId))
      case 'unwatch':
        this.#unwatches.get(act.callId)?.()
        return void this.#unwatches.delete(act.callId)
      case 'open':
        return this.#answer(act.act, async () => {
          const { nonce: number, ...use } = act
          const binding = { ...use, ...(number !== undefined && { nonce: this.#nonce(number) }) }
          const opened = await this.#deps.exchange.open(act.text, act.from, binding, act)
          const { key, userId, deviceId, sealedAtMs, ...set } = opened
          const put = this.#keys.put(act.key, key, binding, set.keyMembers)
          return { key: put, from: { userId, deviceId }, ...set, sealedAgoMs: Date.now() - sealedAtMs }
        })
      case 'make':
        return this.#keys.make(act.key)
      case 'seal':
        return this.#answer(act.act, () => this.#seal(this.#keys.copyOf(act.key), act))
      case 'wipe':
        for (const key of act.keys) this.#keys.wipe(key)
        return
      case 'settle':
        return this.#settle(act, callOf)
      case 'keep':
        return this.#keep(act)
      case 'emit':
        return this.#emit(act, callOf(act.callId)!)
    }
  }

  #answer(act: number, carryOut: () => Promise<Omit<Extract<Input, { on: 'done' }>, 'on' | 'act'>>): void {
    // An error that it throws at once is a failure like any other.
    new Promise<Awaited<ReturnType<typeof carryOut>>>(resolve => resolve(carryOut())).then(
      outcome => this.#take({ on: 'done', act, ...outcome }),
      error => this.#take({ on: 'failed', act, failure: told(error) }),
    )
  }

  async #watch(callId: string): Promise<object> {
    const unwatch = await this.#deps.connection.watch(`/topic/call.${callId}`, event =>
      this.#take({ on: 'topic', callId, event: event as CallTopicEvent }),
    )
    // The call was left and joined again while the first watch was under way.
    this.#unwatches.get(callId)?.()
    this.#unwatches.set(callId, unwatch)
    return {}
  }

  async #seal(key: Uint8Array, act: Extract<Act, { do: 'seal' }>): Promise<object> {
    const { exchange } = this.#deps
    const { to, callId, epoch, nonce } = act
    const binding = { callId, epoch, ...(nonce !== undefined && { nonce: decodeBase64(nonce) }) }
    if ('deviceId' in to) return { text: await exchange.sealForDevice(key, to.keyMembers, to, binding) }
    const sealed = await sealedFor(exchange, key, to, binding)
    this.#keys.bind(key, binding, sealed.keyMembers)
    return sealed
  }

  /** Random octets that stay the same for as long as this app runs. */
  #nonce(number: number): Uint8Array {
    const nonce = this.#nonces.get(number) ?? globalThis.crypto.getRandomValues(new Uint8Array(NONCE_BYTES))
    this.#nonces.set(number, nonce)
    return nonce
  }

  #settle(
    { command, callId, error }: Extract<Act, { do: 'settle' }>,
    callOf: (callId: string) => LiveCall | undefined,
  ): void {
    const waiting = this.#commands.get(command)
    this.#commands.delete(command)
    if (error !== undefined) waiting?.reject(told(error))
    else waiting?.resolve(callId === undefined ? undefined : callOf(callId))
  }

  #keep({ callId, leaving, opened, accepted }: Kept): void {
    const kept = {
      ...(callId && { callId }),
      ...(leaving && { leaving }),
      ...(opened && { opened }),
      ...(accepted && { accepted }),
    }
    const value = Object.keys(kept).length === 0 ? null : kept
    this.#kept = this.#kept
      .then(() => writeStored(this.#deps.storage, keptKey(this.#deps.userId), value))
      // Should it fail, the next start does not know of the call, or finds that it has ended.
      .catch(error => this.#live.get(callId ?? '')?.tell('error', told(error)))
  }

  #emit(act: Extract<Act, { do: 'emit' }>, call: LiveCall): void {
    switch (act.name) {
      case 'ringing':
        return this.#deps.onRinging(call)
      case 'resumed':
        return this.#deps.onResumed(call)
      case 'key': {
        const { epoch, fingerprint } = this.#keys.epochKey(act.callId, act.value)
        return call.tell('key', { epoch, fingerprint, fromUserId: act.value.fromUserId })
      }
      case 'sending':
        return call.tell('sending', { epoch: act.value.epoch })
      case 'error':
        return call.tell('error', told(act.value))
      default:
        call.tell(act.name, act.value as never)
    }
  }

  #wakeInTime(): void {
    clearTimeout(this.#timer)
    const atMs = nextDeadlineMs(this.#device)
    if (atMs === undefined) return
    const waitMs = Math.min(Math.max(0, Math.ceil(atMs - performance.now())), TIMER_MAX_MS)
    this.#timer = setTimeout(() => this.#take({ on: 'time' }), waitMs)
  }
}

type Request = (operation: OperationName, body: unknown, params?: object) => Promise<unknown>

function sealedFor(
  exchange: KeyExchange,
  key: Uint8Array,
  to: Exclude<Receivers, { readonly deviceId: string }>,
  binding: KeyBinding,
): Promise<SealedKeys> {
  if ('keyMembers' in to) return exchange.sealAgain(key, to.keyMembers, to.participants, binding)
  if ('participants' in to) return exchange.sealForCall(key, to, binding)
  return exchange.sealForUsers(key, to.userIds, binding)
}

function told(error: unknown): CallsignError {
  if (error instanceof CallsignError) return error
  const { code, message, members } = error as Failure
  return typeof code === 'string'
    ? new CallsignError(code, message ?? code, { ...(members && { members }) })
    : new CallsignError('INTERNAL', String(error))
}

/** The call that this user's device was in when the app ended, and those that it was leaving. */
export async function readKept(storage: AppStorage, userId: string): Promise<Kept> {
  return (await readStored<Kept>(storage, keptKey(userId), isKept)) ?? {}
}

function keptKey(userId: string): string {
  return `call.${userId}`
}

function isKept({ callId, leaving, opened, accepted }: Readonly<Record<string, unknown>>): boolean {
  const isText = (value: unknown) => typeof value === 'string'
  const isList = (value: unknown) => value === undefined || (Array.isArray(value) && value.every(isText))
  const isOpened = (each: Partial<Opened> | null) =>
    isText(each?.callId) && Number.isInteger(each?.epoch) && isList(each?.removed)
  const areOpened = opened === undefined || (Array.isArray(opened) && opened.every(isOpened))
  return (callId === undefined || isText(callId)) && isList(leaving) && isList(accepted) && areOpened
}

const NONCE_BYTES = 16
/** The two clocks of a device run apart by less. */
const CLOCK_TOLERANCE_MS = 100
/** The longest wait of a timer. */
const TIMER_MAX_MS = 2 ** 31 - 1
