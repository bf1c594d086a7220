/**
 * What follows a right code (contract 0.1, "2.2, 2.4"): a session, a wait for the owner's answer, or a fresh account that the
 * address moves to. `src/domain/accounts/waiting-sign-in.ts` has the rules. `login` answers as ever.
 */

import type { Static } from 'typebox'
import { p256Verify } from '#primitives'
import { type AddressMethod, addressIdentifier } from '../../domain/accounts/account.ts'
import type { Address, ChallengePurpose } from '../../domain/accounts/challenge.ts'
import { displayNameFromEmail } from '../../domain/accounts/display-name.ts'
import { decideRefresh, lasts } from '../../domain/accounts/session.ts'
import { shownAgent } from '../../domain/accounts/sign-in-place.ts'
import { parseRefreshToken } from '../../domain/accounts/token.ts'
import type { DeviceId, UserId } from '../../domain/ids.ts'
import { assertNotSuspended } from '../../domain/operators/suspension.ts'
import { SignalError } from '../../errors.ts'
import { LIST_SIGNATURE_BYTES, parseDeviceList } from '../../log/device-list.ts'
import { signInMessage } from '../../log/signing-messages.ts'
import { spokenCode } from '../../log/spoken-code.ts'
import type { VerifyLoginRequest } from '../../schema/account.ts'
import { timeText } from '../../schema/time.ts'
import type { MethodOwner } from '../../store/accounts/account-tables.ts'
import type { Confirmed, RefusedAttempt } from '../../store/accounts/challenge-store.ts'
import { type NamedSignIn, waitingSignInOf } from '../../store/accounts/waiting-sign-ins.ts'
import type { Change, View } from '../../store/engine/store.ts'
import type { ApiDeps } from '../deps.ts'
import { endAccount } from './account-erasure.ts'
import type { SignInRequest, SignIns } from './sign-ins.ts'

export type RightCodeDeps = Pick<
  ApiDeps,
  | 'accounts'
  | 'addresses'
  | 'deviceLists'
  | 'devices'
  | 'erasure'
  | 'lifetimes'
  | 'loginMethods'
  | 'secrets'
  | 'sessionNetworks'
  | 'sessions'
  | 'waitingSignIns'
> & { readonly signIns: SignIns }

/** By what a client shows that the account knows it. */
export type Proofs = Pick<
  Static<typeof VerifyLoginRequest>,
  'challengeId' | 'device' | 'reclaim' | 'refreshToken' | 'waitingId'
>

export type Entry =
  | { readonly kind: 'signed-in'; readonly reply: object }
  | { readonly kind: 'waiting'; readonly waitingId: string; readonly named: NamedSignIn }
  /** `isAccount`: it is not an address that was refused, but any token for the account. */
  | { readonly kind: 'held'; readonly untilMs: number; readonly isAccount?: true }
  | { readonly kind: 'gone' }
  | RefusedAttempt

/** After a code was accepted: to whom the address belongs is looked up now, not when it was asked for. */
export function enter(
  change: Change,
  deps: RightCodeDeps,
  confirmed: Confirmed,
  proofs: Proofs,
  request: SignInRequest,
): Entry {
  const { purpose, address } = confirmed
  const owner = deps.accounts.ownerOf(change, addressIdentifier(address.kind, address.key))
  if (purpose.kind === 'link' && owner?.userId !== purpose.userId)
    return { kind: 'refused', code: 'CHALLENGE_GONE' }
  const language = confirmed.language === '' ? request.acceptLanguage : confirmed.language
  const asked = { address, displayName: nameOf(purpose, address), language, ...identityOf(purpose) }
  if (owner === undefined) {
    const bereft = bereftAccount(change, deps, proofs)
    if (bereft === undefined) return signedIn(newcomer(change, deps, asked, request))
    const method = deps.loginMethods.add(change, { userId: bereft }, address)
    const known = { userId: bereft, isNewUser: false, proof: 'otp', methodId: method.id } as const
    return signedIn(deps.signIns.open(change, known, request))
  }
  return enterAccount(change, deps, { ...asked, owner }, proofs, request)
}

/** The session that the wait of a right code has come to; undefined where the account or its address is gone, or its owner has ended it. */
export function enterAfterWait(
  change: Change,
  deps: RightCodeDeps,
  named: NamedSignIn,
  opens: 'account' | 'fresh-account',
  request: SignInRequest,
): Entry | undefined {
  const { accounts, waitingSignIns } = deps
  const { address, ...signIn } = named.signIn
  const owner = address && accounts.ownerOf(change, addressIdentifier(address.kind, address.key))
  if (address === undefined || owner?.userId !== signIn.userId) return undefined
  const asked = { ...signIn, address, owner }
  const entry =
    opens === 'account'
      ? openAccount(change, deps, { ...asked, isUnanswered: signIn.answer === undefined }, request)
      : move(change, deps, asked, request)
  waitingSignIns.open(change, named, entry.sessionId)
  return { kind: 'signed-in', reply: entry.reply }
}

