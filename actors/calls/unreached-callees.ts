/**
 * People whom a call rings and no device of whom has shown itself since: none has a socket, and no push to them was taken.
 * Those in the call are told after a few seconds. It is a hint and no part of the call: a restart forgets it.
 */

import { type Call, isPending, memberOf, type Participant } from '../../src/domain/calls/call.ts'
import type { Presence } from '../../src/domain/devices/presence.ts'
import type { UserId } from '../../src/domain/ids.ts'

interface Unreached {
  readonly userId: UserId
  /** Of the invitation: a later one counts anew. */
  readonly invitedAtMs: number
}

export class UnreachedCallees {
  readonly #presence: Presence
  /** In the order of their invitations. */
  #waiting: readonly Unreached[] = NOBODY

  constructor(presence: Presence) {
    this.#presence = presence
  }

  /** When `takeDue` has somebody next. */
  get nextAtMs(): number | undefined {
    const next = this.#waiting[0]
    return next && next.invitedAtMs + UNREACHABLE_AFTER_MS
  }

  /** Notes the people whom a change of the call rings. Never those who are not to know of the call. */
  noteRung(before: Call | undefined, after: Call): void {
    if (before === after) return
    for (const one of after.participants) {
      const { userId, invitedAtMs } = one
      if (one.isWithheld || !isPending(one) || this.#isConnected(one)) continue
      const was = before && memberOf(before, userId)
      const isRungAlready = was !== undefined && isPending(was) && was.invitedAtMs === invitedAtMs
      if (!isRungAlready) this.#waiting = [...this.#without(userId), { userId, invitedAtMs }]
    }
  }

  noteReached(userId: UserId): void {
    this.#waiting = this.#without(userId)
  }

  /** Takes out those who had their time, and gives the ones who still are to answer. */
  takeDue(call: Call, nowMs: number): readonly UserId[] {
    const isDue = ({ invitedAtMs }: Unreached) => invitedAtMs + UNREACHABLE_AFTER_MS <= nowMs
    const due = this.#waiting.filter(isDue)
    this.#waiting = this.#waiting.filter(one => !isDue(one))
    return due
      .filter(({ userId, invitedAtMs }) => {
        const member = memberOf(call, userId)
        const isUnanswered = member?.state === 'invited' && member.invitedAtMs === invitedAtMs
        return isUnanswered && !this.#isConnected(member)
      })
      .map(({ userId }) => userId)
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
const NOBODY: readonly Unreached[] = []
