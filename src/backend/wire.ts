/** Bodies of the server API and of webhooks. Made by scripts/support/write-wire-types.ts: do not edit. */

export interface Badge {
  readonly total: number
  readonly friendRequests: number
  readonly missedCalls: number
}

export type CallEndReason =
  | 'hangup'
  | 'cancelled'
  | 'declined'
  | 'unanswered'
  | 'caller_lost'
  | 'empty'
  | 'alone'
  | 'limit'
  | 'removed'
  | 'operator'
  | 'suspended'
  | 'internal'

export interface CallParticipant {
  readonly userId: string
  readonly displayName: string
  readonly state: ParticipantState
  readonly isHost: boolean
  readonly invitedBy: string
  readonly invitedAt: string
  readonly joinedAt?: string
  readonly leftAt?: string
  /** The device that is in the call, or was last. */
  readonly deviceId?: string
  /** The log's hash of that device's key. */
  readonly publicKeyHash?: string
  /** `<userId>:<displayName>`; SDKs enter the media room without it. */
  readonly mediaName: string
  /** What that device sends at the media gateway, the newest first: any other feed belongs to an unknown sender. */
  readonly feedIds?: readonly number[]
}

export interface CallRecord {
  readonly callId: string
  /** Grows by one with each change of the call: the greater is newer, the same is a repeat. */
  readonly version: number
  /** The media gateway's room. */
  readonly roomId: number
  readonly status: CallStatus
  readonly isVideo: boolean
  readonly initiatorId: string
  readonly hostUserId: string
  readonly createdAt: string
  /** When the first callee joined. */
  readonly startedAt?: string
  readonly endedAt?: string
  readonly endReason?: CallEndReason
  /** Seconds that an invitation rings. */
  readonly ringTimeoutIn: number
  readonly keyEpoch: number
  /** Seconds after which the host makes a new key. */
  readonly keyRotationIn: number
  readonly maxParticipants: number
  readonly participants: readonly CallParticipant[]
  readonly media: {
    /** The room is the clients’ business; the server makes it at a Janus. */
    readonly kind: 'client' | 'janus'
    /** Of `janus`: the room lets this device in; `media_ready` follows. */
    readonly state?: 'ready' | 'pending'
    /** WebSocket of the gateway; only for a device in the call, when ready. */
    readonly url?: string
    /** For `join`: good for this device and room, up to an hour; likewise. */
    readonly roomToken?: string
    /** For every request to the gateway: the newest; likewise. */
    readonly pluginToken?: string
  }
  /** Whether you were invited into an active call. */
  readonly isOnGoing: boolean
  /** Who invites you; in pending. */
  readonly invitation?: {
    readonly callerId: string
    /** What to show: the alias, else the display name. */
    readonly callerName: string
    /** As the caller calls themselves. */
    readonly displayName: string
    /** Your own name for them, to be shown in place of `displayName` */
    readonly alias?: string
    /** False for a stranger, who may have any name: say so on the screen. */
    readonly isContact: boolean
  }
  /** This device's own; in join and pending. */
  readonly encryptedAESKey?: string
  /** Who sealed `encryptedAESKey`; only with it. */
  readonly keyFromUserId?: string
  /** On which device; likewise. */
  readonly keyFromDeviceId?: string
  /** Of the newest two keys that came with `keyMembers`, newest first; in reads, join, rejoin and pending. */
  readonly keySets?: readonly KeySet[]
}

export type CallStatus = 'ringing' | 'active' | 'ended' | 'cancelled' | 'declined' | 'missed' | 'failed'

export interface Challenge {
  /** 22 base64url characters, to be sent back with the code. */
  readonly challengeId: string
  readonly channel: 'email' | 'sms'
  /** The address, most of it hidden. */
  readonly sentTo: string
  readonly otpLength: number
  /** Seconds in which the code is accepted. */
  readonly expiresIn: number
  /** Seconds until another code can be sent. */
  readonly resendIn: number
  /** Too few codes of such numbers are confirmed, so only numbers with an account are sent to. The answer is the same for both: offer another way to sign in, or `resend-otp` with the channel `email` */
  readonly smsStop?: {
    readonly scope: 'range' | 'network' | 'calling-code' | 'all'
    /** Seconds until other numbers are sent to again. */
    readonly retryIn: number
  }
}

export interface Contact {
  readonly userId: string
  readonly displayName: string
  /** Your own name for them, to be shown in place of `displayName` */
  readonly alias?: string
  readonly since: string
  /** How many devices they have. */
  readonly devices: number
}

