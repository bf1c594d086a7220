/**
 * What must hold of a call at every moment, whatever was done to it: checked against a plain model of what its devices
 * were told. Each check throws with a sentence.
 */
import assert from 'node:assert/strict'
import {
  CALL_SIZE_MAX,
  type Call,
  type CallDeviceRef,
  isJoined,
  isOver,
  isPending,
  PARTICIPANTS_MAX,
} from '../../src/domain/calls/call.ts'
import type { CallAccepted, CallEffect, CallReply } from '../../src/domain/calls/call-command.ts'
import { nextDeadlineMs } from '../../src/domain/calls/call-deadline.ts'
import { activeRowOf } from '../../src/domain/calls/call-history.ts'
import { type CallRecord, recordOf } from '../../src/domain/calls/call-view.ts'
import { deviceOf, type UntimedCommand } from './call-driver.ts'

export class CallChecks {
  /** The device that an encrypted key was made for. */
  readonly #ownerOf: (encryptedAESKey: string) => string | undefined
  /** The devices that sent a text. */
  readonly #sealers = new Map<string, Set<string>>()
  /** The devices that were told to ring and not to stop. */
  readonly #ringing = new Set<string>()
  /** Those who remember the call, since they are out of it. */
  readonly #remembering = new Set<bigint>()
  #ended: Call | undefined
  #epoch = 0
  /** Sets that came with keys, by epoch. */
  readonly #sets = new Map<number, string>()
  #shown: CallRecord | undefined

  constructor(ownerOf: (encryptedAESKey: string) => string | undefined) {
    this.#ownerOf = ownerOf
  }

  /** After a command that was accepted. */
  after({ call, effects, reply }: CallAccepted, command: UntimedCommand): void {
    const rings = command.kind === 'start' || command.kind === 'invite'
    const by = 'by' in command ? command.by : undefined
    if ('encryptedAESKeys' in command) this.#noteSealer(command)
    for (const effect of effects) this.#take(effect, rings)
    // A removed device hears nothing: removing its inbox removes the ring.
    if (command.kind === 'device-removed') this.#ringing.delete(nameOf(command.by))
    if (reply.kind === 'record' && reply.record.encryptedAESKey !== undefined) {
      assert.ok(by, 'a key in a reply to nobody')
      this.#assertOwner(reply.record.encryptedAESKey, nameOf(by))
      this.#assertSealer(reply.record.encryptedAESKey, reply.record)
    }
    this.#checkVersion(call, effects, reply)
    this.#checkPeople(call)
    this.#checkRinging(call)
    this.#checkKeySets(call, effects, command)
    this.#checkKeys(call)
    this.#checkEnd(call)
    this.#checkHistory(call)
  }

