/**
 * Ceremonies with passkeys: options for a client, and the proof in its answer. Signing in, a fresh proof of who the user is,
 * and a new passkey go through here.
 *
 * Signatures are checked before the change, since the library does it in the background. The change then looks the passkey up
 * again, and uses up the challenge.
 */

import type { Static } from 'typebox'
import { type PasskeyMethod, passkeyIdentifier } from '../../domain/accounts/account.ts'
import {
  type ClientData,
  endOfPasskeyChallenge,
  formatPasskeyChallenge,
  isOfRp,
  PASSKEY_ALGORITHMS,
  PASSKEY_CHALLENGE_LIFETIME_MS,
  PASSKEY_NONCE_BYTES,
  type PasskeySettings,
  type PasskeyUse,
  passkeyUserHandle,
  readClientData,
  refusalOfOrigin,
} from '../../domain/accounts/passkey.ts'
import type { MethodId, UserId } from '../../domain/ids.ts'
import type { Secrets } from '../../domain/secrets.ts'
import { type ErrorCode, SignalError } from '../../errors.ts'
import type {
  AddPasskeyRequest,
  PasskeyAssertion,
  PasskeyCreationOptions,
  PasskeyRequestOptions,
} from '../../schema/passkey.ts'
import type { AccountStore } from '../../store/accounts/account-store.ts'
import type { PasskeyChallengeStore } from '../../store/accounts/passkey-challenges.ts'
import type { Change, ReadStore, View } from '../../store/engine/store.ts'

type AssertionJson = Static<typeof PasskeyAssertion>
type RegistrationJson = Static<typeof AddPasskeyRequest>['credential']

/** A challenge that an answer was signed over, to be used up. */
interface Answered {
  readonly challenge: string
  readonly challengeEndsAtMs: number
}

/** An assertion with a right signature. */
export interface JudgedAssertion extends Answered, Said {
  readonly credentialId: string
  /** It has checked the signature. */
  readonly publicKey: Uint8Array
  /** Undefined where the authenticator sent none. */
  readonly userHandle: string | undefined
  readonly purpose: PasskeyUse['purpose']
}

/** The user that an accepted assertion proves, and by which method. */
export interface PasskeyProof {
  readonly userId: UserId
  readonly methodId: MethodId
}

/** A registration that may become a method. */
interface JudgedRegistration extends Answered, RegisteredPasskey {
  readonly transports: readonly string[]
}

/** An answer is signed over these, which were judged before. */
interface Expected {
  readonly challenge: string
  readonly origin: string
  readonly rpId: string
}

/** An authenticator's word beside its signature. */
interface Said {
  readonly counter: number
  readonly isSyncable: boolean
  readonly isBackedUp: boolean
  readonly isUserVerified: boolean
}

interface RegisteredPasskey extends Said {
  readonly credentialId: string
  readonly publicKey: Uint8Array
  readonly aaguid: string
}

interface Credential<Response> {
  readonly id: string
  readonly rawId: string
  readonly response: Response
}

/** Reads what authenticators have signed: `src/identity/passkeys.ts`. Undefined for whatever is not as it must be. */
interface PasskeyReader {
  authenticatorDataOf(attestationObject: string): Promise<Uint8Array | undefined>
  readRegistration(
    credential: Credential<{ readonly clientDataJSON: string }>,
    authenticatorData: Uint8Array,
    algorithms: readonly number[],
    expected: Expected,
  ): Promise<RegisteredPasskey | undefined>
  readAssertion(
    credential: Credential<AssertionJson['response']>,
    publicKey: Uint8Array,
    expected: Expected,
  ): Promise<Said | undefined>
}

interface Parts {
  readonly accounts: AccountStore
  readonly database: Pick<ReadStore, 'view'>
  readonly randomBytes: (length: number) => Uint8Array
  readonly secrets: Pick<Secrets, 'passkeyChallenge'>
}