export interface CreateServerKeyReply {
  readonly id: string
  /** For lists and audit rows. */
  readonly name: string
  /** Whose key it is; a key of scope `console` has one. */
  readonly person?: string
  /** The groups of operations that the key may ask for. */
  readonly scopes: readonly (
    | 'users'
    | 'sign-in'
    | 'contacts'
    | 'calls'
    | 'reports'
    | 'export'
    | 'audit'
    | 'console'
  )[]
  readonly createdAt: string
  readonly expiresAt?: string
  readonly revokedAt?: string
  /** Shown this once. */
  readonly key: string
}

export interface CreateServerKeyRequest {
  /** For lists and audit rows. */
  readonly name: string
  /** Whose key it is; a key of scope `console` has one. */
  readonly person?: string
  /** The groups of operations that the key may ask for. */
  readonly scopes: readonly (
    | 'users'
    | 'sign-in'
    | 'contacts'
    | 'calls'
    | 'reports'
    | 'export'
    | 'audit'
    | 'console'
  )[]
  readonly expiresAt?: string
}

export interface Device {
  readonly deviceId: string
  readonly name: string
  readonly platform: string
  readonly model?: string
  readonly appVersion?: string
  readonly keyAlgorithm: KeyAlgorithm
  /** The vrfHash that the log has the key under, base64. */
  readonly publicKeyHash: string
  /** Index of the key's log entry, decimal. */
  readonly publicKeyIndex: string
  /** Whether the session that asks is bound to it. */
  readonly current: boolean
  readonly createdAt: string
  readonly lastSeenAt: string
}

export interface DeviceInfo {
  /** Such as ios or android. */
  readonly platform?: string
  /** Such as iPhone15,2. */
  readonly model?: string
  /** Such as 18.4. */
  readonly osVersion?: string
  /** Such as 1.4.2. */
  readonly appVersion?: string
  /** What its owner calls it. */
  readonly name?: string
  /** Language tag, such as vi-VN. */
  readonly locale?: string
  /** Such as Asia/Ho_Chi_Minh. */
  readonly timeZone?: string
}

export interface FriendRequest {
  readonly requestId: string
  readonly direction: 'incoming' | 'outgoing'
  readonly status: 'pending'
  readonly user: Person
  readonly message?: string
  readonly createdAt: string
  readonly expiresAt: string
}

export type KeyAlgorithm = 'P-256' | 'RSA-2048'

export interface KeySet {
  readonly epoch: number
  /** The devices that a key is sealed for, its sealer among them: base64 of `n u16 ‖ n x (userId u64 ‖ deviceId u64 ‖ SHA-256 of the public key)`, big-endian, ascending by userId, then deviceId, at most 321. */
  readonly keyMembers: string
}

export interface ListServerKeysReply {
  readonly items: readonly {
    readonly id: string
    /** For lists and audit rows. */
    readonly name: string
    /** Whose key it is; a key of scope `console` has one. */
    readonly person?: string
    /** The groups of operations that the key may ask for. */
    readonly scopes: readonly (
      | 'users'
      | 'sign-in'
      | 'contacts'
      | 'calls'
      | 'reports'
      | 'export'
      | 'audit'
      | 'console'
    )[]
    readonly createdAt: string
    readonly expiresAt?: string
    readonly revokedAt?: string
  }[]
}

export interface LoginChallenge {
  readonly verified: false
  /** 22 base64url characters, to be sent back with the code. */
  readonly challengeId: string
  readonly channel: 'email' | 'sms'
  /** The address, most of it hidden. */
  readonly sentTo: string
  readonly otpLength: number
  /** Seconds in which the code is accepted. */
  readonly expiresIn: number
  /** Seconds until another code can be sent. */
  readonly resendIn: number
  /** Too few codes of such numbers are confirmed, so only numbers with an account are sent to. The answer is the same for both: offer another way to sign in, or `resend-otp` with the channel `email` */
  readonly smsStop?: {
    readonly scope: 'range' | 'network' | 'calling-code' | 'all'
    /** Seconds until other numbers are sent to again. */
    readonly retryIn: number
  }
}

export interface LoginMethod {
  readonly id: string
  readonly kind: LoginMethodKind
  /** The address; of a provider the one that it named. */
  readonly value?: string
  readonly provider?: string
  /** Of a passkey: what its user calls it. */
  readonly label?: string
  /** Of a passkey: whether it is synced to other devices of the user. */
  readonly backedUp?: boolean
  readonly verified: boolean
  readonly primary: boolean
  readonly addedAt: string
  readonly lastUsedAt: string
}

export type LoginMethodKind = 'email' | 'phone' | 'social' | 'passkey'

