/** Tables of accounts, their login methods, and their sessions. */

import { type ContactData, identifierOf, type LoginMethod } from '../../domain/accounts/account.ts'
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
import { type Relation, rowTable } from '../engine/table.ts'
import { contactIdentifiers } from '../operators/user-tables.ts'

const SETTINGS = object({ discoverableByEmail: flag, discoverableByPhone: flag, callsFromContactsOnly: flag })
const CONTACT_DATA = object({ email: optional(text), phone: optional(text) })
const SUSPENSION = object({
  reason: text,
  note: optional(text),
  atMs: count,
  untilMs: optional(count),
})
const USER = object({
  displayName: text,
  createdAtMs: count,
  settings: SETTINGS,
  /** Missing where the account has lost its last one to another account. */
  primaryMethodId: optional(id<MethodId>()),
  acceptLanguage: text,
  erasesAtMs: optional(count),
  externalId: optional(text),
  isMadeByServer: optional(oneOf(true)),
  contactData: optional(CONTACT_DATA),
  suspension: optional(SUSPENSION),
})

/** Each address that the backend says of a user finds them. */
const contactRelations = (['email', 'phone'] as const).map(kind => ({
  in: 'contact-addresses',
  under: (key: Buffer, { contactData }: { readonly contactData?: ContactData }) => {
    const [identifier] = contactIdentifiers({ [kind]: contactData?.[kind] })
    return identifier === undefined ? undefined : Buffer.concat([textKey(identifier), key])
  },
  what: () => `the user under the ${kind} of their contact data`,
}))

export const USERS = rowTable('users', { user: ID }, USER, {
  holds: 'name, settings, primary login method',
  shapes: [USER.shape('primaryMethodId'), SETTINGS.shape()],
  ending: { kind: EXPIRY.erasure, atMs: ({ erasesAtMs }) => erasesAtMs },
  relations: [
    {
      in: 'login-methods',
      under: (key, { primaryMethodId }) => (primaryMethodId === undefined ? undefined : key),
      where: (methods: Methods, _, user) => methods.some(({ id }) => id === user.primaryMethodId),
      what: () => 'the primary login method of the user',
    },
    {
      in: 'external-ids',
      under: (_, { externalId }) => (externalId === undefined ? undefined : textKey(externalId)),
      where: ({ userId }: { readonly userId: UserId }, key) => userId === userInKey(key),
      what: () => 'the user under their external id',
    },
    { in: 'user-changes-by-user', under: key => key },
    ...contactRelations,
  ],
  remedy: 'the user can’t use the account: restore a backup',
})

/** The user with whose id a key begins. */
export const OF_A_USER: Relation<unknown> = {
  in: 'users',
  under: key => key.subarray(0, ID.bytes),
  what: () => 'its user',
}

type Methods = readonly LoginMethod[]
const METHOD = { id: id<MethodId>(), addedAtMs: count, lastUsedAtMs: count }
const ADDRESS = { kind: oneOf('email', 'phone'), key: text, shown: text }
const ADDRESS_METHOD = object({ ...ADDRESS, ...METHOD })
const SOCIAL = {
  kind: oneOf('social'),
  provider: text,
  issuer: text,
  subject: text,
  shown: optional(text),
  sealedRefreshToken: optional(bytes()),
  clientId: optional(text),
}
const SOCIAL_METHOD = object({ ...METHOD, ...SOCIAL })
const PASSKEY_METHOD = object({
  ...METHOD,
  kind: oneOf('passkey'),
  credentialId: text,
  publicKey: bytes(),
  userHandle: bytes(32),
  counter: count,
  transports: listOf(text),
  aaguid: text,
  isSyncable: flag,
  isBackedUp: flag,
  label: optional(text),
})
const LOGIN_METHOD = either(ADDRESS_METHOD, SOCIAL_METHOD, PASSKEY_METHOD)

/** All of a user's in one row: they are few, and read together. */
export const LOGIN_METHODS = rowTable('login-methods', { user: ID }, listOf(LOGIN_METHOD), {
  holds: 'all addresses, identities and passkeys that the user signs in with',
  shapes: [ADDRESS_METHOD.shape()],
  relations: [OF_A_USER],
  *disagreements(key, methods, rows) {
    for (const { id, ...method } of methods) {
      const isTheirs = ({ userId, methodId }: MethodOwner) => userId === userInKey(key) && methodId === id
      if (!rows.holds('login-method-owners', textKey(identifierOf(method)), isTheirs))
        yield `login-method-owners does not name the user for login method ${id}`
    }
  },
  remedy: 'the user can’t sign in so: restore a backup',
})

/** Whose an identifier is. */
export type MethodOwner = RowOf<typeof METHOD_OWNER>
const METHOD_OWNER = object({ userId: id<UserId>(), methodId: id<MethodId>() })

export const LOGIN_METHOD_OWNERS = rowTable('login-method-owners', { identifier: HASH }, METHOD_OWNER, {
  holds: 'whose an address, identity or passkey is',
  relations: [
    {
      in: 'login-methods',
      under: (_, { userId }) => idsKey(userId),
      where: (methods: Methods, key, { methodId }) =>
        methods.some(each => each.id === methodId && textKey(identifierOf(each)).equals(key)),
      what: (_, { userId, methodId }) => `login method ${methodId} of user ${userId} with this identifier`,
    },
  ],
  remedy: 'who signs in so is not found, or can’t register: restore a backup',
})

/** `attempt`: SHA-256 of the request's `Idempotency-Key`. */
const TOKEN_USE = object({ attempt: optional(bytes(32)), sealedOutcome: optional(sealed) })

