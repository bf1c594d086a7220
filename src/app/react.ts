/**
 * `@callsign/sdk/react`: the SDK in React 18 and newer. Hooks give the SDK's state as values that are replaced when they change.
 * Contacts and devices, which the SDK does not keep, are read from the server, once for all components that show them.
 */

import { useCallback, useSyncExternalStore } from 'react'
import type { Call } from './calls/call.ts'
import type { Callsign } from './callsign.ts'
import { CallsignError } from './callsign-error.ts'
import type { CallsignEvents } from './callsign-events.ts'
import type { OwnListState } from './devices/own-device-list.ts'
import type { Contact, Device, FriendRequest } from './wire.ts'

export type CallsignView = Pick<Callsign, (typeof USER_MEMBERS)[number]>

/** A call's members at one moment. */
export interface CallView extends Pick<Call, (typeof CALL_MEMBERS)[number]> {
  /** To answer it, end it, and so on. */
  readonly call: Call
}

export interface LoadedView {
  readonly isLoaded: boolean
  /** Why the last attempt to load failed; each new connection tries again. */
  readonly error: CallsignError | undefined
  /** Needed after what no event tells this device of, such as a request that it declined. */
  readonly reload: () => Promise<void>
}

export interface ContactsView extends LoadedView {
  /** Newest first. */
  readonly contacts: readonly Contact[]
  /** Requests of other people. */
  readonly requests: readonly FriendRequest[]
}

export interface DevicesView extends LoadedView {
  readonly devices: readonly Device[]
  /** Where this device stands, and which devices wait for approval. */
  readonly listState: OwnListState | undefined
}

/** The user and the connection. */
export function useCallsign(me: Callsign): CallsignView {
  return useChanging(me, userView)
}

/** Calls that ring, and the one that this device is in. */
export function useCalls(me: Callsign): readonly CallView[] {
  return useChanging(me, callViews)
}

/** One call, also after its end. */
export function useCall(call: Call): CallView
export function useCall(call: Call | undefined): CallView | undefined
export function useCall(call: Call | undefined): CallView | undefined {
  return useChanging(call, one => one && callView(one))
}

export function useContacts(me: Callsign): ContactsView {
  const { subscribe, view } = contactsOf(me)
  return useSyncExternalStore(subscribe, view, view)
}

export function useDevices(me: Callsign): DevicesView {
  const { subscribe, view } = devicesOf(me)
  const listState = useChanging(me, one => (one.userId === undefined ? undefined : one.devices.listState))
  return { ...useSyncExternalStore(subscribe, view, view), listState }
}

type Changing = { on(name: 'changed', listener: () => void): () => void } | undefined

function useChanging<Source extends Changing, View>(source: Source, viewOf: (source: Source) => View): View {
  const subscribe = useCallback((tell: () => void) => source?.on('changed', tell) ?? (() => {}), [source])
  const view = () => viewOf(source)
  return useSyncExternalStore(subscribe, view, view)
}

type Load<Lists> = (me: Callsign) => Promise<Lists>

/** Lists that the server keeps, loaded while a component shows them. */
class Loaded<Lists> {
  readonly #me: Callsign
  readonly #load: Load<Lists>
  readonly #reloadAt: readonly (keyof CallsignEvents)[]
  readonly #none: Lists & LoadedView
  #view: Lists & LoadedView
  #userId: string | undefined
  readonly #listeners = new Set<() => void>()
  #stops: readonly (() => void)[] = []
  #turn = 0

  constructor(me: Callsign, none: Lists, load: Load<Lists>, reloadAt: readonly (keyof CallsignEvents)[]) {
    this.#me = me
    this.#load = load
    this.#reloadAt = reloadAt
    this.#none = { ...none, isLoaded: false, error: undefined, reload: () => this.#reload() }
    this.#view = this.#none
  }

