/** One sign-in: its tokens, kept before they are used, and requests with them. */

import { CallsignError, hasCode } from '../callsign-error.ts'
import { type AppStorage, readStored, writeStored } from '../storage/storage.ts'
import type { Addressed, BodyOf, OperationName, ReplyOf } from './operations.ts'
import type { Server } from './server.ts'

/** After a sign-out the refresh token stays, so that strangers can't use up the codes of this app's user. */
type Kept = SignedInState | { readonly kind: 'signed-out'; readonly refreshToken: string }

interface SignedInState {
  readonly kind: 'signed-in'
  readonly userId: string
  readonly sessionId: string
  readonly accessToken: string
  readonly refreshToken: string
  /** The device signs it to show that it has its signing key. */
  readonly challenge: string
  readonly renewAtMs: number
  readonly expiresAtMs: number
}

/** Gets proofs of who the user is: `StepUp`. */
interface Prover {
  /** How many proofs there were so far. */
  readonly count: number
  /** Resolves once there is a proof, for an operation that was refused without. */
  prove(refusal: CallsignError): Promise<void>
  /** Rejects the operations that wait for a proof. */
  giveUp(error: CallsignError): void
}

export class Session {
  readonly #server: Server
  readonly #storage: AppStorage
  readonly #listeners = new Set<(error: CallsignError) => void>()
  #kept: Kept | undefined
  /** While this device signs out: that the server ends the session is no news then, whichever way it comes first. */
  #isLeaving = false
  #prover: Prover | undefined
  #refreshing: Promise<void> | undefined

  private constructor(server: Server, storage: AppStorage, kept: Kept | undefined) {
    this.#server = server
    this.#storage = storage
    this.#kept = kept
  }

  /** Goes on with the session in the storage, if there is one. Rejects with `STORAGE_CORRUPT` or `STORAGE_FAILED`. */
  static async open(server: Server, storage: AppStorage): Promise<Session> {
    return new Session(server, storage, await readKept(storage))
  }

  /** The user who is signed in. */
  get userId(): string | undefined {
    return this.#signedIn?.userId
  }

  /** As the server names it. */
  get id(): string | undefined {
    return this.#signedIn?.sessionId
  }

  get challenge(): string | undefined {
    return this.#signedIn?.challenge
  }

