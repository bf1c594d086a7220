/** Accounts, their login methods, and their sessions. */

import { identifierOf, type LoginMethod, type User } from '../../domain/accounts/account.ts'
import type { Session } from '../../domain/accounts/session.ts'
import type { KeyOwner } from '../../domain/devices/device.ts'
import { METHOD_SHAPES, type MethodOwner, USER_SHAPES } from '../../store/accounts/account-store.ts'
import { SESSION_SHAPES } from '../../store/accounts/session-store.ts'
import { EXPIRY } from '../../store/engine/expiries.ts'
import { idsKey, textKey, userInKey } from '../../store/engine/keys.ts'
import { bytes, count, either, flag, id, listOf, oneOf, record, text, tuple } from './form.ts'
import type { StoredRows } from './stored-rows.ts'
import { byBeginning, byIds, byOwner, type TableCheck, tableCheck } from './table-check.ts'

const ID = 8
const HASH = 32
const SESSION_ID = 16
const method = { id, addedAtMs: count, lastUsedAtMs: count }
const place = tuple(bytes(), count)

export const ACCOUNT_TABLES: Readonly<Record<string, TableCheck>> = {
  users: tableCheck<User>({
    shapes: USER_SHAPES,
    key: [ID],
    keyAs: byIds,
    form: record(
      {
        displayName: text,
        createdAtMs: count,
        settings: record({}),
        primaryMethodId: id,
        acceptLanguage: text,
      },
      { erasesAtMs: count },
    ),
    ending: { kind: EXPIRY.erasure, atMs: ({ erasesAtMs }) => erasesAtMs },
    *disagreements(key, { primaryMethodId }, rows) {
      const hasPrimary = rows.holds<readonly LoginMethod[]>('login-methods', key, methods =>
        methods.some(each => each.id === primaryMethodId),
      )
      if (!hasPrimary) yield 'the primary login method of the user is not in login-methods'
    },
    remedy: 'the user can’t use the account: restore a backup',
  }),
  'login-methods': tableCheck<readonly LoginMethod[]>({
    shapes: METHOD_SHAPES,
    key: [ID],
    keyAs: byIds,
    form: listOf(
      either(
        record({ ...method, kind: oneOf('email', 'phone'), key: text, shown: text }),
        record(
          { ...method, kind: oneOf('social'), provider: text, issuer: text, subject: text },
          { shown: text, sealedRefreshToken: bytes(), clientId: text },
        ),
      ),
    ),
    *disagreements(key, methods, rows) {
      if (!rows.has('users', key)) yield 'its user is not in users'
      for (const each of methods) {
        const isFound = rows.holds<MethodOwner>(
          'login-method-owners',
          textKey(identifierOf(each)),
          ({ userId, methodId }) => userId === userInKey(key) && methodId === each.id,
        )
        if (!isFound) yield `login-method-owners does not name the user for login method ${each.id}`
      }
    },
    remedy: 'the user can’t sign in so: restore a backup',
  }),
  'login-method-owners': tableCheck<MethodOwner>({
    key: [HASH],
    keyAs: byBeginning,
    form: record({ userId: id, methodId: id }),
    *disagreements(key, { userId, methodId }, rows) {
      const isTheirs = rows.holds<readonly LoginMethod[]>('login-methods', idsKey(userId), methods =>
        methods.some(each => each.id === methodId && textKey(identifierOf(each)).equals(key)),
      )
      if (!isTheirs)
        yield `login-methods has no login method ${methodId} of user ${userId} with this identifier`
    },
    remedy: 'who signs in so is not found, or can’t register: restore a backup',
  }),
  sessions: tableCheck<Session>({
    shapes: SESSION_SHAPES,
    key: [SESSION_ID],
    keyAs: byBeginning,
    form: record(
      {
        userId: id,
        generation: count,
        rotatedAtMs: count,
        isPairUsed: flag,
        createdAtMs: count,
        authenticatedAtMs: count,
        lastUsedAtMs: count,
        endsAtMs: count,
        methods: listOf(text),
        userAgent: text,
      },
      { deviceId: id, revokedBecause: text },
    ),
    ending: { kind: EXPIRY.session },
    *disagreements(key, { userId, deviceId }, rows) {
      if (!rows.has('users', idsKey(userId))) yield `its user ${userId} is not in users`
      if (!rows.has('sessions-by-user', Buffer.concat([idsKey(userId), key]))) {
        yield `sessions-by-user does not have it among those of user ${userId}`
      }
      if (deviceId !== undefined && !isDevice(rows, userId, deviceId)) {
        yield `its device ${deviceId} is none of user ${userId}`
      }
    },
    remedy: 'its device has to sign in again, and “log out everywhere” may miss it: restore a backup',
  }),
  'sessions-by-user': tableCheck<0>({
    key: [ID + SESSION_ID],
    keyAs: byOwner,
    form: oneOf(0),
    *disagreements(key, _, rows) {
      const isTheirs = rows.holds<Session>(
        'sessions',
        key.subarray(ID),
        ({ userId }) => userId === userInKey(key),
      )
      if (!isTheirs) yield 'sessions has no such session of the user'
    },
    remedy: 'it opens nothing: restore a backup if there are others',
  }),
  'known-sign-ins': tableCheck<unknown>({
    key: [ID],
    keyAs: byIds,
    form: record({ networks: listOf(place), sessions: listOf(place) }),
    ending: { kind: EXPIRY.knownSignIn },
    *disagreements(key, _, rows) {
      if (!rows.has('users', key)) yield 'its user is not in users'
    },
    remedy: 'the user counts as a stranger who asks for a code, until the next sign-in',
  }),
}

/** Active, removed, or on its way into the log. */
export function isDevice(rows: StoredRows, userId: bigint, deviceId: bigint): boolean {
  const key = idsKey(userId, deviceId)
  return ['devices', 'devices-removed', 'devices-pending'].some(table => rows.has(table, key))
}

/** Whether the row under that key names the device, or that user alone. */
export function isOwner(
  rows: StoredRows,
  table: string,
  key: Uint8Array,
  owner: { readonly userId: bigint; readonly deviceId?: bigint },
): boolean {
  return rows.holds<KeyOwner>(
    table,
    key,
    ({ userId, deviceId }) => userId === owner.userId && deviceId === (owner.deviceId ?? deviceId),
  )
}
