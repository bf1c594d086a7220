/** One call of this device for an app: it shows the decisions of `device-call.ts`, and passes the app's commands on. */

import { Emitter } from '../emitter.ts'
import type { Named } from '../names.ts'
import type {
  Call,
  CallEnding,
  CallEvents,
  CallGateway,
  CallMember,
  CallPerson,
  CallState,
  EpochKey,
  InviteOptions,
  KeyAsk,
  KeyDevice,
} from './call.ts'
import { type DeviceCall, newestKey, reachOf, stateOf } from './device.ts'
import type { CallCommand } from './input.ts'

/** The device as far as a call of it needs it. */
export interface CallShell {
  readonly userId: string
  /** Resolves when all of it is done. */
  ask(command: CallCommand): Promise<unknown>
  keysOf(call: DeviceCall): readonly EpochKey[]
  /** The names of people, with a number that tells whether they have changed. */
  readonly names: { readonly version: number; of(person: Named): CallPerson }
  /** Asks for these people, or for those of them that a key can be sealed for. */
  leaveOut<Value>(
    people: readonly string[],
    without: InviteOptions['without'],
    ask: (userIds: readonly string[]) => Promise<Value>,
  ): Promise<Value>
}

export class LiveCall extends Emitter<CallEvents> implements Call {
  readonly #shell: CallShell
  #now: DeviceCall
  /** The same list until it changes: views compare it. */
  #keys: readonly EpochKey[] | undefined
  /** Likewise. */
  #sealedFor: readonly KeyDevice[] | undefined
  /** Likewise, as of this version of the names. */
  #caller: CallPerson | undefined
  #participants: readonly CallMember[] | undefined
  #namesVersion = 0

  constructor(shell: CallShell, call: DeviceCall) {
    super()
    this.#shell = shell
    this.#now = call
  }

  /** As it was decided. Gives whether anything is new. */
  become(call: DeviceCall): boolean {
    const isNews = call !== this.#now
    if (call.key !== this.#now.key || call.phase !== this.#now.phase) this.#keys = this.#sealedFor = undefined
    if (call.caller !== this.#now.caller) this.#caller = undefined
    const { record, unreachable } = this.#now
    if (call.record !== record || call.unreachable !== unreachable) this.#participants = undefined
    this.#now = call
    return isNews
  }

  tell<Name extends keyof CallEvents>(name: Name, event: CallEvents[Name]): void {
    this.emit(name, event)
    const { phase } = this.#now
    if (name === 'state' && phase.kind === 'ended') {
      this.emit('changed', undefined)
      this.emit('ended', { reason: phase.reason })
    }
  }

  get callId(): string {
    return this.#now.callId
  }

  get isIncoming(): boolean {
    return this.#now.isIncoming
  }

  get isVideo(): boolean {
    return this.#now.isVideo
  }

  get isOnGoing(): boolean {
    return this.#now.isOnGoing
  }

  get caller(): CallPerson {
    this.#renew()
    this.#caller ??= this.#shell.names.of(this.#now.caller)
    return this.#caller
  }

  get state(): CallState {
    return stateOf(this.#now.phase)
  }

  get ending(): CallEnding | undefined {
    const { phase } = this.#now
    return phase.kind === 'ended' ? phase.reason : undefined
  }

  get isVerified(): boolean | undefined {
    return this.#now.isVerified
  }

  get participants(): readonly CallMember[] {
    this.#renew()
    this.#participants ??= (this.#now.record?.participants ?? []).map(one => ({
      ...one,
      name: this.#shell.names.of(one).name,
      ...reachOf(this.#now, one),
    }))
    return this.#participants
  }

  get self(): CallMember | undefined {
    return this.participants.find(({ userId }) => userId === this.#shell.userId)
  }

  get media(): CallGateway | undefined {
    const { record, media } = this.#now
    const isReady = record?.media.state === 'pending' && media?.roomId === record.roomId
    return isReady ? media?.gateway : record?.media
  }

  get hostUserId(): string | undefined {
    return this.#now.record?.hostUserId
  }

  get isHost(): boolean {
    return this.hostUserId === this.#shell.userId
  }

  get roomId(): number | undefined {
    return this.#now.record?.roomId
  }

  get startedAtMs(): number | undefined {
    const startedAt = this.#now.record?.startedAt
    return startedAt === undefined ? undefined : Date.parse(startedAt)
  }

  get keys(): readonly EpochKey[] {
    this.#keys ??= this.#shell.keysOf(this.#now)
    return this.#keys
  }

  get sendingKey(): EpochKey | undefined {
    return this.keys.find(({ epoch }) => epoch === this.#now.sending.epoch)
  }

  get fingerprint(): string | undefined {
    return this.keys[0]?.fingerprint
  }

  get sealedFor(): readonly KeyDevice[] {
    const key = this.#now.phase.kind === 'ended' ? undefined : newestKey(this.#now)
    this.#sealedFor ??= key?.members.map(deviceOf) ?? NO_DEVICES
    return this.#sealedFor
  }

  answer({ evenIfOld = false }: { readonly evenIfOld?: boolean } = {}): Promise<void> {
    return this.#ask({ on: 'answer', callId: this.callId, ...(evenIfOld && { evenIfOld }) })
  }

  acceptDevice(name: string): Promise<void> {
    return this.#ask({ on: 'accept-device', name, callId: this.callId })
  }

  decline(reason: 'declined' | 'busy' | 'timeout' = 'declined'): Promise<void> {
    return this.#ask({ on: 'decline', reason, callId: this.callId })
  }

  end(): Promise<void> {
    return this.#ask({ on: 'end', callId: this.callId })
  }

  leave(): Promise<void> {
    return this.#ask({ on: 'leave', callId: this.callId })
  }

  invite(people: readonly string[], { without }: InviteOptions = {}): Promise<void> {
    return this.#shell.leaveOut(people, without, userIds =>
      this.#ask({ on: 'invite', userIds, callId: this.callId }),
    )
  }

  remove(userId: string): Promise<void> {
    return this.#ask({ on: 'remove', userId, callId: this.callId })
  }

  renewKey(): Promise<void> {
    return this.#ask({ on: 'renew', callId: this.callId })
  }

  resendKey(): Promise<void> {
    return this.#ask({ on: 'resend', callId: this.callId })
  }

  useKey(epoch: number): Promise<void> {
    return this.#ask({ on: 'use', epoch, callId: this.callId })
  }

  askForKey(userId?: string): Promise<void> {
    return this.#ask({ on: 'ask', callId: this.callId, ...(userId !== undefined && { userId }) })
  }

  grantKey(ask: KeyAsk): Promise<void> {
    return this.#ask({ on: 'grant', ask, callId: this.callId })
  }

  #renew(): void {
    const { version } = this.#shell.names
    if (version === this.#namesVersion) return
    this.#namesVersion = version
    this.#caller = this.#participants = undefined
  }

  async #ask(command: CallCommand): Promise<void> {
    await this.#shell.ask(command)
  }
}

/** The device of a name, `<userId>_<deviceId>`. */
function deviceOf(name: string): KeyDevice {
  const [userId = '', deviceId = ''] = name.split('_')
  return { userId, deviceId }
}

const NO_DEVICES: readonly KeyDevice[] = []
