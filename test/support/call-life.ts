/**
 * A random life of a call: commands of all kinds from all devices in all orders, repeated, late, after restarts. One seed
 * draws one life.
 */

import assert from 'node:assert/strict'
import { isDeepStrictEqual } from 'node:util'
import {
  type Call,
  type CallDeviceRef,
  isOver,
  isPending,
  joinedDevices,
  keySetOf,
} from '../../src/domain/calls/call.ts'
import type {
  CallAccepted,
  CallDecision,
  CallFacts,
  CallRefused,
  SentKeyMap,
} from '../../src/domain/calls/call-command.ts'
import { nextDeadlineMs, recover } from '../../src/domain/calls/call-deadline.ts'
import { keyMapName } from '../../src/domain/calls/key-map.ts'
import { memberNames } from '../../src/domain/calls/key-members.ts'
import type { UserId } from '../../src/domain/ids.ts'
import { packCall, unpackCall } from '../../src/store/calls/call-form.ts'
import { CallChecks } from './call-checks.ts'
import { CallDriver, deviceOf, keyFor, keysFor, type UntimedCommand } from './call-driver.ts'
import { membersOf } from './key-members.ts'
import { randomFrom } from './seed.ts'

const STEPS = 40
const USERS = 5
const DEVICES = 2
const EPOCHS = 12

/** Every key there can be, so that each tells whose it is. */
const OWNERS = new Map<string, string>()
for (let user = 1; user <= USERS; user++) {
  for (let at = 1; at <= DEVICES; at++) {
    const device = deviceOf(user, at)
    for (let epoch = 1; epoch <= EPOCHS; epoch++) {
      OWNERS.set(keyFor(device, epoch), `${device.userId}_${device.deviceId}`)
    }
  }
}

type StartCommand = Extract<UntimedCommand, { kind: 'start' }>
type InviteCommand = Extract<UntimedCommand, { kind: 'invite' }>
type Step = { readonly command: UntimedCommand; readonly facts?: CallFacts }

export class CallLife {
  readonly #random: () => number
  readonly #onDecided: (call: Call) => void
  readonly #driver = new CallDriver({ devices: DEVICES })
  readonly #checks = new CallChecks(key => OWNERS.get(key))
  readonly refused = new Map<string, number>()
  #first: Step | undefined

  /** `onDecided` gets the call after each decision. */
  constructor(seed: number, onDecided: (call: Call) => void = () => undefined) {
    this.#random = randomFrom(seed)
    this.#onDecided = onDecided
  }

