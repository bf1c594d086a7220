/** Wire shapes of sign-in, sessions and the user (contract 2.3, 2.4). */

import Type, { type TSchema } from 'typebox'
import { LoginMethodView } from './login-method.ts'
import { oneOf } from './one-of.ts'
import { NetworkPrefix } from './sign-in.ts'
import { Time } from './time.ts'
import { Uint64Text } from './uint64.ts'

/** A member that may be left out. */
export function optionalText(description: string, charactersMax = 512) {
  return Type.Optional(Type.String({ maxLength: charactersMax, description }))
}

/** One way to name an address; which of them a request has is checked where the address is read. */
const ADDRESS_MEMBERS = {
  email: optionalText('Email address'),
  phone: optionalText('Phone number'),
  identifier: optionalText('Either of both'),
  country: optionalText('ISO 3166 letters: what a phone number without calling code belongs to', 2),
}

const KNOWN_BY = {
  refreshToken: optionalText(
    'The last refresh token of the account, if the app still has one, also when its session is over: codes are then sent ' +
      'and tried beyond the limits that strangers use up. It is not used up by this and opens nothing',
  ),
}

const ATTESTED = {
  attestation: optionalText(
    'What the platform or a captcha says of the app or its user, for the operator’s login check: passed on as it is, and not ' +
      'kept',
    4_096,
  ),
}

export const ChallengeId = Type.String({
  maxLength: 64,
  description: 'From the reply that announced the code',
})
export const Otp = Type.String({ pattern: '^[0-9]{6}$', description: 'The six digits that were sent' })

const DEVICE_PROOF = {
  userId: Uint64Text,
  deviceId: Uint64Text,
  signature: Type.String({
    maxLength: 128,
    description:
      'Base64 of r and s: ECDSA P-256 with SHA-256 by the signing key of the device, over `callsign sign-in v1`, a newline and ' +
      'the 16 octets of `challengeId`, or the first 16 of the SHA-256 of `signInToken`',
  }),
}

function listedDevice(description: string) {
  return Type.Object(DEVICE_PROOF, { description })
}

export const LoginRequest = Type.Object(
  {
    verified: Type.Optional(
      Type.Boolean({
        description:
          '`false`: a code is sent. `true`: a provider has verified the user, which its ID token must prove, or your backend ' +
          'has, which its sign-in token must',
      }),
    ),
    ...ADDRESS_MEMBERS,
    locale: optionalText('Language of the message, such as `vi-VN`; else Accept-Language', 64),
    displayName: optionalText('1 to 50 characters in at most 200 bytes; used only if the account is new'),
    provider: optionalText('Name of the identity provider, such as `google`', 64),
    idToken: Type.Optional(Type.String({ description: 'What the provider signed' })),
    nonce: optionalText('The nonce of the token, required if it has one; for Apple the raw nonce'),
    authorizationCode: Type.Optional(Type.String({ description: 'Beside a token of Apple' })),
    signInToken: optionalText(
      'What your backend got by `POST users/{ref}/sign-in-token` of the server API',
      256,
    ),
    device: Type.Optional(listedDevice('Beside `signInToken`, as in `verify-login`')),
    ...KNOWN_BY,
    ...ATTESTED,
  },
  { examples: [{ email: 'ann@example.org' }] },
)

export const ResendOtpRequest = Type.Object({
  challengeId: ChallengeId,
  channel: Type.Optional(oneOf(['email', 'sms'])),
  ...KNOWN_BY,
  ...ATTESTED,
})

export const VerifyLoginRequest = Type.Object(
  {
    challengeId: Type.Optional(ChallengeId),
    otp: Type.Optional(Otp),
    code: Type.Optional({ ...Otp, description: 'Another spelling of `otp`' }),
    ...ADDRESS_MEMBERS,
    refreshToken: optionalText(
      'The last refresh token of a listed device of the account, whose session still lasts: the sign-in does not wait. It ' +
        'is not used up by this',
    ),
    device: Type.Optional(
      listedDevice('A device on the device list of the account: the sign-in does not wait'),
    ),
    reclaim: Type.Optional(
      Type.Boolean({
        description:
          'Beside `device`: its account has lost its last login method, and this address becomes the next one',
      }),
    ),
    waitingId: optionalText('Of this client, where its sign-in waits already: the time goes on'),
  },
  { examples: [{ challengeId: '3q2-7wAAAAAAAAAAAAAAAA', otp: '123456' }] },
)

/** Announces a challenge. */
const CHALLENGE_MEMBERS = {
  challengeId: Type.String({ description: '22 base64url characters, to be sent back with the code' }),
  channel: oneOf(['email', 'sms']),
  sentTo: Type.String({ description: 'The address, most of it hidden' }),
  otpLength: Type.Integer(),
  expiresIn: Type.Integer({ description: 'Seconds in which the code is accepted' }),
  resendIn: Type.Integer({ description: 'Seconds until another code can be sent' }),
  smsStop: Type.Optional(
    Type.Object(
      {
        scope: oneOf(['range', 'network', 'calling-code', 'all']),
        retryIn: Type.Integer({ description: 'Seconds until other numbers are sent to again' }),
      },
      {
        description:
          'Too few codes of such numbers are confirmed, so only numbers with an account are sent to. The answer is the ' +
          'same for both: offer another way to sign in, or `resend-otp` with the channel `email`',
      },
    ),
  ),
}

