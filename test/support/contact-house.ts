/** The operations of contacts over a real store, with all messages to users, pushed or not. */

import type { Test } from 'tap'
import { AddressReader } from '../../src/api/accounts/addresses.ts'
import { contactOperations } from '../../src/api/contacts/contacts.ts'
import { friendRequestOperations } from '../../src/api/contacts/friend-requests.ts'
import { shareTokenOperations } from '../../src/api/contacts/share-tokens.ts'
import type { UserId } from '../../src/domain/ids.ts'
import type { BadgeState, NoticeBody } from '../../src/domain/messages/notice.ts'
import { AddressSearches } from '../../src/store/contacts/address-searches.ts'
import { ContactStore } from '../../src/store/contacts/contact-store.ts'
import { ShareTokenStore } from '../../src/store/contacts/share-token-store.ts'
import { IdLists } from '../../src/store/engine/id-lists.ts'
import { newUser, openWorld, type Send, sender, type TestUser, type TestWorld } from './application.ts'

export interface Told {
  readonly userId: UserId
  readonly body: NoticeBody | BadgeState
}

export interface ContactWorld extends TestWorld {
  /** Moves the clock, and leaves what has come to its end where it is. */
  pass(ms: number): void
}

export interface ContactHouse {
  readonly world: ContactWorld
  readonly contacts: ContactStore
  readonly shareTokens: ShareTokenStore
  readonly operations: ReturnType<typeof operationsOf>
  readonly send: Send
  /** All messages, oldest first, including the badges of connected devices. */
  readonly told: Told[]
  /** Kinds of what a user was told since this was asked last. */
  kindsTold(user: TestUser): string[]
  /** Keys that the log is to have: base64 of the hash, and whose it is. */
  readonly logged: Map<string, { readonly userId: bigint; readonly deviceId: bigint }>
}

export function openContacts(
  t: Test,
  folder = t.testdir(),
  options: { rates?: boolean; rehearses?: boolean } = {},
): ContactHouse {
  const world = withPass(openWorld(folder, undefined, options))
  t.teardown(() => world.database.close())
  const told: Told[] = []
  const parts = { ...world, lists: new IdLists() }
  const contacts = new ContactStore({
    ...parts,
    displayNameOf: (view, userId) => world.accounts.read(view, userId)?.displayName ?? '',
    tell(change, userId, body) {
      if (!world.rehearsals.isRehearsing) told.push({ userId, body })
      world.notices.tell(change, userId, body)
    },
    missedCallsOf: () => 0,
  })
  world.database.subscribe('badge-changed', ({ userId }) => {
    const badge = world.database.view(view => contacts.badgeOf(view, userId, world.nowMs()))
    told.push({ userId, body: { kind: 'badge', badge } })
  })
  const shareTokens = new ShareTokenStore(parts)
  const logged: ContactHouse['logged'] = new Map()
  const operations = operationsOf(world, contacts, shareTokens, logged)
  return {
    world,
    contacts,
    shareTokens,
    operations,
    send: sender(world, operations),
    told,
    logged,
    kindsTold({ userId }) {
      const kinds = told.filter(each => each.userId === userId).map(({ body }) => body.kind)
      for (let at = told.length - 1; at >= 0; at--) if (told[at]!.userId === userId) told.splice(at, 1)
      return kinds
    },
  }
}

function withPass(world: TestWorld): ContactWorld {
  let unsweptMs = 0
  const nowMs = () => world.nowMs() + unsweptMs
  return {
    ...world,
    nowMs,
    monotonicMs: nowMs,
    pass(ms) {
      unsweptMs += ms
    },
    async advance(ms) {
      const passedMs = unsweptMs + ms
      unsweptMs = 0
      await world.advance(passedMs)
    },
  }
}

function operationsOf(
  world: TestWorld,
  contacts: ContactStore,
  shareTokens: ShareTokenStore,
  logged: ContactHouse['logged'],
) {
  const rules = { blockedCountries: new Set<string>(), testIdentifiers: new Map<string, string>() }
  const whole = {
    ...world,
    contacts,
    searches: new AddressSearches({ ...world, contacts }),
    shareTokens,
    deepLinkScheme: 'callsign',
    addresses: new AddressReader(rules),
    identityOf: (vrfHash: Uint8Array) => logged.get(Buffer.from(vrfHash).toString('base64')),
  }
  return [...shareTokenOperations(whole), ...friendRequestOperations(whole), ...contactOperations(whole)]
}

/** New users of these names. */
export async function people(house: ContactHouse, ...names: readonly string[]): Promise<TestUser[]> {
  const users: TestUser[] = []
  for (const name of names) users.push(await newUser(house.world, name))
  return users
}

/** Asks by id; the answer. */
export function askById(house: ContactHouse, from: TestUser, to: TestUser) {
  const body = { targetUserId: to.userId }
  return house.send('POST /app/api/friend-request/by-id', { token: from.token, body })
}

/** Makes contacts of two users. */
export async function befriend(house: ContactHouse, one: TestUser, other: TestUser): Promise<void> {
  await askById(house, one, other)
  await askById(house, other, one)
}

/** A share token of the user: its text and id. */
export async function shareTokenOf(
  { send }: ContactHouse,
  { token }: TestUser,
  body: object = {},
): Promise<{ readonly text: string; readonly id: string }> {
  const answer = await send('POST /app/api/share-token', { token, body })
  return { text: answer.body.token, id: answer.body.id }
}