export class PasskeyCeremonies {
  readonly #settings: PasskeySettings | undefined
  readonly #appName: string
  readonly #deps: Parts
  readonly #used: Pick<PasskeyChallengeStore, 'use'>
  readonly #reader: PasskeyReader

  constructor(
    { passkeys, appName }: { readonly passkeys?: PasskeySettings | undefined; readonly appName: string },
    deps: Parts,
    used: Pick<PasskeyChallengeStore, 'use'>,
    reader: PasskeyReader,
  ) {
    this.#settings = passkeys
    this.#appName = appName
    this.#deps = deps
    this.#used = used
    this.#reader = reader
  }

  get areOn(): boolean {
    return this.#settings !== undefined
  }

  /** The user of the passkey. */
  ownerOf(view: View, credentialId: string): UserId | undefined {
    return this.#methodOf(view, credentialId)?.userId
  }

  /** For `navigator.credentials.get`: any passkey for a sign-in, one of the user's for a fresh proof. */
  requestOptions(
    use: PasskeyUse,
    userId: UserId | undefined,
    nowMs: number,
  ): Static<typeof PasskeyRequestOptions> {
    const { rpId } = this.#on()
    return {
      options: {
        challenge: this.#challenge(use, nowMs),
        timeout: PASSKEY_CHALLENGE_LIFETIME_MS,
        rpId,
        allowCredentials: userId === undefined ? [] : this.#descriptors(userId),
        userVerification: 'required',
      },
    }
  }

