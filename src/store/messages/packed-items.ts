/** Messages of one change as they are packed to be sealed together: what several share stands there once. */

import { Packr } from 'msgpackr'
import type { InboxItem } from '../../domain/messages/inbox.ts'
import type { SharedNotice } from '../../domain/messages/notice.ts'

/** The messages of a group as they are packed: what they share once, and of each its own, or a developer's message whole. */
interface Packed {
  readonly bodies: readonly SharedNotice[]
  readonly items: readonly (PackedNotice | InboxItem)[]
}

type PackedNotice = readonly [
  body: number,
  encryptedAESKey: string | undefined,
  eventId: string,
  sentAtMs: number,
]

/** The messages of a row, before they are sealed. */
export function packItems(items: readonly InboxItem[]): Uint8Array {
  const bodies: SharedNotice[] = []
  const placeOf = (body: SharedNotice): number => {
    const known = bodies.lastIndexOf(body)
    return known < 0 ? bodies.push(body) - 1 : known
  }
  const packed: Packed['items'] = items.map(item =>
    item.kind === 'notice' ? [placeOf(item.body), item.encryptedAESKey, item.eventId, item.sentAtMs] : item,
  )
  return PACKR.pack({ bodies, items: packed } satisfies Packed)
}

export function unpackItems(plain: Uint8Array): InboxItem[] {
  const { bodies, items }: Packed = PACKR.unpack(plain)
  return items.map(item => {
    if (!isPackedNotice(item)) return item
    const [at, encryptedAESKey, eventId, sentAtMs] = item
    return { kind: 'notice', body: bodies[at]!, encryptedAESKey, eventId, sentAtMs }
  })
}

function isPackedNotice(item: PackedNotice | InboxItem): item is PackedNotice {
  return Array.isArray(item)
}

/** Names of members stand once in a row. */
const PACKR = new Packr({ useRecords: true })
