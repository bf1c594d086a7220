/**
 * The operations of sign-in, profile, login methods and account erasure over a real store, with an identity provider
 * and Sign in with Apple that can be asked on the loopback address. Codes are read from the outbox, as a mail is.
 */

import type { Test } from 'tap'
import { accountErasureOperations } from '../../src/api/accounts/account-erasure.ts'
import { AddressReader } from '../../src/api/accounts/addresses.ts'
import { loginMethodOperations } from '../../src/api/accounts/login-methods.ts'
import { profileOperations } from '../../src/api/accounts/profile.ts'
import { sessionOperations } from '../../src/api/accounts/session.ts'
import { signInOperations, verifyLogin } from '../../src/api/accounts/sign-in.ts'
import { SignIns } from '../../src/api/accounts/sign-ins.ts'
import { SocialIdentities } from '../../src/api/accounts/social-identities.ts'
import { platformLoginOperations, SocialSignIn } from '../../src/api/accounts/social-sign-in.ts'
import { userOperations } from '../../src/api/accounts/user-view.ts'
import { verifyOperations } from '../../src/api/accounts/verify.ts'
import type { DeviceId, UserId } from '../../src/domain/ids.ts'
import type { OutboxMessage } from '../../src/domain/messages/outbox-message.ts'
import { AppleSignIn } from '../../src/identity/apple.ts'
import { IdentityProvider } from '../../src/identity/identity-token.ts'
import { AccountErasure, type EraseOf } from '../../src/store/accounts/account-erasure.ts'
import { AccountLetters } from '../../src/store/accounts/account-letters.ts'
import { AppleConsents } from '../../src/store/accounts/apple-consents.ts'
import { ChallengeStore } from '../../src/store/accounts/challenge-store.ts'
import { IdentityTokenStore } from '../../src/store/accounts/identity-token-store.ts'
import { LoginMethods } from '../../src/store/accounts/login-methods.ts'
import { AppleStandIn } from './apple-stand-in.ts'
import { openWorld, sender, type TestAnswer, type TestWorld } from './application.ts'
import { type Claims, OidcProvider } from './oidc-provider.ts'

/** Our app's ids at the provider, and at Apple. */
export const GOOGLE_APP = 'callsign.google'
export const APPLE_APP = 'org.example.callsign'

export interface AccountHouseOptions {
  readonly rates?: boolean
  readonly stepUpSeconds?: number
  readonly isDevelopment?: boolean
  readonly hasAppleKey?: boolean
  readonly erasers?: readonly EraseOf[]
  readonly onSignedOut?: (userId: UserId, deviceId: DeviceId) => void
}

export type AccountHouse = Awaited<ReturnType<typeof openAccountHouse>>

export async function openAccountHouse(t: Test, options: AccountHouseOptions = {}) {
  const world = openWorld(t.testdir(), Date.UTC(2026, 0, 1), { rates: options.rates ?? false })
  const google = await OidcProvider.start({ nowMs: world.nowMs, algorithm: 'ES256' })
  const apple = await AppleStandIn.start({ nowMs: world.nowMs, algorithm: 'ES256' })
  t.after(async () => {
    await Promise.all([google.stop(), apple.stop()])
    await world.database.close()
  })
  const own: EraseOf[] = [
    (change, userId) => world.devices.eraseOf(change, userId),
    (_, userId) => world.inbox.eraseOf(_, userId),
  ]
  const erasers = [...own, ...(options.erasers ?? [])]
  const house = { google, apple, options, erasers }
  const { operations, ...parts } = buildOperations(world, house)
  const send = sender(world, operations)
  return { world, google, apple, send, operations, ...parts, ...requestsOf(world, google, apple, send) }
}

interface Parts {
  readonly google: OidcProvider
  readonly apple: AppleStandIn
  readonly options: AccountHouseOptions
  readonly erasers: readonly EraseOf[]
}