/** A client's request that its code has proven. */
interface Asked extends Pick<NamedSignIn['signIn'], 'displayName' | 'identity' | 'language'> {
  readonly address: Address
}

interface AskedOf extends Asked {
  readonly owner: MethodOwner
  /** It waited, without an answer. */
  readonly isUnanswered?: boolean
}

function enterAccount(
  change: Change,
  deps: RightCodeDeps,
  asked: AskedOf,
  proofs: Proofs,
  request: SignInRequest,
): Entry {
  const { waitingSignIns, addresses } = deps
  const { address, owner } = asked
  // Before a wait, which no device of theirs could end, and before the address may open another account.
  assertNotSuspended(deps.accounts.read(change, owner.userId), change.nowMs)
  const method = deps.accounts.method(change, owner) as AddressMethod
  if (isKnownDevice(change, deps, owner.userId, proofs)) {
    waitingSignIns.takeBackRefusal(change, owner.userId, address)
    return signedIn(openAccount(change, deps, asked, request))
  }
  // Reviewers of app stores sign in by a fixed code, without the account's devices.
  if (addresses.testCodes.has(address.key)) return signedIn(openAccount(change, deps, asked, request))
  const effect = waitingSignIns.effectOf(change, owner.userId, method, change.nowMs)
  switch (effect.kind) {
    case 'open':
      return signedIn(openAccount(change, deps, asked, request))
    case 'refused':
      return { kind: 'held', untilMs: effect.untilMs }
    case 'move': {
      const entered = move(change, deps, asked, request)
      if (effect.closes) endAccount(change, deps, owner.userId)
      return signedIn(entered)
    }
    case 'wait':
      return wait(change, deps, asked, { ...proofs, opens: effect.opens }, request)
  }
}

function wait(
  change: Change,
  deps: RightCodeDeps,
  { owner, ...asked }: AskedOf,
  { waitingId, opens }: Pick<Proofs, 'waitingId'> & Pick<NamedSignIn['signIn'], 'opens'>,
  request: SignInRequest,
): Entry {
  const { waitingSignIns } = deps
  const { userId } = owner
  const held = waitingId === undefined ? undefined : waitingSignIns.held(change, idBytes(waitingId))
  const waiting = waitingSignInOf(change, userId, change.nowMs)
  const isSame = held !== undefined && waiting !== undefined && Buffer.compare(held.id, waiting.id) === 0
  if (isSame && waitingId !== undefined && held.signIn.address?.key === asked.address.key)
    return { kind: 'waiting', waitingId, named: held }
  return beginWait(change, deps, { ...asked, userId, opens }, request)
}

/** Has a client wait for the owner's answer. */
export function beginWait(
  change: Change,
  { sessionNetworks, waitingSignIns }: Pick<RightCodeDeps, 'sessionNetworks' | 'waitingSignIns'>,
  asked: Omit<Parameters<ApiDeps['waitingSignIns']['begin']>[1], 'userAgent' | 'network'>,
  { network, userAgent }: SignInRequest,
): Entry {
  const place = { userAgent: shownAgent(userAgent), ...sessionNetworks.memberOf(network) }
  const { secret, ...named } = waitingSignIns.begin(change, { ...asked, ...place })
  return { kind: 'waiting', waitingId: Buffer.from(secret).toString('base64url'), named }
}

export interface Entered {
  readonly reply: object
  readonly sessionId: Uint8Array
}

function openAccount(change: Change, deps: RightCodeDeps, asked: AskedOf, request: SignInRequest): Entered {
  const { accounts, loginMethods, signIns } = deps
  const { owner, identity, language } = asked
  const { userId } = owner
  if (identity !== undefined) loginMethods.link(change, { userId }, identity)
  const method = accounts.method(change, owner)
  if (method !== undefined) accounts.putMethod(change, userId, { ...method, lastUsedAtMs: change.nowMs })
  const unanswered = asked.isUnanswered ? { isUnanswered: true as const } : {}
  const known = { userId, isNewUser: false, proof: 'otp', methodId: owner.methodId, ...unanswered } as const
  const entered = signIns.open(change, known, request)
  // After the owner's letters: the language of an intruder is not theirs.
  const user = accounts.read(change, userId)
  if (user !== undefined && language !== '')
    accounts.put(change, userId, { ...user, acceptLanguage: language })
  return entered
}

/** The address leaves its account for a fresh one. */
function move(change: Change, deps: RightCodeDeps, asked: AskedOf, request: SignInRequest): Entered {
  const { accounts, loginMethods } = deps
  const { owner } = asked
  loginMethods.lose(change, owner.userId, accounts.method(change, owner) as AddressMethod)
  return newcomer(change, deps, asked, request)
}

function newcomer(
  change: Change,
  { loginMethods, signIns }: RightCodeDeps,
  { address, displayName, identity, language }: Asked,
  request: SignInRequest,
): Entered {
  const { network, userAgent, nowMs } = request
  const asked = { network, userAgent, nowMs, acceptLanguage: language }
  const userId = signIns.newUser(change, displayName, address, asked)
  if (identity !== undefined) loginMethods.link(change, { userId }, identity)
  return signIns.open(change, { userId, isNewUser: true, proof: 'otp' }, request)
}

