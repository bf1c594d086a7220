/** The stores of the application, each made once: those that every process reads, and what the writer has besides. */

import { USER_VIEW_TABLES } from '../api/accounts/user-view.ts'
import type { UserViews } from '../api/deps.ts'
import type { TokenLifetimes } from '../domain/accounts/session.ts'
import type { Presence } from '../domain/devices/presence.ts'
import type { UserId } from '../domain/ids.ts'
import { deriveSecrets } from '../domain/secrets.ts'
import { SETTLED_WITHIN_MS, USER_VIEWS_KEPT_MAX } from '../limits.ts'
import { AccountStore } from '../store/accounts/account-store.ts'
import { GuessWatch } from '../store/accounts/guess-watch.ts'
import { KnownSignInStore } from '../store/accounts/known-sign-ins.ts'
import { SessionNetworks } from '../store/accounts/session-networks.ts'
import { SessionStore } from '../store/accounts/session-store.ts'
import { CallHistoryStore } from '../store/calls/call-history-store.ts'
import { CallReader, CallStore } from '../store/calls/call-store.ts'
import { AddressSearches } from '../store/contacts/address-searches.ts'
import { ContactReader } from '../store/contacts/contact-reader.ts'
import { ContactStore } from '../store/contacts/contact-store.ts'
import { FriendRequestTable } from '../store/contacts/friend-request-table.ts'
import { ShareTokenStore } from '../store/contacts/share-token-store.ts'
import { DeviceListStore } from '../store/devices/device-list-store.ts'
import { DeviceStore } from '../store/devices/device-store.ts'
import { Restrictions } from '../store/devices/restrictions.ts'
import { Expiries } from '../store/engine/expiries.ts'
import { userInKey } from '../store/engine/keys.ts'
import type { ReadStore, Store, View } from '../store/engine/store.ts'
import { WatchedCache } from '../store/engine/watched-cache.ts'
import { DeviceInbox } from '../store/messages/device-inbox.ts'
import { InboxStore } from '../store/messages/inbox-store.ts'
import { type InboxWrites, LocalInboxWrites } from '../store/messages/inbox-writes.ts'
import { Notices, type NoticesDeps } from '../store/messages/notices.ts'
import { OutboxStore } from '../store/messages/outbox-store.ts'
import { AuditLog } from '../store/operators/audit-log.ts'
import { CircleStore, CommonCircles } from '../store/operators/circles.ts'
import { ReportStore } from '../store/operators/reports.ts'
import { ServerKeyStore } from '../store/operators/server-keys.ts'
import { ServerUsers } from '../store/operators/server-users.ts'
import { Suspensions } from '../store/operators/suspensions.ts'
import { UserChanges } from '../store/operators/user-changes.ts'
import { UserEvents } from '../store/operators/user-events.ts'
import { type WebhookBounds, Webhooks } from '../store/operators/webhook-store.ts'
import { DeferredTasks } from '../store/tables/deferred-tasks.ts'
import { IdLists } from '../store/tables/id-lists.ts'
import { IdempotencyStore, KeptReplies } from '../store/tables/idempotency-store.ts'
import { RateStore } from '../store/tables/rate-store.ts'
import type { RetentionSettings } from './settings/retention-settings.ts'

export interface StoresDeps {
  /** At least 32 bytes. */
  readonly secret: Uint8Array
  readonly lifetimes: TokenLifetimes
  readonly retention: RetentionSettings
  readonly historyDays: number
  readonly nowMs: () => number
  readonly randomBytes: (length: number) => Uint8Array
  /** Undefined for the usual ones. */
  readonly webhookBounds?: WebhookBounds | undefined
  /** Called with the error of work that no caller waits for. */
  readonly onFault: (error: unknown) => void
}

/** The stores of every process that serves clients. */
export type ReadStores = ReturnType<typeof openReadStores>

/** All of them: the writer's. */
export type Stores = ReturnType<typeof openStores>

