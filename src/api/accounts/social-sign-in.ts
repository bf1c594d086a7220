/**
 * Signing in by an identity provider (contract 2.6, 2.7): `login` with `verified: true`, and `platform-login` for Sign
 * in with Apple. `verified` is a claim: a token of the provider in the same request has to prove it. The token's
 * subject opens its account or makes one; its addresses never do.
 */

import { type SocialMethod, socialIdentifier } from '../../domain/accounts/account.ts'
import type { SocialIdentity } from '../../domain/accounts/challenge.ts'
import type { Proof } from '../../domain/accounts/session.ts'
import { decideSocialSignIn, nameOfNewcomer } from '../../domain/accounts/social-sign-in.ts'
import { SignalError } from '../../errors.ts'
import { SignedIn } from '../../schema/account.ts'
import { PlatformLoginRequest } from '../../schema/profile.ts'
import type { MethodOwner } from '../../store/accounts/account-tables.ts'
import type { ChallengeReply } from '../../store/accounts/challenge-store.ts'
import type { Change, View } from '../../store/engine/store.ts'
import type { ApiDeps } from '../deps.ts'
import { operationWithBody, type RateRule, type Reply } from '../table/operation.ts'
import { readDisplayName } from './addresses.ts'
import type { SignInRequest, SignIns } from './sign-ins.ts'
import { APPLE, type SocialClaim, tokenUsed, type VerifiedToken } from './social-identities.ts'

type Deps = Pick<ApiDeps, 'accounts' | 'challenges' | 'database' | 'identities' | 'identityTokens'> & {
  readonly signIns: SignIns
}

/** The claim of a request; `attempt` is its `Idempotency-Key`, by which a retry gets the first reply. */
export interface SocialSignInClaim extends SocialClaim {
  readonly displayName?: string | undefined
  readonly attempt?: string | undefined
  /** For the operator's login check, where a code has to confirm the identity. */
  readonly attestation?: string | undefined
}

/** An identity that its provider has proven, and the person's wished name. */
interface ProvenIdentity {
  readonly identity: SocialIdentity
  readonly token: VerifiedToken
  readonly displayName: string | undefined
  readonly attestation: string | undefined
}

/** The outcome of a token, kept for a retry after a lost reply. */
type Outcome =
  | { readonly kind: 'signed-in'; readonly reply: object }
  | { readonly kind: 'account-exists'; readonly challenge: ChallengeReply }
  | { readonly kind: 'used' }

export class SocialSignIn {
  readonly #deps: Deps
  /** Attempts that wait for Apple. A retry joins them, since Apple exchanges a code only once. */
  readonly #underWay = new Map<string, Promise<Outcome>>()

  constructor(deps: Deps) {
    this.#deps = deps
  }

  /**
   * The reply of a social login. Rejects with `PROVIDER_TOKEN_REQUIRED`, `PROVIDER_TOKEN_INVALID`, `AUTH_CODE_INVALID`,
   * `PROVIDER_UNAVAILABLE`, `VALIDATION_FAILED`, `ACCOUNT_EXISTS` with the `challenge` that links. Where that can't be
   * sent, rejects with `RATE_LIMITED` or `DELIVERY_UNAVAILABLE`.
   */
  async signIn(claim: SocialSignInClaim, request: SignInRequest): Promise<Reply> {
    const displayName = readDisplayName(claim.displayName)
    const token = await this.#deps.identities.verify(claim)
    const outcome = await this.#outcomeOnce({ ...claim, displayName }, token, request)
    switch (outcome.kind) {
      case 'signed-in':
        return { status: 200, body: outcome.reply }
      case 'account-exists':
        throw accountExists(outcome.challenge)
      case 'used':
        throw tokenUsed()
    }
  }

