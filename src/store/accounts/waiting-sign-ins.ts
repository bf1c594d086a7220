/**
 * Sign-ins that wait for an answer of a listed device, one for each account, and addresses by which a sign-in was refused
 * (`src/domain/accounts/waiting-sign-in.ts`). The waiting client holds a secret of 128 bits, and the row's key is a hash of it:
 * a stolen store opens nothing. A row outlives its wait for some days, in which the client can fetch the outcome.
 */

import { createHash } from 'node:crypto'
import { type AddressMethod, identifierOf } from '../../domain/accounts/account.ts'
import { lasts } from '../../domain/accounts/session.ts'
import {
  askedBy,
  type CodeEffect,
  dueAtMs,
  effectOfCode,
  effectOfToken,
  isAnswerable,
  isAsked,
  isNoticeDue,
  keptUntilMs,
  nextWait,
  outcomeOf,
  REFUSAL_KEPT_MS,
  type Wait,
  type WaitingSignIn,
} from '../../domain/accounts/waiting-sign-in.ts'
import type { DeviceId, UserId } from '../../domain/ids.ts'
import type { DeviceListStore } from '../devices/device-list-store.ts'
import type { DeviceStore } from '../devices/device-store.ts'
import { EXPIRY } from '../engine/expiries.ts'
import { idsKey, rangeOf, textKey } from '../engine/keys.ts'
import type { Change, View } from '../engine/store.ts'
import type { AccountErasureDeps } from './account-erasure.ts'
import { REFUSED_SIGN_INS, WAITING_SIGN_INS, WAITING_SIGN_INS_BY_USER } from './account-tables.ts'
import type { SessionNetworks } from './session-networks.ts'

type Parts = Pick<AccountErasureDeps, 'expiries' | 'accounts' | 'letters' | 'notices' | 'sessions'> & {
  readonly devices: Pick<DeviceStore, 'activeDevicesOf' | 'read'>
  readonly deviceLists: Pick<DeviceListStore, 'newest'>
  readonly randomBytes: (length: number) => Uint8Array
  readonly sessionNetworks: SessionNetworks
}

/** A waiting sign-in with its name, 16 bytes, which opens nothing. */
export interface NamedSignIn {
  readonly id: Uint8Array
  readonly signIn: WaitingSignIn
}

export class WaitingSignIns {
  readonly #parts: Parts
  readonly #codeOf: (id: Uint8Array) => string
  readonly #waitMs: number