export const IDENTITY_TOKENS = rowTable('identity-tokens', { token: HASH }, TOKEN_USE, {
  holds: 'that an ID token or a sign-in token was used, and what came of it',
  ending: { kind: EXPIRY.identityToken },
  remedy: 'a token may be accepted twice until it expires',
})

export const PASSKEY_CHALLENGES = rowTable('passkey-challenges', { challenge: HASH }, oneOf(0), {
  holds: 'nothing: its key says that a challenge was used',
  ending: { kind: EXPIRY.passkeyChallenge },
  remedy: 'a passkey’s answer may be accepted twice within five minutes',
})

const SESSION = object({
  userId: id<UserId>(),
  generation: count,
  rotatedAtMs: count,
  isPairUsed: flag,
  createdAtMs: count,
  lastUsedAtMs: count,
  endsAtMs: count,
  methods: listOf(oneOf('otp', 'social', 'apple', 'passkey', 'server')),
  userAgent: text,
  network: optional(sealed),
  deviceId: optional(id<DeviceId>()),
  provenAtMs: optional(count),
  isProofSigned: optional(oneOf(true)),
  isUnanswered: optional(oneOf(true)),
  revokedBecause: optional(typed<RevocationReason>(text)),
})

export const SESSIONS = rowTable('sessions', { session: opaque(16) }, SESSION, {
  holds: 'user, device, network, generation of tokens, times',
  shapes: [SESSION.shape('network'), SESSION.shape('network', 'deviceId')],
  ending: { kind: EXPIRY.session, noticeKind: EXPIRY.sessionEnding },
  relations: [
    { in: 'users', under: (_, { userId }) => idsKey(userId), what: (_, { userId }) => `its user ${userId}` },
    { in: 'sessions-by-user', under: (key, { userId }) => Buffer.concat([idsKey(userId), key]) },
    {
      in: ['devices', 'devices-removed', 'devices-pending'],
      under: (_, { userId, deviceId }) => (deviceId === undefined ? undefined : idsKey(userId, deviceId)),
      what: (_, { userId, deviceId }) => `its device ${userId}/${deviceId}`,
    },
  ],
  remedy: 'its device has to sign in again, and “log out everywhere” may miss it: restore a backup',
})

export const SESSIONS_BY_USER = rowTable('sessions-by-user', { user: ID, session: untold(16) }, oneOf(0), {
  holds: 'nothing: its key says which sessions a user has',
  relations: [
    {
      in: 'sessions',
      under: key => key.subarray(ID.bytes),
      where: ({ userId }: Session, key) => userId === userInKey(key),
      what: () => 'the session of the user',
    },
  ],
  remedy: 'it opens nothing: restore a backup if there are others',
})

const PLACES = listOf(tuple(bytes(), count))
const KNOWN = object({ networks: PLACES, prefixes: PLACES, sessions: PLACES })

export const KNOWN_SIGN_INS = rowTable('known-sign-ins', { user: ID }, KNOWN, {
  holds: 'networks and sessions that the user is known by',
  ending: { kind: EXPIRY.knownSignIn },
  relations: [OF_A_USER],
  remedy: 'the user counts as a stranger who asks for a code, until the next sign-in',
})

const WAITING_ADDRESS = object(ADDRESS)
const WAITING_SIGN_IN = object({
  userId: id<UserId>(),
  address: optional(WAITING_ADDRESS),
  displayName: text,
  language: text,
  userAgent: text,
  opens: oneOf('account', 'fresh-account'),
  firstBeganAtMs: count,
  beganAtMs: count,
  endsAtMs: count,
  noticeCount: count,
  identity: optional(object(SOCIAL)),
  network: optional(sealed),
  answer: optional(oneOf('approved', 'refused')),
  answeredAtMs: optional(count),
  sessionId: optional(bytes(16)),
  openedAtMs: optional(count),
})

export const WAITING_SIGN_INS = rowTable('waiting-sign-ins', { 'sign-in': opaque(16) }, WAITING_SIGN_IN, {
  holds: 'a sign-in that waits for its owner, and what came of it',
  shapes: [WAITING_SIGN_IN.shape('address'), WAITING_ADDRESS.shape()],
  ending: { kind: EXPIRY.waitingSignIn },
  relations: [
    { in: 'users', under: (_, { userId }) => idsKey(userId), what: (_, { userId }) => `its user ${userId}` },
    { in: 'waiting-sign-ins-by-user', under: (key, { userId }) => Buffer.concat([idsKey(userId), key]) },
  ],
  remedy: 'who waits has to begin the sign-in again',
})

export const WAITING_SIGN_INS_BY_USER = rowTable(
  'waiting-sign-ins-by-user',
  { user: ID, 'sign-in': untold(16) },
  oneOf(0),
  {
    holds: 'nothing: its key says which sign-ins wait for a user, or have waited',
    relations: [
      {
        in: 'waiting-sign-ins',
        under: key => key.subarray(ID.bytes),
        where: ({ userId }: { readonly userId: UserId }, key) => userId === userInKey(key),
        what: () => 'the sign-in of the user',
      },
    ],
    remedy: 'it opens nothing: restore a backup if there are others',
  },
)

export const REFUSED_SIGN_INS = rowTable(
  'refused-sign-ins',
  { identifier: HASH },
  object({ userId: id<UserId>(), refusedAtMs: count }),
  {
    holds: 'that the owner of an address, or of an account, refused a sign-in by it',
    ending: { kind: EXPIRY.refusedSignIn },
    remedy: 'signing in by the address waits once more, and is asked about',
  },
)
