/**
 * A call among people who know one another, for tests of its rules: user `n` has devices `n1`, `n2`, ... as their ids.
 * Commands are applied one after the other; effects are put into words.
 */
import { createHash } from 'node:crypto'
import type { Call, CallDeviceRef, Participant } from '../../src/domain/calls/call.ts'
import {
  type CallAccepted,
  type CallActor,
  type CallCommand,
  type CallDecision,
  type CallEffect,
  type CallFacts,
  NO_FACTS,
} from '../../src/domain/calls/call-command.ts'
import { decide } from '../../src/domain/calls/call-decision.ts'
import type { CallId, DeviceId, UserId } from '../../src/domain/ids.ts'

export const START_MS = Date.UTC(2026, 0, 1)
export const CALL_ID = 77n as CallId

/** Device `at` of a user, counted from 1. */
export function deviceOf(user: number, at = 1): CallActor {
  const device = { userId: BigInt(user) as UserId, deviceId: BigInt(user * 100 + at) as DeviceId }
  return { ...device, ...keyOf(device) }
}

function keyOf({ deviceId }: CallDeviceRef): Pick<CallActor, 'publicKeyHash' | 'keyAlgorithm'> {
  return { publicKeyHash: `hash of ${deviceId}`, keyAlgorithm: 'P-256' }
}

/** A stand-in for an epoch's key, encrypted for a device. */
export function keyFor({ userId, deviceId }: CallDeviceRef, epoch = 1): string {
  const name = `${userId} ${deviceId} ${epoch}`
  const known = MADE_KEYS.get(name)
  if (known !== undefined) return known
  const key = createHash('sha512').update(name).digest('base64')
  MADE_KEYS.set(name, key)
  return key
}

const MADE_KEYS = new Map<string, string>()

export function keysFor(devices: readonly CallDeviceRef[], epoch = 1): Record<string, string> {
  return Object.fromEntries(
    devices.map(device => [`${device.userId}_${device.deviceId}`, keyFor(device, epoch)]),
  )
}

type Untimed<Command> = Command extends CallCommand ? Omit<Command, 'nowMs'> : never
/** A command that happens now. */
export type UntimedCommand = Untimed<CallCommand>

export class CallDriver {
  nowMs = START_MS
  /** Undefined until it is started. */
  kept: Call | undefined
  readonly #devices: number

  /** Each user has this many devices. */
  constructor({ devices = 1 } = {}) {
    this.#devices = devices
  }

  get call(): Call {
    if (this.kept === undefined) throw new Error('not started')
    return this.kept
  }

