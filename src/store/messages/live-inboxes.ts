/**
 * Messages for devices that are connected. Such a device is done with most of them within milliseconds, so they are written
 * once, in a row of their change's messages that says who gets them (`inbox-live`), and no device's own row is written. Every
 * process that reads these rows has in memory which device waits for which messages: a change finds the writes of all changes
 * before it, a view only durable ones.
 *
 * A message is here for a minute at most. Then, or where it is time to do so earlier, `InboxStore` moves it.
 */

import type { InboxItem } from '../../domain/messages/inbox.ts'
import { assert } from '../../errors.ts'
import { BoundedCache } from '../engine/bounded-cache.ts'
import { nameOfKey } from '../engine/keys.ts'
import { type Change, isChange, type View } from '../engine/store.ts'
import type { StoreDeps } from '../tables/deps.ts'
import { Sealed } from '../tables/sealed.ts'
import {
  allBits,
  bitsIn,
  bitsRow,
  groupOf,
  type LiveGroup,
  type LiveMessage,
  newGroup,
  type Presence,
} from './live-groups.ts'
import { formatLiveRow, recordsEnd } from './live-rows.ts'
import { hasRoomFor, newGroupId } from './message-groups.ts'
import { type Head, type InboxHead, LIVE_GROUPS, LIVE_SETTLED } from './message-tables.ts'
import { packItems, unpackItems } from './packed-items.ts'

/** Messages of a change that become a row at its end. */
interface OpenGroup {
  messages: LiveMessage[]
}

/** The state of the change that runs, before rows have it. */
interface Running {
  readonly change: Change
  /** Changes with each attempt. */
  mark: object | undefined
  groups: readonly OpenGroup[]
  /** By device; in order. */
  own: Map<string, readonly LiveMessage[]>
  settling: Map<LiveGroup, number>
}

/** The offset that comes next for a device, as far as no message in a row says otherwise. */
interface NextOffset {
  readonly epoch: number
  next: number
}

export class LiveInboxes {
  readonly #sealed: Sealed
  readonly #randomBytes: (length: number) => Uint8Array
  /** By name, the oldest first. */
  readonly #groups = new Map<string, LiveGroup>()
  /** By device; in order. Some may be settled. */
  readonly #messages = new Map<string, LiveMessage[]>()
  #count = 0
  /** By device. For one that is not here, the head's reserved offsets may all have been given. */
  readonly #nextOffsets = new BoundedCache<string, NextOffset>(OFFSETS_KEPT_MAX)
  #running: Running | undefined
  /** Its row is being put at this moment. */
  #putting: LiveGroup | undefined
  #isLoaded = false
  /** Names of rows that another process has changed and that are not read yet. */
  readonly #replaced = new Set<string>()

  constructor({ database, secrets, randomBytes }: Pick<StoreDeps, 'database' | 'secrets' | 'randomBytes'>) {
    this.#sealed = new Sealed(secrets, randomBytes, 'inbox')
    this.#randomBytes = randomBytes
    database.watch(LIVE_GROUPS, {
      onWriting: (key, row) => this.#onWriting(key, row as Uint8Array | undefined),
      onTakenBack: key => this.#groups.get(nameOfKey(key))?.presence.takeBack(),
      onSettled: (key, isDurable) => this.#onSettled(nameOfKey(key), isDurable),
      onReplaced: key => this.#onReplaced(key),
    })
    database.watch(LIVE_SETTLED, {
      onWriting: (key, row) =>
        this.#groups.get(nameOfKey(key))?.settled.write(bitsIn(row as Uint8Array | undefined)),
      onTakenBack: key => this.#groups.get(nameOfKey(key))?.settled.takeBack(),
      onSettled: (key, isDurable) => this.#onBitsSettled(nameOfKey(key), isDurable),
      onReplaced: key => this.#onReplaced(key),
    })
  }

  /** Whether no more messages should be kept here. */
  get isFull(): boolean {
    return this.#count >= MESSAGES_MAX
  }