function buildOperations(world: TestWorld, { google, apple, options, erasers }: Parts) {
  const testIdentifiers = new Map([['+15550100', '424242']])
  const addresses = new AddressReader({ blockedCountries: new Set(['KP']), testIdentifiers })
  const { testCodes } = addresses
  const challenges = new ChallengeStore({ ...world, testCodes, canSend: () => true })
  const letters = new AccountLetters({ ...world, isTestIdentifier: key => testCodes.has(key) })
  const appleConsents = new AppleConsents(world)
  const loginMethods = new LoginMethods({ ...world, letters, appleConsents })
  const erasure = new AccountErasure({ ...world, letters, appleConsents, erasers })
  const badgeOf = () => ({ total: 0, friendRequests: 0, missedCalls: 0 })
  const identityTokens = new IdentityTokenStore(world)
  const identities = new SocialIdentities({
    providers: new Map([
      [
        'google',
        new IdentityProvider({ name: 'google', issuer: google.issuer, clientIds: [GOOGLE_APP] }, world),
      ],
    ]),
    apple: new AppleSignIn(appleOptions(apple, options.hasAppleKey ?? true), world),
    appleConsents,
    isDevelopment: options.isDevelopment ?? false,
  })
  const base = { ...world, addresses, challenges, loginMethods, erasure, badgeOf, identities, identityTokens }
  const signIns = new SignIns(base)
  const social = new SocialSignIn({ ...base, signIns })
  const whole = {
    ...base,
    signIns,
    social,
    stepUpSeconds: options.stepUpSeconds ?? 0,
    onTokenReused: () => undefined,
  }
  world.database.subscribe('signed-out', ({ userId, deviceId }) => options.onSignedOut?.(userId, deviceId))
  const operations = [
    ...signInOperations(whole),
    ...sessionOperations(whole),
    ...userOperations(whole),
    ...platformLoginOperations(social),
    ...verifyOperations({ ...whole, verifyLogin: (body, call) => verifyLogin(whole, body, call) }),
    ...profileOperations(whole),
    ...loginMethodOperations(whole),
    ...accountErasureOperations(whole),
  ]
  return { operations, challenges, loginMethods, erasure }
}

function appleOptions({ provider, teamId, keyId, privateKey }: AppleStandIn, hasKey: boolean) {
  const key = hasKey ? { teamId, keyId, privateKey } : {}
  return { clientIds: [APPLE_APP], issuer: provider.issuer, ...key }
}

/** Requests that tests make often. */
function requestsOf(
  world: TestWorld,
  google: OidcProvider,
  apple: AppleStandIn,
  send: ReturnType<typeof sender>,
) {
  const googleToken = (sub: string, claims: Claims = {}) =>
    google.idToken(GOOGLE_APP, { sub, jti: jti(), ...claims })
  const appleToken = (subject: string, claims: Claims = {}) =>
    apple.identityToken({ subject, clientId: APPLE_APP }, { jti: jti(), ...claims })
  const jti = () => Buffer.from(world.randomBytes(8)).toString('hex')
  return {
    /** An ID token of its own each time. */
    googleToken,
    appleToken,
    appleCode: (subject: string) => apple.issueCode({ subject, clientId: APPLE_APP }),
    async googleLogin(sub: string, claims: Claims = {}): Promise<TestAnswer> {
      const body = { verified: true, provider: 'google', idToken: await googleToken(sub, claims) }
      return send('POST /app/api/login', { body })
    },
    /** Signs in with an address by its code, and empties the outbox. */
    async codeLogin(email: string): Promise<TestAnswer> {
      const { body } = await send('POST /app/api/login', { body: { email } })
      const otp = otpIn(await world.takeSent(), email)
      return send('POST /app/api/verify-login', { body: { challengeId: body.challengeId, otp } })
    },
    /** The code that waits for an address, as its owner would read it; empties the outbox. */
    async otpFor(address: string): Promise<string> {
      return otpIn(await world.takeSent(), address)
    },
    /** The waiting messages, as `<channel> <to> <letter>`, sorted; empties the outbox. */
    async letters(): Promise<string[]> {
      return (await world.takeSent()).map(told).sort()
    },
  }
}

/** The latest code for the address. Throws where there is none. */
function otpIn(sent: readonly OutboxMessage[], address: string): string {
  const found = sent.flatMap(message =>
    (message.channel === 'mail' || message.channel === 'sms') &&
    message.to === address &&
    message.letter.kind === 'otp'
      ? [message.letter.otp]
      : [],
  )
  const otp = found.at(-1)
  if (otp === undefined) throw new Error(`no code waits for ${address}`)
  return otp
}

function told(message: OutboxMessage): string {
  if (message.channel === 'push') return `push ${message.notice.kind}`
  if (message.channel === 'apple') return `apple ${message.clientId}`
  return `${message.channel} ${message.to} ${message.letter.kind}`
}
