/** Everything that operations are given, each thing said once. A file takes the members that it needs. */

import type { UserTokenKey } from '../domain/accounts/user-token.ts'
import type { CallAnswer, CallRequest } from '../domain/calls/call-command.ts'
import type { LiveCalls } from '../domain/calls/live-calls.ts'
import type { TurnRelay } from '../domain/calls/turn.ts'
import type { KeysShown } from '../domain/contacts/friend-request.ts'
import type { CallId, DeviceId, UserId } from '../domain/ids.ts'
import type { Badge } from '../domain/messages/notice.ts'
import type { Rates } from '../domain/rates.ts'
import type { ProveAbsences } from '../keyserver/index/absences.ts'
import type { Alongside, Registration } from '../keyserver/registration.ts'
import type { Admit } from '../schema/call.ts'
import type { IdForm } from '../schema/json.ts'
import type { AccountErasure } from '../store/accounts/account-erasure.ts'
import type { AccountStore } from '../store/accounts/account-store.ts'
import type { ChallengeStore } from '../store/accounts/challenge-store.ts'
import type { IdentityTokenStore } from '../store/accounts/identity-token-store.ts'
import type { KnownSignInStore } from '../store/accounts/known-sign-ins.ts'
import type { LoginMethods } from '../store/accounts/login-methods.ts'
import type { SessionNetworks } from '../store/accounts/session-networks.ts'
import type { SessionNotices } from '../store/accounts/session-notices.ts'
import type { SessionStore } from '../store/accounts/session-store.ts'
import type { WaitingSignIns } from '../store/accounts/waiting-sign-ins.ts'
import type { CallHistoryStore } from '../store/calls/call-history-store.ts'
import type { CallReader, CallStore } from '../store/calls/call-store.ts'
import type { AddressSearches } from '../store/contacts/address-searches.ts'
import type { ContactReader } from '../store/contacts/contact-reader.ts'
import type { ContactStore } from '../store/contacts/contact-store.ts'
import type { ShareTokenStore } from '../store/contacts/share-token-store.ts'
import type { DeviceListStore } from '../store/devices/device-list-store.ts'
import type { DeviceStore } from '../store/devices/device-store.ts'
import type { Restrictions } from '../store/devices/restrictions.ts'
import type { ReadStore, Store, View } from '../store/engine/store.ts'
import type { WatchedCache } from '../store/engine/watched-cache.ts'
import type { InboxStore } from '../store/messages/inbox-store.ts'
import type { Notices } from '../store/messages/notices.ts'
import type { CircleStore } from '../store/operators/circles.ts'
import type { ReportStore } from '../store/operators/reports.ts'
import type { IdempotencyStore, IdempotentRequest, KeptReplies } from '../store/tables/idempotency-store.ts'
import type { RateStore } from '../store/tables/rate-store.ts'
import type { HttpRequest } from '../transport/route.ts'
import type { AddressReader } from './accounts/addresses.ts'
import type { Authentication, AuthenticationDeps, Requester } from './accounts/authentication.ts'
import type { PasskeyCeremonies } from './accounts/passkey-ceremonies.ts'
import type { SocialIdentities } from './accounts/social-identities.ts'
import type { RequestRates } from './table/request-rates.ts'

/** Parts as a read is given them: nothing can be changed. */
export interface Reading {
  readonly accounts: AccountStore
  readonly database: Pick<ReadStore, 'view'>
  readonly calls: CallReader
  readonly contacts: ContactReader
}