  /** A start with the call's id: the first one again, or any other, which must not find the call. */
  #startAgain(): Step {
    if (this.#chance(0.5)) return this.#first!
    const step = this.#start()
    const other = this.#chance(0.5) ? this.#first! : step
    const by = deviceOf(this.#int(1, USERS), this.#int(1, DEVICES))
    return { ...other, command: { ...(other.command as StartCommand), by } }
  }

  /** Lives it to its end; throws on a fault. Returns how it ended. */
  live(): Call {
    this.#first = this.#start()
    this.#step(this.#first)
    if (this.#chance(0.7)) this.#begin()
    for (let step = 0; step < STEPS && !isOver(this.#driver.call); step++) this.#next()
    this.#waitForEnd()
    this.#checks.atEnd(this.#driver.call)
    return this.#driver.call
  }

  #next(): void {
    const driver = this.#driver
    if (this.#chance(0.4)) driver.nowMs += Math.floor(this.#random() ** 6 * 200_000)
    if (this.#chance(0.2)) this.#step({ command: { kind: 'deadline' } })
    if (this.#chance(0.03)) this.#restart()
    this.#step(this.#any())
  }

  /** The first callee answers, and the two have sockets. */
  #begin(): void {
    const first = this.#driver.call.participants[1]!
    const callee = deviceOf(Number(first.userId))
    this.#step({ command: { kind: 'join', by: callee } })
    for (const by of [callee, deviceOf(1)]) this.#step({ command: { kind: 'device-online', by } })
  }

  #waitForEnd(): void {
    const driver = this.#driver
    for (let waits = 0; !isOver(driver.call); waits++) {
      assert.ok(waits < 100, 'the call ends by itself')
      driver.nowMs = Math.max(driver.nowMs, nextDeadlineMs(driver.call)!)
      this.#step({ command: { kind: 'deadline' } })
      const next = nextDeadlineMs(driver.call)
      assert.ok(next === undefined || next > driver.nowMs, 'no deadline is left behind')
    }
    for (let step = 0; step < 4; step++) this.#next()
  }

  #step({ command, facts }: Step): void {
    const driver = this.#driver
    const decision = driver.decide(command, facts)
    if (command.kind === 'start' && driver.kept !== undefined) this.#checkStart(decision, command)
    if (decision.kind === 'refused') {
      this.refused.set(decision.code, (this.refused.get(decision.code) ?? 0) + 1)
      return
    }
    driver.kept = decision.call
    this.#onDecided(decision.call)
    this.#checks.after(decision, command)
    if (this.#chance(0.3)) this.#repeat(decision, { command, ...(facts === undefined ? {} : { facts }) })
  }

  /** Only the first start again is answered, and by the call as it is; every other one hears nothing of the call. */
  #checkStart(decision: CallDecision, { by, ...body }: StartCommand): void {
    const { by: starter, ...made } = this.#first!.command as StartCommand
    const isFirst = by.deviceId === starter.deviceId && isDeepStrictEqual(body, made)
    if (isFirst) {
      assert.equal(decision.kind === 'accepted' && decision.call, this.#driver.call, 'its start again')
      return
    }
    const { kind, code, ...more } = decision as CallRefused
    assert.deepEqual(
      [kind, code, Object.keys(more)],
      ['refused', 'CALL_ID_TAKEN', ['detail']],
      'another start',
    )
  }

  /** The same again does nothing and is answered in the same way, but for the key that was handed over. */
  #repeat(first: CallAccepted, { command, facts }: Step): void {
    const again = this.#driver.decide(command, facts)
    assert(again.kind === 'accepted', `${command.kind} again`)
    assert.equal(again.call, first.call, `${command.kind} again changes the call`)
    assert.deepEqual(again.effects, [], `${command.kind} again tells something`)
    const withoutKey = ({ reply }: CallAccepted) =>
      reply.kind === 'record' ? { ...reply.record, ...NO_KEY } : reply
    assert.deepEqual(withoutKey(again), withoutKey(first), `${command.kind} again is answered otherwise`)
  }

  #restart(): void {
    const driver = this.#driver
    const downForMs = Math.floor(this.#random() * 120_000)
    driver.nowMs += downForMs
    const { nowMs } = driver
    const stored = unpackCall(packCall(driver.call))
    assert.deepEqual(stored, driver.call, 'the store gives back what it was given')
    if (!isOver(driver.call)) driver.kept = recover(stored, { nowMs, downForMs })
  }

  #start(): Step {
    const callees = this.#users(1)
    const command = this.#driver.startCommand(callees)
    // The caller's other device may take over, if it was given a key.
    const own = this.#chance(0.3) ? keysFor([deviceOf(1, 2)]) : {}
    const encryptedAESKeys = { ...command.encryptedAESKeys, ...own }
    return {
      command: this.#withMembers({ ...command, encryptedAESKeys }),
      facts: this.#driver.facts(callees),
    }
  }

  /** As newer clients send it: with the set of devices that the key is sealed for. */
  #withMembers<Command extends { readonly by: CallDeviceRef; readonly encryptedAESKeys: SentKeyMap }>(
    command: Command,
  ): Command {
    return this.#chance(0.5) ? { ...command, keyMembers: membersFor(command) } : command
  }

  #any(): Step {
    const by = deviceOf(this.#int(1, USERS), this.#int(1, DEVICES))
    const kinds = [
      'join',
      'join',
      'ringing',
      'decline',
      'leave',
      'request-rejoin',
      'rejoin',
      'presence',
    ] as const
    const more = [
      'invite',
      'invite',
      'keys',
      'accept-rejoin',
      'decline',
      'remove',
      'end',
      'device-signed-out',
      'device-removed',
      'inviter-blocked',
      'account-ended',
      'account-suspended',
      'start',
    ] as const
    const kind = this.#chance(0.65) ? this.#one(kinds) : this.#one(more)
    switch (kind) {
      case 'decline':
        return { command: { kind, by, reason: this.#one(['declined', 'busy', 'timeout'] as const) } }
      case 'presence':
        return {
          command: { kind: this.#one(['device-online', 'device-offline', 'device-seen'] as const), by },
        }
      case 'request-rejoin':
        return { command: { kind, by, nonce: this.#one([undefined, 'one', 'two']) } }
      case 'invite':
        return this.#invite()
      case 'keys':
        return this.#newKeys()
      case 'accept-rejoin':
        return this.#answer()
      case 'remove':
        return { command: { kind, by, userId: BigInt(this.#int(1, USERS)) as UserId } }
      case 'inviter-blocked':
        return { command: { kind, userId: by.userId, inviterId: BigInt(this.#int(1, USERS)) as UserId } }
      case 'account-ended':
      case 'account-suspended':
        return { command: { kind, userId: by.userId } }
      case 'end':
        return this.#chance(0.3) ? { command: { kind, by } } : this.#any()
      case 'start':
        return this.#chance(0.2) ? this.#startAgain() : this.#any()
      default:
        return { command: { kind, by } }
    }
  }

  #invite(): Step {
    const by = this.#insider()
    const callees = this.#users(Number(by.userId))
    const facts = this.#driver.facts(callees, Number(by.userId))
    const command = this.#driver.inviteCommand(callees, by)
    if (this.#chance(0.5)) return { command: { ...command, ...this.#saidEpoch() }, facts }
    return { command: this.#inviteToNewEpoch(command), facts }
  }

  /** One map for who is in the call and the callees, and some who ring. */
  #inviteToNewEpoch(command: InviteCommand): InviteCommand {
    const { by } = command
    const epoch = Math.min(EPOCHS, this.#driver.call.keyEpoch + (this.#chance(0.95) ? 1 : 2))
    const called = command.calleeIds.flatMap(userId => this.#driver.devicesOf(Number(userId)))
    const devices = [...this.#othersInCall(by), ...this.#someRinging(), ...called]
    const encryptedAESKeys = keysFor(this.#chance(0.95) ? devices : devices.slice(1), epoch)
    return { ...command, epoch, encryptedAESKeys, keyMembers: membersFor({ by, encryptedAESKeys }) }
  }

  #newKeys(): Step {
    const { call } = this.#driver
    const by = this.#insider()
    const isEmergency = this.#chance(0.4)
    const epoch = Math.min(EPOCHS, call.keyEpoch + (isEmergency ? 0 : 1))
    const others = this.#othersInCall(by)
    const reason = isEmergency ? 'emergency' : this.#one(['rotation', 'leave'] as const)
    const leftOut = this.#chance(0.3) ? others.slice(0, 1) : []
    const given = others.filter(device => !leftOut.includes(device))
    const inSet = isEmergency ? membersOfEpoch(call) : undefined
    const to = [...given, ...this.#someRinging()].filter(device => inSet?.has(keyMapName(device)) ?? true)
    const without = leftOut.length > 0 ? { without: leftOut.map(keyMapName) } : {}
    const command = { ...this.#driver.keysCommand(by, to, epoch, reason), ...without }
    return { command: isEmergency ? command : this.#withMembers(command) }
  }

  #othersInCall(by: CallDeviceRef): CallDeviceRef[] {
    return joinedDevices(this.#driver.call).filter(({ deviceId }) => deviceId !== by.deviceId)
  }

  #someRinging(): CallDeviceRef[] {
    return this.#driver.call.participants
      .filter(one => isPending(one) && this.#chance(0.5))
      .flatMap(({ userId, devices }) => devices.map(({ deviceId }) => ({ userId, deviceId })))
  }

  #answer(): Step {
    const { rejoinAsks, keyEpoch } = this.#driver.call
    const asks: readonly CallDeviceRef[] = rejoinAsks.length > 0 ? rejoinAsks : [deviceOf(2)]
    const { userId, deviceId } = this.#one(asks)
    const encryptedAESKey = keyFor({ userId, deviceId }, keyEpoch)
    const by = this.#insider()
    return {
      command: {
        kind: 'accept-rejoin',
        by,
        requesterUserId: userId,
        requesterDeviceId: deviceId,
        encryptedAESKey,
        ...this.#saidEpoch(),
      },
    }
  }

  /** As newer clients say it, now and then wrongly. */
  #saidEpoch(): { readonly epoch?: number } {
    const { keyEpoch } = this.#driver.call
    return this.#chance(0.5) ? { epoch: this.#chance(0.9) ? keyEpoch : keyEpoch + 1 } : {}
  }

  /** A device that is in the call, as a rule. */
  #insider(): CallDeviceRef {
    const joined = this.#driver.kept === undefined ? [] : joinedDevices(this.#driver.call)
    return joined.length > 0 && this.#chance(0.9) ? this.#one(joined) : deviceOf(this.#int(1, USERS))
  }

  /** Some people, but not this one. */
  #users(but: number): number[] {
    const users = Array.from({ length: USERS }, (_, at) => at + 1).filter(user => user !== but)
    const some = users.filter(() => this.#chance(0.6))
    return some.length > 0 ? some : users.slice(0, 1)
  }

  #chance(share: number): boolean {
    return this.#random() < share
  }

  #int(from: number, to: number): number {
    return from + Math.floor(this.#random() * (to - from + 1))
  }

  #one<Value>(values: readonly Value[]): Value {
    return values[Math.floor(this.#random() * values.length)]!
  }
}

/** The set of a map's devices and its sender. */
function membersFor({ by, encryptedAESKeys }: Pick<InviteCommand, 'by' | 'encryptedAESKeys'>): string {
  const names = new Set([keyMapName(by), ...Object.keys(encryptedAESKeys)])
  const devices = [...names].map(name => {
    const [userId, deviceId] = name.split('_')
    return { userId: userId!, deviceId: deviceId! }
  })
  return membersOf(devices)
}

/** The names in the present epoch's set; undefined without one. */
function membersOfEpoch(call: Call): ReadonlySet<string> | undefined {
  const kept = keySetOf(call, call.keyEpoch)
  return kept && new Set(memberNames(kept.members))
}

const NO_KEY = { encryptedAESKey: undefined, keyFromUserId: undefined, keyFromDeviceId: undefined }