  /** `codeOf` makes the digits that both screens show; a sign-in waits `waitMs`, or none does where it is 0. */
  constructor(parts: Parts, codeOf: (id: Uint8Array) => string, waitMs: number) {
    this.#parts = parts
    this.#codeOf = codeOf
    this.#waitMs = waitMs
    parts.expiries.define(EXPIRY.waitingSignIn, (change, id) => this.#onDue(change, id))
    parts.expiries.define(EXPIRY.refusedSignIn, endRefusal)
  }

  /** The effect of a right code for this address of the user. */
  effectOf(view: View, userId: UserId, method: AddressMethod, nowMs: number): CodeEffect {
    const { accounts, devices, sessions } = this.#parts
    const active = devices.activeDevicesOf(view, userId)
    const methods = accounts.methodsOf(view, userId)
    const used = sessions.idsOf(view, userId).map(id => sessions.read(view, id))
    const seenAtMs = Math.max(
      accounts.read(view, userId)?.createdAtMs ?? 0,
      ...active.map(({ lastSeenAtMs }) => lastSeenAtMs),
      ...used.filter(lasts).map(({ lastUsedAtMs }) => lastUsedAtMs),
      ...methods.map(({ lastUsedAtMs }) => lastUsedAtMs),
    )
    const account = {
      kind: method.kind,
      listedSeenAtMs: this.#listedSeenAtMs(view, userId),
      seenAtMs,
      hasOtherMethod: methods.length > 1,
      refusedAtMs: refusedAtMs(view, userId, method),
    }
    return effectOfCode(account, this.#waitMs, nowMs)
  }

  /** The effect of a token of the operator's backend for the user. */
  effectOfToken(view: View, userId: UserId, nowMs: number): ReturnType<typeof effectOfToken> {
    const listedSeenAtMs = this.#listedSeenAtMs(view, userId)
    return effectOfToken({ listedSeenAtMs, refusedAtMs: refusedAtMs(view, userId) }, this.#waitMs, nowMs)
  }

  /** Whether a device of the user's list was seen lately, which has to be asked first. */
  isAsked(view: View, userId: UserId, nowMs: number): boolean {
    return isAsked(this.#listedSeenAtMs(view, userId), this.#waitMs, nowMs)
  }

  /** Has a sign-in wait, in the place of the account's last one. Returns the waiting client's secret, 16 bytes. */
  begin(
    change: Change,
    asked: Omit<WaitingSignIn, keyof Wait | 'noticeCount'>,
  ): { readonly secret: Uint8Array } & NamedSignIn {
    const { nowMs } = change
    const replaced = waitingSignInOf(change, asked.userId, nowMs)
    if (replaced !== undefined) {
      this.#remove(change, asked.userId, replaced.id)
      this.#tellEnd(change, replaced, 'replaced')
    }
    const secret = this.#parts.randomBytes(SECRET_BYTES)
    const id = signInIdOf(secret)
    const signIn = { ...asked, ...nextWait(replaced?.signIn, this.#waitMs, nowMs), noticeCount: 0 }
    change.put(WAITING_SIGN_INS_BY_USER, byUserKey(asked.userId, id), 0)
    return { secret, id, signIn: this.#tellWaiting(change, { id, signIn }) }
  }

  /** By the waiting client's secret; undefined once a later sign-in has taken its place, or it was kept long enough. */
  held(view: View, secret: Uint8Array): NamedSignIn | undefined {
    const id = signInIdOf(secret)
    const signIn = view.get(WAITING_SIGN_INS, id)
    return signIn && { id, signIn }
  }

  /** The user's answer, given on one of their devices. */
  answer(change: Change, named: NamedSignIn, answer: 'approved' | 'refused', deviceId: DeviceId): void {
    const { id, signIn } = named
    const { nowMs } = change
    const { userId, address } = signIn
    change.put(WAITING_SIGN_INS, id, { ...signIn, answer, answeredAtMs: nowMs })
    this.#tellEnd(change, named, answer, deviceId)
    if (answer === 'approved') return
    this.dropLetIn(change, userId)
    const key = refusalKey(userId, address)
    change.put(REFUSED_SIGN_INS, key, { userId, refusedAtMs: nowMs })
    this.#parts.expiries.add(change, EXPIRY.refusedSignIn, nowMs + REFUSAL_KEPT_MS, key)
  }

  /** Keeps those out that were let in, by an answer or by time, and have not come: they would be sessions unseen. */
  dropLetIn(change: Change, userId: UserId): void {
    for (const { id, signIn } of signInsOf(change, userId)) {
      if (outcomeOf(signIn, change.nowMs).kind === 'opens') this.#remove(change, userId, id)
    }
  }

  /** The waiting client is signed in, and gets the same reply again if it was lost. */
  open(change: Change, { id, signIn }: NamedSignIn, sessionId: Uint8Array): void {
    const opened = { ...signIn, sessionId, openedAtMs: change.nowMs }
    change.put(WAITING_SIGN_INS, id, opened)
    if (signIn.answer === undefined) this.#tellEnd(change, { id, signIn }, 'passed')
    // The ending that it has comes days later: of a sign-in that is not fetched.
    this.#parts.expiries.add(change, EXPIRY.waitingSignIn, keptUntilMs(opened), id)
  }

  /** Whether the user has refused a sign-in by this address of theirs, and may have it back. */
  isRefused(view: View, userId: UserId, address: Pick<AddressMethod, 'kind' | 'key'>): boolean {
    return refusedAtMs(view, userId, address) !== undefined
  }

  /** The owner has shown that the address, or the account, is theirs still: signing in by it is as before. */
  takeBackRefusal(change: Change, userId: UserId, address?: Pick<AddressMethod, 'kind' | 'key'>): void {
    change.remove(REFUSED_SIGN_INS, refusalKey(userId, address))
  }

  /** Nothing of the user remains here. */
  eraseOf(change: Change, userId: UserId): void {
    this.takeBackRefusal(change, userId)
    for (const { id } of signInsOf(change, userId)) this.#remove(change, userId, id)
  }

  /**
   * A removed device counts until a signed list leaves it out: a stolen access token can remove a device and can't sign, and
   * would else make way for a stolen code.
   */
  #listedSeenAtMs(view: View, userId: UserId): number | undefined {
    const { devices, deviceLists } = this.#parts
    const listed = deviceLists.newest(view, userId)?.deviceIds ?? []
    const seen = listed.flatMap(id => devices.read(view, userId, id)?.lastSeenAtMs ?? [])
    return seen.length === 0 ? undefined : Math.max(...seen)
  }

  #remove(change: Change, userId: UserId, id: Uint8Array): void {
    change.remove(WAITING_SIGN_INS, id)
    change.remove(WAITING_SIGN_INS_BY_USER, byUserKey(userId, id))
  }

  #tellEnd(
    change: Change,
    { id, signIn }: NamedSignIn,
    outcome: 'approved' | 'refused' | 'replaced' | 'passed' | 'expired',
    exceptDeviceId?: DeviceId,
  ): void {
    const body = { kind: 'sign_in_ended', id: signInName(id), outcome } as const
    this.#parts.notices.tell(change, signIn.userId, body, exceptDeviceId)
  }

  /** One of the three notices to the owner. */
  #tellWaiting(change: Change, { id, signIn }: NamedSignIn): WaitingSignIn {
    const { notices, letters, expiries, sessionNetworks } = this.#parts
    const { userId, userAgent, endsAtMs } = signIn
    const network = sessionNetworks.prefixIn(signIn)
    const place = { userAgent, ...(network !== undefined && { network }) }
    const told = { ...signIn, noticeCount: signIn.noticeCount + 1 }
    change.put(WAITING_SIGN_INS, id, told)
    notices.tell(change, userId, {
      kind: 'sign_in_waiting',
      id: signInName(id),
      signInCode: this.#codeOf(id),
      method: askedBy(signIn),
      ...place,
      endsAtMs,
    })
    const hours = Math.max(1, Math.round((endsAtMs - change.nowMs) / 3_600_000))
    letters.tellAll(change, userId, { kind: 'sign-in-waiting', hours, ...place })
    if (signIn.noticeCount === 0) expiries.add(change, EXPIRY.waitingSignIn, dueAtMs(told, change.nowMs), id)
    return told
  }

  #onDue(change: Change, id: Uint8Array): number | undefined {
    const { nowMs } = change
    let signIn = change.get(WAITING_SIGN_INS, id)
    if (signIn === undefined) return undefined
    if (nowMs >= keptUntilMs(signIn)) {
      this.#remove(change, signIn.userId, id)
      if (signIn.answer === undefined && signIn.sessionId === undefined)
        this.#tellEnd(change, { id, signIn }, 'expired')
      return undefined
    }
    if (isNoticeDue(signIn, nowMs)) signIn = this.#tellWaiting(change, { id, signIn })
    return dueAtMs(signIn, nowMs)
  }
}

/** When the user refused a sign-in by this address of theirs, or by a token of the operator's backend. */
function refusedAtMs(
  view: View,
  userId: UserId,
  address?: Pick<AddressMethod, 'kind' | 'key'>,
): number | undefined {
  const refusal = view.get(REFUSED_SIGN_INS, refusalKey(userId, address))
  return refusal?.userId === userId ? refusal.refusedAtMs : undefined
}

function refusalKey(userId: UserId, address: Pick<AddressMethod, 'kind' | 'key'> | undefined): Buffer {
  return textKey(address === undefined ? `server ${userId}` : identifierOf(address))
}

/** A refusal that was taken back, and given again since, has an ending of its own. */
function endRefusal(change: Change, key: Uint8Array): number | undefined {
  const refusal = change.get(REFUSED_SIGN_INS, key)
  if (refusal === undefined) return undefined
  const endsAtMs = refusal.refusedAtMs + REFUSAL_KEPT_MS
  if (change.nowMs < endsAtMs) return endsAtMs
  change.remove(REFUSED_SIGN_INS, key)
  return undefined
}

/** The one that waits for the user's answer, also after its time as long as it is not in. */
export function waitingSignInOf(view: View, userId: UserId, nowMs: number): NamedSignIn | undefined {
  return signInsOf(view, userId).find(({ signIn }) => isAnswerable(signIn, nowMs))
}

/** Those that wait and those that have waited. */
function signInsOf(view: View, userId: UserId): NamedSignIn[] {
  const keys = [...view.keys(WAITING_SIGN_INS_BY_USER, rangeOf(idsKey(userId)))]
  return keys.flatMap(key => {
    const id = key.subarray(USER_BYTES)
    const signIn = view.get(WAITING_SIGN_INS, id)
    return signIn === undefined ? [] : [{ id, signIn }]
  })
}

/** The name of a sign-in by the client's secret. */
function signInIdOf(secret: Uint8Array): Uint8Array {
  const hash = createHash('sha256').update('callsign waiting sign-in v1\n').update(secret)
  return hash.digest().subarray(0, SIGN_IN_ID_BYTES)
}

function byUserKey(userId: UserId, id: Uint8Array): Uint8Array {
  return Buffer.concat([idsKey(userId), id])
}

/** 22 base64url characters. */
export function signInName(id: Uint8Array): string {
  return Buffer.from(id).toString('base64url')
}

const SECRET_BYTES = 16
const SIGN_IN_ID_BYTES = 16
const USER_BYTES = 8
