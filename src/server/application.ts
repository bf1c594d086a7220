/**
 * The application API put together: its stores, its operations, the senders behind its outbox. It holds no rule;
 * `start.ts` hands in parts of the process (store, clocks, the log, actors).
 */

import { accountErasureOperations } from '../api/accounts/account-erasure.ts'
import { AddressReader } from '../api/accounts/addresses.ts'
import type { Authentication } from '../api/accounts/authentication.ts'
import { loginMethodOperations } from '../api/accounts/login-methods.ts'
import { profileOperations } from '../api/accounts/profile.ts'
import { sessionOperations } from '../api/accounts/session.ts'
import { signInOperations, verifyLogin } from '../api/accounts/sign-in.ts'
import { SignIns } from '../api/accounts/sign-ins.ts'
import { SocialIdentities } from '../api/accounts/social-identities.ts'
import { platformLoginOperations, SocialSignIn } from '../api/accounts/social-sign-in.ts'
import { userOperations } from '../api/accounts/user-view.ts'
import { verifyOperations } from '../api/accounts/verify.ts'
import { callHistoryOperations } from '../api/calls/call-history.ts'
import { callViewOperations } from '../api/calls/call-views.ts'
import { callOperations } from '../api/calls/calls.ts'
import { credentialsOperations } from '../api/calls/credentials.ts'
import { contactOperations } from '../api/contacts/contacts.ts'
import { friendRequestOperations } from '../api/contacts/friend-requests.ts'
import { landingRoutes } from '../api/contacts/landing.ts'
import { shareTokenOperations } from '../api/contacts/share-tokens.ts'
import type { ApiDeps, AskRoom } from '../api/deps.ts'
import { DeviceLists } from '../api/devices/device-lists.ts'
import { DeviceRegistration } from '../api/devices/device-registration.ts'
import { deviceOperations } from '../api/devices/devices.ts'
import type { Features } from '../api/documents/meta.ts'
import type { Operation } from '../api/table/operation.ts'
import { operationRoutes } from '../api/table/operation-routes.ts'
import { ApnsSender } from '../delivery/apns.ts'
import { Delivery, type Rendered } from '../delivery/delivery.ts'
import { FcmSender } from '../delivery/fcm.ts'
import { MailSender } from '../delivery/mail.ts'
import { SmsSender } from '../delivery/sms.ts'
import type { SmsStop } from '../domain/accounts/sms-budget.ts'
import type { LiveCalls } from '../domain/calls/live-calls.ts'
import { developmentRelay } from '../domain/calls/turn.ts'
import { PRESENT_KEYS } from '../domain/contacts/friend-request.ts'
import type { DeviceId, UserId } from '../domain/ids.ts'
import type { Rates } from '../domain/rates.ts'
import { AppleSignIn } from '../identity/apple.ts'
import { IdentityProvider } from '../identity/identity-token.ts'
import { RoomTokens } from '../media/room-tokens.ts'
import { AccountErasure, type EraseOf } from '../store/accounts/account-erasure.ts'
import { AccountLetters } from '../store/accounts/account-letters.ts'
import { AppleConsents } from '../store/accounts/apple-consents.ts'
import { ChallengeStore } from '../store/accounts/challenge-store.ts'
import { IdentityTokenStore } from '../store/accounts/identity-token-store.ts'
import { LoginMethods } from '../store/accounts/login-methods.ts'
import { SmsBudget } from '../store/accounts/sms-budget.ts'
import type { OutboxStore } from '../store/messages/outbox-store.ts'
import type { HttpRoute } from '../transport/route.ts'
import type { Stores } from './application-stores.ts'
import type { ApplicationConfig } from './settings/application-config.ts'