/** Besides what authentication is given: secrets, lifetimes and the clock. */
export interface ApiDeps extends AuthenticationDeps {
  readonly randomBytes: (length: number) => Uint8Array
  /** Answers then name the members of a request that the operation does not know. */
  readonly isDevelopment: boolean
  readonly idsAs: IdForm
  /** Where clients reach the server, such as `https://callsign.example`; known once it listens. */
  readonly publicUrl: () => string
  /** The app's own URL scheme, such as `callsign`. */
  readonly deepLinkScheme: string
  /** Those of push services that browsers may be pushed to by. */
  readonly webPushHosts: readonly string[]
  /** The operator's services that user tokens may be for. */
  readonly tokenAudiences: readonly string[]
  /** Signs user tokens; undefined where there is none. */
  readonly userTokenKey: UserTokenKey | undefined
  /** How long a proof is good for, in seconds; 0 switches step-up off. */
  readonly stepUpSeconds: number
  /** Where the operator's backend makes contacts, users send no requests. */
  readonly contactsBy: 'users' | 'server'
  /** Undefined where no rate counts, in development. */
  readonly rateLimits: Rates | undefined
  /** The counts of this process; undefined likewise. */
  readonly requestRates: RequestRates | undefined
  /** Undefined where none is configured. */
  readonly relay: TurnRelay | undefined

  readonly database: Store
  readonly accounts: AccountStore
  readonly loginMethods: LoginMethods
  readonly challenges: ChallengeStore
  readonly sessions: SessionStore
  readonly sessionNetworks: SessionNetworks
  readonly sessionNotices: SessionNotices
  readonly knownSignIns: KnownSignInStore
  readonly identityTokens: IdentityTokenStore
  readonly waitingSignIns: WaitingSignIns
  readonly erasure: AccountErasure
  readonly devices: DeviceStore
  readonly deviceLists: DeviceListStore
  readonly restrictions: Restrictions
  readonly contacts: ContactStore
  readonly searches: AddressSearches
  readonly shareTokens: ShareTokenStore
  readonly circles: CircleStore
  readonly calls: CallStore
  readonly history: CallHistoryStore
  readonly callIndex: LiveCalls
  readonly liveCallsOf: LiveCallsOf
  readonly inbox: InboxStore
  readonly reports: ReportStore
  readonly notices: Pick<Notices, 'tell' | 'tellOnly'>
  readonly rates: RateStore
  readonly idempotency: IdempotencyStore
  readonly keptReplies: Pick<KeptReplies, 'find'>
  /** Over `USER_VIEW_TABLES`. */
  readonly userViews: UserViews

  readonly authentication: Authentication
  readonly addresses: AddressReader
  readonly identities: SocialIdentities
  readonly passkeys: PasskeyCeremonies

  readonly askRoom: AskRoom
  /** Undefined where the media's room is the clients' business. */
  readonly admit?: Admit | undefined
  readonly badgeOf: (view: View, userId: UserId) => Badge
  /** Which keys of another a user may read, if any: those of contacts, by a request by token, of a common live call. */
  readonly keysShown: (asker: UserId, owner: UserId) => KeysShown | undefined
  /** Appends a key to the log; the same key again is answered with the index it has. */
  readonly register: (
    userId: UserId,
    deviceId: DeviceId,
    publicKey: string,
    alongside?: Alongside,
  ) => Promise<Registration>
  /** For users without a device list. */
  readonly proveAbsences: ProveAbsences
  /** Whose key the log has under this hash (64 bytes). */
  readonly identityOf: (
    vrfHash: Uint8Array,
  ) => { readonly userId: bigint; readonly deviceId: bigint } | undefined
  /** Told whose request it is, once its token was found to be good; absent but in development. */
  readonly onRequester?: (request: HttpRequest, requester: Requester) => void
  /** Told of a token that was used after it was replaced, for the log of the process. */
  readonly onTokenReused: (userId: UserId, requestId: string) => void
}

/**
 * The live calls that a user has a part in, also those with an end that is not durable yet. Other processes ask the writer; by
 * the time they have its answer, their copies show everything that the writer did.
 */
export type LiveCallsOf = (userId: UserId) => readonly CallId[] | Promise<readonly CallId[]>

/**
 * Puts a request to the room of a call; resolves once it has been carried out durably, and rejects with what it was
 * refused with, else with `OVERLOADED` or `STORE_UNAVAILABLE`.
 */
export type AskRoom = (
  callId: CallId,
  request: CallRequest,
  idempotent?: IdempotentRequest,
) => Promise<CallAnswer>

/** The JSON of a user's view by the device that asks, undefined for a session without one. */
export type UserViews = WatchedCache<UserId, Map<DeviceId | undefined, Uint8Array>>