  devicesOf(user: number): ReturnType<typeof deviceOf>[] {
    return Array.from({ length: this.#devices }, (_, at) => deviceOf(user, at + 1))
  }

  facts(callees: readonly number[], by = 1): CallFacts {
    return {
      actor: deviceOf(by),
      displayName: `User ${by}`,
      callees: callees.map(user => ({
        userId: BigInt(user) as UserId,
        displayName: `User ${user}`,
        caller: { isContact: true },
        mayBeCalled: true,
        isWithheld: false,
        deviceIds: this.devicesOf(user).map(({ deviceId }) => deviceId),
      })),
      ownDevices: this.devicesOf(by).map(({ deviceId }) => deviceId),
      otherCallId: undefined,
      callsBetween: [],
      isRoomInUse: false,
      freeRoomId: 4711,
    }
  }

  startCommand(callees: readonly number[], by = 1): Extract<UntimedCommand, { kind: 'start' }> {
    return {
      kind: 'start',
      by: deviceOf(by),
      callId: CALL_ID,
      calleeIds: callees.map(user => BigInt(user) as UserId),
      encryptedAESKeys: keysFor(callees.flatMap(user => this.devicesOf(user))),
      isVideo: true,
    }
  }

  inviteCommand(callees: readonly number[], by: CallDeviceRef): Extract<UntimedCommand, { kind: 'invite' }> {
    const devices = callees.flatMap(user => this.devicesOf(user))
    const encryptedAESKeys = keysFor(devices, this.kept?.keyEpoch ?? 1)
    const calleeIds = callees.map(user => BigInt(user) as UserId)
    return { kind: 'invite', by, calleeIds, encryptedAESKeys }
  }

  keysCommand(
    by: CallDeviceRef,
    to: readonly CallDeviceRef[],
    epoch: number,
    reason: 'rotation' | 'leave' | 'emergency' = 'rotation',
  ): Extract<UntimedCommand, { kind: 'keys' }> {
    return { kind: 'keys', by, epoch, reason, encryptedAESKeys: keysFor(to, epoch) }
  }

  /** The decision that the command would get. Its device is registered, by default with a P-256 key. */
  decide(command: UntimedCommand, facts: CallFacts = NO_FACTS): CallDecision {
    const actor = 'by' in command ? { ...keyOf(command.by), ...command.by } : undefined
    return decide(this.kept, { ...command, nowMs: this.nowMs }, { ...facts, actor })
  }

  /** Carries it out; it must not be refused. */
  run(command: UntimedCommand, facts?: CallFacts): CallAccepted {
    const decision = this.decide(command, facts)
    if (decision.kind === 'refused')
      throw new Error(`${command.kind} is refused: ${decision.code}: ${decision.detail}`)
    this.kept = decision.call
    return decision
  }

  start(callees: readonly number[], by = 1): CallAccepted {
    return this.run(this.startCommand(callees, by), this.facts(callees, by))
  }

  invite(callees: readonly number[], by: CallDeviceRef): CallAccepted {
    return this.run(this.inviteCommand(callees, by), this.facts(callees, Number(by.userId)))
  }

  join(user: number, at = 1): CallAccepted {
    return this.run({ kind: 'join', by: deviceOf(user, at) })
  }

  /** Time passes, and deadlines until then happen. */
  wait(ms: number): CallAccepted {
    this.nowMs += ms
    return this.run({ kind: 'deadline' })
  }

  person(user: number): Participant {
    const found = this.call.participants.find(({ userId }) => userId === BigInt(user))
    if (found === undefined) throw new Error(`user ${user} has no part in it`)
    return found
  }
}

/** The result: the reply's kind, or the refusal's code. */
export function resultOf(decision: CallDecision): string {
  return decision.kind === 'accepted' ? decision.reply.kind : decision.code
}

/** Effects in words: `<device> <message>`, `topic <event> <its user>`, `history <user> <status>`; without webhooks. */
export function inWords(effects: readonly CallEffect[]): string[] {
  return effects.flatMap(effect => {
    if (effect.kind === 'webhook') return []
    return effect.kind === 'history' ? historyInWords(effect) : [effectInWords(effect)]
  })
}

function historyInWords({ memories, back }: Extract<CallEffect, { kind: 'history' }>): string[] {
  return [
    ...memories.map(({ userId, status }) => `history ${userId} ${status}`),
    ...back.map(userId => `history ${userId} active`),
  ]
}

function effectInWords(effect: Exclude<CallEffect, { kind: 'webhook' | 'history' }>): string {
  switch (effect.kind) {
    case 'device':
      return `${effect.deviceId} ${effect.notice.kind}${effect.replaces === undefined ? '' : ' instead'}${effect.isMissed ? ', missed' : ''}`
    case 'withdraw':
      return `${effect.deviceId} withdraw`
    case 'topic':
      return `topic ${topicInWords(effect.event)}`
  }
}

function topicInWords(event: Extract<CallEffect, { kind: 'topic' }>['event']): string {
  switch (event.kind) {
    case 'call_status':
      return event.status
    case 'host_changed':
      return `host ${event.hostUserId}`
    case 'participant_unreachable':
      return `unreachable ${event.userId}`
    default:
      return `${event.kind.replace('participant_', '')} ${event.participant.userId}`
  }
}