export interface ApplicationDeps {
  readonly config: ApplicationConfig
  readonly isDevelopment: boolean
  /** Where devices find a relay on this machine, for development; loopback where it is left out. */
  readonly relayHost?: string | undefined
  /** Undefined where no rate counts, in development. */
  readonly rateLimits: Rates | undefined
  readonly stores: Stores
  readonly authentication: Authentication
  readonly nowMs: () => number
  readonly monotonicMs: () => number
  readonly randomBytes: (length: number) => Uint8Array
  /** The address that clients see; known once the server listens. */
  readonly publicUrl: () => string
  readonly register: ApiDeps['register']
  /** Whose key the log has under a VRF hash (64 bytes). */
  readonly identityOf: (
    vrfHash: Uint8Array,
  ) => { readonly userId: bigint; readonly deviceId: bigint } | undefined
  /** Puts a request to the room of a call. */
  readonly askRoom: AskRoom
  readonly callIndex: LiveCalls
  /** See `ApiDeps`. */
  readonly admit?: ApiDeps['admit']
  /** Called with each request's user; absent but in development. */
  readonly onRequester?: (
    request: { readonly requestId: string },
    requester: { readonly userId: UserId; readonly deviceId?: DeviceId },
  ) => void
  /** Called with each outgoing message; absent but in development. */
  readonly onRendered?: (rendered: Rendered) => void
  /** Short messages to some numbers have stopped, since so few of their codes are confirmed. */
  readonly onSmsStopped: (stop: SmsStop) => void
  readonly onTokenReused: (userId: UserId, requestId: string) => void
}

export interface Application {
  readonly operations: readonly Operation[]
  /** Which outside services are configured, and what one can sign in with. */
  readonly features: Features
  readonly loginMethods: readonly string[]
  readonly routes: readonly HttpRoute[]
  readonly outbox: OutboxStore
  readonly delivery: Delivery
  readonly registration: DeviceRegistration
  readonly lists: DeviceLists
  /** Ends expired rows; resolves with their number, at most `countMax`. */
  readonly expire: (countMax: number) => Promise<number>
  /** Forgets counts of the past. */
  readonly sweep: () => void
  readonly close: () => void
}

/** What admits devices to the rooms of a gateway, in every process: tokens follow from the settings. */
export function admitOf({ janus }: Pick<ApplicationConfig, 'janus'>): ApiDeps['admit'] {
  return janus && new RoomTokens(janus).admit
}

export function openApplication(deps: ApplicationDeps): Application {
  const { config, stores, nowMs, publicUrl } = deps
  const { database } = stores
  const senders = openSenders(deps)
  const { devices, outbox, expiries } = stores
  const delivery = new Delivery({
    senders: senders.byChannel,
    letters: {
      appName: config.appName,
      language: config.language,
      get domain() {
        return new URL(publicUrl()).hostname
      },
      ...(config.smsRetrieverHash === undefined ? {} : { retrieverHash: config.smsRetrieverHash }),
    },
    bundleId: config.bundleId,
    nowMs,
    deviceOf: (userId, deviceId) =>
      database
        .view(view => devices.activeDevicesOf(view, userId))
        .find(device => device.deviceId === deviceId),
    badgeOf: userId => database.view(view => stores.badgeOf(view, userId)).total,
    isRinging: (callId, userId) => stores.calls.ringingAt(callId).has(userId),
    dropToken: (userId, deviceId, token, beforeMs) => devices.dropToken(userId, deviceId, token, beforeMs),
    setApnsEnvironment: (userId, deviceId, environment) =>
      devices.setApnsEnvironment(userId, deviceId, environment),
    ...(deps.onRendered === undefined ? {} : { onRendered: deps.onRendered }),
  })
  const { operations, registration, lists } = joinOperations(deps, senders)
  const { routes, sweep } = operationRoutes(operations, {
    ...deps,
    ...stores,
    idsAs: config.idsAs,
  })
  const { mail, sms, apns, fcm, apple } = senders.byChannel
  return {
    operations,
    features: {
      mail: !!mail,
      sms: !!sms,
      apns: !!apns,
      fcm: !!fcm,
      turn: !!config.turn,
      media: deps.admit ? 'janus' : 'client',
    },
    loginMethods: [
      ...(mail || deps.isDevelopment ? ['email'] : []),
      ...(sms || deps.isDevelopment ? ['phone'] : []),
      ...(apple ? ['apple'] : []),
      ...config.providers.map(({ name }) => name),
    ],
    routes: [...routes, ...landingRoutes({ ...config, isDevelopment: deps.isDevelopment })],
    outbox,
    delivery,
    registration,
    lists,
    expire: countMax => expiries.sweep(nowMs(), countMax),
    sweep,
    close: senders.close,
  }
}

type OpenedSenders = ReturnType<typeof openSenders>

