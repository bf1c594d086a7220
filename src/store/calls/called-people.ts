/**
 * What the rules of calling ask of people, and of two of them, kept until one of its rows changes: each call asks it of all whom it
 * rings. Read row by row it was fifty reads for a call to ten.
 */

import { takesCallsFromStrangers } from '../../domain/accounts/account.ts'
import type { CalleeFacts } from '../../domain/calls/call-command.ts'
import type { Link } from '../../domain/contacts/friend-request.ts'
import type { DeviceId, UserId } from '../../domain/ids.ts'
import { PEOPLE_KEPT_MAX } from '../../limits.ts'
import type { AccountStore } from '../accounts/account-store.ts'
import { USERS } from '../accounts/account-tables.ts'
import type { ContactStore } from '../contacts/contact-store.ts'
import { BLOCKS, CONTACTS } from '../contacts/contact-tables.ts'
import type { DeviceListStore } from '../devices/device-list-store.ts'
import type { DeviceStore } from '../devices/device-store.ts'
import { DEVICE_LISTS, DEVICES } from '../devices/device-tables.ts'
import { idsKey, nameOfKey, userInKey } from '../engine/keys.ts'
import type { ReadStore, View } from '../engine/store.ts'
import { WatchedCache } from '../engine/watched-cache.ts'

export interface PeopleStores {
  readonly database: Pick<ReadStore, 'watch'>
  readonly accounts: Pick<AccountStore, 'read'>
  readonly devices: Pick<DeviceStore, 'activeDevicesOf'>
  readonly deviceLists: Pick<DeviceListStore, 'newest'>
  readonly contacts: Pick<ContactStore, 'linkOf' | 'blockedAtMs'>
}

export interface CalledUser {
  readonly displayName: string
  readonly isSuspended: boolean
  readonly takesCallsFromStrangers: boolean
  /** The active ones. */
  readonly deviceIds: readonly DeviceId[]
  readonly deviceList: CalleeFacts['deviceList']
}

/** One of two people, towards the other. */
export interface Towards {
  /** Undefined where the other is no contact. */
  readonly link: Link | undefined
  /** Undefined where the other is not blocked. */
  readonly blockedAtMs: number | undefined
}

export class CalledPeople {
  readonly #deps: PeopleStores
  readonly #users: WatchedCache<UserId, CalledUser>
  /** By the keys of rows: the first id is that of the user, the second that of the other. */
  readonly #towards: WatchedCache<string, Towards>

  constructor(deps: PeopleStores) {
    this.#deps = deps
    const { database } = deps
    this.#users = new WatchedCache(database, [USERS, DEVICES, DEVICE_LISTS], userInKey, PEOPLE_KEPT_MAX)
    this.#towards = new WatchedCache(database, [CONTACTS, BLOCKS], nameOfKey, PEOPLE_KEPT_MAX)
  }

  /** Undefined where there is no such account. */
  user(view: View, userId: UserId): CalledUser | undefined {
    return this.#users.of(userId, () => this.#read(view, userId))
  }

  towards(view: View, userId: UserId, otherId: UserId): Towards {
    const { contacts } = this.#deps
    return this.#towards.of(nameOfKey(idsKey(userId, otherId)), () => {
      const link = contacts.linkOf(view, userId, otherId)
      const blockedAtMs = contacts.blockedAtMs(view, userId, otherId)
      return link === undefined && blockedAtMs === undefined ? NOTHING : { link, blockedAtMs }
    })
  }

  #read(view: View, userId: UserId): CalledUser | undefined {
    const { accounts, devices, deviceLists } = this.#deps
    const account = accounts.read(view, userId)
    if (account === undefined) return undefined
    const list = deviceLists.newest(view, userId)
    return {
      displayName: account.displayName,
      isSuspended: account.suspension !== undefined,
      takesCallsFromStrangers: takesCallsFromStrangers(account),
      deviceIds: devices.activeDevicesOf(view, userId).map(({ deviceId }) => deviceId),
      deviceList: list && { seq: list.seq, deviceIds: list.deviceIds },
    }
  }
}

const NOTHING: Towards = { link: undefined, blockedAtMs: undefined }