/** `inboxWrites` says who writes to the inboxes. */
export function openReadStores(
  database: ReadStore,
  inboxWrites: (inbox: InboxStore) => InboxWrites,
  deps: Omit<StoresDeps, 'retention'> & Partial<Presence>,
) {
  const { lifetimes, nowMs } = deps
  const secrets = deriveSecrets(deps.secret)
  const expiries = new Expiries(deps.onFault)
  const webhooks = new Webhooks({ ...deps, database, secrets, expiries })
  const base = { ...deps, database, secrets, expiries, webhooks }
  const userViews: UserViews = new WatchedCache(database, USER_VIEW_TABLES, userInKey, USER_VIEWS_KEPT_MAX)
  const lists = new IdLists()
  const inbox = new InboxStore(base)
  const writes = inboxWrites(inbox)
  const history = new CallHistoryStore(base)
  const friendRequests = new FriendRequestTable(base, lists)
  const missedCallsOf = (view: View, userId: UserId) => history.missedOf(view, userId)
  const commonCircles = new CommonCircles(database)
  const haveCircle = (view: View, one: UserId, other: UserId) => commonCircles.haveInCommon(view, one, other)
  const contacts = new ContactReader({ lists, friendRequests, haveCircle, missedCallsOf })
  const devices = new DeviceStore(database, webhooks)
  const userChanges = new UserChanges(expiries)
  const deviceLists = new DeviceListStore()
  const soon = (run: () => void): void => void setTimeout(run, SETTLED_WITHIN_MS).unref()
  return {
    database,
    secrets,
    lifetimes,
    expiries,
    lists,
    userViews,
    webhooks,
    userChanges,
    accounts: new AccountStore(database, userChanges, new UserEvents(webhooks)),
    devices,
    deviceLists,
    restrictions: new Restrictions(database, devices, deviceLists),
    sessions: new SessionStore(base),
    sessionNetworks: new SessionNetworks(secrets, deps.randomBytes),
    inbox,
    inboxWrites: writes,
    deviceInbox: new DeviceInbox({ ...base, inbox, writes, soon }),
    history,
    calls: new CallReader(base),
    friendRequests,
    missedCallsOf,
    haveCircle,
    contacts,
    shareTokens: new ShareTokenStore(expiries, lists, secrets),
    serverKeys: new ServerKeyStore(base),
    keptReplies: new KeptReplies(secrets, deps.randomBytes),
    badgeOf: (view: View, userId: UserId) => contacts.badgeOf(view, userId, nowMs()),
  }
}

/** `isConnected` says whether the device has a socket at this moment. */
export function openStores(database: Store, isConnected: NoticesDeps['isConnected'], deps: StoresDeps) {
  const { randomBytes, retention } = deps
  const reads = openReadStores(database, inbox => new LocalInboxWrites(database, inbox), {
    ...deps,
    isConnected,
  })
  const { accounts, sessions, restrictions, expiries, secrets } = reads
  const outbox = new OutboxStore(database, secrets, randomBytes)
  const base = { ...reads, database, randomBytes, outbox }
  const notices = new Notices({ ...base, isConnected })
  const idempotency = new IdempotencyStore(expiries, secrets, randomBytes)
  const deferredTasks = new DeferredTasks(base)
  const auditLog = new AuditLog(base, retention.auditDays * DAY_MS)
  const contacts: ContactStore = new ContactStore({
    ...base,
    deferredTasks,
    displayNameOf: (view, userId) => accounts.displayNameOf(view, userId),
    tell: (change, userId, body, exceptDeviceId) => notices.tell(change, userId, body, exceptDeviceId),
  })
  return {
    ...reads,
    database,
    calls: new CallStore({ ...base, notices, idempotency, auditLog }),
    outbox,
    notices,
    contacts,
    circles: new CircleStore({ deferredTasks, randomBytes }),
    searches: new AddressSearches(deferredTasks, accounts, contacts),
    markPairUsed: (sessionId: Uint8Array, generation: number) =>
      database.change(change => sessions.markPairUsed(change, sessionId, generation)),
    knownSignIns: new KnownSignInStore(expiries, accounts, sessions, restrictions, secrets),
    guessWatch: new GuessWatch(expiries),
    rates: new RateStore(expiries),
    idempotency,
    auditLog,
    reports: new ReportStore(base, retention.reportsDays * DAY_MS),
    serverUsers: new ServerUsers({ accounts, contacts, notices, randomBytes }),
    suspensions: new Suspensions(base),
  }
}

const DAY_MS = 86_400_000