  /** The outcome of the token; for a retry, the outcome of its first use. */
  async #outcomeOnce(
    claim: SocialSignInClaim,
    token: VerifiedToken,
    request: SignInRequest,
  ): Promise<Outcome> {
    const { attempt } = claim
    const earlier = this.#deps.database.view(view => this.#outcomeBefore(view, token, attempt))
    if (earlier !== undefined) return earlier
    if (attempt === undefined) return this.#use(claim, token, request)
    const name = `${token.tokenDigest} ${attempt}`
    const underWay = this.#underWay.get(name) ?? this.#use(claim, token, request)
    this.#underWay.set(name, underWay)
    return underWay.finally(() => this.#underWay.delete(name))
  }

  async #use(claim: SocialSignInClaim, token: VerifiedToken, request: SignInRequest): Promise<Outcome> {
    const { identities, identityTokens, database } = this.#deps
    const identity = await identities.complete(token, claim)
    return database.change(change => {
      // Looked up again: the token may have been used during the exchange with Apple.
      const earlier = this.#outcomeBefore(change, token, claim.attempt)
      if (earlier !== undefined) return earlier
      const { displayName, attestation } = claim
      const outcome = this.#signIn(change, { identity, token, displayName, attestation }, request)
      const use = { tokenDigest: token.tokenDigest, attempt: claim.attempt }
      identityTokens.keep(change, use, outcome, token.expiresAtMs)
      return outcome
    }, request.nowMs)
  }

  #outcomeBefore(
    view: View,
    { tokenDigest }: VerifiedToken,
    attempt: string | undefined,
  ): Outcome | undefined {
    const use = this.#deps.identityTokens.find(view, { tokenDigest, attempt })
    if (use === undefined) return undefined
    return use.outcome === undefined ? { kind: 'used' } : (use.outcome as Outcome)
  }

  #signIn(
    change: Change,
    { identity, token, displayName, attestation }: ProvenIdentity,
    request: SignInRequest,
  ): Outcome {
    const { accounts, signIns } = this.#deps
    const subject = socialIdentifier(identity.issuer, identity.subject)
    const decision = decideSocialSignIn(
      subject,
      token,
      identifier => accounts.ownerOf(change, identifier)?.userId,
    )
    const proof: Proof = identity.provider === APPLE ? 'apple' : 'social'
    switch (decision.kind) {
      case 'known': {
        const owner = accounts.ownerOf(change, subject)
        this.#renew(change, owner, identity)
        const known = { userId: decision.userId, isNewUser: false, proof, methodId: owner?.methodId }
        return { kind: 'signed-in', reply: signIns.open(change, known, request).reply }
      }
      case 'new': {
        const userId = signIns.newUser(change, nameOfNewcomer(displayName, token), identity, request)
        const { reply } = signIns.open(change, { userId, isNewUser: true, proof }, request)
        return { kind: 'signed-in', reply }
      }
      case 'confirm': {
        const { userId, email } = decision
        const purpose = { kind: 'link', userId, identity } as const
        const address = { kind: 'email', key: email, shown: email } as const
        const { network, acceptLanguage: language } = request
        const challenge = this.#deps.challenges.begin(change, {
          purpose,
          address,
          network,
          language,
          attestation,
        })
        return { kind: 'account-exists', challenge }
      }
    }
  }

  /** Updates a known identity: its provider's address for it, and Apple's latest refresh token. */
  #renew(change: Change, owner: MethodOwner | undefined, identity: SocialIdentity): void {
    const { accounts } = this.#deps
    const method = owner === undefined ? undefined : accounts.method(change, owner)
    if (owner === undefined || method?.kind !== 'social') return
    const renewed: SocialMethod = { ...method, ...identity, lastUsedAtMs: change.nowMs }
    accounts.putMethod(change, owner.userId, renewed)
  }
}

/** Refusals of signing in by a provider. */
export const SOCIAL_CODES = [
  'PROVIDER_TOKEN_REQUIRED',
  'PROVIDER_TOKEN_INVALID',
  'PROVIDER_UNAVAILABLE',
  'AUTH_CODE_INVALID',
  'ACCOUNT_EXISTS',
  'DELIVERY_UNAVAILABLE',
  'ACCOUNT_SUSPENDED',
] as const
const SOCIAL_RATE: RateRule = { name: 'social', by: 'address' }

export const platformLogin = operationWithBody(PlatformLoginRequest, {
  id: 'platformLogin',
  method: 'POST',
  path: '/app/api/platform-login',
  tag: 'sign-in',
  summary: 'Sign in with Apple, or with another provider of the platform',
  access: 'public',
  replies: { 200: SignedIn },
  codes: SOCIAL_CODES,
  rates: [SOCIAL_RATE],
  readsIdempotencyKey: true,
  handle: ({ social }: { readonly social: Pick<SocialSignIn, 'signIn'> }, request) => {
    const { platform = APPLE, nonce, displayName, ...sent } = request.body
    const idToken = sent.identityToken ?? sent.idToken
    const authorizationCode = sent.authorizationCode ?? sent.authCode
    const claim = { provider: platform, idToken, nonce, authorizationCode }
    return social.signIn({ ...claim, displayName, attempt: request.idempotencyKey }, request)
  },
})

/** The address belongs to an account here: a code sent there proves that both are one person. */
function accountExists(challenge: ChallengeReply): SignalError {
  return new SignalError(
    'ACCOUNT_EXISTS',
    'an account signs in with this email address: confirm the code sent to it',
    {
      members: { challenge },
    },
  )
}
