/**
 * The durable state of a seeded run of calls, noted by the store's transactions: calls, each device's messages, and
 * the settled ones. It outlives crashes, and every delivery is checked against it.
 */

import { type Call, type CallDeviceRef, isOver, participantOf } from '../../src/domain/calls/call.ts'
import type { CallCommand, CallEffect } from '../../src/domain/calls/call-command.ts'
import type { CallTopicEvent } from '../../src/domain/calls/call-notice.ts'
import type { CallId } from '../../src/domain/ids.ts'
import type { InboxItem } from '../../src/domain/messages/inbox.ts'
import { noticeOf } from '../../src/domain/messages/inbox.ts'
import type { Notice } from '../../src/domain/messages/notice.ts'
import { CallChecks } from './call-checks.ts'
import type { UntimedCommand } from './call-driver.ts'

/** A transaction's announced write. */
export type RunNote =
  | DecidedNote
  /** The call as it is stored. */
  | { readonly kind: 'stored'; readonly call: Call }
  | { readonly kind: 'put'; readonly device: string; readonly message: Message }
  | { readonly kind: 'settled'; readonly device: string; readonly offsets: readonly number[] }
  | { readonly kind: 'erased'; readonly device: string }
  /** The reply to a start that may be repeated. */
  | { readonly kind: 'kept'; readonly name: string }

/** A room's decision, whether or not it becomes durable. */
type PutNote = Extract<RunNote, { readonly kind: 'put' }>

export interface DecidedNote {
  readonly kind: 'decided'
  readonly callId: CallId
  readonly command: CallCommand
  readonly effects: readonly CallEffect[]
}

/** In a device's inbox. */
export interface Message {
  readonly offset: number
  readonly queue: string
  readonly item: InboxItem
  readonly expiresAtMs: number
}

/** One device's unsettled messages. */
export class DeviceLedger {
  /** By offset, in order. */
  readonly messages = new Map<number, Message>()
  /** Messages that are gone, and why. */
  readonly gone = new Map<number, 'settled' | 'taken back'>()
  /** Calls that an invitation waits for, and its offset. */
  readonly #invitations = new Map<CallId, number>()
  isErased = false
  /** By call the last offset that there was when the device itself answered. */
  readonly answered = new Map<CallId, number>()
  /** The last one that was given to a message. */
  lastOffset = 0

  put(message: Message): void {
    this.lastOffset = message.offset
    this.messages.set(message.offset, message)
    const notice = noticeIn(message)
    if (notice?.kind !== 'call_invitation') return
    this.takeBack(notice.callId)
    this.#invitations.set(notice.callId, message.offset)
  }

  settle(offsets: readonly number[]): void {
    for (const offset of offsets) this.#end(offset, 'settled')
  }

  takeBack(callId: CallId): void {
    const offset = this.#invitations.get(callId)
    this.#invitations.delete(callId)
    if (offset !== undefined) this.#end(offset, 'taken back')
  }

  /** Messages it may get at that time. */
  waiting(nowMs: number): Message[] {
    return [...this.messages.values()].filter(({ expiresAtMs }) => nowMs < expiresAtMs)
  }

  erase(): void {
    this.isErased = true
    this.messages.clear()
    this.#invitations.clear()
  }

  #end(offset: number, how: 'settled' | 'taken back'): void {
    if (this.messages.delete(offset)) this.gone.set(offset, how)
  }
}

/** One call, from its start on. */
export class CallLedger {
  call: Call
  /** As each write left it. */
  readonly versions: Call[] = []
  /** Its live events, in order. */
  readonly events: string[] = []
  readonly #checks = new CallChecks(ownerOfKey)

  constructor(call: Call) {
    this.call = call
  }

  /** Throws for a breach of the rules. */
  write(call: Call, { command, effects }: DecidedNote): void {
    const before = this.call
    this.call = call
    this.versions.push(call)
    for (const effect of effects) {
      if (effect.kind === 'topic') this.events.push(eventText(effect.event, command.nowMs))
    }
    this.#assertFollows(before, call)
    this.#checks.after(
      { kind: 'accepted', call, effects, reply: { kind: 'done' } },
      command as UntimedCommand,
    )
  }

  /** Throws unless the call has ended in every respect. */
  checkEnd(): void {
    this.#checks.atEnd(this.call)
  }

  #assertFollows(before: Call, call: Call): void {
    if (isOver(before) && before !== call) throw new Error(`it was ${before.status} and is ${call.status}`)
    if (before.status === 'active' && !FOLLOW_ACTIVE.has(call.status)) {
      throw new Error(`it was active and is ${call.status}`)
    }
    const missing = before.participants.filter(({ userId }) => participantOf(call, userId) === undefined)
    if (missing.length > 0) throw new Error(`${missing[0]!.userId} is none of its people any more`)
  }
}

export class Ledger {
  readonly calls = new Map<CallId, CallLedger>()
  readonly devices = new Map<string, DeviceLedger>()
  /** Starts with an unknown outcome; repeated, they may happen again. */
  readonly unsure = new Set<string>()
  readonly #kept = new Set<string>()
  readonly #violate: (what: string) => void

  constructor(violate: (what: string) => void) {
    this.#violate = violate
  }

