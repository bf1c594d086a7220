/**
 * The part of the application API that only the writer has: its operations that change anything, and messages that leave by its
 * outbox. It holds no rule; what it needs of the process (store, clocks, the log, actors) is handed in.
 */

import { setTimeout } from 'node:timers/promises'
import { AddressReader } from '../../api/accounts/addresses.ts'
import { PasskeyCeremonies } from '../../api/accounts/passkey-ceremonies.ts'
import { signInCode } from '../../api/accounts/right-codes.ts'
import { SignIns } from '../../api/accounts/sign-ins.ts'
import { SocialIdentities } from '../../api/accounts/social-identities.ts'
import { SocialSignIn } from '../../api/accounts/social-sign-in.ts'
import type { ApiDeps, AskRoom } from '../../api/deps.ts'
import { DeviceLists } from '../../api/devices/device-lists.ts'
import { DeviceRegistration } from '../../api/devices/device-registration.ts'
import { WRITES, type WriteDeps } from '../../api/operations.ts'
import type { OperateRoom } from '../../api/server-api/deps.ts'
import { SERVER_OPERATIONS } from '../../api/server-api/operations.ts'
import { operationRoutes } from '../../api/table/operation-routes.ts'
import { serverRoutes } from '../../api/table/server-routes.ts'
import { Delivery, type DeliveryDeps, type Rendered } from '../../delivery/delivery.ts'
import type { LoginCheckOutcome } from '../../delivery/login-check.ts'
import { MailSender } from '../../delivery/mail.ts'
import type { PushSettings } from '../../delivery/push-senders.ts'
import { SendingThread, type ThreadSettings } from '../../delivery/sending-thread.ts'
import { SmsSender } from '../../delivery/sms.ts'
import type { SmsStop } from '../../domain/accounts/sms-budget.ts'
import type { LiveCalls } from '../../domain/calls/live-calls.ts'
import { developmentRelay } from '../../domain/calls/turn.ts'
import { type KeysShown, PRESENT_KEYS } from '../../domain/contacts/friend-request.ts'
import { pushTokensJudged } from '../../domain/devices/device.ts'
import type { UserId } from '../../domain/ids.ts'
import { isForAnyDevice } from '../../domain/messages/inbox.ts'
import type { Rates } from '../../domain/rates.ts'
import { AppleSignIn } from '../../identity/apple.ts'
import { IdentityProvider } from '../../identity/identity-token.ts'
import * as passkeyReader from '../../identity/passkeys.ts'
import type { LookUpKeys } from '../../keyserver/lookups.ts'
import { AccountErasure } from '../../store/accounts/account-erasure.ts'
import { AccountLetters } from '../../store/accounts/account-letters.ts'
import { AppleConsents } from '../../store/accounts/apple-consents.ts'
import { ChallengeStore } from '../../store/accounts/challenge-store.ts'
import { IdentityTokenStore } from '../../store/accounts/identity-token-store.ts'
import { LoginMethods } from '../../store/accounts/login-methods.ts'
import { PasskeyChallengeStore } from '../../store/accounts/passkey-challenges.ts'
import { SessionNotices } from '../../store/accounts/session-notices.ts'
import { SmsBudget } from '../../store/accounts/sms-budget.ts'
import { WaitingSignIns } from '../../store/accounts/waiting-sign-ins.ts'
import type { OutboxStore } from '../../store/messages/outbox-store.ts'
import type { HttpRoute } from '../../transport/route.ts'
import type { Stores } from '../application-stores.ts'
import { openCommands, openReads, type Reads, type Serving } from '../reads.ts'
import type { ApplicationConfig } from '../settings/application-config.ts'
import { loginCheckOf } from './login-check.ts'
import { webhookPostsOf } from './webhooks.ts'

export interface WriterServing extends Serving {
  readonly stores: Stores
  /** The host of a relay on this machine, for development; loopback by default. */
  readonly relayHost?: string | undefined
  /** Undefined where no rate counts, in development. */
  readonly rateLimits: Rates | undefined
  readonly randomBytes: (length: number) => Uint8Array
  readonly register: ApiDeps['register']
  readonly userTokenKey: ApiDeps['userTokenKey']
  readonly proveAbsences: ApiDeps['proveAbsences']
  /** The owner of the key that the log has under a VRF hash (64 bytes). */
  readonly identityOf: ApiDeps['identityOf']
  readonly lookUpKeys: LookUpKeys
  /** Puts a request to the room of a call. */
  readonly askRoom: AskRoom
  readonly operateRoom: OperateRoom
  readonly callIndex: LiveCalls
  /** See `DeliveryDeps`. */
  readonly onRingTaken: DeliveryDeps['onRingTaken']
  /** Shows messages that leave; absent but in development. */
  readonly onRendered?: (rendered: Rendered) => void
  /** Short messages to some numbers have stopped, since so few of their codes are confirmed. */
  readonly onSmsStopped: (stop: SmsStop) => void
  /** The operator's login check was asked about a code. */
  readonly onLoginChecked: (outcome: LoginCheckOutcome) => void
  /** A try of a ring has failed, and another follows at once. */
  readonly onTryFailed: DeliveryDeps['onTryFailed']
  readonly onSendingLost: ThreadSettings['onLost']
  readonly onTokenReused: ApiDeps['onTokenReused']
}

