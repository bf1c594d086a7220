/** Tables of accounts, their login methods, and their sessions. */

import { identifierOf, type LoginMethod } from '../../domain/accounts/account.ts'
import type { RevocationReason, Session } from '../../domain/accounts/session.ts'
import type { DeviceId, MethodId, UserId } from '../../domain/ids.ts'
import { EXPIRY } from '../engine/expiries.ts'
import { HASH, ID, opaque, untold } from '../engine/key-parts.ts'
import { idsKey, textKey, userInKey } from '../engine/keys.ts'
import {
  bytes,
  count,
  either,
  flag,
  id,
  listOf,
  object,
  oneOf,
  optional,
  type RowOf,
  sealed,
  text,
  tuple,
  typed,
} from '../engine/row-form.ts'
import { OF_A_USER, rowTable } from '../engine/table.ts'

const SETTINGS = object({ discoverableByEmail: flag, discoverableByPhone: flag, callsFromContactsOnly: flag })
const USER = object({
  displayName: text,
  createdAtMs: count,
  settings: SETTINGS,
  primaryMethodId: id<MethodId>(),
  acceptLanguage: text,
  erasesAtMs: optional(count),
})

export const USERS = rowTable({
  name: 'users',
  subject: 'accounts',
  holds: 'name, settings, primary login method',
  key: { user: ID },
  row: USER,
  shapes: [USER.shape(), SETTINGS.shape()],
  ending: { kind: EXPIRY.erasure, atMs: ({ erasesAtMs }) => erasesAtMs },
  relations: [
    {
      in: 'login-methods',
      under: key => key,
      where: (methods: readonly LoginMethod[], _, { primaryMethodId }) =>
        methods.some(({ id }) => id === primaryMethodId),
      otherwise: 'the primary login method of the user is not in login-methods',
    },
  ],
  remedy: 'the user can’t use the account: restore a backup',
})

const METHOD = { id: id<MethodId>(), addedAtMs: count, lastUsedAtMs: count }
const ADDRESS_METHOD = object({ kind: oneOf('email', 'phone'), key: text, shown: text, ...METHOD })
const SOCIAL_METHOD = object({
  ...METHOD,
  kind: oneOf('social'),
  provider: text,
  issuer: text,
  subject: text,
  shown: optional(text),
  sealedRefreshToken: optional(bytes()),
  clientId: optional(text),
})

/** All of a user's in one row: they are few, and read together. */
export const LOGIN_METHODS = rowTable({
  name: 'login-methods',
  subject: 'accounts',
  holds: 'all addresses and identities that the user signs in with',
  key: { user: ID },
  row: listOf(either(ADDRESS_METHOD, SOCIAL_METHOD)),
  shapes: [ADDRESS_METHOD.shape()],
  relations: [OF_A_USER],
  *disagreements(key, methods, rows) {
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
})

/** Whose an identifier is. */
export type MethodOwner = RowOf<typeof METHOD_OWNER>
const METHOD_OWNER = object({ userId: id<UserId>(), methodId: id<MethodId>() })

export const LOGIN_METHOD_OWNERS = rowTable({
  name: 'login-method-owners',
  subject: 'accounts',
  holds: 'whose an address or identity is',
  key: { identifier: HASH },
  row: METHOD_OWNER,
  relations: [
    {
      in: 'login-methods',
      under: (_, { userId }) => idsKey(userId),
      where: (methods: readonly LoginMethod[], key, { methodId }) =>
        methods.some(each => each.id === methodId && textKey(identifierOf(each)).equals(key)),
      otherwise: (_, { userId, methodId }) =>
        `login-methods has no login method ${methodId} of user ${userId} with this identifier`,
    },
  ],
  remedy: 'who signs in so is not found, or can’t register: restore a backup',
})

export const IDENTITY_TOKENS = rowTable({
  name: 'identity-tokens',
  subject: 'accounts',
  holds: 'that an ID token was used, and what came of it',
  key: { token: HASH },
  row: object({
    /** SHA-256 of the request's `Idempotency-Key`. */
    attempt: optional(bytes(32)),
    sealedOutcome: optional(sealed),
  }),
  ending: { kind: EXPIRY.identityToken },
  remedy: 'an ID token may be accepted twice until it expires',
})

const SESSION_ID = 16
const SESSION = object({
  userId: id<UserId>(),
  generation: count,
  rotatedAtMs: count,
  isPairUsed: flag,
  createdAtMs: count,
  authenticatedAtMs: count,
  lastUsedAtMs: count,
  endsAtMs: count,
  methods: listOf(text),
  userAgent: text,
  deviceId: optional(id<DeviceId>()),
  revokedBecause: optional(typed<RevocationReason>(text)),
})

export const SESSIONS = rowTable({
  name: 'sessions',
  subject: 'sessions',
  holds: 'user, device, generation of tokens, times',
  key: { session: opaque(SESSION_ID) },
  row: SESSION,
  shapes: [SESSION.shape(), SESSION.shape('deviceId')],
  ending: { kind: EXPIRY.session },
  relations: [
    {
      in: 'users',
      under: (_, { userId }) => idsKey(userId),
      otherwise: (_, { userId }) => `its user ${userId} is not in users`,
    },
    {
      in: 'sessions-by-user',
      under: (key, { userId }) => Buffer.concat([idsKey(userId), key]),
      otherwise: (_, { userId }) => `sessions-by-user does not have it among those of user ${userId}`,
    },
    {
      in: ['devices', 'devices-removed', 'devices-pending'],
      under: (_, { userId, deviceId }) => (deviceId === undefined ? undefined : idsKey(userId, deviceId)),
      otherwise: (_, { userId, deviceId }) => `its device ${deviceId} is none of user ${userId}`,
    },
  ],
  remedy: 'its device has to sign in again, and “log out everywhere” may miss it: restore a backup',
})

export const SESSIONS_BY_USER = rowTable({
  name: 'sessions-by-user',
  subject: 'sessions',
  holds: 'nothing: which sessions a user has',
  key: { user: ID, session: untold(SESSION_ID) },
  row: oneOf(0),
  relations: [
    {
      in: 'sessions',
      under: key => key.subarray(ID.bytes),
      where: ({ userId }: Session, key) => userId === userInKey(key),
      otherwise: 'sessions has no such session of the user',
    },
  ],
  remedy: 'it opens nothing: restore a backup if there are others',
})

const PLACE = tuple(bytes(), count)

export const KNOWN_SIGN_INS = rowTable({
  name: 'known-sign-ins',
  subject: 'codes and counts',
  holds: 'networks and sessions that the user is known by',
  key: { user: ID },
  row: object({ networks: listOf(PLACE), sessions: listOf(PLACE) }),
  ending: { kind: EXPIRY.knownSignIn },
  relations: [OF_A_USER],
  remedy: 'the user counts as a stranger who asks for a code, until the next sign-in',
})

export const ACCOUNT_TABLES = [
  USERS,
  LOGIN_METHODS,
  LOGIN_METHOD_OWNERS,
  IDENTITY_TOKENS,
  SESSIONS,
  SESSIONS_BY_USER,
  KNOWN_SIGN_INS,
]