  device(name: string): DeviceLedger {
    let device = this.devices.get(name)
    if (device === undefined) {
      device = new DeviceLedger()
      this.devices.set(name, device)
    }
    return device
  }

  /** Calls that are not over. */
  live(): Call[] {
    return [...this.calls.values()].map(({ call }) => call).filter(call => !isOver(call))
  }

  /** Takes in what a transaction has written. */
  readonly onWritten = (notes: readonly RunNote[], thrown: unknown): void => {
    const puts = notes.filter(note => note.kind === 'put')
    if (thrown !== undefined) {
      if (puts.length > 0) this.#violate(`a transaction wrote and threw ${thrown}`)
      return
    }
    const decided = notes.filter(note => note.kind === 'decided')
    const toWrite = [...decided]
    for (const note of notes) {
      if (note.kind === 'stored') this.#write(note.call, toWrite)
      else if (note.kind === 'settled') this.device(note.device).settle(note.offsets)
      else if (note.kind === 'erased') this.device(note.device).erase()
      else if (note.kind === 'kept') this.#keep(note.name)
    }
    const [told, others] = [[], []] as [PutNote[], PutNote[]]
    for (const put of puts) (put.message.queue === 'calls' ? told : others).push(put)
    for (const each of decided) this.#compare(each, told)
    for (const { device, message } of [...told, ...others]) this.device(device).put(message)
  }

  #keep(name: string): void {
    if (this.#kept.has(name) && !this.unsure.has(name)) this.#violate(`${name} is carried out again`)
    this.#kept.add(name)
  }

  /** Takes out the decision that it comes of. */
  #write(call: Call, ofAll: DecidedNote[]): void {
    const at = ofAll.findIndex(({ callId }) => callId === call.callId)
    const [decided] = at < 0 ? [] : ofAll.splice(at, 1)
    if (decided === undefined) return
    const ledger = this.calls.get(call.callId) ?? new CallLedger(call)
    this.calls.set(call.callId, ledger)
    try {
      ledger.write(call, decided)
    } catch (error) {
      this.#violate(`call ${call.callId} after ${decided.command.kind}: ${(error as Error).message}`)
    }
  }

  /** Messages to devices have to match the room's decision. */
  #compare({ callId, effects }: DecidedNote, told: PutNote[]): void {
    for (const effect of effects) {
      if (effect.kind !== 'withdraw' && effect.kind !== 'device') continue
      const name = nameOf(effect)
      const device = this.device(name)
      if (effect.kind === 'withdraw' || effect.replaces === 'invitation') device.takeBack(callId)
      if (effect.kind === 'withdraw') device.answered.set(callId, device.lastOffset)
      if (effect.kind === 'withdraw' || device.isErased) continue
      const put = told.shift()
      const notice = put && noticeIn(put.message)
      const isThere = put?.device === name && notice?.kind === effect.notice.kind
      if (put !== undefined) this.device(put.device).put(put.message)
      if (!isThere) this.#violate(`${effect.notice.kind} is not in the inbox of ${name}`)
      else if ('encryptedAESKey' in notice && ownerOfKey(notice.encryptedAESKey) !== name) {
        this.#violate(`in the inbox of ${name} is a key of ${ownerOfKey(notice.encryptedAESKey)}`)
      }
    }
  }
}

/** A live event in words that no other event of its call has. */
export function eventText(event: CallTopicEvent, atMs: number): string {
  switch (event.kind) {
    case 'call_status':
      return `${atMs} ${event.kind} ${event.status}`
    case 'host_changed':
      return `${atMs} ${event.kind} ${event.hostUserId}`
    case 'participant_unreachable':
      return `${atMs} ${event.kind} ${event.userId}`
    default: {
      const { userId, deviceId, state } = event.participant
      return `${atMs} ${event.kind} ${userId} ${deviceId ?? 'nowhere'} ${state}`
    }
  }
}

export function noticeIn({ item }: Message): Notice | undefined {
  return item.kind === 'notice' ? noticeOf(item) : undefined
}

export function nameOf({ userId, deviceId }: CallDeviceRef): string {
  return `${userId}_${deviceId}`
}

/** A stand-in for a call's key, encrypted for a device; each is different. */
export function keyFor(device: CallDeviceRef, serial: number): string {
  return Buffer.from(`key ${serial} ${nameOf(device)} `.padEnd(KEY_BYTES, '.'), 'latin1').toString('base64')
}

/** The devices for which the keys in a text were made. */
export function ownersOfKeys(text: string): string[] {
  return text.includes(KEY_START) ? [...text.matchAll(KEY_FORM)].map(([key]) => ownerOfKey(key)!) : []
}

export function ownerOfKey(text: string): string | undefined {
  if (!text.startsWith(KEY_START)) return undefined
  return Buffer.from(text, 'base64').toString('latin1').split(' ')[2]
}

const FOLLOW_ACTIVE: ReadonlySet<string> = new Set(['active', 'ended', 'failed'])
const KEY_BYTES = 66
/** Base64 of `key ` and the first half of a digit. */
const KEY_START = 'a2V5ID'
const KEY_FORM = /a2V5ID[A-Za-z0-9+/]{82}/g
