/**
 * The server of a seeded run of devices: its own rules of calls, the inbox of each device and the watchers of each call, in
 * memory and without a delay. A restart forgets connections and watchers.
 */

import type { Call, CallDeviceRef } from '../../src/domain/calls/call.ts'
import { isOver, isSameDevice, participantOf } from '../../src/domain/calls/call.ts'
import { withPresence } from '../../src/domain/calls/call-attendance.ts'
import type {
  CallActor,
  CallCommand,
  CallEffect,
  CallFacts,
  CallReply,
  CallRequest,
} from '../../src/domain/calls/call-command.ts'
import { NO_FACTS } from '../../src/domain/calls/call-command.ts'
import { nextDeadlineMs, recover } from '../../src/domain/calls/call-deadline.ts'
import { decide, refusalOfWatcher } from '../../src/domain/calls/call-decision.ts'
import type { CallTopicEvent, DeviceEffect } from '../../src/domain/calls/call-notice.ts'
import { pendingRecord, recordWithKeySets } from '../../src/domain/calls/call-view.ts'
import type { CallId, DeviceId, UserId } from '../../src/domain/ids.ts'
import { missedInsteadOf, noticeOf } from '../../src/domain/messages/inbox.ts'
import type { Notice } from '../../src/domain/messages/notice.ts'
import { recordBody } from '../../src/schema/call.ts'
import { EVENTS } from '../../src/schema/event.ts'
import type { TopicEvent } from '../../src/schema/event-form.ts'
import { CallIndex } from '../../src/store/calls/call-index.ts'

export interface Message {
  readonly offset: number
  readonly notice: Notice
  readonly expiresAtMs: number
}

/** A server's connection to a device, which hands everything on at its own pace. */
export interface Line {
  readonly device: CallActor
  onMessage(message: Message, body: object): void
  onTopic(callId: string, body: object): void
}

export type Answer = { readonly body: unknown } | { readonly code: string; readonly members?: object }

export interface Clockwork {
  nowMs(): number
  at(atMs: number, run: () => void): void
  note(line: () => string): void
  /** A key has become an epoch's. */
  onEpoch(callId: string, epoch: number, texts: Readonly<Record<string, string>>): void
}

export class DeviceRunServer {
  readonly calls = new Map<CallId, Call>()
  #index = new CallIndex()
  readonly #actors: readonly CallActor[]
  readonly #clock: Clockwork
  readonly #inboxes = new Map<DeviceId, Message[]>()
  readonly #lines = new Map<DeviceId, Line>()
  readonly #watchers = new Map<string, Set<Line>>()
  /** Answers to requests that are not carried out twice. */
  readonly #answered = new Map<string, Answer>()
  #count = 0
  /** When the process began. */
  #life = 0

  constructor(actors: readonly CallActor[], clock: Clockwork) {
    this.#actors = actors
    this.#clock = clock
    for (const { deviceId } of actors) this.#inboxes.set(deviceId, [])
  }

  inboxOf({ deviceId }: CallDeviceRef): readonly Message[] {
    return this.#inboxes.get(deviceId)!
  }

  get live(): Call[] {
    return [...this.calls.values()].filter(call => !isOver(call))
  }