export type ParticipantState =
  | 'invited'
  | 'ringing'
  | 'joined'
  | 'left'
  | 'lost'
  | 'declined'
  | 'busy'
  | 'missed'
  | 'removed'

export interface PastCall {
  readonly callId: string
  readonly direction: 'outgoing' | 'incoming'
  readonly status: 'active' | 'ended' | 'missed' | 'declined' | 'cancelled' | 'failed'
  readonly isVideo: boolean
  readonly isGroup: boolean
  readonly peers: readonly {
    readonly userId: string
    readonly displayName: string
    /** Your own name for them, to be shown in place of `displayName` */
    readonly alias?: string
  }[]
  readonly createdAt: string
  readonly startedAt?: string
  readonly endedAt?: string
  /** Seconds that you spent in it; 0 while it goes on. */
  readonly durationIn: number
  /** False for a missed call that you have not looked at. */
  readonly seen: boolean
}

export interface PeerDevice {
  readonly deviceId: string
  /** The vrfHash that the log has the key under, base64. */
  readonly publicKeyHash: string
  readonly keyAlgorithm: KeyAlgorithm
}

export interface Person {
  readonly userId: string
  readonly displayName: string
}

/** RFC 9457 problem details; `code` is what a client goes by. */
export interface Problem {
  /** `urn:problem:` and the code in kebab case. */
  readonly type: string
  readonly title: string
  readonly status: number
  /** Stable, never renamed. */
  readonly code: string
  /** For logs and developers. */
  readonly detail: string
  /** Names the request in the server's log. */
  readonly requestId: string
  /** Seconds to wait, as in Retry-After. */
  readonly retryIn?: number
  /** With `RATE_LIMITED`: whose rate it is, such as `address`, `user` or `session` */
  readonly scope?: string
  /** With `SIGN_IN_WAITING`: for `POST login/waiting`. Whoever has it gets the session. */
  readonly waitingId?: string
  /** With `SIGN_IN_WAITING`: twenty digits, which the device that is asked shows, too. */
  readonly signInCode?: string
  /** With `SIGN_IN_WAITING`: when it goes through without an answer. With `SIGN_IN_REFUSED`: when the address opens a new account. */
  readonly until?: string
  /** With `OTP_INVALID`: how many codes may still be tried. */
  readonly attemptsLeft?: number
  readonly challenge?: Challenge
  /** With `STEP_UP_REQUIRED`: by what the user can prove who they are, for `POST user/step-up` */
  readonly ways?: readonly ('code' | 'passkey' | 'provider')[]
  /** With `STEP_UP_REQUIRED`: whether the device signs the proof, being on the device list. */
  readonly signed?: boolean
  /** With `CLIENT_TOO_OLD`: the oldest that is served. */
  readonly minClientVersion?: string
  /** With `DEVICE_LIST_MISMATCH`: devices that need a key too. */
  readonly missing?: readonly string[]
  /** With `DEVICE_LIST_MISMATCH`: devices that are to have none. */
  readonly extra?: readonly string[]
  /** With `DEVICE_LIST_MISMATCH`: by user id the seq of the newest device list of each callee who has one. */
  readonly deviceListSeqs?: Readonly<Record<string, number>>
  /** With `DEVICE_LIST_CONFLICT`: the seq of the newest list; left out where there is none. */
  readonly deviceListSeq?: number
  /** With `ALREADY_IN_CALL`: the other call, to be left first. With `CALL_CROSSED`: the call to you, to be joined. */
  readonly callId?: string
  /** With `CALLEE_NOT_CONTACT`: who is none. */
  readonly calleeIds?: readonly string[]
  /** With `EPOCH_CONFLICT`: the epoch of the call. */
  readonly keyEpoch?: number
  /** With `METHOD_NOT_ALLOWED`: as the header Allow. */
  readonly allow?: string
  /** With `UNSUPPORTED_MEDIA_TYPE`: as the header Accept-Encoding. */
  readonly acceptEncoding?: string
  readonly errors?: readonly {
    /** JSON pointer to what is at fault; empty for the whole. */
    readonly pointer: string
    readonly code: string
    readonly detail: string
  }[]
}

/** Where pushes go. A member left out stays as it was; an empty token is taken back. */
export interface PushTokens {
  /** Device token of APNs, hexadecimal. */
  readonly apnsToken?: string
  /** Token of PushKit, hexadecimal. */
  readonly apnsVoipToken?: string
  /** The environment that the app is signed for. */
  readonly apnsEnvironment?: 'production' | 'development'
  /** Bundle id of the app: the topic of its pushes. */
  readonly bundleId?: string
  /** Registration token of Firebase Cloud Messaging. */
  readonly fcmToken?: string
  /** A `PushSubscription` of a browser, as its `toJSON` has it. */
  readonly webPush?: {
    /** Empty: the subscription is taken back. */
    readonly endpoint: string
    readonly keys?: {
      /** Base64url of the browser's P-256 point, 65 octets. */
      readonly p256dh: string
      /** Base64url of 16 octets. */
      readonly auth: string
    }
  }
  /** Base64 of 32 random octets. What Apple and Google get for this device is sealed with it: see docs/push.md. Empty: sealed no more. */
  readonly pushKey?: string
}

