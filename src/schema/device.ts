/** Wire shapes of the device operations (contract 2.5). */

import Type from 'typebox'
import { DEVICE_LISTS_PER_PAGE, LOOKUP_TARGETS_MAX } from '../limits.ts'
import { IndexLookup } from './index-lookup.ts'
import { oneOf } from './one-of.ts'
import { Time } from './time.ts'
import { Uint64, Uint64Text } from './uint64.ts'

/** A device key's name (contract 2.5). */
export const PublicKeyHash = Type.String({
  description: 'The vrfHash that the log has the key under, base64',
})

export const KeyAlgorithm = oneOf(['P-256', 'RSA-2048'])

/** A text for people: no control characters, which a list or an alert would show as something else. */
function label(charactersMax: number, description: string) {
  return Type.String({ maxLength: charactersMax, pattern: '^[^\\x00-\\x1f\\x7f-\\x9f]+$', description })
}

export const BUNDLE_ID_PATTERN = '^[A-Za-z0-9][A-Za-z0-9.-]*$'
/** APNs promises no length; its tokens have had 64 digits so far. Empty takes the token back. */
const APNS_TOKEN_PATTERN = '^(?:[0-9a-fA-F]{64,200})?$'
/** Canonical base64 of 32 octets. Empty takes the key back. */
const PUSH_KEY_PATTERN = '^(?:[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=)?$'

const SentPushTokens = Type.Object(
  {
    apnsToken: Type.Optional(
      Type.String({ pattern: APNS_TOKEN_PATTERN, description: 'Device token of APNs, hexadecimal' }),
    ),
    apnsVoipToken: Type.Optional(
      Type.String({ pattern: APNS_TOKEN_PATTERN, description: 'Token of PushKit, hexadecimal' }),
    ),
    apnsEnvironment: Type.Optional(
      oneOf(['production', 'development'], 'The environment that the app is signed for'),
    ),
    bundleId: Type.Optional(
      Type.String({
        maxLength: 155,
        pattern: BUNDLE_ID_PATTERN,
        description: 'Bundle id of the app: the topic of its pushes',
      }),
    ),
    fcmToken: Type.Optional(
      Type.String({
        maxLength: 4096,
        pattern: '^[\\x21-\\x7e]*$',
        description: 'Registration token of Firebase Cloud Messaging',
      }),
    ),
    webPush: Type.Optional(
      Type.Object(
        {
          endpoint: Type.String({ maxLength: 1024, description: 'Empty: the subscription is taken back' }),
          keys: Type.Optional(
            Type.Object({
              p256dh: Type.String({
                pattern: '^[A-Za-z0-9_-]{87}$',
                description: "Base64url of the browser's P-256 point, 65 octets",
              }),
              auth: Type.String({ pattern: '^[A-Za-z0-9_-]{22}$', description: 'Base64url of 16 octets' }),
            }),
          ),
        },
        { description: 'A `PushSubscription` of a browser, as its `toJSON` has it' },
      ),
    ),
    pushKey: Type.Optional(
      Type.String({
        pattern: PUSH_KEY_PATTERN,
        description:
          'Base64 of 32 random octets. What Apple and Google get for this device is sealed with it: see docs/build/push.md. ' +
          'Empty: sealed no more',
      }),
    ),
  },
  { description: 'Where pushes go. A member left out stays as it was; an empty token is taken back' },
)

export const DeviceInfoBody = Type.Object({
  platform: Type.Optional(label(32, 'Such as ios or android')),
  model: Type.Optional(label(100, 'Such as iPhone15,2')),
  osVersion: Type.Optional(label(50, 'Such as 18.4')),
  appVersion: Type.Optional(label(50, 'Such as 1.4.2')),
  name: Type.Optional(label(100, 'What its owner calls it')),
  locale: Type.Optional(label(35, 'Language tag, such as vi-VN')),
  timeZone: Type.Optional(label(64, 'Such as Asia/Ho_Chi_Minh')),
})

/** Base64 of a list of ten devices has less. */
const DeviceListText = Type.String({
  minLength: 1,
  maxLength: 2048,
  description: 'Base64 of a device list: see docs/check/crypto.md',
})

export const RegisterDeviceRequest = Type.Object({
  publicKey: Type.String({
    minLength: 1,
    maxLength: 1024,
    description:
      'Canonical base64 of a P-256 key (SPKI or X9.63) or an RSA-2048 key (SPKI or PKCS#1). Kept and logged as it is',
  }),
  keyAlgorithm: Type.Optional(KeyAlgorithm),
  signingKey: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 88,
      description:
        'Base64 of the uncompressed P-256 point (65 octets) that the device signs device lists with. Needed, with ' +
        '`possession`, once the user has a device list. A device keeps its first one',
    }),
  ),
  possession: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 88,
      description:
        'Base64 of an ECDSA signature (r and s, 64 octets) by the signing key, with SHA-256, over ' +
        '`callsign possession v1`, a newline and the 32 octets of the `challenge` that came with the session',
    }),
  ),
  deviceList: Type.Optional({
    ...DeviceListText,
    description:
      "Base64 of the user's first device list (seq 0), for the user's first device. It names this device alone, by an id " +
      'that the app chooses at random from 2^32 up to 2^53',
  }),
  deviceInfo: Type.Optional(DeviceInfoBody),
  push: Type.Optional(SentPushTokens),
  replacesDeviceId: Type.Optional(Uint64),
})