  /** Call once the call has ended. */
  atEnd(call: Call): void {
    assert.ok(isOver(call), 'the call is over')
    assert.equal(this.#ringing.size, 0, 'nothing rings')
    for (const { userId } of call.participants) {
      assert.ok(this.#remembering.has(userId), `${userId} has the call in their history`)
      assert.equal(activeRowOf(call, userId), undefined, `it is over for ${userId}`)
    }
  }

  #take(effect: CallEffect, rings: boolean): void {
    if (effect.kind === 'history') {
      for (const userId of effect.back) this.#remembering.delete(userId)
      for (const { userId } of effect.memories) this.#remembering.add(userId)
    }
    if (effect.kind !== 'device') assert.ok(!this.#holdsKey(effect), `a key for ${effect.kind}`)
    if (effect.kind === 'withdraw') this.#ringing.delete(nameOf(effect))
    if (effect.kind !== 'device') return
    const { notice, encryptedAESKey, replaces } = effect
    const name = nameOf(effect)
    if (encryptedAESKey !== undefined) this.#assertOwner(encryptedAESKey, name)
    if (notice.kind === 'call_invitation') {
      this.#assertSealer(encryptedAESKey!, notice)
      assert.ok(rings, 'an invitation that nobody sent')
      assert.ok(!this.#ringing.has(name), `${name} rings twice`)
      this.#ringing.add(name)
    }
    if (replaces === 'invitation')
      assert.ok(this.#ringing.delete(name), `${name} is told to stop and did not ring`)
  }

  #assertOwner(encryptedAESKey: string, name: string): void {
    assert.equal(this.#ownerOf(encryptedAESKey), name, 'a key goes to its own device')
  }

  #noteSealer({ by, encryptedAESKeys }: Extract<UntimedCommand, { encryptedAESKeys: object }>): void {
    for (const key of Object.values(encryptedAESKeys)) {
      const sealers = this.#sealers.get(key) ?? new Set()
      this.#sealers.set(key, sealers.add(nameOf(by)))
    }
  }

  #assertSealer(encryptedAESKey: string, { keyFromUserId, keyFromDeviceId }: KeySender): void {
    const sealer = `${keyFromUserId}_${keyFromDeviceId}`
    assert.ok(this.#sealers.get(encryptedAESKey)?.has(sealer), `${sealer} did not seal the key`)
  }

  #holdsKey(value: unknown): boolean {
    if (typeof value === 'string') return this.#ownerOf(value) !== undefined
    return (
      typeof value === 'object' && value !== null && Object.values(value).some(one => this.#holdsKey(one))
    )
  }

  /** Every shown or sent state has a version of its own, one more than the state before. */
  #checkVersion(call: Call, effects: readonly CallEffect[], reply: CallReply): void {
    const { version } = call
    const was = this.#shown
    const shown = recordOf(call, NOBODY)
    if (version === was?.version) {
      assert.deepEqual(shown, was, 'two equal versions differ')
      assert.equal(effects.length, 0, 'something is told without a new version')
    } else assert.equal(version, (was?.version ?? 0) + 1, 'versions grow by one')
    for (const told of effects.map(versionTold)) assert.equal(told ?? version, version, 'the version told')
    if (reply.kind === 'record') assert.equal(reply.record.version, version, 'the version answered')
    this.#shown = shown
  }

  #checkPeople(call: Call): void {
    const { participants, hostUserId, status, rejoinAsks } = call
    assert.equal(
      new Set(participants.map(({ userId }) => userId)).size,
      participants.length,
      'a person twice',
    )
    assert.ok(participants.length <= PARTICIPANTS_MAX, 'too many people')
    assert.ok(rejoinAsks.length <= 10 * PARTICIPANTS_MAX, 'too many asks')
    const joined = participants.filter(isJoined)
    assert.ok(joined.length + participants.filter(isPending).length <= CALL_SIZE_MAX, 'too many in the call')
    const hosts = participants.filter(({ userId }) => userId === hostUserId)
    assert.equal(hosts.length, 1, 'one host')
    if (status === 'active' && joined.length > 0) assert.ok(isJoined(hosts[0]!), 'the host is in the call')
    if (status === 'ringing') assert.ok(participants.some(isPending), 'a call that rings rings somewhere')
    if (isOver(call))
      assert.ok(!participants.some(one => isJoined(one) || isPending(one)), 'a state that is none')
    assert.equal(nextDeadlineMs(call) === undefined, isOver(call), 'a call has a deadline until it is over')
  }

  /** Exactly the devices of invited users without an answer ring. */
  #checkRinging({ participants }: Call): void {
    const wanted = participants
      .filter(isPending)
      .flatMap(({ userId, devices }) => devices.map(({ deviceId }) => nameOf({ userId, deviceId })))
    assert.equal([...this.#ringing].sort().join(), wanted.sort().join(), 'the devices that ring')
  }

  #checkKeys({ participants, keyEpoch }: Call): void {
    assert.ok(keyEpoch >= this.#epoch && keyEpoch <= this.#epoch + 1, 'epochs grow by one')
    this.#epoch = keyEpoch
    for (const participant of participants) {
      if (isPending(participant) || isJoined(participant)) continue
      assert.equal(
        participant.devices.length,
        0,
        `devices of ${participant.userId}, who is ${participant.state}`,
      )
    }
  }

  /** The newest sets that came with keys are kept, and `key_update` tells of the epoch's. */
  #checkKeySets(call: Call, effects: readonly CallEffect[], command: UntimedCommand): void {
    const epochs = call.keySets.map(({ epoch }) => epoch)
    const isNew = call.keyEpoch > this.#epoch
    if (isNew && 'keyMembers' in command && command.keyMembers !== undefined)
      this.#sets.set(call.keyEpoch, command.keyMembers)
    const newest = [...this.#sets.keys()].sort((a, b) => b - a).slice(0, 2)
    assert.deepEqual(epochs, isOver(call) ? [] : newest, 'the sets that are kept')
    for (const { epoch, members } of call.keySets)
      assert.equal(Buffer.from(members).toString('base64'), this.#sets.get(epoch), `the set of ${epoch}`)
    for (const effect of effects) {
      if (effect.kind !== 'device' || effect.notice.kind !== 'key_update') continue
      const { epoch, setHash, added, removed } = effect.notice
      assert.equal(epoch, call.keyEpoch, 'the epoch of keys')
      assert.equal(setHash !== undefined, this.#sets.has(epoch), 'the hash of a set')
      const isCompared = isNew && this.#sets.has(epoch) && this.#sets.has(epoch - 1)
      assert.deepEqual([added !== undefined, removed !== undefined], [isCompared, isCompared], 'changes')
    }
  }

  /** A list has the call once: as one that goes on, or as one that has ended. */
  #checkHistory(call: Call): void {
    for (const { userId } of call.participants) {
      const isActive = activeRowOf(call, userId) !== undefined
      assert.ok(!isActive || !this.#remembering.has(userId), `${userId} has the call twice`)
    }
  }

  #checkEnd(call: Call): void {
    if (this.#ended !== undefined) assert.equal(call, this.#ended, 'a call that is over changes')
    if (!isOver(call) || this.#ended !== undefined) return
    this.#ended = call
    assert.ok(!this.#holdsKey(call), 'a key in a call that is over')
  }
}

type KeySender = Partial<Pick<CallRecord, 'keyFromUserId' | 'keyFromDeviceId'>>

function versionTold(effect: CallEffect): number | undefined {
  if (effect.kind === 'topic') return effect.event.version
  return effect.kind === 'device' ? effect.notice.version : undefined
}

function nameOf({ userId, deviceId }: CallDeviceRef): string {
  return `${userId}_${deviceId}`
}

const NOBODY = deviceOf(0)