  /** The key that was handed over with the request names it where it comes twice. */
  handle(
    by: CallActor,
    operation: string,
    callIdText: string | undefined,
    body: unknown,
    key: string,
  ): Answer {
    for (const callId of this.#index.callsWith(by.userId, by.deviceId))
      this.#decide(callId, { kind: 'device-seen', by: refOf(by), nowMs: this.#clock.nowMs() })
    const known = this.#answered.get(key)
    if (known !== undefined) return known
    const [method, path = ''] = operation.split(' ')
    const callId = callIdText === undefined ? undefined : (BigInt(callIdText) as CallId)
    if (method === 'GET') return path === 'call/pending' ? this.#pending(by) : this.#read(by, callId!)
    const kind = path.slice(path.lastIndexOf('/') + 1)
    const answer = this.#carryOut(by, kind, callId, (body ?? {}) as Body)
    if (kind === 'start' || kind === 'invite') this.#answered.set(key, answer)
    return answer
  }

  connect(line: Line): void {
    const { device } = line
    this.#lines.set(device.deviceId, line)
    for (const callId of this.#index.callsWith(device.userId, device.deviceId))
      this.#decide(callId, { kind: 'device-online', by: refOf(device), nowMs: this.#clock.nowMs() })
    for (const message of this.inboxOf(device)) this.#send(line, message)
  }

  /** It has seen that the device is gone. */
  disconnect(line: Line): void {
    for (const lines of this.#watchers.values()) lines.delete(line)
    const { userId, deviceId } = line.device
    if (this.#lines.get(deviceId) !== line) return
    this.#lines.delete(deviceId)
    for (const callId of this.#index.callsWith(userId, deviceId))
      this.#decide(callId, { kind: 'device-offline', by: refOf(line.device), nowMs: this.#clock.nowMs() })
  }

  /** Undefined where it is subscribed. */
  watch(line: Line, callId: string): string | undefined {
    const refusal = refusalOfWatcher(this.calls.get(BigInt(callId) as CallId), line.device.userId)
    if (refusal !== undefined) return refusal.code
    const lines = this.#watchers.get(callId) ?? new Set()
    this.#watchers.set(callId, lines.add(line))
    return undefined
  }

  unwatch(line: Line, callId: string): void {
    this.#watchers.get(callId)?.delete(line)
  }

  acknowledge({ deviceId }: CallDeviceRef, offset: number): void {
    const left = this.#inboxes.get(deviceId)!.filter(one => one.offset !== offset)
    this.#inboxes.set(deviceId, left)
  }

  send(by: CallActor, callId: string): void {
    this.#carryOut(by, 'ringing', BigInt(callId) as CallId, {})
  }

  restart(downForMs: number): void {
    this.#life += 1
    this.#lines.clear()
    this.#watchers.clear()
    this.#index = new CallIndex()
    const nowMs = this.#clock.nowMs()
    for (const [callId, call] of this.calls) this.#keep(callId, recover(call, { nowMs, downForMs }))
  }

  #pending({ userId, deviceId }: CallActor): Answer {
    const items = this.live.flatMap(call => pendingRecord(call, { userId, deviceId }) ?? [])
    return { body: wire({ items: items.map(record => recordBody(record, undefined)) }) }
  }

  #read(by: CallActor, callId: CallId): Answer {
    const call = this.calls.get(callId)
    const participant = call && participantOf(call, by.userId)
    if (call === undefined || participant === undefined || participant.state === 'removed')
      return { code: 'CALL_NOT_FOUND' }
    if (isOver(call)) return { code: 'CALL_ENDED' }
    return { body: wire(recordBody(recordWithKeySets(call, by), undefined)) }
  }

  #carryOut(by: CallActor, kind: string, known: CallId | undefined, body: Body): Answer {
    const callId = known ?? (BigInt(body.callId!) as CallId)
    const request = requestOf(by, kind, callId, body)
    const command = { ...request, nowMs: this.#clock.nowMs() } as CallCommand
    const decision = this.#decide(callId, command)
    if (decision.kind === 'refused')
      return { code: decision.code, members: wire(decision.members ?? {}) as object }
    if (kind === 'start') this.#clock.onEpoch(String(callId), 1, body.encryptedAESKeys!)
    if (kind === 'keys' || kind === 'invite')
      this.#clock.onEpoch(String(callId), body.epoch!, body.encryptedAESKeys!)
    return { body: bodyOf(decision.reply) }
  }

  #decide(callId: CallId, command: CallCommand) {
    const before = this.calls.get(callId)
    const actor = 'by' in command ? this.#actors.find(one => isSameDevice(one, command.by)) : undefined
    const decision = decide(before, command, { ...this.#factsFor(callId, command), actor })
    if (decision.kind === 'refused') return decision
    const online =
      'by' in command && !command.kind.startsWith('device-')
        ? this.#online(decision.call, command)
        : decision.call
    if (decision.ended !== undefined) {
      this.#keep(decision.ended.call.callId, decision.ended.call)
      for (const effect of decision.ended.effects) this.#tell(decision.ended.call.callId, effect)
    }
    if (online !== before) this.#keep(callId, online)
    for (const effect of decision.effects) this.#tell(callId, effect)
    return decision
  }

  /** A device that has just joined may have a socket already. */
  #online(call: Call, { by, nowMs }: Extract<CallCommand, { by: unknown }>): Call {
    return this.#lines.has(by.deviceId) ? withPresence(call, by, true, nowMs) : call
  }

  #keep(callId: CallId, call: Call): void {
    this.calls.set(callId, call)
    this.#index.put(call)
    const atMs = nextDeadlineMs(call)
    if (atMs === undefined) return
    const life = this.#life
    this.#clock.at(Math.max(atMs, this.#clock.nowMs()), () => {
      if (this.calls.get(callId) !== call || life !== this.#life) return
      this.#decide(callId, { kind: 'deadline', nowMs: this.#clock.nowMs() })
    })
  }

  #factsFor(callId: CallId, command: CallCommand): CallFacts {
    if (command.kind === 'join' || command.kind === 'rejoin') {
      const { userId, deviceId } = command.by
      return { ...NO_FACTS, otherCallId: this.#index.otherCallWith(userId, deviceId, callId) }
    }
    if (command.kind !== 'start' && command.kind !== 'invite') return NO_FACTS
    const { by, calleeIds } = command
    return {
      ...NO_FACTS,
      displayName: `user ${by.userId}`,
      callees: calleeIds.map(userId => ({
        userId,
        displayName: `user ${userId}`,
        caller: { isContact: true },
        mayBeCalled: true,
        isWithheld: false,
        deviceIds: this.#devicesOf(userId),
      })),
      ownDevices: this.#devicesOf(by.userId),
      otherCallId: this.#index.otherCallOf(by.userId, callId),
      callsBetween: calleeIds.flatMap(calleeId => this.#index.callsBetween(by.userId, calleeId)),
      isRoomInUse: false,
      freeRoomId: Number(callId),
    }
  }

  #devicesOf(userId: UserId): DeviceId[] {
    return this.#actors.filter(one => one.userId === userId).map(({ deviceId }) => deviceId)
  }

  #tell(callId: CallId, effect: CallEffect): void {
    if (effect.kind === 'topic') return this.#tellTopic(effect.event)
    if (effect.kind === 'withdraw') return this.#withdraw(effect.deviceId, callId)
    if (effect.kind === 'device') this.#append(effect)
  }