function openSenders({ config, nowMs }: Pick<ApplicationDeps, 'config' | 'nowMs'>) {
  const mail = config.mail && new MailSender(config.mail)
  const sms = config.sms && new SmsSender(config.sms)
  const apns = config.apns && new ApnsSender({ ...config.apns, nowMs })
  const fcm = config.fcm && new FcmSender({ ...config.fcm, nowMs })
  const apple = config.apple && new AppleSignIn(config.apple, { nowMs })
  const close = (): void => {
    mail?.close()
    apns?.close()
    fcm?.close()
  }
  const byChannel = {
    ...(mail && { mail }),
    ...(sms && { sms }),
    ...(apns && { apns }),
    ...(fcm && { fcm }),
    ...(apple && { apple }),
  }
  return { byChannel, apple, close }
}

function joinOperations(deps: ApplicationDeps, senders: OpenedSenders) {
  const { config, stores, authentication, isDevelopment, relayHost = '127.0.0.1' } = deps
  const addresses = new AddressReader(config)
  const { testCodes } = addresses
  // In development, messages without a sender are shown instead.
  const canSend = (channel: 'mail' | 'sms') => isDevelopment || senders.byChannel[channel] !== undefined
  const base = { ...deps, ...stores, addresses, stepUpSeconds: config.stepUpS }
  const smsBudget = new SmsBudget(stores.database, stores.expiries, config.smsBudgets, deps.onSmsStopped)
  const budget = deps.rateLimits === undefined ? {} : { smsBudget }
  const challenges = new ChallengeStore({
    ...base,
    testCodes,
    canSend,
    ...budget,
  })
  const letters = new AccountLetters(
    stores.accounts,
    stores.outbox,
    key => testCodes.has(key),
    budget.smsBudget,
  )
  const appleConsents = new AppleConsents(base)
  const loginMethods = new LoginMethods({ ...base, letters, appleConsents })
  const erasers: EraseOf[] = [
    (change, userId) => stores.devices.eraseOf(change, userId),
    (change, userId) => stores.deviceLists.eraseOf(change, userId),
    (change, userId) => stores.knownSignIns.eraseOf(change, userId),
    (change, userId) => stores.inbox.eraseOf(change, userId),
    (change, userId) => stores.history.eraseOf(change, userId),
    (change, userId) => stores.shareTokens.eraseOf(change, userId),
    (change, userId) => stores.contacts.eraseOf(change, userId),
  ]
  const erasure = new AccountErasure({ ...base, letters, appleConsents, erasers })
  const identityTokens = new IdentityTokenStore(base)
  const providers = config.providers.map(
    options => [options.name, new IdentityProvider(options, deps)] as const,
  )
  const identities = new SocialIdentities(new Map(providers), senders.apple, appleConsents, isDevelopment)
  const { contacts } = stores
  const keysShown = (asker: UserId, owner: UserId) =>
    deps.callIndex.haveInCommon(asker, owner)
      ? PRESENT_KEYS
      : base.database.view(view =>
          contacts.keysShown(view, asker, owner, deps.nowMs(), stores.accounts.read(view, owner)),
        )
  const shared = {
    ...base,
    authentication,
    challenges,
    loginMethods,
    erasure,
    identities,
    identityTokens,
  }
  const signIns = new SignIns(shared)
  const social = new SocialSignIn({ ...shared, signIns })
  const signInDeps = { ...shared, signIns, social }
  const lists = new DeviceLists(shared)
  const registration = new DeviceRegistration({ ...shared, lists })
  const operations = [
    ...signInOperations(signInDeps),
    ...sessionOperations(shared),
    ...userOperations({ ...shared, idsAs: config.idsAs }),
    ...platformLoginOperations(social),
    ...verifyOperations({ ...shared, verifyLogin: (body, call) => verifyLogin(signInDeps, body, call) }),
    ...profileOperations(shared),
    ...loginMethodOperations(shared),
    ...accountErasureOperations(shared),
    ...deviceOperations({ ...shared, lists, registration, keysShown }),
    ...shareTokenOperations({ ...shared, deepLinkScheme: config.deepLinkScheme }),
    ...friendRequestOperations(shared),
    ...contactOperations(shared),
    ...credentialsOperations({
      relay: config.turn ?? (isDevelopment ? developmentRelay(relayHost) : undefined),
    }),
    ...callOperations(shared),
    ...callViewOperations(shared),
    ...callHistoryOperations(shared),
  ]
  return { operations, registration, lists }
}
