/**
 * What inboxes hold, apart from who is to have it. The messages of one change stand together in a row, sealed once: a call
 * rings many devices at once. A device that is done with its message sets a bit beside the row, and the last one takes
 * both away, so that what many devices acknowledge within a moment costs one row and no inbox.
 *
 * They are sealed because they carry call keys and what people write to each other, and a page that LMDB has freed, or a
 * backup, still holds messages deleted long ago.
 */

import type { InboxItem } from '../../domain/messages/inbox.ts'
import { BoundedCache } from '../engine/bounded-cache.ts'
import { nameOfKey, timeBytes } from '../engine/keys.ts'
import { RowCache } from '../engine/row-cache.ts'
import { type Change, isChange, type View } from '../engine/store.ts'
import type { StoreDeps } from '../tables/deps.ts'
import { Sealed } from '../tables/sealed.ts'
import { isSettledIn } from './live-rows.ts'
import { type Entry, GROUP_ID_BYTES, GROUP_MESSAGES_MAX, GROUPS, SETTLED } from './message-tables.ts'
import { packItems, unpackItems } from './packed-items.ts'

/** Where a message is: the key of the row, and which of its messages. */
export type GroupPlace = Pick<Entry, 'group' | 'at'>

/** The messages of a change so far. */
interface OpenGroup {
  readonly id: Uint8Array
  readonly items: InboxItem[]
}

/** Which messages of a group devices are done with since the change began. */
interface Settling {
  readonly id: Uint8Array
  readonly places: Set<number>
}

export class MessageGroups {
  readonly #sealed: Sealed
  readonly #randomBytes: (length: number) => Uint8Array
  /**
   * What was written or read lately: a device that is there has its message within milliseconds, and to open it costs as
   * much as to seal it (`invitations` in `bench/`). Whether it is still there the rows say.
   */
  readonly #lately = new BoundedCache<string, readonly InboxItem[]>(GROUPS_KEPT_MAX)
  /** How many messages a group has; GONE without its row. */
  readonly #counts: RowCache<Uint8Array, number>
  readonly #settled: RowCache<Uint8Array, Uint8Array>

  constructor({ database, secrets, randomBytes }: Pick<StoreDeps, 'database' | 'secrets' | 'randomBytes'>) {
    this.#counts = new RowCache(database, GROUPS, row => row?.[0] ?? GONE, COUNTS_KEPT_MAX)
    this.#settled = new RowCache(database, SETTLED, bits => bits ?? NONE_SETTLED, COUNTS_KEPT_MAX)
    this.#sealed = new Sealed(secrets, randomBytes, 'inbox')
    this.#randomBytes = randomBytes
  }

  /** Keeps a message for one device until that has settled it. */
  add(change: Change, item: InboxItem): GroupPlace {
    const last = change.local<{ group?: OpenGroup }>(this, () => ({}))
    const { group } = last
    if (group === undefined || !hasRoomFor(item, group.items.length, group.items[0]!))
      last.group = this.#begin(change)
    const { id, items } = last.group!
    return { group: id, at: items.push(item) - 1 }
  }

  /** How many groups there are. For tests: it counts them all. */
  countOf(view: View): number {
    return view.count(GROUPS)
  }

