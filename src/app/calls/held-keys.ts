/** The keys of a call by epoch. */

import { type HeldKey, newestKey } from './device.ts'
import type { Turn } from './turn.ts'

/** Keeps a key. The last two are kept: frames of the one before may still be on their way when a new one comes. */
export function hold(turn: Turn, callId: string, key: HeldKey): void {
  const call = turn.call(callId)
  if (call === undefined) return
  const others = call.key.held.filter(({ epoch }) => epoch !== key.epoch)
  const all = [key, ...others].sort((a, b) => b.epoch - a.epoch)
  const held = all.slice(0, KEPT_MAX)
  turn.change(callId, { key: { kind: 'held', held } })
  const [newest] = held
  const before = newestKey(call)
  if (newest !== undefined && (newest.key !== before?.key || newest.epoch !== before.epoch))
    turn.act({ do: 'emit', callId, name: 'key', value: newest })
}

const KEPT_MAX = 2
