/** The stores of the application, each made once. */

import { USER_VIEW_TABLES } from '../api/accounts/user-view.ts'
import type { UserViews } from '../api/deps.ts'
import type { TokenLifetimes } from '../domain/accounts/session.ts'
import type { DeviceId, UserId } from '../domain/ids.ts'
import { deriveSecrets } from '../domain/secrets.ts'
import { SETTLED_WITHIN_MS, USER_VIEWS_KEPT_MAX } from '../limits.ts'
import { AccountStore } from '../store/accounts/account-store.ts'
import { GuessWatch } from '../store/accounts/guess-watch.ts'
import { KnownSignInStore } from '../store/accounts/known-sign-ins.ts'
import { SessionStore } from '../store/accounts/session-store.ts'
import { CallHistoryStore } from '../store/calls/call-history-store.ts'
import { CallStore } from '../store/calls/call-store.ts'
import { AddressSearches } from '../store/contacts/address-searches.ts'
import { ContactStore } from '../store/contacts/contact-store.ts'
import { ShareTokenStore } from '../store/contacts/share-token-store.ts'
import { DeviceListStore } from '../store/devices/device-list-store.ts'
import { DeviceStore } from '../store/devices/device-store.ts'
import { Expiries } from '../store/engine/expiries.ts'
import { userInKey } from '../store/engine/keys.ts'
import type { Store, View } from '../store/engine/store.ts'
import { WatchedCache } from '../store/engine/watched-cache.ts'
import { DeviceInbox } from '../store/messages/device-inbox.ts'
import { InboxStore } from '../store/messages/inbox-store.ts'
import { type InboxWrites, LocalInboxWrites } from '../store/messages/inbox-writes.ts'
import { Notices } from '../store/messages/notices.ts'
import { OutboxStore } from '../store/messages/outbox-store.ts'
import { DeferredTasks } from '../store/tables/deferred-tasks.ts'
import { IdLists } from '../store/tables/id-lists.ts'
import { IdempotencyStore } from '../store/tables/idempotency-store.ts'
import { RateStore } from '../store/tables/rate-store.ts'

export interface StoresDeps {
  readonly database: Store
  /** At least 32 bytes. */
  readonly secret: Uint8Array
  readonly lifetimes: TokenLifetimes
  readonly nowMs: () => number
  readonly randomBytes: (length: number) => Uint8Array
  /** Whether the device has a socket at this moment. */
  readonly isConnected: (userId: UserId, deviceId: DeviceId) => boolean
  /** Set where another process writes to inboxes. */
  readonly inboxWrites?: InboxWrites
  /** Called with the error of work that no caller waits for. */
  readonly onFault: (error: unknown) => void
}

export type Stores = ReturnType<typeof openStores>

export function openStores(deps: StoresDeps) {
  const { lifetimes, secret, database, randomBytes } = deps
  const secrets = deriveSecrets(secret)
  const base = {
    ...deps,
    secrets,
    expiries: new Expiries(database, deps.onFault),
  }
  const { expiries } = base
  const userViews: UserViews = new WatchedCache(database, USER_VIEW_TABLES, userInKey, USER_VIEWS_KEPT_MAX)
  const accounts = new AccountStore(database)
  const devices = new DeviceStore(database)
  const sessions = new SessionStore(base)
  const outbox = new OutboxStore(database, secrets, randomBytes)
  const inbox = new InboxStore(base)
  const inboxWrites = deps.inboxWrites ?? new LocalInboxWrites(database, inbox)
  const notices = new Notices({ ...base, devices, inbox, outbox })
  const history = new CallHistoryStore(base)
  const deferredTasks = new DeferredTasks(base)
  const lists = new IdLists()
  const contacts: ContactStore = new ContactStore({
    ...base,
    deferredTasks,
    lists,
    displayNameOf: (view, userId) => accounts.displayNameOf(view, userId),
    tell: (change, userId, body) => notices.tell(change, userId, body),
    missedCallsOf: (view, userId) => history.missedOf(view, userId),
  })
  const idempotency = new IdempotencyStore(expiries, secrets, randomBytes)
  const badgeOf = (view: View, userId: UserId) => contacts.badgeOf(view, userId, deps.nowMs())
  const soon = (run: () => void): void => void setTimeout(run, SETTLED_WITHIN_MS).unref()
  return {
    database,
    secrets,
    lifetimes,
    expiries,
    badgeOf,
    userViews,
    calls: new CallStore({ ...base, inbox, notices, history, idempotency }),
    inboxWrites,
    deviceInbox: new DeviceInbox({ ...base, inbox, writes: inboxWrites, soon }),
    accounts,
    devices,
    deviceLists: new DeviceListStore(),
    outbox,
    inbox,
    notices,
    history,
    contacts,
    searches: new AddressSearches(deferredTasks, accounts, contacts),
    shareTokens: new ShareTokenStore(expiries, lists, secrets),
    sessions,
    knownSignIns: new KnownSignInStore(expiries, accounts, sessions, secrets),
    guessWatch: new GuessWatch(expiries),
    rates: new RateStore(expiries),
    idempotency,
  }
}
