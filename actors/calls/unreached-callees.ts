/**
 * Callees who seem out of reach: none of their devices has had a socket since the call began to ring, and no push to them was
 * taken. After a few seconds the call's topic says so. It is a hint and no part of the call: a restart forgets it.
 */

import { type Call, isPending, memberOf, type Participant } from '../../src/domain/calls/call.ts'
import type { Presence } from '../../src/domain/devices/presence.ts'
import type { UserId } from '../../src/domain/ids.ts'

interface Unreachable {
  readonly userId: UserId
  readonly hasUnapprovedDevice: boolean
}

interface Unreached {
  readonly userId: UserId
  readonly dueAtMs: number
}

export class UnreachedCallees {
  readonly #presence: Presence
  /** In the order of their invitations. */
  #waiting: readonly Unreached[] = NONE

  constructor(presence: Presence) {
    this.#presence = presence
  }

  /** When `takeDue` has a next callee. */
  get nextAtMs(): number | undefined {
    return this.#waiting[0]?.dueAtMs
  }

  /** Notes the people whom a change of the call rings. */
  noteRung(before: Call | undefined, after: Call): void {
    if (before === after) return
    for (const one of after.participants) {
      const { userId, invitedAtMs } = one
      if (!isPending(one) || this.#isConnected(one)) continue
      const was = before && memberOf(before, userId)
      if (was !== undefined && isPending(was) && was.invitedAtMs === invitedAtMs) continue
      const dueAtMs = invitedAtMs + UNREACHABLE_AFTER_MS
      this.#waiting = [...this.#without(userId), { userId, dueAtMs }]
    }
  }

  noteReached(userId: UserId): void {
    this.#waiting = this.#without(userId)
  }

  /** Takes out those who had their time, and gives the ones who still are to answer, if they may know of the call. */
  takeDue(call: Call, nowMs: number): readonly Unreachable[] {
    const due = this.#waiting.filter(({ dueAtMs }) => dueAtMs <= nowMs)
    this.#waiting = this.#waiting.slice(due.length)
    return due
      .filter(({ userId }) => {
        const member = memberOf(call, userId)
        return member?.state === 'invited' && !this.#isConnected(member)
      })
      .map(({ userId }) => ({ userId, hasUnapprovedDevice: this.#presence.hasRestricted(userId) }))
  }

  #isConnected({ userId, devices }: Participant): boolean {
    return devices.some(({ deviceId }) => this.#presence.isConnected(userId, deviceId))
  }

  #without(userId: UserId): readonly Unreached[] {
    return this.#waiting.filter(one => one.userId !== userId)
  }
}

/** Contract 0.1, "6 Push answers". A VoIP push without an answer has been followed by an alert by then. */
const UNREACHABLE_AFTER_MS = 5_000
const NONE: readonly Unreached[] = []