  /** Whether its device is not done with it. */
  isWaiting(view: View, { group, at }: GroupPlace): boolean {
    if (isChange(view)) {
      if (settlingIn(view).get(nameOfKey(group))?.places.has(at)) return false
      if (isOfChange(group, view)) return true
    }
    return !isSettledIn(this.#settled.of(view, group), at) && this.#counts.of(view, group) !== GONE
  }

  /** Undefined when it was sealed by another secret. */
  open(view: View, { group, at }: GroupPlace): InboxItem | undefined {
    const name = nameOfKey(group)
    const kept = this.#lately.get(name)
    if (kept !== undefined) return kept[at]
    const row = view.get(GROUPS, group)
    const plain = row && this.#sealed.open(row.subarray(1))
    if (plain === undefined) return undefined
    const items = unpackItems(plain)
    this.#lately.set(name, items)
    return items[at]
  }

  /** The device is done with it. The group's row goes with its last message. */
  settle(change: Change, { group, at }: GroupPlace): void {
    const settling = settlingIn(change)
    if (settling.size === 0) change.atEnd(() => this.#write(change, settling))
    const name = nameOfKey(group)
    const known = settling.get(name)
    if (known === undefined) settling.set(name, { id: group, places: new Set([at]) })
    else known.places.add(at)
    // Its row may come behind that ending, but comes before this one.
    if (isOfChange(group, change))
      change.atEnd(() => this.#write(change, new Map([[name, { id: group, places: new Set([at]) }]])))
  }

  #begin(change: Change): OpenGroup {
    const group: OpenGroup = { id: newGroupId(change, this.#randomBytes), items: [] }
    this.#lately.set(nameOfKey(group.id), group.items)
    change.atEnd(() => {
      const { id, items } = group
      change.put(GROUPS, id, rowOf(items.length, this.#sealed.seal(packItems(items))))
    })
    return group
  }

  #write(change: Change, settling: ReadonlyMap<string, Settling>): void {
    for (const [name, { id, places }] of settling) {
      const count = this.#counts.of(change, id)
      if (count === GONE) continue
      const before = this.#settled.of(change, id)
      const settled = Buffer.from(before)
      for (const at of places) settled[at >> 3]! |= 1 << (at & 7)
      if (bitsIn(settled) < count) {
        change.put(SETTLED, id, settled)
        continue
      }
      change.remove(GROUPS, id)
      if (before !== NONE_SETTLED) change.remove(SETTLED, id)
      this.#lately.delete(name)
    }
  }
}

/** Unique. Groups that are written together lie side by side. */
export function newGroupId(
  { nowMs, number }: Change,
  randomBytes: (length: number) => Uint8Array,
): Uint8Array {
  const id = Buffer.allocUnsafe(GROUP_ID_BYTES)
  id.set(timeBytes(nowMs))
  id.writeUIntBE(number, NUMBER_AT, 6)
  id.set(randomBytes(GROUP_ID_BYTES - RANDOM_AT), RANDOM_AT)
  return id
}

/** Whether a row with `count` messages takes the item as another. A developer's message may be large, so it stands alone. */
export function hasRoomFor(item: InboxItem, count: number, first: InboxItem): boolean {
  return item.kind === 'notice' && count < GROUP_MESSAGES_MAX && first.kind === 'notice'
}

function settlingIn(change: Change): Map<string, Settling> {
  return change.local(SETTLING, () => new Map<string, Settling>())
}

/** Whether the group is the change's own, whose row comes at the end of it. */
function isOfChange(group: Uint8Array, { nowMs, number }: Change): boolean {
  const id = Buffer.from(group.buffer, group.byteOffset, group.length)
  return id.readUIntBE(NUMBER_AT, 6) === number && id.compare(timeBytes(nowMs), 0, 6, 0, 6) === 0
}

function rowOf(count: number, sealed: Uint8Array): Uint8Array {
  const row = Buffer.allocUnsafe(1 + sealed.length)
  row[0] = count
  row.set(sealed, 1)
  return row
}

function bitsIn(bits: Uint8Array): number {
  let count = 0
  for (const byte of bits) for (let rest = byte; rest !== 0; rest &= rest - 1) count++
  return count
}

/** In place of a count. */
const GONE = 0
const NONE_SETTLED: Uint8Array = new Uint8Array(GROUP_MESSAGES_MAX / 8)
const NUMBER_AT = 6
const RANDOM_AT = 12
/** As many as come within a second; some kilobytes each. */
const GROUPS_KEPT_MAX = 512
/** A tenth of a kilobyte each. */
const COUNTS_KEPT_MAX = 4_096
/** Owns what a change settles. */
const SETTLING = {}