  /** No user sees another user's view. */
  readonly view = () => (this.#me.userId === this.#userId ? this.#view : this.#none)

  readonly subscribe = (listener: () => void): (() => void) => {
    const me = this.#me
    this.#listeners.add(listener)
    if (this.#listeners.size === 1) {
      this.#stops = [
        me.on('changed', () => me.userId !== this.#userId && this.#reload()),
        me.on('connection', state => state === 'connected' && this.#reload()),
        ...this.#reloadAt.map(name => me.on(name, () => this.#reload())),
      ]
      void this.#reload()
    }
    return () => {
      this.#listeners.delete(listener)
      if (this.#listeners.size === 0) for (const stop of this.#stops) stop()
    }
  }

  async #reload(): Promise<void> {
    const turn = ++this.#turn
    const { userId } = this.#me
    if (userId !== this.#userId) this.#view = this.#none
    this.#userId = userId
    let view = this.#none
    try {
      if (userId !== undefined) view = { ...view, ...(await this.#load(this.#me)), isLoaded: true }
    } catch (error) {
      if (!(error instanceof CallsignError)) throw error
      view = { ...this.#view, error }
    }
    if (turn !== this.#turn) return
    this.#view = view
    for (const listener of this.#listeners) listener()
  }
}

/** Gives the same view until a member differs: React compares views by identity. */
function keeping<Source extends object, View extends object>(viewOf: (source: Source) => View) {
  const kept = new WeakMap<Source, View>()
  return (source: Source): View => {
    const view = viewOf(source)
    const before = kept.get(source)
    const olds = Object.values(before ?? {})
    const news = Object.values(view)
    const hasSame = olds.length === news.length && news.every((one, at) => Object.is(one, olds[at]))
    if (before !== undefined && hasSame) return before
    kept.set(source, view)
    return view
  }
}

/** Lists that are `none` at first, and are loaded again at these events. */
function loading<Lists>(none: Lists, load: Load<Lists>, reloadAt: readonly (keyof CallsignEvents)[]) {
  const made = new WeakMap<Callsign, Loaded<Lists>>()
  return (me: Callsign): Loaded<Lists> => {
    const loaded = made.get(me) ?? new Loaded(me, none, load, reloadAt)
    made.set(me, loaded)
    return loaded
  }
}

function membersOf<Source, Name extends keyof Source>(source: Source, names: readonly Name[]) {
  return Object.fromEntries(names.map(name => [name, source[name]])) as Pick<Source, Name>
}

type Page = { readonly limit?: number; readonly cursor?: string }
type ReadPage<Item> = (page: Page) => Promise<{ items: readonly Item[]; nextCursor?: string }>

/** As many pages as a user's contacts can have. */
async function allOf<Item>(read: ReadPage<Item>, from: Page = {}, left = 5): Promise<readonly Item[]> {
  const { items, nextCursor: cursor } = await read({ limit: 200, ...from })
  return cursor === undefined || left === 1 ? items : [...items, ...(await allOf(read, { cursor }, left - 1))]
}

const USER_MEMBERS = [
  'userId',
  'deviceId',
  'user',
  'restriction',
  'badge',
  'connection',
  'connectionFailures',
] as const
// biome-ignore format: one list
const CALL_MEMBERS = [
  'callId', 'isIncoming', 'isVideo', 'isOnGoing', 'caller', 'state', 'isVerified', 'participants', 'hostUserId',
  'isHost', 'roomId', 'startedAtMs', 'fingerprint', 'keys', 'ending',
] as const

const userView = keeping((me: Callsign): CallsignView => membersOf(me, USER_MEMBERS))
const callView = keeping((call: Call): CallView => ({ call, ...membersOf(call, CALL_MEMBERS) }))
const callViews = keeping((me: Callsign): readonly CallView[] => me.calls.map(callView))
const devicesOf = loading<Omit<DevicesView, keyof LoadedView | 'listState'>>(
  { devices: [] },
  async me => ({ devices: (await me.devices.list()).items }),
  ['device_added', 'device_removed', 'device_list_changed', 'device_list_reset'],
)
const contactsOf = loading<Omit<ContactsView, keyof LoadedView>>(
  { contacts: [], requests: [] },
  async ({ contacts }) => ({
    contacts: await contacts.all(),
    requests: await allOf(page => contacts.requests('incoming', page)),
  }),
  ['friend_request', 'friend_request_cancelled', 'contact_added', 'contact_changed', 'contact_removed'],
)