  #tellTopic(event: CallTopicEvent): void {
    const lines = this.#watchers.get(String(event.callId))
    if (lines === undefined || lines.size === 0) return
    const told = { ...event, eventId: `e${++this.#count}`, sentAtMs: this.#clock.nowMs() } as TopicEvent
    const body = wire(EVENTS[told.kind].body(told, {})) as object
    for (const line of lines) line.onTopic(String(event.callId), body)
  }

  #withdraw(deviceId: DeviceId, callId: CallId): void {
    const isIt = ({ notice }: Message) => notice.kind === 'call_invitation' && notice.callId === callId
    this.#inboxes.set(
      deviceId,
      this.#inboxes.get(deviceId)!.filter(one => !isIt(one)),
    )
  }

  #append({ deviceId, notice, encryptedAESKey, expiresAtMs, replaces }: DeviceEffect): void {
    if (replaces === 'invitation') this.#withdraw(deviceId, notice.callId)
    const sentAtMs = this.#clock.nowMs()
    const offset = ++this.#count
    const message: Message = {
      offset,
      notice: noticeOf({ kind: 'notice', body: notice, encryptedAESKey, eventId: `e${offset}`, sentAtMs }),
      expiresAtMs: expiresAtMs ?? Number.POSITIVE_INFINITY,
    }
    this.#inboxes.get(deviceId)!.push(message)
    const line = this.#lines.get(deviceId)
    if (line !== undefined) this.#send(line, message)
  }

  #send(line: Line, message: Message): void {
    const { deviceId } = line.device
    if (message.expiresAtMs > this.#clock.nowMs())
      return line.onMessage(
        message,
        wire(EVENTS[message.notice.kind].body(message.notice, { deviceId })) as object,
      )
    const missed = missedInsteadOf(message.notice)
    if (missed === undefined) return this.acknowledge(line.device, message.offset)
    const { eventId, sentAtMs } = message.notice
    const notice = { ...missed, eventId: `${eventId} missed`, sentAtMs } as Notice
    line.onMessage({ ...message, notice }, wire(EVENTS[notice.kind].body(notice, { deviceId })) as object)
  }
}

interface Body {
  readonly callId?: string
  readonly calleeIds?: readonly string[]
  readonly encryptedAESKeys?: Readonly<Record<string, string>>
  readonly encryptedAESKey?: string
  readonly epoch?: number
  readonly keyMembers?: string
  readonly without?: readonly string[]
  readonly nonce?: string
  readonly isVideo?: boolean
  readonly userId?: string
  readonly requesterUserId?: string
  readonly requesterDeviceId?: string
}

function requestOf(actor: CallActor, kind: string, callId: CallId, body: Body): CallRequest {
  const { calleeIds, userId, requesterUserId, requesterDeviceId, ...others } = body
  return {
    kind,
    by: refOf(actor),
    ...others,
    ...(kind === 'start' && { callId }),
    ...(calleeIds && { calleeIds: calleeIds.map(BigInt) }),
    ...(userId && { userId: BigInt(userId) }),
    ...(requesterUserId && { requesterUserId: BigInt(requesterUserId) }),
    ...(requesterDeviceId && { requesterDeviceId: BigInt(requesterDeviceId) }),
  } as unknown as CallRequest
}

function bodyOf(reply: CallReply): unknown {
  switch (reply.kind) {
    case 'record':
      return wire(recordBody(reply.record, undefined))
    case 'asked':
      return { expiresIn: reply.expiresInS, asked: reply.asked }
    case 'done':
      return undefined
  }
}

function refOf({ userId, deviceId }: CallDeviceRef): CallDeviceRef {
  return { userId, deviceId }
}

/** A body as a device parses it: ids as text, nothing that is undefined. */
function wire(value: unknown): unknown {
  if (typeof value === 'bigint') return String(value)
  if (Array.isArray(value)) return value.map(wire)
  if (typeof value !== 'object' || value === null) return value
  const written: Record<string, unknown> = {}
  for (const [name, each] of Object.entries(value)) if (each !== undefined) written[name] = wire(each)
  return written
}