  /** For `navigator.credentials.create`. */
  creationOptions(use: PasskeyUse, userId: UserId, nowMs: number): Static<typeof PasskeyCreationOptions> {
    const { rpId } = this.#on()
    const { accounts, database, secrets } = this.#deps
    const { displayName, name } = database.view(view => namesOf(view, accounts, userId))
    return {
      options: {
        rp: { id: rpId, name: this.#appName },
        user: {
          id: Buffer.from(passkeyUserHandle(secrets.passkeyChallenge, userId)).toString('base64url'),
          name,
          displayName,
        },
        challenge: this.#challenge(use, nowMs),
        timeout: PASSKEY_CHALLENGE_LIFETIME_MS,
        pubKeyCredParams: PASSKEY_ALGORITHMS.map(alg => ({ type: 'public-key', alg })),
        excludeCredentials: this.#descriptors(userId),
        authenticatorSelection: {
          residentKey: 'required',
          requireResidentKey: true,
          userVerification: 'required',
        },
        attestation: 'none',
      },
    }
  }

  /**
   * The first half of an assertion, outside of a change. Rejects with `PASSKEYS_OFF`, `PASSKEY_UNKNOWN`,
   * `PASSKEY_ORIGIN_REFUSED`, `PASSKEY_RP_REFUSED`, `PASSKEY_CHALLENGE_GONE`, `PASSKEY_NOT_VERIFIED`, `PASSKEY_INVALID`.
   */
  async judge(credential: AssertionJson, use: PasskeyUse): Promise<JudgedAssertion> {
    const { id, response } = credential
    const { clientDataJSON, authenticatorData, signature, userHandle } = response
    assertCanonical(id, clientDataJSON, authenticatorData, signature)
    const { answered, clientData } = this.#judgeClientData(clientDataJSON, use)
    const data = Buffer.from(authenticatorData, 'base64url')
    const expected = this.#expected(data, clientData)
    const method = this.#deps.database.view(view => this.#methodOf(view, id))?.method
    if (method === undefined) throw refusal('PASSKEY_UNKNOWN')
    const assertion = await this.#reader.readAssertion(credential, method.publicKey, expected)
    if (assertion === undefined) throw refusal('PASSKEY_INVALID')
    if (!assertion.isUserVerified) throw refusal('PASSKEY_NOT_VERIFIED')
    return {
      ...answered,
      ...assertion,
      credentialId: id,
      publicKey: method.publicKey,
      userHandle: userHandle || undefined,
      purpose: use.purpose,
    }
  }

  /**
   * The second half, in a change: whom it proves. Uses the challenge up, and notes that the passkey was used. `ofUser` names
   * who it has to be. Throws `PASSKEY_UNKNOWN`, `PASSKEY_CHALLENGE_GONE`, `PASSKEY_INVALID`.
   */
  accept(change: Change, judged: JudgedAssertion, ofUser?: UserId): PasskeyProof {
    const owner = this.#methodOf(change, judged.credentialId)
    // It may have been removed since, and its id taken by another.
    const isSame = owner !== undefined && Buffer.compare(owner.method.publicKey, judged.publicKey) === 0
    if (!isSame || (ofUser !== undefined && owner.userId !== ofUser)) throw refusal('PASSKEY_UNKNOWN')
    const { userId, method } = owner
    if (!isHandleOf(method, judged) || method.isSyncable !== judged.isSyncable)
      throw refusal('PASSKEY_INVALID')
    this.#use(change, judged)
    // Synced passkeys count nothing.
    const isBack = judged.counter <= method.counter && (judged.counter > 0 || method.counter > 0)
    if (isBack) change.happened({ kind: 'passkey-counter-back', userId })
    this.#deps.accounts.putMethod(change, userId, {
      ...method,
      counter: judged.counter,
      isBackedUp: judged.isBackedUp,
      lastUsedAtMs: change.nowMs,
    })
    return { userId, methodId: method.id }
  }

  /** The first half of a registration. Rejects as `judge` does, but for `PASSKEY_UNKNOWN`. */
  async judgeRegistration(credential: RegistrationJson, use: PasskeyUse): Promise<JudgedRegistration> {
    const { id, response } = credential
    const { clientDataJSON, attestationObject, transports = [] } = response
    assertCanonical(id, clientDataJSON, attestationObject)
    const { answered, clientData } = this.#judgeClientData(clientDataJSON, use)
    const data = await this.#reader.authenticatorDataOf(attestationObject)
    if (data === undefined) throw refusal('PASSKEY_INVALID')
    const expected = this.#expected(data, clientData)
    const registered = await this.#reader.readRegistration(credential, data, PASSKEY_ALGORITHMS, expected)
    if (registered === undefined) throw refusal('PASSKEY_INVALID')
    if (!registered.isUserVerified) throw refusal('PASSKEY_NOT_VERIFIED')
    return { ...answered, ...registered, transports }
  }

  /** The second half: the method that the registration makes. Uses the challenge up. Throws `PASSKEY_CHALLENGE_GONE`. */
  acceptRegistration(
    change: Change,
    judged: JudgedRegistration,
    userId: UserId,
    label: string | undefined,
  ): Omit<PasskeyMethod, 'id' | 'addedAtMs' | 'lastUsedAtMs'> {
    this.#use(change, judged)
    const { credentialId, publicKey, counter, transports, aaguid, isSyncable, isBackedUp } = judged
    return {
      kind: 'passkey',
      ...{ credentialId, publicKey, counter, transports, aaguid, isSyncable, isBackedUp },
      userHandle: passkeyUserHandle(this.#deps.secrets.passkeyChallenge, userId),
      ...(label === undefined ? {} : { label }),
    }
  }

  #on(): PasskeySettings {
    if (this.#settings === undefined) throw refusal('PASSKEYS_OFF')
    return this.#settings
  }

  #challenge(use: PasskeyUse, nowMs: number): string {
    const { secrets, randomBytes } = this.#deps
    return formatPasskeyChallenge(secrets.passkeyChallenge, use, randomBytes(PASSKEY_NONCE_BYTES), nowMs)
  }

  #judgeClientData(
    text: string,
    use: PasskeyUse,
  ): { readonly answered: Answered; readonly clientData: ClientData } {
    const settings = this.#on()
    const clientData = readClientData(text)
    if (clientData === undefined) throw refusal('PASSKEY_INVALID')
    const { challenge } = clientData
    const endsAtMs = endOfPasskeyChallenge(this.#deps.secrets.passkeyChallenge, use, challenge)
    // Whether it has expired is for the change to say.
    if (endsAtMs === undefined) throw refusal('PASSKEY_CHALLENGE_GONE')
    const code = refusalOfOrigin(clientData, settings)
    if (code !== undefined) throw refusal(code)
    return { answered: { challenge, challengeEndsAtMs: endsAtMs }, clientData }
  }

  #expected(authenticatorData: Uint8Array, { challenge, origin }: ClientData) {
    const settings = this.#on()
    if (!isOfRp(authenticatorData, settings)) throw refusal('PASSKEY_RP_REFUSED')
    return { challenge, origin, rpId: settings.rpId }
  }

  #use(change: Change, { challenge, challengeEndsAtMs }: Answered): void {
    const isOver = change.nowMs >= challengeEndsAtMs
    if (isOver || !this.#used.use(change, challenge, challengeEndsAtMs))
      throw refusal('PASSKEY_CHALLENGE_GONE')
  }

  #methodOf(
    view: View,
    credentialId: string,
  ): { readonly userId: UserId; readonly method: PasskeyMethod } | undefined {
    const owner = this.#deps.accounts.ownerOf(view, passkeyIdentifier(credentialId))
    const method = owner && this.#deps.accounts.method(view, owner)
    return owner !== undefined && method?.kind === 'passkey' ? { userId: owner.userId, method } : undefined
  }

  #descriptors(userId: UserId) {
    const { accounts, database } = this.#deps
    return database
      .view(view => accounts.methodsOf(view, userId))
      .filter(method => method.kind === 'passkey')
      .map(({ credentialId, transports }) => ({
        id: credentialId,
        type: 'public-key' as const,
        ...(transports.length > 0 && { transports: [...transports] }),
      }))
  }
}

