/**
 * Items of inboxes, sealed: they carry call keys and what people write to each other, and a page that LMDB has freed, or
 * a backup, still holds what was deleted long ago. It costs 5 us an item (with its 12 random bytes).
 */

import { decode, encode } from 'msgpackr'
import type { PersonName } from '../../domain/calls/call-notice.ts'
import type { InboxItem } from '../../domain/messages/inbox.ts'
import { IV_BYTES, type Secrets } from '../../domain/secrets.ts'
import { lastOf } from '../../last-of.ts'
import { BoundedCache } from '../engine/bounded-cache.ts'
import { Sealed } from '../engine/sealed.ts'
import type { Change } from '../engine/store.ts'

interface LastSealed {
  item: InboxItem | undefined
  sealed: Uint8Array
  inboxes: number
}

interface SealedLately {
  readonly item: InboxItem
  /** How many hold it. */
  readonly inboxes: number
}

export class SealedItems {
  readonly #sealed: Sealed
  /**
   * What was sealed lately, by what it is sealed under: a device that is there has its message within milliseconds, and
   * to open it costs as much as to seal it (`invitations` in `bench/`). Whether there is such a message its row says.
   */
  readonly #lately = new BoundedCache<string, SealedLately>(SEALED_LATELY_MAX)

  constructor(secrets: Pick<Secrets, 'seal'>, randomBytes: (length: number) => Uint8Array) {
    this.#sealed = new Sealed(secrets, randomBytes, 'inbox')
  }

  /** What a change tells many devices comes many times in a row, and is sealed once. */
  seal(change: Change, item: InboxItem): Uint8Array {
    const last = change.local<LastSealed>(this, () => ({ item: undefined, sealed: NOTHING, inboxes: 0 }))
    if (last.item !== item) {
      last.item = item
      last.sealed = this.#sealed.seal(packItem(item))
      last.inboxes = 0
    }
    last.inboxes += 1
    this.#lately.set(nameOfSealed(last.sealed), { item, inboxes: last.inboxes })
    return last.sealed
  }

  /** Undefined when it was sealed by another secret. */
  open(sealed: Uint8Array): InboxItem | undefined {
    const lately = this.#lately.get(nameOfSealed(sealed))
    if (lately !== undefined) return lately.item
    const plain = this.#sealed.open(sealed)
    return plain && unpackItem(plain)
  }

  /** It will not be opened any more in this inbox. */
  forget(sealed: Uint8Array): void {
    const name = nameOfSealed(sealed)
    const lately = this.#lately.get(name)
    if (lately === undefined) return
    if (lately.inboxes === 1) this.#lately.delete(name)
    else this.#lately.set(name, { item: lately.item, inboxes: lately.inboxes - 1 })
  }
}

/** Packed once for all devices that one call rings on: with many people in it they are most of each message. */
function packItem(item: InboxItem): Uint8Array {
  if (item.kind !== 'notice' || item.notice.kind !== 'call_invitation') return encode(item)
  const participants = packedParticipants(item.notice.participants)
  return encode({ kind: item.kind, notice: { ...item.notice, participants } })
}

function unpackItem(plain: Uint8Array): InboxItem {
  const item = decode(plain) as InboxItem
  if (item.kind !== 'notice' || item.notice.kind !== 'call_invitation') return item
  const packed: unknown = item.notice.participants
  // Those of older rows stand there as they are.
  if (!(packed instanceof Uint8Array)) return item
  return { kind: item.kind, notice: { ...item.notice, participants: decode(packed) } }
}

/** Of what was sealed under an initialisation vector, which is used for nothing else. */
function nameOfSealed(sealed: Uint8Array): string {
  return Buffer.from(sealed.buffer, sealed.byteOffset, IV_BYTES).toString('latin1')
}

const packedParticipants = lastOf((participants: readonly PersonName[]) => encode(participants))
const NOTHING = new Uint8Array(0)
/** As many as come within a second; a kilobyte each. */
const SEALED_LATELY_MAX = 2_048
