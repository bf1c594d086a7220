/**
 * Signing in by a code, or a token of the app's backend. Where the account has a device that can be asked, a right code waits for its answer, for hours or
 * days. The wait is kept in the storage, and goes on after the app is closed.
 */

import { sha256 } from '#primitives'
import { CallsignError, hasCode } from '../callsign-error.ts'
import type { DeviceKeysOf } from '../devices/device-keys.ts'
import { deviceProof } from '../devices/device-registration.ts'
import { fromBase64Url } from '../devices/octets.ts'
import { type AppStorage, readStored, writeStored } from '../storage/storage.ts'
import type { SignedIn } from '../wire.ts'
import type { BodyOf } from './operations.ts'
import type { Server } from './server.ts'
import type { Session } from './session.ts'
import { type Confirm, confirmed, lastUserId, normalized } from './sign-in.ts'

/** A sign-in that waits for its owner. */
export interface WaitingSignIn {
  /** Empty for a token of the app's backend. */
  readonly address: string
  /** Twenty digits: the device that is asked shows the same ones. */
  readonly signInCode: string
  /** When it goes through without an answer. */
  readonly until: string
}

/** `reclaim`: this device's account has lost its last login method, and the address becomes its next one. */
export type SignInOptions = Pick<BodyOf<'POST login'>, 'displayName' | 'country' | 'locale' | 'attestation'> &
  Pick<BodyOf<'POST verify-login'>, 'reclaim'>

interface Kept extends WaitingSignIn {
  readonly waitingId: string
}

export class CodeSignIn {
  readonly #server: Server
  readonly #session: Session
  readonly #storage: AppStorage
  readonly #keysOf: DeviceKeysOf

  constructor(server: Server, session: Session, storage: AppStorage, keysOf: DeviceKeysOf) {
    this.#server = server
    this.#session = session
    this.#storage = storage
    this.#keysOf = keysOf
  }

  /** Rejects with `SIGN_IN_WAITING`, with the members of `WaitingSignIn`, once that is kept. */
  async signIn(address: string, confirm: Confirm, { reclaim, ...more }: SignInOptions): Promise<SignedIn> {
    const reply = await this.#session.login({ ...more, identifier: address })
    if (reply.verified) return reply
    const { challengeId } = reply
    const kept = await this.#kept()
    const waitingId =
      kept !== undefined && normalized(kept.address) === normalized(address)
        ? { waitingId: kept.waitingId }
        : {}
    const device = await deviceProof(
      this.#storage,
      this.#keysOf,
      await lastUserId(this.#storage),
      fromBase64Url(challengeId),
    )
    const proofs = { ...waitingId, ...(device && { device }), ...(reclaim && { reclaim }) }
    try {
      const signedIn = await confirmed(this.#session, reply, confirm, otp =>
        this.#session.verifyLogin({ challengeId, otp, ...proofs }),
      )
      await this.#forget()
      return signedIn
    } catch (error) {
      if (hasCode(error, 'SIGN_IN_WAITING')) await this.#keep(address, error)
      throw error
    }
  }

  /** By a token of the app's backend. Rejects as `signIn`; the address of a wait is empty then. */
  async signInByToken(signInToken: string): Promise<SignedIn> {
    const challenge = sha256(new TextEncoder().encode(signInToken)).subarray(0, CHALLENGE_BYTES)
    const lastUser = await lastUserId(this.#storage)
    const device = await deviceProof(this.#storage, this.#keysOf, lastUser, challenge)
    try {
      const body = { verified: true, signInToken, ...(device && { device }) }
      const reply = await this.#session.login(body)
      if (!reply.verified) throw new CallsignError('ANSWER_INVALID', 'A token was answered with a code.')
      await this.#forget()
      return reply
    } catch (error) {
      if (hasCode(error, 'SIGN_IN_WAITING')) await this.#keep('', error)
      throw error
    }
  }

  /** Undefined where none waits. */
  async waiting(): Promise<WaitingSignIn | undefined> {
    const kept = await this.#kept()
    if (kept === undefined) return undefined
    const { address, signInCode, until } = kept
    return { address, signInCode, until }
  }

  /**
   * Resolves once the sign-in that waits is in. Rejects with `SIGN_IN_REFUSED` or `SIGN_IN_GONE`, and with `SIGNED_OUT` once
   * `isClosed` says so.
   */
  async finish(isClosed: () => boolean): Promise<{ readonly signedIn: SignedIn; readonly address: string }> {
    const { platform } = this.#server
    for (let asks = 0; ; asks++) {
      const kept = await this.#kept()
      if (kept === undefined) throw new CallsignError('SIGN_IN_GONE', 'No sign-in waits: begin again.')
      try {
        const signedIn = await this.#session.fetchWaiting({ waitingId: kept.waitingId })
        await this.#forget()
        return { signedIn, address: kept.address }
      } catch (error) {
        if (hasCode(error, 'SIGN_IN_REFUSED', 'SIGN_IN_GONE')) await this.#forget()
        if (!hasCode(error, 'SIGN_IN_WAITING', 'NO_ANSWER', 'RATE_LIMITED')) throw error
      }
      await platform.wait(asks < OFTEN ? OFTEN_MS : SELDOM_MS)
      if (isClosed()) throw new CallsignError('SIGNED_OUT', 'The app was closed while a sign-in waited.')
    }
  }

  #kept(): Promise<Kept | undefined> {
    return readStored<Kept>(this.#storage, WAITING, value =>
      [value.address, value.waitingId, value.signInCode, value.until].every(each => typeof each === 'string'),
    )
  }

  async #keep(address: string, { members }: CallsignError): Promise<void> {
    const [waitingId, signInCode, until] = [members.waitingId, members.signInCode, members.until].map(String)
    await writeStored(this.#storage, WAITING, { address, waitingId, signInCode, until })
  }

  async #forget(): Promise<void> {
    await writeStored(this.#storage, WAITING, null)
  }
}

const WAITING = 'waiting-sign-in'
const CHALLENGE_BYTES = 16
/** In the first minutes the owner holds both devices; later a minute does not matter. */
const OFTEN = 60
const OFTEN_MS = 5_000
const SELDOM_MS = 60_000