  /** The messages that wait for a device, in order. Valid until: a change becomes durable. */
  waiting(view: View, device: string): readonly LiveMessage[] {
    this.#load(view)
    const running = this.#runningIn(view)
    const own = running?.own.get(device) ?? NONE
    const listed = this.#messages.get(device)
    if (listed === undefined) return own
    // Mostly all of them wait: then no list is made.
    let found: LiveMessage[] | undefined
    for (let at = 0; at < listed.length; at++) {
      const message = listed[at]!
      if (!this.#isWaiting(view, running, message)) found ??= listed.slice(0, at)
      else found?.push(message)
    }
    return own.length === 0 ? (found ?? listed) : (found ?? listed).concat(own)
  }

  /** Messages that wait since a minute or longer, the oldest first. */
  *waitingLong(view: View, nowMs: number): Iterable<LiveMessage> {
    this.#load(view)
    const running = this.#runningIn(view)
    for (const group of this.#groups.values()) {
      // A clock that was set back must not keep them here.
      if (Math.abs(nowMs - group.atMs) < LIVE_MS) return
      if (this.#presenceOf(view, group) !== 'there') {
        if (!group.presence.isUnsettled) this.#drop(group)
        continue
      }
      for (const message of group.messages) if (this.#isWaiting(view, running, message)) yield message
    }
  }

  /** The offset that the device's next message gets. */
  nextOffset(change: Change, device: string, { epoch, nextOffset, reservedTo }: Head): number {
    this.#load(change)
    const known = this.#nextOffsets.get(device)
    const isKnown = known?.epoch === epoch
    const own = this.#runningIn(change)?.own.get(device)?.at(-1)
    const base = Math.max(
      nextOffset,
      isKnown ? known.next : reservedTo,
      own === undefined ? 0 : own.offset + 1,
    )
    const next = this.#behindMessages(change, device, base)
    // From there on, only messages in rows have offsets.
    if (!isKnown) this.#nextOffsets.set(device, { epoch, next })
    return next
  }

  /** See `InboxHead`. */
  boundsOf(
    view: View,
    device: string,
    { epoch, nextOffset, reservedTo, lostOffset }: Head,
  ): Pick<InboxHead, 'nextOffset' | 'givenBelow'> {
    this.#load(view)
    const known = this.#nextOffsets.get(device)
    const isKnown = known?.epoch === epoch
    const base = Math.max(nextOffset, isKnown ? known.next : lostOffset + 1)
    const next = this.#behindMessages(view, device, base)
    return { nextOffset: next, givenBelow: isKnown ? next : Math.max(next, reservedTo) }
  }

  /** Keeps a message for a device until that has settled it. */
  add(
    change: Change,
    device: string,
    {
      offset,
      expiresAtMs,
      callId,
      item,
    }: Pick<LiveMessage, 'offset' | 'expiresAtMs' | 'callId'> & { readonly item: InboxItem },
  ): void {
    const running = this.#runningIn(change)!
    const added = { device, offset, atMs: change.nowMs, expiresAtMs, callId, item, group: undefined, at: 0 }
    let group = running.groups.at(-1)
    const first = group?.messages[0]?.item
    if (group === undefined || (first !== undefined && !hasRoomFor(item, group.messages.length, first)))
      group = this.#begin(running)
    group.messages.push(added)
    running.own.set(device, [...(running.own.get(device) ?? NONE), added])
  }

  /** The device is done with it. */
  settle(change: Change, message: LiveMessage): void {
    const running = this.#runningIn(change)!
    const { group, device, at } = message
    if (group === undefined) {
      for (const open of running.groups) open.messages = without(open.messages, message)
      running.own.set(device, without(running.own.get(device)!, message))
      return
    }
    if (running.settling.size === 0) change.atEnd(() => this.#writeSettled(running))
    running.settling.set(group, (running.settling.get(group) ?? 0) | (1 << at))
  }

  /** Undefined where it can't be opened: another secret sealed it, or its row has gone. */
  open(view: View, message: LiveMessage): InboxItem | undefined {
    const { item, group } = message
    if (item !== undefined || group === undefined || group.isOpened) return item
    const row = view.get(LIVE_GROUPS, group.id)
    if (row === undefined) return undefined
    group.isOpened = true
    const plain = this.#sealed.open(row.subarray(recordsEnd(row)))
    if (plain === undefined) return undefined
    for (const [at, item] of unpackItems(plain).entries()) group.messages[at]!.item = item
    return message.item
  }

  /** Fails unless memory agrees with the rows. For tests: it reads everything. Returns each with its device's key. */
  assertConsistent(view: View): LiveMessage[] {
    this.#load(view)
    const inRows: LiveMessage[] = []
    let rows = 0
    for (const { key, value } of view.range(LIVE_GROUPS)) {
      rows += 1
      const group = this.#groups.get(nameOfKey(key))
      assert(group !== undefined && this.#presenceOf(view, group) === 'there', 'every row is known')
      assert(group.messages.length === value[0], 'with each of its messages')
      assert(this.#settledIn(view, group) === bitsIn(view.get(LIVE_SETTLED, key)), 'as settled as it is')
      inRows.push(...group.messages.filter(message => this.#isWaiting(view, undefined, message)))
    }
    const known = [...this.#groups.values()].filter(group => this.#presenceOf(view, group) === 'there')
    assert(known.length === rows, 'every group has its row')
    const listed = [...this.#messages.keys()].flatMap(device => this.waiting(view, device))
    assert(listed.length === inRows.length, 'every message is listed with its device, once')
    return listed
  }

  #isWaiting(view: View, running: Running | undefined, { group, at }: LiveMessage): boolean {
    assert(group !== undefined, 'a message that is listed has its row')
    const settled = this.#settledIn(view, group) | (running?.settling.get(group) ?? 0)
    return (settled & (1 << at)) === 0 && this.#presenceOf(view, group) === 'there'
  }

  #presenceOf(view: View, { id, presence }: LiveGroup): Presence {
    return presence.known(view) ?? presence.of(view, () => (view.has(LIVE_GROUPS, id) ? 'there' : 'absent'))
  }

  #settledIn(view: View, { id, settled }: LiveGroup): number {
    return settled.known(view) ?? settled.of(view, () => bitsIn(view.get(LIVE_SETTLED, id)))
  }

  #behindMessages(view: View, device: string, offset: number): number {
    let next = offset
    for (const message of this.#messages.get(device) ?? NONE) {
      if (message.offset < next) continue
      const group = message.group!
      // A message that was taken back was never given.
      if (group.wasDurable || this.#presenceOf(view, group) !== 'absent') next = message.offset + 1
    }
    return next
  }

  /** Undefined in a view. */
  #runningIn(view: View): Running | undefined {
    if (!isChange(view)) return undefined
    if (this.#running?.change !== view)
      this.#running = { change: view, mark: undefined, groups: [], own: new Map(), settling: new Map() }
    const running = this.#running
    // A change forgets its local values with each attempt, which may be taken back.
    const mark = view.local(this, newMark)
    if (running.mark !== mark) {
      running.mark = mark
      const { groups, own, settling } = running
      const messages = groups.map(group => [...group.messages])
      const [ownBefore, settlingBefore] = [new Map(own), new Map(settling)]
      view.whenTakenBack(() => {
        for (const [at, group] of groups.entries()) group.messages = messages[at]!
        Object.assign(running, { groups, own: ownBefore, settling: settlingBefore })
      })
    }
    return running
  }

  #begin(running: Running): OpenGroup {
    const group: OpenGroup = { messages: [] }
    running.groups = [...running.groups, group]
    running.change.atEnd(() => this.#put(running, group))
    return group
  }

  #put(running: Running, open: OpenGroup): void {
    const { change, own } = running
    const { messages } = open
    running.groups = running.groups.filter(each => each !== open)
    if (messages.length === 0) return
    for (const message of messages) own.set(message.device, without(own.get(message.device)!, message))
    const id = newGroupId(change, this.#randomBytes)
    const group = newGroup(id, messages)
    for (const [at, message] of messages.entries()) {
      message.group = group
      message.at = at
    }
    group.isOpened = true
    this.#putting = group
    try {
      const sealed = this.#sealed.seal(packItems(messages.map(({ item }) => item!)))
      change.put(LIVE_GROUPS, id, formatLiveRow(messages, sealed))
    } finally {
      this.#putting = undefined
    }
  }

  #writeSettled(running: Running): void {
    const { change, settling } = running
    running.settling = new Map()
    for (const [group, bits] of settling) {
      if (this.#presenceOf(change, group) !== 'there') continue
      const before = this.#settledIn(change, group)
      const settled = (before | bits) >>> 0
      if (settled !== allBits(group)) {
        change.put(LIVE_SETTLED, group.id, bitsRow(settled))
        continue
      }
      change.remove(LIVE_GROUPS, group.id)
      if (before !== 0) change.remove(LIVE_SETTLED, group.id)
    }
  }

  #onWriting(key: Uint8Array, row: Uint8Array | undefined): void {
    const name = nameOfKey(key)
    const known = this.#groups.get(name)
    if (row === undefined) return known?.presence.write('gone')
    // One that was taken back, and is put again by the change's next run.
    if (known !== undefined) this.#drop(known)
    const group = this.#putting ?? groupOf(key, row)
    group.presence.write('there')
    this.#add(group)
  }

  #onSettled(name: string, isDurable: boolean): void {
    const group = this.#groups.get(name)
    if (group === undefined) return
    group.presence.settle(isDurable)
    if (isDurable) group.wasDurable = true
    if (group.presence.durable === 'gone') this.#drop(group)
  }

  #onBitsSettled(name: string, isDurable: boolean): void {
    const group = this.#groups.get(name)
    if (group === undefined) return
    group.settled.settle(isDurable)
    this.#unlist(group, group.settled.durable ?? 0)
  }

  /** A process may hear of changes for days in which no device of its own has news, so the names must not pile up. */
  #onReplaced(key: Uint8Array): void {
    // The first look reads everything.
    if (!this.#isLoaded) return
    this.#replaced.add(nameOfKey(key))
    if (this.#replaced.size <= REPLACED_MAX) return
    this.#replaced.clear()
    this.#groups.clear()
    this.#messages.clear()
    this.#count = 0
    this.#isLoaded = false
  }

  /** Reads what the store has where this process has not seen it being written. */
  #load(view: View): void {
    if (this.#isLoaded && this.#replaced.size === 0) return
    if (!this.#isLoaded) {
      this.#isLoaded = true
      for (const { key, value } of view.range(LIVE_GROUPS)) this.#addDurable(key, value)
    }
    for (const name of this.#replaced) {
      const id = Buffer.from(name, 'latin1')
      const row = view.get(LIVE_GROUPS, id)
      const known = this.#groups.get(name)
      if (row === undefined) {
        if (known !== undefined) this.#drop(known)
      } else if (known === undefined) this.#addDurable(id, row)
      else this.#setSettled(known, bitsIn(view.get(LIVE_SETTLED, id)))
    }
    this.#replaced.clear()
  }

  #addDurable(key: Uint8Array, row: Uint8Array): void {
    if (this.#groups.has(nameOfKey(key))) return
    const group = groupOf(key, row)
    group.presence.set('there')
    group.settled.set(undefined)
    group.wasDurable = true
    this.#add(group)
  }

  #setSettled(group: LiveGroup, bits: number): void {
    group.settled.set(bits)
    this.#unlist(group, bits)
  }

  #add(group: LiveGroup): void {
    this.#groups.set(group.name, group)
    this.#count += group.messages.length
    for (const message of group.messages) {
      const listed = this.#messages.get(message.device)
      if (listed === undefined) {
        this.#messages.set(message.device, [message])
        continue
      }
      const isLast = listed.at(-1)!.offset < message.offset
      listed.push(message)
      if (!isLast) listed.sort((one, other) => one.offset - other.offset)
    }
  }

  #drop(group: LiveGroup): void {
    this.#groups.delete(group.name)
    this.#count -= group.messages.length
    this.#unlist(group, allBits(group))
  }

  /** Takes these messages out of the lists of their devices. */
  #unlist(group: LiveGroup, bits: number): void {
    const left = bits & ~group.unlisted
    group.unlisted |= bits
    for (const message of left === 0 ? NONE : group.messages) {
      const { device, offset, at } = message
      if ((left & (1 << at)) === 0) continue
      const listed = this.#messages.get(device)!
      if (listed.length === 1) this.#messages.delete(device)
      else listed.splice(listed.indexOf(message), 1)
      const known = group.wasDurable ? this.#nextOffsets.get(device) : undefined
      if (known !== undefined && known.next <= offset) known.next = offset + 1
    }
  }
}

function without(messages: readonly LiveMessage[], message: LiveMessage): LiveMessage[] {
  return messages.filter(each => each !== message)
}

function newMark(): object {
  return {}
}

const NONE: readonly LiveMessage[] = []
/** Longer than any device that is awake takes. */
const LIVE_MS = 60_000
/** A kilobyte each. */
const MESSAGES_MAX = 16_384
/** A tenth of a kilobyte each. */
const OFFSETS_KEPT_MAX = 16_384
/** Beyond it, the table is read anew. */
const REPLACED_MAX = 1_024