export interface SentFriendRequest {
  readonly requestId: string
  readonly status: 'pending' | 'accepted'
  readonly user: Person
  readonly createdAt: string
  /** Given for a request by token, and once it is accepted. */
  readonly publicKeyHashs?: readonly string[]
  /** Given for a request by token, and once it is accepted. */
  readonly devices?: readonly PeerDevice[]
  /** The newest device list, base64; left out where the user has none. The log holds base64 of its SHA-256 under `deviceListHash`, as the key of device 0. Encrypt for its devices and no other. */
  readonly deviceList?: string
  /** The vrfHash that the log has the user's lists under, base64. */
  readonly deviceListHash?: string
  /** Index of the newest list's log entry, decimal. */
  readonly deviceListIndex?: string
}

/** The period is over; a participant left, or can not decrypt. */
export type SentKeysReason = 'rotation' | 'leave' | 'emergency'

export interface Settings {
  /** Whether a search for the email address finds the user. */
  readonly discoverableByEmail: boolean
  /** Whether a search for the phone number finds the user. */
  readonly discoverableByPhone: boolean
  /** If false, strangers who know the user id may call, and read the keys to do so. */
  readonly callsFromContactsOnly: boolean
}

export interface ShareToken {
  readonly id: string
  readonly label?: string
  readonly createdAt: string
  readonly expiresAt: string
  readonly maxUses: number
  /** Requests that were made by it. */
  readonly uses: number
  /** The last four characters. */
  readonly last4: string
}

export interface SignedIn {
  readonly verified: true
  /** The same as long as the session lasts; `user/sessions` lists it. */
  readonly sessionId: string
  /** Opaque, at most 512 characters; sent as `Authorization: Bearer` */
  readonly accessToken: string
  /** Opaque, at most 512 characters. */
  readonly refreshToken: string
  readonly tokenType: 'Bearer'
  /** Seconds in which the access token is accepted. */
  readonly expiresIn: number
  /** Seconds in which the refresh token is accepted. */
  readonly refreshExpiresIn: number
  /** Base64 of 32 octets, the same as long as the session lasts. With a signature over it `register_device` shows that the device has its signing key. */
  readonly challenge: string
  readonly isNewUser: boolean
  readonly user: User
}

export interface User {
  readonly userId: string
  readonly displayName: string
  /** Not told to a restricted session. */
  readonly email?: string
  /** Not told to a restricted session. */
  readonly phone?: string
  /** Not told to a restricted session. */
  readonly emailVerified?: boolean
  /** Not told to a restricted session. */
  readonly phoneVerified?: boolean
  /** Not told to a restricted session. */
  readonly primaryMethodId?: string
  /** Not told to a restricted session. */
  readonly loginMethods?: readonly LoginMethod[]
  /** Of the session that asks; absent until it registers one. */
  readonly device?: {
    readonly deviceId: string
    readonly publicKeyHash: string
  }
  readonly badge?: Badge
  /** Not told to a restricted session. */
  readonly createdAt?: string
  readonly settings?: Settings
  /** Why the session may do little, and with which code the rest is refused: its device is not on the user’s device list, or the user has a device and the session none. */
  readonly restriction?: 'DEVICE_NOT_LISTED' | 'DEVICE_REQUIRED'
}

export interface Verified {
  readonly purpose: 'bind-email' | 'bind-phone' | 'step-up'
  readonly user: User
}

/** Events of webhooks, by `type`. */
export type WebhookEvent = never

/** Operations by method and path, which begins behind `/app/api/` or `/server/api/v1/` unless it is a whole one. */
export interface Operations {
  /** Makes a server key, which is shown this once. */
  'POST server-keys': {
    readonly params: object
    readonly body: CreateServerKeyRequest
    readonly reply: CreateServerKeyReply
  }
  /** All server keys, also those that were revoked lately. */
  'GET server-keys': {
    readonly params: object
    readonly body: undefined
    readonly reply: ListServerKeysReply
  }
  /** Revokes a server key at once. */
  'DELETE server-keys/{keyId}': {
    readonly params: { readonly keyId: string }
    readonly body: undefined
    readonly reply: undefined
  }
}