interface Writes {
  readonly routes: readonly HttpRoute[]
  /** The server API's routes. */
  readonly serverRoutes: readonly HttpRoute[]
  readonly outbox: OutboxStore
  readonly delivery: Delivery
  readonly registration: DeviceRegistration
  readonly lists: DeviceLists
  /** Ends expired rows; resolves with their number, at most `countMax`. */
  readonly expire: (countMax: number) => Promise<number>
  /** Forgets old counts. */
  readonly sweep: () => void
  readonly close: () => Promise<void>
}

/** The whole application API: the writer's. */
export interface Application extends Reads, Writes {}

export function openApplication(serving: WriterServing): Application {
  const [reads, writes] = [openReads(serving), openWrites(serving)]
  return { ...reads, ...writes, routes: [...reads.routes, ...openCommands(serving), ...writes.routes] }
}

function openWrites(serving: WriterServing): Writes {
  const { stores, nowMs, operateRoom, lookUpKeys } = serving
  const senders = openSenders(serving)
  const smsBudget = openSmsBudget(serving)
  const deps = operationDeps(serving, senders, smsBudget)
  return {
    routes: operationRoutes(WRITES, deps),
    serverRoutes: serverRoutes(SERVER_OPERATIONS, {
      ...stores,
      ...deps,
      ...{ lookUpKeys, operateRoom, webhookPosts: webhookPostsOf(serving) },
    }),
    outbox: stores.outbox,
    delivery: openDelivery(serving, senders, smsBudget),
    registration: deps.registration,
    lists: deps.lists,
    async expire(countMax) {
      // First, since the sweep ends kept messages.
      await stores.inbox.keepLong(stores.database, nowMs())
      return await stores.expiries.sweep(stores.database, nowMs(), countMax)
    },
    sweep: () => serving.requestRates?.sweep(),
    close: senders.close,
  }
}

type Senders = ReturnType<typeof openSenders>

function openSenders({ config, nowMs, onSendingLost }: WriterServing) {
  const push = pushSettingsOf(config)
  const isPushing = Object.keys(push).length > 0
  const thread = isPushing ? new SendingThread({ push, onLost: onSendingLost }) : undefined
  const mail = config.mail && new MailSender(config.mail)
  const sms = config.sms && new SmsSender(config.sms)
  const apple = config.apple && new AppleSignIn(config.apple, { nowMs })
  const close = async (): Promise<void> => {
    mail?.close()
    await thread?.close()
  }
  const byChannel = {
    ...(mail && { mail }),
    ...(sms && { sms }),
    ...thread?.senders,
    ...(apple && { apple }),
  }
  return { byChannel, apple, close }
}

function pushSettingsOf(config: ApplicationConfig): PushSettings {
  const { apns, fcm, vapidKey: privateKey, vapidContact: contact, webPushHosts: hosts } = config
  const hasWebPush = privateKey !== undefined && contact !== undefined
  return {
    ...(apns && { apns }),
    ...(fcm && { fcm }),
    ...(hasWebPush && { webPush: { privateKey, contact, hosts } }),
  }
}

/** Undefined where no rate counts; its counts end all the same. */
function openSmsBudget({ stores, config, rateLimits, onSmsStopped }: WriterServing): SmsBudget | undefined {
  const budget = new SmsBudget(stores.database, stores.expiries, config.smsBudgets, onSmsStopped)
  return rateLimits && budget
}