function signedIn({ reply }: Entered): Entry {
  return { kind: 'signed-in', reply }
}

/** Whether the client is a device of the account's list. */
export function isKnownDevice(
  change: Change,
  deps: Pick<RightCodeDeps, 'deviceLists' | 'devices' | 'lifetimes' | 'secrets' | 'sessions'>,
  userId: UserId,
  proofs: Pick<Proofs, 'challengeId' | 'device' | 'refreshToken'>,
): boolean {
  const { device, refreshToken } = proofs
  if (device !== undefined && BigInt(device.userId) === userId && isSigned(change, deps, proofs)) return true
  if (refreshToken === undefined) return false
  const token = parseRefreshToken(deps.secrets.refreshToken, refreshToken)
  const session = token && deps.sessions.read(change, token.sessionId)
  if (!lasts(session) || session.userId !== userId || !deps.deviceLists.names(change, session)) return false
  // One that would end its session proves nothing: it may be a copy.
  const refresh = { generation: token!.generation, nowMs: change.nowMs, isListed: true }
  const { kind } = decideRefresh(session, refresh, deps.lifetimes)
  return kind === 'rotate' || kind === 'repeat'
}

/** Whether a device of its user's list has signed the challenge. */
function isSigned(
  view: View,
  deps: Pick<RightCodeDeps, 'deviceLists' | 'devices'>,
  { device, challengeId = '' }: Pick<Proofs, 'challengeId' | 'device'>,
): boolean {
  const challenge = idBytes(challengeId)
  if (device === undefined || challenge.length !== ID_BYTES) return false
  const signer = { userId: BigInt(device.userId) as UserId, deviceId: BigInt(device.deviceId) as DeviceId }
  return isSignedByListed(view, deps, signer, signInMessage(challenge), device.signature)
}

/** Whether the signature, in base64, is one of this listed device. One that was removed is none, whatever the list says. */
export function isSignedByListed(
  view: View,
  { deviceLists, devices }: Pick<ApiDeps, 'deviceLists' | 'devices'>,
  { userId, deviceId }: { readonly userId: UserId; readonly deviceId: DeviceId },
  message: Uint8Array,
  text: string,
): boolean {
  const signature = Buffer.from(text, 'base64')
  const newest = deviceLists.newest(view, userId)
  if (newest === undefined || devices.active(view, userId, deviceId) === undefined) return false
  const listed = parseDeviceList(newest.list).devices.find(each => each.deviceId === deviceId)
  const isWhole = listed !== undefined && signature.length === LIST_SIGNATURE_BYTES
  return isWhole && p256Verify(listed.signingKey, message, signature)
}

/** The account of the device, where no login method opens it any more: a new address may. */
function bereftAccount(view: View, deps: RightCodeDeps, proofs: Proofs): UserId | undefined {
  if (proofs.device === undefined || proofs.reclaim !== true || !isSigned(view, deps, proofs))
    return undefined
  const userId = BigInt(proofs.device.userId) as UserId
  const isBereft =
    deps.accounts.read(view, userId) !== undefined && deps.accounts.methodsOf(view, userId).length === 0
  return isBereft ? userId : undefined
}

function nameOf(purpose: ChallengePurpose, { key }: Address): string {
  const asked = purpose.kind === 'login' ? purpose.displayName : undefined
  return asked ?? displayNameFromEmail(key)
}

function identityOf(purpose: ChallengePurpose): Pick<Asked, 'identity'> {
  return purpose.kind === 'link' ? { identity: purpose.identity } : {}
}

/** The refusal that a waiting client hears. */
export function waitingRefusal(waitingId: string, { id, signIn }: NamedSignIn): SignalError {
  const until = timeText(signIn.endsAtMs)
  const sentence =
    'approve this sign-in on a device where you are signed in: it shows the same code. Lost them all? ' +
    `Without an answer it goes through at ${until}`
  return new SignalError('SIGN_IN_WAITING', sentence, {
    members: { waitingId, signInCode: signInCode(id), until },
  })
}

/** The refusal after the owner's. */
export function refusedRefusal({ untilMs, isAccount }: Extract<Entry, { kind: 'held' }>): SignalError {
  const until = timeText(untilMs)
  const later = isAccount ? 'another sign-in may be asked for' : 'this address opens a new account'
  const sentence = `the owner of the account refused this sign-in: from ${until} on, ${later}`
  return new SignalError('SIGN_IN_REFUSED', sentence, { members: { until } })
}

/** The digits that both screens show. */
export function signInCode(id: Uint8Array): string {
  return spokenCode('callsign waiting sign-in v1\n', id)
}

/** The bytes of an id in base64url; of any other length it names nothing. */
export function idBytes(text: string): Uint8Array {
  return Buffer.from(text, 'base64url')
}

const ID_BYTES = 16