/** Whether the authenticator knows the user by the handle that it was given. A proof need not have one. */
function isHandleOf({ userHandle }: PasskeyMethod, judged: JudgedAssertion): boolean {
  if (judged.userHandle === undefined) return judged.purpose !== 'sign-in'
  return Buffer.from(userHandle).toString('base64url') === judged.userHandle
}

/** As the authenticator shows the account to its user. */
function namesOf(view: View, accounts: AccountStore, userId: UserId) {
  const user = accounts.read(view, userId)
  if (user === undefined) throw new SignalError('USER_NOT_FOUND', 'there is no such user')
  const { displayName, primaryMethodId } = user
  const primary = accounts.methodsOf(view, userId).find(({ id }) => id === primaryMethodId)
  const address = primary === undefined || primary.kind === 'passkey' ? undefined : primary.shown
  return { displayName, name: address ?? displayName }
}

/** Else two decoders could read two texts. */
function assertCanonical(...texts: readonly string[]): void {
  const areCanonical = texts.every(text => Buffer.from(text, 'base64url').toString('base64url') === text)
  if (!areCanonical) throw refusal('PASSKEY_INVALID')
}

function refusal(code: ErrorCode): SignalError {
  return new SignalError(code, SENTENCES[code] ?? 'the passkey is not accepted')
}

const SENTENCES: Partial<Record<ErrorCode, string>> = {
  PASSKEYS_OFF: 'this server takes no passkeys',
  PASSKEY_UNKNOWN: 'no account has this passkey: it may have been removed',
  PASSKEY_ORIGIN_REFUSED: 'passkeys of this server can not be used from there',
  PASSKEY_RP_REFUSED: 'the passkey is of another domain',
  PASSKEY_CHALLENGE_GONE: 'the challenge is over, or of another session or purpose: ask for new options',
  PASSKEY_NOT_VERIFIED: 'the authenticator has not verified its user',
}