function openDelivery(serving: WriterServing, senders: Senders, smsBudget: SmsBudget | undefined): Delivery {
  const { config, stores, nowMs, publicUrl, onRendered, onTryFailed } = serving
  const { database, devices, restrictions } = stores
  const allows = loginCheckOf(config.loginCheck, database, smsBudget, serving.onLoginChecked)
  return new Delivery({
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
    deviceOf(userId, deviceId, kind) {
      if (!isForAnyDevice(kind) && restrictions.current({ userId, deviceId }) !== undefined) return undefined
      const active = database.view(view => devices.activeDevicesOf(view, userId))
      return active.find(device => device.deviceId === deviceId)
    },
    badgeOf: userId => database.view(view => stores.badgeOf(view, userId)).total,
    isRinging: (callId, userId) => stores.calls.ringingAt(callId).has(userId),
    onRingTaken: serving.onRingTaken,
    async judgeToken(userId, deviceId, judged) {
      const device = database.view(view => devices.active(view, userId, deviceId))
      // A doubt is heard with each push; not each is a write.
      if (device?.push === undefined || pushTokensJudged(device.push, judged) === device.push) return
      await database.change(change => devices.judgeToken(change, { userId, deviceId }, judged))
    },
    setApnsEnvironment: (userId, deviceId, environment) =>
      database.change(change => devices.setApnsEnvironment(change, { userId, deviceId }, environment)),
    wait: ms => setTimeout(ms, undefined, { ref: false }),
    onTryFailed,
    ...(allows && { allows }),
    ...(onRendered && { onRendered }),
  })
}

/** The parts that operations use, each made once. */
function operationDeps(
  serving: WriterServing,
  senders: Senders,
  smsBudget: SmsBudget | undefined,
): WriteDeps {
  const { config, stores, isDevelopment, relayHost = '127.0.0.1' } = serving
  const accounts = openAccounts(serving, senders, smsBudget)
  const shared: ApiDeps = {
    ...serving,
    ...stores,
    ...accounts,
    idsAs: config.idsAs,
    contactsBy: config.contactsBy,
    deepLinkScheme: config.deepLinkScheme,
    webPushHosts: config.webPushHosts,
    tokenAudiences: config.tokenAudiences,
    stepUpSeconds: config.stepUpS,
    relay: config.turn ?? (isDevelopment ? developmentRelay(relayHost) : undefined),
    keysShown: (asker, owner) => keysShown(serving, asker, owner),
  }
  const signIns = new SignIns(shared)
  const lists = new DeviceLists(shared)
  return {
    ...shared,
    signIns,
    social: new SocialSignIn({ ...shared, signIns }),
    lists,
    registration: new DeviceRegistration({ ...shared, lists }),
  }
}

/** Codes, login methods, identities at providers, and the end of accounts. */
function openAccounts(serving: WriterServing, senders: Senders, smsBudget: SmsBudget | undefined) {
  const { config, stores, isDevelopment } = serving
  const addresses = new AddressReader(config)
  const { testCodes } = addresses
  const base = { ...serving, ...stores }
  // In development a message without a sender is shown instead.
  const canSend = (channel: 'mail' | 'sms') => isDevelopment || senders.byChannel[channel] !== undefined
  const letters = new AccountLetters(stores.accounts, stores.outbox, key => testCodes.has(key), smsBudget)
  const sending = {
    testCodes,
    canSend,
    isChecked: config.loginCheck !== undefined,
    ...(smsBudget && { smsBudget }),
  }
  const appleConsents = new AppleConsents(base)
  const providers = config.providers.map(
    options => [options.name, new IdentityProvider(options, serving)] as const,
  )
  const waitMs = config.signInWaitH * 3_600_000
  const waitingSignIns = new WaitingSignIns({ ...base, letters }, signInCode, waitMs)
  const erasers = [
    stores.devices,
    stores.deviceLists,
    stores.knownSignIns,
    stores.inbox,
    stores.history,
    stores.shareTokens,
    stores.contacts,
    stores.circles,
    waitingSignIns,
    stores.reports,
  ]
  return {
    addresses,
    challenges: new ChallengeStore({ ...base, ...sending }),
    loginMethods: new LoginMethods({ ...base, letters, appleConsents }),
    sessionNotices: new SessionNotices(stores, stores.notices, letters),
    erasure: new AccountErasure({
      ...base,
      letters,
      appleConsents,
      erasers: erasers.map(store => (change, userId) => store.eraseOf(change, userId)),
    }),
    waitingSignIns,
    identities: new SocialIdentities(new Map(providers), senders.apple, appleConsents, isDevelopment),
    identityTokens: new IdentityTokenStore(base),
    passkeys: new PasskeyCeremonies(config, base, new PasskeyChallengeStore(stores.expiries), passkeyReader),
  }
}

function keysShown(
  { stores, callIndex, nowMs }: WriterServing,
  asker: UserId,
  owner: UserId,
): KeysShown | undefined {
  if (callIndex.haveInCommon(asker, owner)) return PRESENT_KEYS
  const { database, contacts, accounts } = stores
  return database.view(view => contacts.keysShown(view, asker, owner, nowMs(), accounts.read(view, owner)))
}