export const Challenge = Type.Object(CHALLENGE_MEMBERS)

export const LoginChallenge = Type.Object({ verified: Type.Literal(false), ...CHALLENGE_MEMBERS })

/** The id of a session, which opens nothing. */
export const SessionId = Type.String({
  pattern: '^[A-Za-z0-9_-]{22}$',
  description: '22 base64url characters',
})

/** How a session was opened. */
export const Proof = oneOf(['otp', 'social', 'apple', 'passkey', 'server'])

const TOKEN_MEMBERS = {
  sessionId: { ...SessionId, description: 'The same as long as the session lasts; `user/sessions` lists it' },
  accessToken: Type.String({
    description: 'Opaque, at most 512 characters; sent as `Authorization: Bearer`',
  }),
  refreshToken: Type.String({ description: 'Opaque, at most 512 characters' }),
  tokenType: Type.Literal('Bearer'),
  expiresIn: Type.Integer({ description: 'Seconds in which the access token is accepted' }),
  refreshExpiresIn: Type.Integer({ description: 'Seconds in which the refresh token is accepted' }),
  challenge: Type.String({
    description:
      'Base64 of 32 octets, the same as long as the session lasts. With a signature over it `register_device` shows that ' +
      'the device has its signing key',
  }),
}

export const TokenPair = Type.Object(TOKEN_MEMBERS)

/** The number at the app's icon: items waiting for the user. */
export const Badge = Type.Object({
  total: Type.Integer(),
  friendRequests: Type.Integer(),
  missedCalls: Type.Integer(),
})

/** A user's choices about being found and called. */
export const Settings = Type.Object({
  discoverableByEmail: Type.Boolean({ description: 'Whether a search for the email address finds the user' }),
  discoverableByPhone: Type.Boolean({ description: 'Whether a search for the phone number finds the user' }),
  callsFromContactsOnly: Type.Boolean({
    description: 'If false, strangers who know the user id may call, and read the keys to do so',
  }),
})

/** A member that a restricted session is not told. */
function kept<Schema extends TSchema>(schema: Schema) {
  return Type.Optional({ ...schema, description: 'Not told to a restricted session' })
}

export const UserView = Type.Object({
  userId: Uint64Text,
  displayName: Type.String(),
  email: kept(Type.String()),
  phone: kept(Type.String()),
  emailVerified: kept(Type.Boolean()),
  phoneVerified: kept(Type.Boolean()),
  primaryMethodId: kept(Uint64Text),
  loginMethods: kept(Type.Array(LoginMethodView)),
  device: Type.Optional(
    Type.Object(
      { deviceId: Uint64Text, publicKeyHash: Type.String() },
      { description: 'Of the session that asks; absent until it registers one' },
    ),
  ),
  badge: Type.Optional(Badge),
  createdAt: kept(Time),
  settings: Type.Optional(Settings),
  restriction: Type.Optional({
    ...oneOf(['DEVICE_NOT_LISTED', 'DEVICE_REQUIRED']),
    description:
      'Why the session may do little, and with which code the rest is refused: its device is not on the user’s device list, or ' +
      'the user has a device and the session none',
  }),
})

/** The reply to signing in, by any proof. */
export const SignedIn = Type.Object({
  verified: Type.Literal(true),
  ...TOKEN_MEMBERS,
  isNewUser: Type.Boolean(),
  user: UserView,
})

export const LoginReply: TSchema = Type.Union([LoginChallenge, SignedIn])

export const RefreshTokenRequest = Type.Object({
  refreshToken: Type.String({ minLength: 1, maxLength: 512 }),
})

export const LogoutRequest = Type.Object({
  allDevices: Type.Optional(Type.Boolean({ description: 'Ends every session of the user' })),
})

export const SessionView = Type.Object({
  id: SessionId,
  createdAt: Time,
  lastUsedAt: { ...Time, description: 'When its tokens were last refreshed' },
  endsAt: {
    ...Time,
    description:
      'When it ends unless it is used before. It ends a year after it began in any case, but for a device that the device ' +
      'list names',
  },
  network: Type.Optional(NetworkPrefix),
  userAgent: Type.String({ description: 'What signed in, in its own words, cut and without odd characters' }),
  proof: { ...Proof, description: 'By what the user was proven' },
  device: Type.Optional(Type.Object({ deviceId: Uint64Text, name: Type.String(), platform: Type.String() })),
  isCurrent: Type.Boolean({ description: 'Whether it is the one that asks' }),
})

export const SessionList = Type.Object({ items: Type.Array(SessionView) })
