/**
 * The end of an account (contract 2.10): at once its sessions end and nothing is pushed to its devices any more; after
 * seven days in which signing in restores it, everything that names its user is erased in one change. The log keeps
 * its entries: they can only be added to, and hold a hash and a key, no name.
 */

import type { DeviceId, UserId } from '../../domain/ids.ts'
import type { DeviceStore } from '../devices/device-store.ts'
import { EXPIRY, type Expiries } from '../engine/expiries.ts'
import { idsKey, userInKey } from '../engine/keys.ts'
import type { Change } from '../engine/store.ts'
import type { Notices } from '../messages/notices.ts'
import type { AccountLetters } from './account-letters.ts'
import type { AccountStore } from './account-store.ts'
import type { AppleConsents } from './apple-consents.ts'
import type { SessionStore } from './session-store.ts'

/** Erases what one part of the store holds of a user. */
export type EraseOf = (change: Change, userId: UserId) => void

export interface AccountErasureDeps {
  readonly expiries: Expiries
  readonly accounts: AccountStore
  readonly sessions: SessionStore
  readonly devices: Pick<DeviceStore, 'activeDevicesOf' | 'forgetPush'>
  readonly letters: AccountLetters
  readonly notices: Notices
  readonly appleConsents: AppleConsents
  /** For the tables that this class does not know: devices, contacts and requests, share tokens. */
  readonly erasers: readonly EraseOf[]
}

export interface ErasureWish {
  /** The device that asks. */
  readonly ownDeviceId?: DeviceId | undefined
  /** For good, without days in which signing in restores it. */
  readonly isAtOnce?: boolean
}

export class AccountErasure {
  readonly #deps: AccountErasureDeps

  constructor(deps: AccountErasureDeps) {
    this.#deps = deps
    deps.expiries.define(EXPIRY.erasure, (change, key) => this.#onDue(change, userInKey(key)))
  }

  /**
   * Ends all sessions and has the account erased in seven days, or at once; returns when that is. The devices are
   * told, but for the one that asks.
   */
  plan(change: Change, userId: UserId, { ownDeviceId, isAtOnce = false }: ErasureWish = {}): number {
    const { accounts, devices, expiries, sessions, letters, notices } = this.#deps
    const user = accounts.read(change, userId)
    // Not in this change: first their devices' calls end, which writes rows that are to be erased.
    const erasesAtMs = change.nowMs + (isAtOnce ? 0 : GRACE_DAYS * 86_400_000)
    if (user === undefined) return erasesAtMs
    accounts.put(change, userId, { ...user, erasesAtMs })
    expiries.add(change, EXPIRY.erasure, erasesAtMs, idsKey(userId))
    for (const sessionId of sessions.idsOf(change, userId))
      sessions.revoke(change, sessionId, 'account_deleted')
    // The last thing that is pushed, as long as there are tokens.
    notices.tell(change, userId, { kind: 'session_revoked', reason: 'account_deleted' }, ownDeviceId)
    for (const { deviceId } of devices.activeDevicesOf(change, userId))
      devices.forgetPush(change, userId, deviceId)
    if (!isAtOnce) letters.tellAll(change, userId, { kind: 'erasure-planned', graceDays: GRACE_DAYS })
    return erasesAtMs
  }

  /** A sign-in keeps an account that was to be erased later. */
  restore(change: Change, userId: UserId): void {
    const user = this.#deps.accounts.read(change, userId)
    if (user?.erasesAtMs === undefined || user.erasesAtMs <= change.nowMs) return
    const { erasesAtMs: _, ...kept } = user
    this.#deps.accounts.put(change, userId, kept)
  }

  #onDue(change: Change, userId: UserId): number | undefined {
    const erasesAtMs = this.#deps.accounts.read(change, userId)?.erasesAtMs
    // Restored since; or asked for again later, which this row then waits for.
    if (erasesAtMs === undefined || erasesAtMs > change.nowMs) return erasesAtMs
    this.#erase(change, userId)
    return undefined
  }

  #erase(change: Change, userId: UserId): void {
    const { accounts, sessions, appleConsents, erasers } = this.#deps
    for (const method of accounts.methodsOf(change, userId)) {
      if (method.kind === 'social') appleConsents.revoke(change, method)
    }
    for (const erase of erasers) erase(change, userId)
    for (const sessionId of sessions.idsOf(change, userId)) sessions.remove(change, sessionId)
    accounts.remove(change, userId)
  }
}

const GRACE_DAYS = 7