  /** Calls the listener when the server has ended the session. Gives the function that takes it away. */
  onOver(listener: (error: CallsignError) => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  /** Asks for a code, or signs in at once with a provider's token. */
  async login(body: BodyOf<'POST login'>): Promise<ReplyOf<'POST login'>> {
    const reply = await this.#server.request('POST login', { ...this.#knownBy, ...body })
    if (reply.verified) await this.#begin(reply)
    return reply
  }

  resendOtp(body: BodyOf<'POST resend-otp'>): Promise<ReplyOf<'POST resend-otp'>> {
    return this.#server.request('POST resend-otp', { ...this.#knownBy, ...body })
  }

  async verifyLogin(body: BodyOf<'POST verify-login'>): Promise<ReplyOf<'POST verify-login'>> {
    const reply = await this.#server.request('POST verify-login', { ...this.#knownBy, ...body })
    await this.#begin(reply)
    return reply
  }

  /** The tokens of a sign-in that waited. Rejects with `SIGN_IN_WAITING` while it waits. */
  async fetchWaiting(body: BodyOf<'POST login/waiting'>): Promise<ReplyOf<'POST login/waiting'>> {
    const reply = await this.#server.request('POST login/waiting', body)
    await this.#begin(reply)
    return reply
  }

  /** For `navigator.credentials.get` or its substitute. */
  async passkeyOptions(): Promise<ReplyOf<'POST passkey/options'>['options']> {
    return (await this.#server.request('POST passkey/options', undefined)).options
  }

  async passkeyLogin(body: BodyOf<'POST login/passkey'>): Promise<ReplyOf<'POST login/passkey'>> {
    const reply = await this.#server.request('POST login/passkey', body)
    await this.#begin(reply)
    return reply
  }

  async platformLogin(body: BodyOf<'POST platform-login'>): Promise<ReplyOf<'POST platform-login'>> {
    const reply = await this.#server.request('POST platform-login', body)
    await this.#begin(reply)
    return reply
  }

  /** Proofs that operations are refused without come from `prover`: each such operation is repeated once. */
  proveBy(prover: Prover): void {
    this.#prover = prover
  }

  /** A request of the user who is signed in. Rejects with `SIGNED_OUT` without one. */
  async request<Name extends OperationName>(
    operation: Name,
    body: BodyOf<Name>,
    ...[params = {}, headers]: Addressed<Name>
  ): Promise<ReplyOf<Name>> {
    const sent = { 'idempotency-key': globalThis.crypto.randomUUID(), ...headers }
    const sessionId = this.id
    let [hasRefreshed, hasProven] = [false, false]
    for (;;) {
      const token = await this.accessToken()
      const proofs = this.#prover?.count
      try {
        const authorized = { ...sent, authorization: `Bearer ${token}` }
        return await this.#server.request(operation, body, ...([params, authorized] as Addressed<Name>))
      } catch (error) {
        if (!hasRefreshed && hasCode(error, 'TOKEN_EXPIRED')) {
          hasRefreshed = true
          await this.#refresh(token)
        } else if (!hasProven && this.#prover !== undefined && hasCode(error, 'STEP_UP_REQUIRED')) {
          // Another operation's proof may have come while this one was on its way.
          hasProven = this.#prover.count === proofs
          if (hasProven) await this.#prover.prove(error)
          if (this.id !== sessionId) throw signedOut()
          hasRefreshed = false
        } else {
          if (hasCode(error, ...OVER_CODES) && this.#signedIn?.accessToken === token) await this.#end(error)
          throw error
        }
      }
    }
  }

  /** A token that is good for a while, for a connection. */
  async accessToken(): Promise<string> {
    const { accessToken, renewAtMs, expiresAtMs } = this.#assertSignedIn()
    const { nowMs } = this.#server.platform
    if (nowMs() < renewAtMs) return accessToken
    try {
      await this.#refresh(accessToken)
    } catch (error) {
      // The token at hand is still good.
      if (this.#signedIn === undefined || nowMs() >= expiresAtMs) throw error
    }
    return this.#assertSignedIn().accessToken
  }

  /** Gets new tokens in place of the pair with this access token, which the server calls expired. */
  renew(accessToken: string): Promise<void> {
    return this.#refresh(accessToken)
  }

  /** The server has ended the session, and said so elsewhere than in an answer to a request. */
  async end(error: CallsignError): Promise<void> {
    if (this.#signedIn !== undefined) await this.#end(error)
  }

  /** Ends the session on the server. Rejects, and leaves it as it is, where the server can't be asked. */
  async logout(body: BodyOf<'POST logout'> = {}): Promise<void> {
    this.#isLeaving = true
    try {
      await this.request('POST logout', body)
    } catch (error) {
      if (this.#signedIn !== undefined) throw error
    } finally {
      this.#isLeaving = false
    }
    if (this.#signedIn !== undefined) await this.#forget()
  }

  get #signedIn(): SignedInState | undefined {
    return this.#kept?.kind === 'signed-in' ? this.#kept : undefined
  }

  get #knownBy(): { readonly refreshToken?: string } {
    return this.#kept === undefined ? {} : { refreshToken: this.#kept.refreshToken }
  }

  #assertSignedIn(): SignedInState {
    const signedIn = this.#signedIn
    if (signedIn === undefined) throw signedOut()
    return signedIn
  }

  /** The first of two sign-ins of one app counts, such as one that waited. */
  #begin({ user, ...pair }: ReplyOf<'POST verify-login'>): Promise<void> {
    if (this.#signedIn !== undefined)
      throw new CallsignError('ALREADY_SIGNED_IN', 'Another sign-in was faster.')
    return this.#take(user.userId, pair)
  }

  /** Tokens are in the storage before anything is done with them. */
  async #take(
    userId: string,
    { sessionId, accessToken, refreshToken, challenge, expiresIn }: ReplyOf<'POST refresh-token'>,
  ): Promise<void> {
    const expiresAtMs = this.#server.platform.nowMs() + expiresIn * 1000
    const renewAtMs = expiresAtMs - expiresIn * 200
    const kept: Kept = {
      kind: 'signed-in',
      userId,
      sessionId,
      accessToken,
      refreshToken,
      challenge,
      renewAtMs,
      expiresAtMs,
    }
    await writeStored(this.#storage, SESSION, kept)
    this.#kept = kept
  }

  /** Gets a new pair in place of the one with this access token, once for all who wait for it. */
  async #refresh(accessToken: string): Promise<void> {
    if (this.#signedIn?.accessToken !== accessToken) return
    this.#refreshing ??= this.#refreshNow().finally(() => {
      this.#refreshing = undefined
    })
    await this.#refreshing
  }

  async #refreshNow(): Promise<void> {
    const held = this.#assertSignedIn()
    // Another tab of the app may have a newer pair: the older token would count as stolen.
    const stored = await readKept(this.#storage)
    if (stored?.kind === 'signed-out' || (stored !== undefined && stored.userId !== held.userId)) {
      this.#kept = stored.kind === 'signed-out' ? stored : undefined
      this.#prover?.giveUp(signedOut())
      return this.#tellOver(new CallsignError('SIGNED_OUT', 'Another window of the app has signed out.'))
    }
    if (stored !== undefined && stored.refreshToken !== held.refreshToken) {
      this.#kept = stored
      if (this.#server.platform.nowMs() < stored.renewAtMs) return
    }
    const { userId, refreshToken } = this.#assertSignedIn()
    try {
      await this.#take(userId, await this.#server.request('POST refresh-token', { refreshToken }))
    } catch (error) {
      if (hasCode(error, ...OVER_CODES)) await this.#end(error)
      throw error
    }
  }

  /** Signed out even where the storage fails: the next start then hears it from the server. */
  async #end(error: CallsignError): Promise<void> {
    await this.#forget().catch(() => {})
    if (!this.#isLeaving) this.#tellOver(error)
  }

  #tellOver(error: CallsignError): void {
    for (const listener of this.#listeners) listener(error)
  }

  async #forget(): Promise<void> {
    const { refreshToken } = this.#assertSignedIn()
    this.#kept = { kind: 'signed-out', refreshToken }
    this.#prover?.giveUp(signedOut())
    await writeStored(this.#storage, SESSION, this.#kept)
  }
}

function signedOut(): CallsignError {
  return new CallsignError('SIGNED_OUT', 'You are signed out.')
}

function readKept(storage: AppStorage): Promise<Kept | undefined> {
  return readStored<Kept>(storage, SESSION, value => {
    if (typeof value.refreshToken !== 'string') return false
    if (value.kind === 'signed-out') return true
    const { kind, userId, sessionId, accessToken, challenge, renewAtMs, expiresAtMs } = value
    const areTexts = [userId, sessionId, accessToken, challenge].every(each => typeof each === 'string')
    return kind === 'signed-in' && areTexts && Number.isFinite(renewAtMs) && Number.isFinite(expiresAtMs)
  })
}

const SESSION = 'session'
/** Codes by which the server ends the session (docs/protocol/sign-in.md, "Tokens"). */
const OVER_CODES = [
  'TOKEN_MISSING',
  'TOKEN_INVALID',
  'SESSION_REVOKED',
  'REFRESH_TOKEN_INVALID',
  'REFRESH_TOKEN_REUSED',
] as const