const PublicKeyIndex = Type.String({
  pattern: '^(0|[1-9][0-9]*)$',
  description: "Index of the key's log entry, decimal",
})

export const RegisterDeviceReply = Type.Object({
  deviceId: Uint64Text,
  publicKeyIndex: PublicKeyIndex,
  vrfHash: Type.String({ description: 'The same as publicKeyHash' }),
  publicKeyHash: PublicKeyHash,
  keyAlgorithm: KeyAlgorithm,
})

export const PutPushRequest = SentPushTokens

export const PutDeviceListRequest = Type.Object({ list: DeviceListText })

const DeviceListHash = Type.String({
  description: "The vrfHash that the log has the user's lists under, base64",
})
const DeviceListIndex = { ...PublicKeyIndex, description: "Index of the newest list's log entry, decimal" }

export const PutDeviceListReply = Type.Object({
  deviceListSeq: Type.Integer({ description: 'The seq of the list that is the newest now' }),
  deviceListHash: DeviceListHash,
  deviceListIndex: DeviceListIndex,
})

/** The newest device list of a user whose keys may be read. */
export const DEVICE_LIST_MEMBERS = {
  deviceList: Type.Optional({
    ...DeviceListText,
    description:
      'The newest device list, base64; left out where the user has none. The log holds base64 of its SHA-256 under ' +
      '`deviceListHash`, as the key of device 0. Encrypt for its devices and no other',
  }),
  deviceListHash: Type.Optional(DeviceListHash),
  deviceListIndex: Type.Optional(DeviceListIndex),
}

export const DeviceListsQuery = Type.Object({
  /** Left out: the user's own lists. */
  userId: Type.Optional(Uint64),
  after: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: Number.MAX_SAFE_INTEGER,
      description: 'The seq of the last list that is known. Left out: from the last list of seq 0 on',
    }),
  ),
})

export const DeviceListsReply = Type.Object({
  lists: Type.Array(DeviceListText, {
    maxItems: DEVICE_LISTS_PER_PAGE,
    description:
      'Lists in base64, each the successor of the one before it, in the order of the log. Ask again with the seq of the ' +
      'last one until there are no more',
  }),
})

/** A device as its owner sees it. */
export const DeviceItem = Type.Object({
  deviceId: Uint64Text,
  name: Type.String(),
  platform: Type.String(),
  model: Type.Optional(Type.String()),
  appVersion: Type.Optional(Type.String()),
  keyAlgorithm: KeyAlgorithm,
  publicKeyHash: PublicKeyHash,
  publicKeyIndex: PublicKeyIndex,
  current: Type.Boolean({ description: 'Whether the session that asks is bound to it' }),
  createdAt: Time,
  lastSeenAt: Time,
})

export const DeviceList = Type.Object({ items: Type.Array(DeviceItem) })

export const PublicKeysQuery = Type.Object({
  userIds: Type.Optional(
    Type.Array(Uint64, {
      minItems: 1,
      maxItems: LOOKUP_TARGETS_MAX,
      description: "Left out: one's own devices",
    }),
  ),
})

const Absent = Type.Object(
  {
    deviceId: Uint64Text,
    vrfHash: Type.String({ description: 'VRF hash of the user and this device, 0: base64 of 64 octets' }),
    vrfProof: Type.String({ description: 'Proof of the VRF that this is the hash: base64 of 80 octets' }),
    indexProof: IndexLookup,
  },
  {
    description:
      'Of a user without a device list, where the log has an index: proof that nothing is logged where the hash of a list would be',
  },
)

export const PublicKeysReply = Type.Object({
  users: Type.Array(
    Type.Object({
      userId: Uint64Text,
      displayName: Type.String(),
      devices: Type.Array(
        Type.Object({
          deviceId: Uint64Text,
          keyAlgorithm: KeyAlgorithm,
          publicKey: Type.String({ description: 'To be verified through the log by its publicKeyHash' }),
          publicKeyHash: PublicKeyHash,
          publicKeyIndex: PublicKeyIndex,
          signingKey: Type.Optional(
            Type.String({
              description: 'What the device has registered as its signing key, for the next device list',
            }),
          ),
        }),
        { description: "One's own, or those that the device list names: all where there is no list" },
      ),
      ...DEVICE_LIST_MEMBERS,
      absent: Type.Optional(Absent),
    }),
  ),
  unavailable: Type.Array(Uint64Text, { description: 'Users that are unknown, or not to be seen by you' }),
})
