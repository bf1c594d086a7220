/** Bodies of requests, replies and messages, and the names of their ids. Made by scripts/support/write-wire-types.ts: do not edit. */

/** The present key, sealed for the device that asked. */
export interface AcceptRejoinCommand {
  readonly requesterUserId: string
  readonly requesterDeviceId: string
  /** The session key encrypted for one device: base64 of 64 to 1024 bytes. */
  readonly encryptedAESKey: string
  /** The epoch of the key that is sealed: the call's `keyEpoch`. Left out: not compared. */
  readonly epoch?: number
}

export type AcceptRejoinReply = object

export interface AcceptRejoinRequest {
  readonly requesterUserId: string
  readonly requesterDeviceId: string
  /** The session key encrypted for one device: base64 of 64 to 1024 bytes. */
  readonly encryptedAESKey: string
  /** The epoch of the key that is sealed: the call's `keyEpoch`. Left out: not compared. */
  readonly epoch?: number
}

export interface AcceptRequestReply {
  readonly contact: {
    readonly userId: string
    readonly displayName: string
    readonly since: string
  }
  /** One for each of the other's devices. */
  readonly publicKeyHashs: readonly string[]
  readonly devices: readonly PeerDevice[]
  /** The newest device list, base64; left out where the user has none. The log holds base64 of its SHA-256 under `deviceListHash`, as the key of device 0. Encrypt for its devices and no other. */
  readonly deviceList?: string
  /** The vrfHash that the log has the user's lists under, base64. */
  readonly deviceListHash?: string
  /** Index of the newest list's log entry, decimal. */
  readonly deviceListIndex?: string
}

/** Exactly one: the request, or the user who sent it. */
export interface AcceptRequestRequest {
  readonly requestId?: string
  readonly userId?: string
}

export interface AddLoginMethodRequest {
  readonly kind: 'email' | 'phone' | 'social'
  /** The email address or phone number. */
  readonly value?: string
  /** ISO 3166 letters: what a phone number without calling code belongs to. */
  readonly country?: string
  /** The name of the identity provider, such as `google` */
  readonly provider?: string
  /** What the provider signed. */
  readonly idToken?: string
  /** The nonce of the token, required if it has one; for Apple the raw nonce. */
  readonly nonce?: string
  /** Beside a token of Apple. */
  readonly authorizationCode?: string
}

export interface AddPasskeyRequest {
  /** What `navigator.credentials.create` answers, as JSON. */
  readonly credential: {
    /** Base64url of the credential’s id. */
    readonly id: string
    /** The same as `id` */
    readonly rawId: string
    readonly type: 'public-key'
    /** Not looked at. */
    readonly authenticatorAttachment?: unknown
    /** Not looked at. */
    readonly clientExtensionResults?: unknown
    readonly response: {
      /** Base64url of the client data that was signed. */
      readonly clientDataJSON: string
      /** Base64url; its statement is not looked at. */
      readonly attestationObject: string
      readonly transports?: readonly string[]
      /** Not looked at. */
      readonly authenticatorData?: unknown
      /** Not looked at. */
      readonly publicKey?: unknown
      /** Not looked at. */
      readonly publicKeyAlgorithm?: unknown
    }
  }
  /** What the user calls it: 1 to 50 characters in at most 200 bytes. */
  readonly label?: string
}

export interface AnswerWaitingSignInRequest {
  readonly approve: boolean
  /** Base64 of r and s: ECDSA P-256 with SHA-256 by the signing key of the device that answers, over `callsign sign-in answer v1`, a newline, the user id (8 octets), the id (16 octets), and 1 or 0. */
  readonly signature: string
}

export interface Badge {
  readonly total: number
  readonly friendRequests: number
  readonly missedCalls: number
}

/** The app's badge as it should be: live only, sent on SUBSCRIBE and when it changes. */
export interface BadgeEvent {
  readonly v: 1
  readonly type: 'badge'
  /** Names the event; the same in its push. */
  readonly eventId: string
  /** Milliseconds since 1970. */
  readonly sentAt: number
  readonly total: number
  readonly friendRequests: number
  readonly missedCalls: number
}

export interface BlockUserRequest {
  readonly userId: string
}

/** Another device of the user answered or declined, as `reason` says: stop ringing. */
export interface CallAnsweredElsewhereEvent {
  readonly v: 1
  readonly type: 'call_answered_elsewhere'
  /** Names the event; the same in its push. */
  readonly eventId: string
  /** Milliseconds since 1970. */
  readonly sentAt: number
  readonly callId: string
  /** Grows by one with each change of the call: the greater is newer, the same is a repeat. */
  readonly version: number
  readonly callerId: string
  /** What to show: the alias, else the display name. */
  readonly callerName: string
  /** As the caller calls themselves. */
  readonly displayName: string
  /** Your own name for them, to be shown in place of `displayName` */
  readonly alias?: string
  /** A contact, or a member of a circle of yours. False for a stranger, who may have any name: say so on the screen. */
  readonly isContact: boolean
  readonly isVideo: boolean
  readonly at: string
  /** How the other device answered. */
  readonly reason: 'answered' | 'declined' | 'busy'
}

/** The invitation was withdrawn, or the call has ended: stop ringing. */
export interface CallCancelledEvent {
  readonly v: 1
  readonly type: 'call_cancelled'
  /** Names the event; the same in its push. */
  readonly eventId: string
  /** Milliseconds since 1970. */
  readonly sentAt: number
  readonly callId: string
  /** Grows by one with each change of the call: the greater is newer, the same is a repeat. */
  readonly version: number
  readonly callerId: string
  /** What to show: the alias, else the display name. */
  readonly callerName: string
  /** As the caller calls themselves. */
  readonly displayName: string
  /** Your own name for them, to be shown in place of `displayName` */
  readonly alias?: string
  /** A contact, or a member of a circle of yours. False for a stranger, who may have any name: say so on the screen. */
  readonly isContact: boolean
  readonly isVideo: boolean
  readonly at: string
  readonly badge: Badge
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

/** The call has ended: close media, wipe the key. */
export interface CallEndedEvent {
  readonly v: 1
  readonly type: 'call_ended'
  /** Names the event; the same in its push. */
  readonly eventId: string
  /** Milliseconds since 1970. */
  readonly sentAt: number
  readonly callId: string
  /** Grows by one with each change of the call: the greater is newer, the same is a repeat. */
  readonly version: number
  readonly status: CallStatus
  readonly endReason: CallEndReason
  /** Left out when nobody ended it. */
  readonly endedBy?: string
  readonly endedAt: string
}

/** A user calls: ring until `expiresAt`. It has the key of the call for this device alone. */
export interface CallInvitationEvent {
  readonly v: 1
  readonly type: 'call_invitation'
  /** Names the event; the same in its push. */
  readonly eventId: string
  /** Milliseconds since 1970. */
  readonly sentAt: number
  readonly callId: string
  /** Grows by one with each change of the call: the greater is newer, the same is a repeat. */
  readonly version: number
  readonly callerId: string
  /** What to show: the alias, else the display name. */
  readonly callerName: string
  /** As the caller calls themselves. */
  readonly displayName: string
  /** Your own name for them, to be shown in place of `displayName` */
  readonly alias?: string
  /** A contact, or a member of a circle of yours. False for a stranger, who may have any name: say so on the screen. */
  readonly isContact: boolean
  /** The session key encrypted for one device: base64 of 64 to 1024 bytes. */
  readonly encryptedAESKey: string
  /** The media gateway's room. */
  readonly roomId: number
  readonly isVideo: boolean
  /** Whether it is an invitation into an active call. */
  readonly isOnGoing: boolean
  /** The device that is invited. */
  readonly deviceId?: string
  readonly expiresAt: string
  readonly participants: readonly Person[]
  readonly keyEpoch: number
  /** Who sealed the key. */
  readonly keyFromUserId: string
  /** The device that sealed it. */
  readonly keyFromDeviceId: string
}

/** No device of this user answered in time: stop ringing. */
export interface CallMissedEvent {
  readonly v: 1
  readonly type: 'call_missed'
  /** Names the event; the same in its push. */
  readonly eventId: string
  /** Milliseconds since 1970. */
  readonly sentAt: number
  readonly callId: string
  /** Grows by one with each change of the call: the greater is newer, the same is a repeat. */
  readonly version: number
  readonly callerId: string
  /** What to show: the alias, else the display name. */
  readonly callerName: string
  /** As the caller calls themselves. */
  readonly displayName: string
  /** Your own name for them, to be shown in place of `displayName` */
  readonly alias?: string
  /** A contact, or a member of a circle of yours. False for a stranger, who may have any name: say so on the screen. */
  readonly isContact: boolean
  readonly isVideo: boolean
  readonly at: string
  readonly badge: Badge
}

/** Another device of the user took the call over: close media and keep quiet. */
export interface CallMovedEvent {
  readonly v: 1
  readonly type: 'call_moved'
  /** Names the event; the same in its push. */
  readonly eventId: string
  /** Milliseconds since 1970. */
  readonly sentAt: number
  readonly callId: string
  /** Grows by one with each change of the call: the greater is newer, the same is a repeat. */
  readonly version: number
  readonly callerId: string
  /** What to show: the alias, else the display name. */
  readonly callerName: string
  /** As the caller calls themselves. */
  readonly displayName: string
  /** Your own name for them, to be shown in place of `displayName` */
  readonly alias?: string
  /** A contact, or a member of a circle of yours. False for a stranger, who may have any name: say so on the screen. */
  readonly isContact: boolean
  readonly isVideo: boolean
  readonly at: string
}

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
  /** That device at LiveKit, while it is in the call: any other identity is an unknown sender. */
  readonly identity?: string
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
    /** The room is the clients’ business; the server makes it at a Janus or a LiveKit. */
    readonly kind: 'client' | 'janus' | 'livekit'
    /** Not of `client`: the room lets this device in; `media_ready` follows. */
    readonly state?: 'ready' | 'pending'
    /** WebSocket of the gateway; only for a device in the call, when ready. */
    readonly url?: string
    /** For `join`: good for this device and room, up to an hour; likewise. */
    readonly roomToken?: string
    /** For every request to the gateway: the newest; likewise. */
    readonly pluginToken?: string
    /** Of `livekit` alone: for `connect`, good for this device and room, up to an hour; likewise. */
    readonly token?: string
    /** Of `livekit` alone: bits of the keys of frames, alike for all devices. */
    readonly keySize?: 128 | 256
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
    /** A contact, or a member of a circle of yours. False for a stranger, who may have any name: say so on the screen. */
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

/** The call as a whole changed its status. */
export interface CallStatusEvent {
  readonly v: 1
  readonly type: 'call_status'
  /** Names the event; the same in its push. */
  readonly eventId: string
  /** Milliseconds since 1970. */
  readonly sentAt: number
  readonly callId: string
  /** Grows by one with each change of the call: the greater is newer, the same is a repeat. */
  readonly version: number
  readonly status: CallStatus
}

/** Exactly one: the request, or the user whom it was sent to. */
export interface CancelRequestRequest {
  readonly requestId?: string
  readonly userId?: string
}

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

/** The two are contacts now. */
export interface ContactAddedEvent {
  readonly v: 1
  readonly type: 'contact_added'
  /** Names the event; the same in its push. */
  readonly eventId: string
  /** Milliseconds since 1970. */
  readonly sentAt: number
  readonly userId: string
  readonly displayName: string
}

/** A contact has another name, or another device of this user gave them one: both names as they are now. */
export interface ContactChangedEvent {
  readonly v: 1
  readonly type: 'contact_changed'
  /** Names the event; the same in its push. */
  readonly eventId: string
  /** Milliseconds since 1970. */
  readonly sentAt: number
  readonly userId: string
  readonly displayName: string
  /** Your own name for them, to be shown in place of `displayName` */
  readonly alias?: string
}

/** The two are contacts no more. */
export interface ContactRemovedEvent {
  readonly v: 1
  readonly type: 'contact_removed'
  /** Names the event; the same in its push. */
  readonly eventId: string
  /** Milliseconds since 1970. */
  readonly sentAt: number
  readonly userId: string
  readonly displayName: string
  /** Your own name for them, to be shown in place of `displayName` */
  readonly alias?: string
}

export interface CreateShareTokenReply {
  readonly id: string
  readonly label?: string
  readonly createdAt: string
  readonly expiresAt: string
  readonly maxUses: number
  /** Requests that were made by it. */
  readonly uses: number
  /** `c_` and 22 base64url characters. */
  readonly token: string
  /** A page for people without the app; the app opens it by itself. */
  readonly url: string
  readonly deepLink: string
}

export interface CreateShareTokenRequest {
  /** Seconds; left out: 7 days. */
  readonly expiresIn?: number
  /** Requests that it is good for; left out: 100. */
  readonly maxUses?: number
  /** For its owner alone. */
  readonly label?: string
}

export interface CreateUserTokenReply {
  /** A JWT of type `callsign-user+jwt`: `iss`, `sub` (user id), `ext`, `aud`, `sid`, `iat`, `exp`, `jti` */
  readonly token: string
  /** Seconds that it is good for. */
  readonly expiresIn: number
}

export interface CreateUserTokenRequest {
  /** The service that the token is for: one that the operator has listed. */
  readonly audience: string
}

export interface DeclineCallRequest {
  /** Left out: declined. */
  readonly reason?: 'declined' | 'busy' | 'timeout'
}

/** No, with a reason. */
export interface DeclineCommand {
  /** Left out: declined. */
  readonly reason?: 'declined' | 'busy' | 'timeout'
}

/** Exactly one: the request, or the user who sent it. */
export interface DeclineRequestRequest {
  readonly requestId?: string
  readonly userId?: string
}

export interface DeleteUserReply {
  /** Signing in before then keeps the account. */
  readonly erasesAt: string
}

export interface DeleteUserRequest {
  readonly confirm: true
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

/** Another device signed in as this user: show it. Once the user agrees, sign a device list that names it too. */
export interface DeviceAddedEvent {
  readonly v: 1
  readonly type: 'device_added'
  /** Names the event; the same in its push. */
  readonly eventId: string
  /** Milliseconds since 1970. */
  readonly sentAt: number
  readonly deviceId: string
  readonly name: string
  readonly platform: string
  readonly publicKeyHash: string
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

/** The user has another device list, which this device signed: fetch and judge it. */
export interface DeviceListChangedEvent {
  readonly v: 1
  readonly type: 'device_list_changed'
  /** Names the event; the same in its push. */
  readonly eventId: string
  /** Milliseconds since 1970. */
  readonly sentAt: number
  readonly deviceId: string
  readonly name: string
  readonly platform: string
  readonly publicKeyHash: string
}

/** The user started over with a device list that this device signed and no listed one: show it as an alarm. */
export interface DeviceListResetEvent {
  readonly v: 1
  readonly type: 'device_list_reset'
  /** Names the event; the same in its push. */
  readonly eventId: string
  /** Milliseconds since 1970. */
  readonly sentAt: number
  readonly deviceId: string
  readonly name: string
  readonly platform: string
  readonly publicKeyHash: string
}

/** Another device took over the push tokens of this one, which calls do not wake any more: show it. */
export interface DevicePushLostEvent {
  readonly v: 1
  readonly type: 'device_push_lost'
  /** Names the event; the same in its push. */
  readonly eventId: string
  /** Milliseconds since 1970. */
  readonly sentAt: number
  /** The device that is pushed to no more. */
  readonly deviceId: string
  readonly name: string
  readonly platform: string
  /** What another device has sent as its own. */
  readonly tokens: readonly ('apnsToken' | 'apnsVoipToken' | 'fcmToken' | 'webPush')[]
}

/** A device of this user was removed. */
export interface DeviceRemovedEvent {
  readonly v: 1
  readonly type: 'device_removed'
  /** Names the event; the same in its push. */
  readonly eventId: string
  /** Milliseconds since 1970. */
  readonly sentAt: number
  readonly deviceId: string
  readonly name: string
  readonly platform: string
  readonly publicKeyHash: string
}

/** SVG 1.1, black on white, with the quiet zone that scanners need. */
export type DrawShareTokenReply = string

export interface EndCallRequest {
  readonly callId: string
}

/** A frame of this connection was refused. */
export interface ErrorEvent {
  readonly v: 1
  readonly type: 'error'
  readonly eventId: string
  /** Milliseconds since 1970. */
  readonly sentAt: number
  /** Of the frame that was refused. */
  readonly destination: string
  /** The frame's `receipt` */
  readonly receiptId?: string
  readonly problem: Problem
}

export interface ExportUserReply {
  readonly exportedAt: string
  readonly user: User
  readonly account: {
    /** Of letters to the user, as the app last asked for it. */
    readonly language: string
    /** When the account is erased, where its end was asked for. */
    readonly erasesAt?: string
    /** What the operator’s backend calls the user. */
    readonly externalId?: string
    /** Whether the operator’s backend made the account, and the user has confirmed no login method since. */
    readonly madeByServer: boolean
    /** What the operator’s backend says of the user, unproven. */
    readonly contactData?: {
      readonly email?: string
      readonly phone?: string
    }
    readonly suspension?: {
      readonly reason: string
      readonly suspendedAt: string
      readonly until?: string
    }
  }
  readonly identities: readonly {
    /** As in `user.loginMethods` */
    readonly methodId: string
    readonly provider: string
    readonly issuer: string
    /** The user’s name at the provider. */
    readonly subject: string
  }[]
  readonly passkeys: readonly {
    /** As in `user.loginMethods` */
    readonly methodId: string
    /** Base64url. */
    readonly credentialId: string
    /** A COSE_Key, base64. */
    readonly publicKey: string
    readonly signCount: number
    readonly transports: readonly string[]
    /** The authenticator’s model. */
    readonly aaguid: string
  }[]
  readonly sessions: readonly {
    /** 22 base64url characters. */
    readonly id: string
    readonly createdAt: string
    /** When its tokens were last refreshed. */
    readonly lastUsedAt: string
    /** When it ends unless it is used before. It ends a year after it began in any case, but for a device that the device list names. */
    readonly endsAt: string
    /** Of where it came from, such as `203.0.113.0/24` */
    readonly network?: string
    /** What signed in, in its own words, cut and without odd characters. */
    readonly userAgent: string
    /** By what the user was proven. */
    readonly proof: 'otp' | 'social' | 'apple' | 'passkey' | 'server'
    readonly device?: {
      readonly deviceId: string
      readonly name: string
      readonly platform: string
    }
    /** Whether it is the one that asks. */
    readonly isCurrent: boolean
  }[]
  readonly devices: readonly Device[]
  readonly deviceDetails: readonly {
    /** As in `devices` */
    readonly deviceId: string
    readonly osVersion?: string
    readonly locale?: string
    readonly timeZone?: string
    /** As it is in the log. */
    readonly publicKey: string
    /** That the device signs device lists with. */
    readonly signingKey?: string
    /** The push services that the server has a token for. */
    readonly push: readonly {
      readonly service: 'apns' | 'apns-voip' | 'fcm' | 'web-push'
      /** When the app last sent the token. */
      readonly registeredAt?: string
    }[]
  }[]
  readonly waitingSignIns: readonly {
    /** Names a sign-in that waits; 22 base64url characters. */
    readonly id: string
    /** Twenty digits, which the screen that waits shows, too. */
    readonly signInCode: string
    /** Whose code was right; `server`: a token of the operator’s backend. */
    readonly method: 'email' | 'phone' | 'server'
    /** As the client that waits calls itself. */
    readonly userAgent: string
    /** Of where it came from, such as `203.0.113.0/24` */
    readonly network?: string
    readonly createdAt: string
    /** Then it goes through without an answer. */
    readonly until: string
  }[]
  /** By what the operator’s backend calls them. */
  readonly circles: readonly string[]
  readonly removedDevices: readonly {
    readonly deviceId: string
    readonly platform: string
    readonly publicKey: string
    readonly createdAt: string
    readonly removedAt?: string
  }[]
  readonly contacts: readonly Contact[]
  readonly incomingRequests: readonly FriendRequest[]
  readonly outgoingRequests: readonly FriendRequest[]
  readonly blocks: readonly {
    readonly userId: string
    readonly displayName: string
    readonly since: string
  }[]
  readonly shareTokens: readonly ShareToken[]
  readonly calls: readonly PastCall[]
  readonly reports: readonly {
    readonly reportId: string
    /** About whom. */
    readonly userId: string
    readonly callId?: string
    readonly reason:
      | 'harassment'
      | 'threat'
      | 'hate'
      | 'sexual'
      | 'child-safety'
      | 'self-harm'
      | 'impersonation'
      | 'fraud'
      | 'spam'
      | 'other'
    readonly text?: string
    readonly createdAt: string
  }[]
}

export interface FetchWaitingLoginRequest {
  /** From `SIGN_IN_WAITING`; whoever has it gets the session. */
  readonly waitingId: string
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

/** The request was taken back. */
export interface FriendRequestCancelledEvent {
  readonly v: 1
  readonly type: 'friend_request_cancelled'
  /** Names the event; the same in its push. */
  readonly eventId: string
  /** Milliseconds since 1970. */
  readonly sentAt: number
  readonly requestId: string
  readonly userId: string
}

/** A user asks to be a contact. */
export interface FriendRequestEvent {
  readonly v: 1
  readonly type: 'friend_request'
  /** Names the event; the same in its push. */
  readonly eventId: string
  /** Milliseconds since 1970. */
  readonly sentAt: number
  readonly requestId: string
  readonly userId: string
  readonly displayName: string
  readonly message?: string
  readonly createdAt: string
}

export interface GetCredentialsReply {
  /** `<expiry>:<userId>`, the expiry in seconds since 1970. */
  readonly turnUsername: string
  /** Base64 of the HMAC-SHA1 of turnUsername. */
  readonly turnPassword: string
  /** The relay by TLS, a URI of RFC 7065. */
  readonly tlsUrl: string
  /** The relay without TLS. */
  readonly noneTlsUrl: string
  /** Seconds for which they are good; ask again on an ICE restart. */
  readonly ttl: number
  readonly expiresAt: string
  /** Every way to the relay, the one to try first first. */
  readonly uris: readonly string[]
  /** A URI of RFC 7064. */
  readonly stunUrl?: string
}

export interface GetKeyHistoryReply {
  /** Every key that was logged under this hash, oldest first. */
  readonly entries: readonly {
    readonly index: string
    /** Base64, as it was registered. */
    readonly publicKey: string
    /** Text of c2sp.org/tlog-proof with the VRF proof as its extra data: verify it before you use the key. */
    readonly proof: string
  }[]
  readonly treeSize: string
}

export interface GetKeyHistoryRequest {
  /** The vrfHash that registration returned: base64 of 64 bytes. */
  readonly publicKeyHash: string
}

export interface GetKeyMembersReply {
  readonly callId: string
  readonly epoch: number
  /** The devices that a key is sealed for, its sealer among them: base64 of `n u16 ‖ n x (userId u64 ‖ deviceId u64 ‖ SHA-256 of the public key)`, big-endian, ascending by userId, then deviceId, at most 321. */
  readonly keyMembers: string
}

export interface GetMetaReply {
  readonly apiVersion: number
  readonly serverTime: string
  /** Bounds by name; names are added. */
  readonly limits: Readonly<Record<string, number>>
  /** For how many days the server keeps a call in the history of its people; 0: it keeps none. */
  readonly historyDays: number
  /** What this server can do, by name. */
  readonly features: Readonly<Record<string, unknown>>
  readonly webPush?: {
    /** The `applicationServerKey` that browsers subscribe with: base64url of 65 octets. */
    readonly publicKey: string
  }
  /** `email`, `phone`, and names of identity providers. */
  readonly loginMethods: readonly string[]
  /** Older clients are refused with CLIENT_TOO_OLD. */
  readonly minClientVersion?: string
  /** Path of the WebSocket. */
  readonly ws?: string
  readonly log: {
    /** Name of the log, as its checkpoints have it. */
    readonly origin: string
    /** Verifier key of the checkpoints (c2sp.org/signed-note). */
    readonly vkey: string
    /** Public key of the VRF, base64 of 32 bytes. */
    readonly vrfPublicKey: string
    /** Prefix of the public files of the log. */
    readonly url: string
    /** The index, by which lookups prove that they are complete. For people: an app has the key built in, since this answer comes from the server that it checks. */
    readonly index?: {
      /** Verifier key of its checkpoints, by the name `<origin>/index` */
      readonly vkey: string
    }
    /** Policy of the witnesses that cosign each checkpoint (c2sp.org/tlog-policy). For operators of other logs and people: an app has the policy built in, since this answer comes from the server that it checks. */
    readonly witnessPolicy?: string
  }
}

export interface GetParticipantsReply {
  readonly callId: string
  /** Grows by one with each change of the call: the greater is newer, the same is a repeat. */
  readonly version: number
  readonly keyEpoch: number
  readonly participants: readonly CallParticipant[]
}

export interface GetPendingCallsReply {
  readonly items: readonly CallRecord[]
}

export interface GetPublicKeysReply {
  /** In the order of the targets. */
  readonly results: readonly {
    /** Base64, as it was registered. */
    readonly publicKey: string
    /** The vrfHash that registration returned: base64 of 64 bytes. */
    readonly vrfHash: string
    /** Text of c2sp.org/tlog-proof with the VRF proof as its extra data: verify it before you use the key. */
    readonly proof: string
    /** What the index has under a key: SHA-256 of the base64 text of a VRF hash. */
    readonly indexProof?: {
      /** Checkpoint of the index (c2sp.org/tlog-checkpoint, origin `<origin>/index`), its whole note in base64. */
      readonly output_log_cp: string
      /** Last leaf of that tree in base64: `{"input_log_cp": a checkpoint of the log in base64, "index_root": 32 numbers}` */
      readonly output_log_leaf: string
      /** Inclusion of the leaf at the end of that tree: hashes from its sibling up. */
      readonly output_log_proof: readonly (readonly number[])[]
      /** Indexes of the entries under the key, ascending; none: the key is absent. */
      readonly index_value: readonly number[]
      /** Proof of that under the root of the leaf: octets of filippo.io/torchwood/mpt v0.10, in base64. */
      readonly index_proof: string
    }
  }[]
}

export interface GetPublicKeysRequest {
  readonly targets: readonly {
    /** The vrfHash that registration returned: base64 of 64 bytes. */
    readonly publicKeyHash: string
  }[]
  /** Whether each result should say what the index has under its hash. Left out: no. */
  readonly index?: boolean
}

/** Another is host, and makes the next key. */
export interface HostChangedEvent {
  readonly v: 1
  readonly type: 'host_changed'
  /** Names the event; the same in its push. */
  readonly eventId: string
  /** Milliseconds since 1970. */
  readonly sentAt: number
  readonly callId: string
  /** Grows by one with each change of the call: the greater is newer, the same is a repeat. */
  readonly version: number
  readonly hostUserId: string
}

export interface InviteToCallRequest {
  /** 1 to 31 contacts, each once, without oneself. */
  readonly calleeIds: readonly string[]
  /** By `<userId>_<deviceId>`; at most 320. */
  readonly encryptedAESKeys: Readonly<Record<string, string>>
  /** Left out: as the call's. */
  readonly isVideo?: boolean
  /** If given, the call's own. */
  readonly roomId?: number
  /** The call's `keyEpoch`, with `keyMembers` and one. Left out without these: not compared. */
  readonly epoch?: number
  /** Makes the key a new epoch: `encryptedAESKeys` is then for every other device in the call too, and these are its devices and this one. */
  readonly keyMembers?: string
}

export type KeyAlgorithm = 'P-256' | 'RSA-2048'

/** This device gets no key of the epoch: ask for it with `request-rejoin` */
export interface KeyMissingEvent {
  readonly v: 1
  readonly type: 'key_missing'
  /** Names the event; the same in its push. */
  readonly eventId: string
  /** Milliseconds since 1970. */
  readonly sentAt: number
  readonly callId: string
  /** Grows by one with each change of the call: the greater is newer, the same is a repeat. */
  readonly version: number
  /** Whose key this device does not get. */
  readonly epoch: number
}

export interface KeySet {
  readonly epoch: number
  /** The devices that a key is sealed for, its sealer among them: base64 of `n u16 ‖ n x (userId u64 ‖ deviceId u64 ‖ SHA-256 of the public key)`, big-endian, ascending by userId, then deviceId, at most 321. */
  readonly keyMembers: string
}

/** A new key of the call, or the present one again. */
export interface KeyUpdateEvent {
  readonly v: 1
  readonly type: 'key_update'
  /** Names the event; the same in its push. */
  readonly eventId: string
  /** Milliseconds since 1970. */
  readonly sentAt: number
  readonly callId: string
  /** Grows by one with each change of the call: the greater is newer, the same is a repeat. */
  readonly version: number
  readonly epoch: number
  readonly reason: KeysReason
  /** The session key encrypted for one device: base64 of 64 to 1024 bytes. */
  readonly encryptedAESKey: string
  readonly fromUserId: string
  readonly fromDeviceId: string
  /** Base64 of SHA-256 of `callsign call members v1`, a line feed and the octets of the `keyMembers`; where the epoch has some. */
  readonly setHash?: string
  /** Base64 of the entries that the set of the epoch before lacks, 48 octets each; with a new epoch after one with a set. */
  readonly added?: string
  /** Devices whose entries only the set before has, as `<userId>_<deviceId>`; likewise. */
  readonly removed?: readonly string[]
}

/** A new key, sealed for every device in the call, or the present one again. */
export interface KeysCommand {
  /** The call's `keyEpoch` and one; for `emergency` also the present one. */
  readonly epoch: number
  readonly reason: SentKeysReason
  /** By `<userId>_<deviceId>`; at most 320. */
  readonly encryptedAESKeys: Readonly<Record<string, string>>
  /** The devices of `encryptedAESKeys` and this one; for the present epoch its own set. */
  readonly keyMembers?: string
  /** Devices in the call that get no key, as `<userId>_<deviceId>`; of a new epoch they hear by `key_missing` */
  readonly without?: readonly string[]
}

/** The period is over; a participant left, can not decrypt, or invited more people. */
export type KeysReason = 'rotation' | 'leave' | 'emergency' | 'invite'

/** The device leaves the call. */
export type LeaveCommand = object

export interface ListBlocksReply {
  readonly items: readonly {
    readonly userId: string
    readonly displayName: string
    readonly since: string
  }[]
  /** Of the next page; left out behind the last. */
  readonly nextCursor?: string
}

export interface ListCallHistoryReply {
  readonly items: readonly PastCall[]
  /** Of the next page; left out behind the last. */
  readonly nextCursor?: string
}

export interface ListContactsReply {
  readonly items: readonly Contact[]
  /** Of the next page; left out behind the last. */
  readonly nextCursor?: string
}

export interface ListDevicesReply {
  readonly items: readonly Device[]
}

export interface ListLoginMethodsReply {
  readonly items: readonly LoginMethod[]
}

export interface ListReportReasonsReply {
  readonly items: readonly {
    readonly reason:
      | 'harassment'
      | 'threat'
      | 'hate'
      | 'sexual'
      | 'child-safety'
      | 'self-harm'
      | 'impersonation'
      | 'fraud'
      | 'spam'
      | 'other'
    /** In English, for apps without words of their own. */
    readonly title: string
  }[]
}

export interface ListRequestsReply {
  readonly items: readonly FriendRequest[]
  /** Of the next page; left out behind the last. */
  readonly nextCursor?: string
}

export interface ListSessionsReply {
  readonly items: readonly {
    /** 22 base64url characters. */
    readonly id: string
    readonly createdAt: string
    /** When its tokens were last refreshed. */
    readonly lastUsedAt: string
    /** When it ends unless it is used before. It ends a year after it began in any case, but for a device that the device list names. */
    readonly endsAt: string
    /** Of where it came from, such as `203.0.113.0/24` */
    readonly network?: string
    /** What signed in, in its own words, cut and without odd characters. */
    readonly userAgent: string
    /** By what the user was proven. */
    readonly proof: 'otp' | 'social' | 'apple' | 'passkey' | 'server'
    readonly device?: {
      readonly deviceId: string
      readonly name: string
      readonly platform: string
    }
    /** Whether it is the one that asks. */
    readonly isCurrent: boolean
  }[]
}

export interface ListShareTokensReply {
  readonly items: readonly ShareToken[]
  /** Of the next page; left out behind the last. */
  readonly nextCursor?: string
}

export interface ListWaitingSignInsReply {
  readonly items: readonly {
    /** Names a sign-in that waits; 22 base64url characters. */
    readonly id: string
    /** Twenty digits, which the screen that waits shows, too. */
    readonly signInCode: string
    /** Whose code was right; `server`: a token of the operator’s backend. */
    readonly method: 'email' | 'phone' | 'server'
    /** As the client that waits calls itself. */
    readonly userAgent: string
    /** Of where it came from, such as `203.0.113.0/24` */
    readonly network?: string
    readonly createdAt: string
    /** Then it goes through without an answer. */
    readonly until: string
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

/** An address of this user opens another account now: show it. */
export interface LoginMethodLostEvent {
  readonly v: 1
  readonly type: 'login_method_lost'
  /** Names the event; the same in its push. */
  readonly eventId: string
  /** Milliseconds since 1970. */
  readonly sentAt: number
  readonly method: 'email' | 'phone'
  readonly value: string
}

export interface LoginPasskeyRequest {
  /** What `navigator.credentials.get` answers, as JSON. */
  readonly credential: {
    /** Base64url of the credential’s id. */
    readonly id: string
    /** The same as `id` */
    readonly rawId: string
    readonly type: 'public-key'
    /** Not looked at. */
    readonly authenticatorAttachment?: unknown
    /** Not looked at. */
    readonly clientExtensionResults?: unknown
    readonly response: {
      /** Base64url of the client data that was signed. */
      readonly clientDataJSON: string
      /** Base64url. */
      readonly authenticatorData: string
      /** Base64url. */
      readonly signature: string
      /** Base64url of the user’s handle; needed to sign in. */
      readonly userHandle?: string
    }
  }
}

export type LoginReply = LoginChallenge | SignedIn

export interface LoginRequest {
  /** `false`: a code is sent. `true`: a provider has verified the user, which its ID token must prove, or your backend has, which its sign-in token must. */
  readonly verified?: boolean
  /** Email address. */
  readonly email?: string
  /** Phone number. */
  readonly phone?: string
  /** Either of both. */
  readonly identifier?: string
  /** ISO 3166 letters: what a phone number without calling code belongs to. */
  readonly country?: string
  /** Language of the message, such as `vi-VN`; else Accept-Language. */
  readonly locale?: string
  /** 1 to 50 characters in at most 200 bytes; used only if the account is new. */
  readonly displayName?: string
  /** Name of the identity provider, such as `google` */
  readonly provider?: string
  /** What the provider signed. */
  readonly idToken?: string
  /** The nonce of the token, required if it has one; for Apple the raw nonce. */
  readonly nonce?: string
  /** Beside a token of Apple. */
  readonly authorizationCode?: string
  /** What your backend got by `POST users/{ref}/sign-in-token` of the server API. */
  readonly signInToken?: string
  /** Beside `signInToken`, as in `verify-login` */
  readonly device?: {
    readonly userId: string
    readonly deviceId: string
    /** Base64 of r and s: ECDSA P-256 with SHA-256 by the signing key of the device, over `callsign sign-in v1`, a newline and the 16 octets of `challengeId`, or the first 16 of the SHA-256 of `signInToken` */
    readonly signature: string
  }
  /** The last refresh token of the account, if the app still has one, also when its session is over: codes are then sent and tried beyond the limits that strangers use up. It is not used up by this and opens nothing. */
  readonly refreshToken?: string
  /** What the platform or a captcha says of the app or its user, for the operator’s login check: passed on as it is, and not kept. */
  readonly attestation?: string
}

export interface LogoutRequest {
  /** Ends every session of the user. */
  readonly allDevices?: boolean
}

/** What the index has under a key: SHA-256 of the base64 text of a VRF hash. */
export interface LookUpInIndexReply {
  /** Checkpoint of the index (c2sp.org/tlog-checkpoint, origin `<origin>/index`), its whole note in base64. */
  readonly output_log_cp: string
  /** Last leaf of that tree in base64: `{"input_log_cp": a checkpoint of the log in base64, "index_root": 32 numbers}` */
  readonly output_log_leaf: string
  /** Inclusion of the leaf at the end of that tree: hashes from its sibling up. */
  readonly output_log_proof: readonly (readonly number[])[]
  /** Indexes of the entries under the key, ascending; none: the key is absent. */
  readonly index_value: readonly number[]
  /** Proof of that under the root of the leaf: octets of filippo.io/torchwood/mpt v0.10, in base64. */
  readonly index_proof: string
}

/** A user’s feeds at the media gateway have changed. */
export interface MediaChangedEvent {
  readonly v: 1
  readonly type: 'media_changed'
  /** Names the event; the same in its push. */
  readonly eventId: string
  /** Milliseconds since 1970. */
  readonly sentAt: number
  readonly callId: string
  /** Grows by one with each change of the call: the greater is newer, the same is a repeat. */
  readonly version: number
  readonly participant: CallParticipant
}

/** The room at the media gateway lets this device in, or does so again: join it. After a removal it may be another room. */
export interface MediaReadyEvent {
  readonly v: 1
  readonly type: 'media_ready'
  /** Names the event; the same in its push. */
  readonly eventId: string
  /** Milliseconds since 1970. */
  readonly sentAt: number
  readonly callId: string
  /** Grows by one with each change of the call: the greater is newer, the same is a repeat. */
  readonly version: number
  /** The call's room from this version on. */
  readonly roomId: number
  readonly media: {
    /** The room is the clients’ business; the server makes it at a Janus or a LiveKit. */
    readonly kind: 'client' | 'janus' | 'livekit'
    /** Not of `client`: the room lets this device in; `media_ready` follows. */
    readonly state?: 'ready' | 'pending'
    /** WebSocket of the gateway; only for a device in the call, when ready. */
    readonly url?: string
    /** For `join`: good for this device and room, up to an hour; likewise. */
    readonly roomToken?: string
    /** For every request to the gateway: the newest; likewise. */
    readonly pluginToken?: string
    /** Of `livekit` alone: for `connect`, good for this device and room, up to an hour; likewise. */
    readonly token?: string
    /** Of `livekit` alone: bits of the keys of frames, alike for all devices. */
    readonly keySize?: 128 | 256
  }
}

export interface NewPasskeyOptionsReply {
  /** For `PublicKeyCredential.parseCreationOptionsFromJSON` */
  readonly options: {
    readonly rp: {
      readonly id: string
      readonly name: string
    }
    readonly user: {
      /** Base64url of 32 octets that tell nothing. */
      readonly id: string
      /** The primary address. */
      readonly name: string
      readonly displayName: string
    }
    /** Base64url; good once, for five minutes. */
    readonly challenge: string
    /** Milliseconds. */
    readonly timeout: number
    readonly pubKeyCredParams: readonly {
      readonly type: 'public-key'
      readonly alg: number
    }[]
    /** The passkeys that the user has. */
    readonly excludeCredentials: readonly {
      /** Base64url. */
      readonly id: string
      readonly type: 'public-key'
      readonly transports?: readonly string[]
    }[]
    readonly authenticatorSelection: {
      readonly residentKey: 'required'
      readonly requireResidentKey: boolean
      readonly userVerification: 'required'
    }
    readonly attestation: 'none'
  }
}

/** The key that this device asked for: open it, then `rejoin` */
export interface ParticipantAcceptRejoinEvent {
  readonly v: 1
  readonly type: 'participant_accept_rejoin'
  /** Names the event; the same in its push. */
  readonly eventId: string
  /** Milliseconds since 1970. */
  readonly sentAt: number
  readonly callId: string
  /** Grows by one with each change of the call: the greater is newer, the same is a repeat. */
  readonly version: number
  /** The session key encrypted for one device: base64 of 64 to 1024 bytes. */
  readonly encryptedAESKey: string
  readonly keyEpoch: number
  readonly fromUserId: string
  readonly fromDeviceId: string
}

/** A user declined, is busy, or did not answer in time. */
export interface ParticipantDeclinedEvent {
  readonly v: 1
  readonly type: 'participant_declined'
  /** Names the event; the same in its push. */
  readonly eventId: string
  /** Milliseconds since 1970. */
  readonly sentAt: number
  readonly callId: string
  /** Grows by one with each change of the call: the greater is newer, the same is a repeat. */
  readonly version: number
  readonly participant: CallParticipant
}

/** A user was asked into the call. */
export interface ParticipantInvitedEvent {
  readonly v: 1
  readonly type: 'participant_invited'
  /** Names the event; the same in its push. */
  readonly eventId: string
  /** Milliseconds since 1970. */
  readonly sentAt: number
  readonly callId: string
  /** Grows by one with each change of the call: the greater is newer, the same is a repeat. */
  readonly version: number
  readonly participant: CallParticipant
}

/** A user came in, or came back. */
export interface ParticipantJoinedEvent {
  readonly v: 1
  readonly type: 'participant_joined'
  /** Names the event; the same in its push. */
  readonly eventId: string
  /** Milliseconds since 1970. */
  readonly sentAt: number
  readonly callId: string
  /** Grows by one with each change of the call: the greater is newer, the same is a repeat. */
  readonly version: number
  readonly participant: CallParticipant
}

/** A user left, was lost, or was removed. */
export interface ParticipantLeftEvent {
  readonly v: 1
  readonly type: 'participant_left'
  /** Names the event; the same in its push. */
  readonly eventId: string
  /** Milliseconds since 1970. */
  readonly sentAt: number
  readonly callId: string
  /** Grows by one with each change of the call: the greater is newer, the same is a repeat. */
  readonly version: number
  readonly participant: CallParticipant
}

/** A device that lost the key asks for it: verify it, seal the key for it. */
export interface ParticipantRequestRejoinEvent {
  readonly v: 1
  readonly type: 'participant_request_rejoin'
  /** Names the event; the same in its push. */
  readonly eventId: string
  /** Milliseconds since 1970. */
  readonly sentAt: number
  readonly callId: string
  /** Grows by one with each change of the call: the greater is newer, the same is a repeat. */
  readonly version: number
  readonly userId: string
  readonly deviceId: string
  readonly displayName: string
  /** The log's hash of the key to encrypt for. */
  readonly publicKeyHash: string
  readonly expiresAt: string
  /** As the device sent it. */
  readonly nonce?: string
}

/** A device of theirs rings. */
export interface ParticipantRingingEvent {
  readonly v: 1
  readonly type: 'participant_ringing'
  /** Names the event; the same in its push. */
  readonly eventId: string
  /** Milliseconds since 1970. */
  readonly sentAt: number
  readonly callId: string
  /** Grows by one with each change of the call: the greater is newer, the same is a repeat. */
  readonly version: number
  readonly participant: CallParticipant
}

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

/** A hint: for 5 s no device of theirs had a socket or took a push. It may ring yet. */
export interface ParticipantUnreachableEvent {
  readonly v: 1
  readonly type: 'participant_unreachable'
  /** Names the event; the same in its push. */
  readonly eventId: string
  /** Milliseconds since 1970. */
  readonly sentAt: number
  readonly callId: string
  /** Grows by one with each change of the call: the greater is newer, the same is a repeat. */
  readonly version: number
  readonly userId: string
  /** A device of theirs is connected and waits for their approval: no call rings there. */
  readonly hasUnapprovedDevice: boolean
}

export interface PasskeyOptionsReply {
  /** For `PublicKeyCredential.parseRequestOptionsFromJSON` */
  readonly options: {
    /** Base64url; good once, for five minutes. */
    readonly challenge: string
    /** Milliseconds. */
    readonly timeout: number
    readonly rpId: string
    /** Empty for a sign-in: any passkey of the domain. */
    readonly allowCredentials: readonly {
      /** Base64url. */
      readonly id: string
      readonly type: 'public-key'
      readonly transports?: readonly string[]
    }[]
    readonly userVerification: 'required'
  }
}

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

export interface PlatformLoginRequest {
  /** `apple`, or the name of another identity provider. */
  readonly platform?: string
  readonly authorizationCode?: string
  /** Another spelling of `authorizationCode` */
  readonly authCode?: string
  readonly identityToken?: string
  /** Another spelling of `identityToken` */
  readonly idToken?: string
  /** Used only if the account is new. */
  readonly displayName?: string
  /** The raw nonce, required if the token has one; the token of Apple has its SHA-256 in hexadecimal. */
  readonly nonce?: string
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
  /** With `SIGN_IN_WAITING`: when it goes through without an answer. With `SIGN_IN_REFUSED`: when the address opens a new account. With `ACCOUNT_SUSPENDED`: when the suspension ends by itself. */
  readonly until?: string
  /** With `ACCOUNT_SUSPENDED`: the operator’s own code for why. With `SESSION_REVOKED` and `REFRESH_TOKEN_INVALID`: why the session was ended, as in `session_revoked` */
  readonly reason?: string
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

/** The profile as it is now. */
export interface ProfileChangedEvent {
  readonly v: 1
  readonly type: 'profile_changed'
  /** Names the event; the same in its push. */
  readonly eventId: string
  /** Milliseconds since 1970. */
  readonly sentAt: number
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
  /** Base64 of 32 random octets. What Apple and Google get for this device is sealed with it: see docs/build/push.md. Empty: sealed no more. */
  readonly pushKey?: string
}

export interface PutDeviceListReply {
  /** The seq of the list that is the newest now. */
  readonly deviceListSeq: number
  /** The vrfHash that the log has the user's lists under, base64. */
  readonly deviceListHash: string
  /** Index of the newest list's log entry, decimal. */
  readonly deviceListIndex: string
}

export interface PutDeviceListRequest {
  /** Base64 of a device list: see docs/check/crypto.md. */
  readonly list: string
}

export interface PutUserReply {
  readonly user: User
  /** Addresses that wait for their codes. */
  readonly pending?: readonly {
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
    readonly kind: 'email' | 'phone'
  }[]
}

export interface PutUserRequest {
  /** 1 to 50 characters as a reader counts them, in at most 200 bytes. */
  readonly displayName?: string
  /** Takes the place of the email address once its code is confirmed. An address is removed as a login method, not here. */
  readonly email?: string
  /** Takes the place of the phone number likewise. */
  readonly phone?: string
  /** ISO 3166 letters: what a phone number without calling code belongs to. */
  readonly country?: string
  readonly settings?: {
    /** Whether a search for the email address finds the user. */
    readonly discoverableByEmail?: boolean
    /** Whether a search for the phone number finds the user. */
    readonly discoverableByPhone?: boolean
    /** If false, strangers who know the user id may call, and read the keys to do so. */
    readonly callsFromContactsOnly?: boolean
  }
}

export interface ReadDeviceListsReply {
  /** Lists in base64, each the successor of the one before it, in the order of the log. Ask again with the seq of the last one until there are no more. */
  readonly lists: readonly string[]
}

export interface ReadPublicKeysReply {
  readonly users: readonly {
    readonly userId: string
    readonly displayName: string
    /** One's own, or those that the device list names: all where there is no list. */
    readonly devices: readonly {
      readonly deviceId: string
      readonly keyAlgorithm: KeyAlgorithm
      /** To be verified through the log by its publicKeyHash. */
      readonly publicKey: string
      /** The vrfHash that the log has the key under, base64. */
      readonly publicKeyHash: string
      /** Index of the key's log entry, decimal. */
      readonly publicKeyIndex: string
      /** What the device has registered as its signing key, for the next device list. */
      readonly signingKey?: string
    }[]
    /** The newest device list, base64; left out where the user has none. The log holds base64 of its SHA-256 under `deviceListHash`, as the key of device 0. Encrypt for its devices and no other. */
    readonly deviceList?: string
    /** The vrfHash that the log has the user's lists under, base64. */
    readonly deviceListHash?: string
    /** Index of the newest list's log entry, decimal. */
    readonly deviceListIndex?: string
    /** Of a user without a device list, where the log has an index: proof that nothing is logged where the hash of a list would be. */
    readonly absent?: {
      readonly deviceId: string
      /** VRF hash of the user and this device, 0: base64 of 64 octets. */
      readonly vrfHash: string
      /** Proof of the VRF that this is the hash: base64 of 80 octets. */
      readonly vrfProof: string
      /** What the index has under a key: SHA-256 of the base64 text of a VRF hash. */
      readonly indexProof: {
        /** Checkpoint of the index (c2sp.org/tlog-checkpoint, origin `<origin>/index`), its whole note in base64. */
        readonly output_log_cp: string
        /** Last leaf of that tree in base64: `{"input_log_cp": a checkpoint of the log in base64, "index_root": 32 numbers}` */
        readonly output_log_leaf: string
        /** Inclusion of the leaf at the end of that tree: hashes from its sibling up. */
        readonly output_log_proof: readonly (readonly number[])[]
        /** Indexes of the entries under the key, ascending; none: the key is absent. */
        readonly index_value: readonly number[]
        /** Proof of that under the root of the leaf: octets of filippo.io/torchwood/mpt v0.10, in base64. */
        readonly index_proof: string
      }
    }
  }[]
  /** Users that are unknown, or not to be seen by you. */
  readonly unavailable: readonly string[]
}

export interface RefreshTokenReply {
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
}

export interface RefreshTokenRequest {
  readonly refreshToken: string
}

export interface RegisterDeviceReply {
  readonly deviceId: string
  /** Index of the key's log entry, decimal. */
  readonly publicKeyIndex: string
  /** The same as publicKeyHash. */
  readonly vrfHash: string
  /** The vrfHash that the log has the key under, base64. */
  readonly publicKeyHash: string
  readonly keyAlgorithm: KeyAlgorithm
}

export interface RegisterDeviceRequest {
  /** Canonical base64 of a P-256 key (SPKI or X9.63) or an RSA-2048 key (SPKI or PKCS#1). Kept and logged as it is. */
  readonly publicKey: string
  readonly keyAlgorithm?: KeyAlgorithm
  /** Base64 of the uncompressed P-256 point (65 octets) that the device signs device lists with. Needed, with `possession`, once the user has a device list. A device keeps its first one. */
  readonly signingKey?: string
  /** Base64 of an ECDSA signature (r and s, 64 octets) by the signing key, with SHA-256, over `callsign possession v1`, a newline and the 32 octets of the `challenge` that came with the session. */
  readonly possession?: string
  /** Base64 of the user's first device list (seq 0), for the user's first device. It names this device alone, by an id that the app chooses at random from 2^32 up to 2^53. */
  readonly deviceList?: string
  readonly deviceInfo?: DeviceInfo
  readonly push?: PushTokens
  readonly replacesDeviceId?: string
}

export interface RemoveFromCallRequest {
  readonly userId: string
}

export interface RenameContactRequest {
  /** As a display name: 1 to 50 characters in at most 200 bytes. Null or empty: none any more. */
  readonly alias?: string
}

export interface ReportUserReply {
  readonly reportId: string
  readonly createdAt: string
}

export interface ReportUserRequest {
  readonly userId: string
  readonly callId?: string
  readonly reason:
    | 'harassment'
    | 'threat'
    | 'hate'
    | 'sexual'
    | 'child-safety'
    | 'self-harm'
    | 'impersonation'
    | 'fraud'
    | 'spam'
    | 'other'
  /** In the words of the user, who reads no answer to it. */
  readonly text?: string
}

export interface RequestByIdRequest {
  readonly targetUserId: string
  /** At most 200 characters as a reader counts them, in at most 1,600 bytes. */
  readonly message?: string
}

export interface RequestBySearchReply202 {
  readonly status: 'submitted'
}

/** Exactly one of `email`, `phone` and `publicKeyHash` */
export interface RequestBySearchRequest {
  readonly email?: string
  readonly phone?: string
  /** ISO 3166 letters, for a phone number without calling code. */
  readonly country?: string
  /** The vrfHash that the log has a key of theirs under: base64 of 64 bytes. */
  readonly publicKeyHash?: string
  /** At most 200 characters as a reader counts them, in at most 1,600 bytes. */
  readonly message?: string
}

export interface RequestByTokenRequest {
  /** `c_` and 22 base64url characters. */
  readonly token: string
  /** At most 200 characters as a reader counts them, in at most 1,600 bytes. */
  readonly message?: string
}

export interface RequestRejoinReply {
  /** Seconds in which answers are passed on. */
  readonly expiresIn: number
  /** How many devices were asked. */
  readonly asked: number
}

export interface RequestRejoinRequest {
  /** Names the ask: with another one it is put again. */
  readonly nonce?: string
}

export interface ResendOtpRequest {
  /** From the reply that announced the code. */
  readonly challengeId: string
  readonly channel?: 'email' | 'sms'
  /** The last refresh token of the account, if the app still has one, also when its session is over: codes are then sent and tried beyond the limits that strangers use up. It is not used up by this and opens nothing. */
  readonly refreshToken?: string
  /** What the platform or a captcha says of the app or its user, for the operator’s login check: passed on as it is, and not kept. */
  readonly attestation?: string
}

export interface ResolveShareTokenReply {
  /** `c_` and 22 base64url characters. */
  readonly token: string
  readonly displayName: string
  /** What you have with the owner already. */
  readonly relation?: 'none' | 'self' | 'contact' | 'outgoing' | 'incoming'
}

export interface ResolveShareTokenRequest {
  /** `c_` and 22 base64url characters. */
  readonly token: string
}

/** The device rings. */
export interface RingingCommand {
  /** The invitation's. */
  readonly eventId?: string
  /** Whether Google lowered the priority of the push that rang. It is counted. */
  readonly wasLowered?: boolean
}

export type SendKeysReply = object

export interface SendKeysRequest {
  /** The call's `keyEpoch` and one; for `emergency` also the present one. */
  readonly epoch: number
  readonly reason: SentKeysReason
  /** By `<userId>_<deviceId>`; at most 320. */
  readonly encryptedAESKeys: Readonly<Record<string, string>>
  /** The devices of `encryptedAESKeys` and this one; for the present epoch its own set. */
  readonly keyMembers?: string
  /** Devices in the call that get no key, as `<userId>_<deviceId>`; of a new epoch they hear by `key_missing` */
  readonly without?: readonly string[]
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

/** The session of this device ends then: ask the user to sign in again before. */
export interface SessionEndingEvent {
  readonly v: 1
  readonly type: 'session_ending'
  /** Names the event; the same in its push. */
  readonly eventId: string
  /** Milliseconds since 1970. */
  readonly sentAt: number
  /** 22 base64url characters. */
  readonly sessionId: string
  readonly endsAt: string
}

/** Sessions of this user were ended, and why. */
export interface SessionRevokedEvent {
  readonly v: 1
  readonly type: 'session_revoked'
  /** Names the event; the same in its push. */
  readonly eventId: string
  /** Milliseconds since 1970. */
  readonly sentAt: number
  readonly reason: string
}

/** The user, or an intruder, signed in to this account: show it, with the way to end that session. */
export interface SessionStartedEvent {
  readonly v: 1
  readonly type: 'session_started'
  /** Names the event; the same in its push. */
  readonly eventId: string
  /** Milliseconds since 1970. */
  readonly sentAt: number
  /** 22 base64url characters. */
  readonly sessionId: string
  /** What signed in, in its own words, cut and without odd characters. */
  readonly userAgent: string
  /** Of where it came from, such as `203.0.113.0/24` */
  readonly network?: string
  readonly proof: 'otp' | 'social' | 'apple' | 'passkey' | 'server'
}

export interface SetPrimaryLoginMethodReply {
  readonly items: readonly LoginMethod[]
}

export interface SetPrimaryLoginMethodRequest {
  readonly id: string
}

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

/** A sign-in waits no more: take it off the screen. */
export interface SignInEndedEvent {
  readonly v: 1
  readonly type: 'sign_in_ended'
  /** Names the event; the same in its push. */
  readonly eventId: string
  /** Milliseconds since 1970. */
  readonly sentAt: number
  /** Names a sign-in that waits; 22 base64url characters. */
  readonly id: string
  readonly outcome: 'approved' | 'refused' | 'replaced' | 'passed' | 'expired'
}

/** A device entered a right code and waits: show it, with the code, and answer it once the user has compared both screens. */
export interface SignInWaitingEvent {
  readonly v: 1
  readonly type: 'sign_in_waiting'
  /** Names the event; the same in its push. */
  readonly eventId: string
  /** Milliseconds since 1970. */
  readonly sentAt: number
  /** Names a sign-in that waits; 22 base64url characters. */
  readonly id: string
  /** Twenty digits, which the screen that waits shows, too. */
  readonly signInCode: string
  /** Whose code was right; `server`: a token of the operator’s backend. */
  readonly method: 'email' | 'phone' | 'server'
  readonly userAgent: string
  /** Of where it came from, such as `203.0.113.0/24` */
  readonly network?: string
  /** Then it goes through without an answer. */
  readonly until: string
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

export interface StartCallRequest {
  /** Random, from 4294967296 to 9007199254740991. Left out: the server makes one. */
  readonly callId?: string
  /** Left out: the server assigns one. */
  readonly roomId?: number
  /** 1 to 31 contacts, each once, without oneself. */
  readonly calleeIds: readonly string[]
  /** By `<userId>_<deviceId>`; at most 320. */
  readonly encryptedAESKeys: Readonly<Record<string, string>>
  /** The devices of `encryptedAESKeys` and this one, as the epoch 1 has them. */
  readonly keyMembers?: string
  readonly isVideo: boolean
}

export interface StepUpReply {
  /** Until then this session may do what needs a proof. */
  readonly provenUntil: string
}

export interface StepUpReply202 {
  readonly challenge: Challenge
}

export interface StepUpRequest {
  /** From the reply that announced the code. */
  readonly challengeId?: string
  /** The six digits that were sent. */
  readonly otp?: string
  /** What `navigator.credentials.get` answers, as JSON. */
  readonly passkey?: {
    /** Base64url of the credential’s id. */
    readonly id: string
    /** The same as `id` */
    readonly rawId: string
    readonly type: 'public-key'
    /** Not looked at. */
    readonly authenticatorAttachment?: unknown
    /** Not looked at. */
    readonly clientExtensionResults?: unknown
    readonly response: {
      /** Base64url of the client data that was signed. */
      readonly clientDataJSON: string
      /** Base64url. */
      readonly authenticatorData: string
      /** Base64url. */
      readonly signature: string
      /** Base64url of the user’s handle; needed to sign in. */
      readonly userHandle?: string
    }
  }
  /** A provider that the user signs in with, such as `google` */
  readonly provider?: string
  /** What the provider signed since the session began. */
  readonly idToken?: string
  /** The nonce of the token, required if it has one; for Apple the raw nonce. */
  readonly nonce?: string
  readonly send?: 'code'
  /** Needed from a device of the device list. Base64 of r and s: ECDSA P-256 with SHA-256 by its signing key, over `callsign step-up v1`, a newline, the user id (8 octets) and the SHA-256 of `challengeId`, of `idToken` or of the challenge that the passkey signed, as UTF-8. */
  readonly deviceSignature?: string
}

export interface UnblockUserRequest {
  readonly userId: string
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

export interface VerifyLoginRequest {
  /** From the reply that announced the code. */
  readonly challengeId?: string
  /** The six digits that were sent. */
  readonly otp?: string
  /** Another spelling of `otp` */
  readonly code?: string
  /** Email address. */
  readonly email?: string
  /** Phone number. */
  readonly phone?: string
  /** Either of both. */
  readonly identifier?: string
  /** ISO 3166 letters: what a phone number without calling code belongs to. */
  readonly country?: string
  /** The last refresh token of a listed device of the account, whose session still lasts: the sign-in does not wait. It is not used up by this. */
  readonly refreshToken?: string
  /** A device on the device list of the account: the sign-in does not wait. */
  readonly device?: {
    readonly userId: string
    readonly deviceId: string
    /** Base64 of r and s: ECDSA P-256 with SHA-256 by the signing key of the device, over `callsign sign-in v1`, a newline and the 16 octets of `challengeId`, or the first 16 of the SHA-256 of `signInToken` */
    readonly signature: string
  }
  /** Beside `device`: its account has lost its last login method, and this address becomes the next one. */
  readonly reclaim?: boolean
  /** Of this client, where its sign-in waits already: the time goes on. */
  readonly waitingId?: string
}

export type VerifyReply = Verified | SignedIn

export interface VerifyRequest {
  /** From the reply that announced the code. */
  readonly challengeId?: string
  /** The six digits that were sent. */
  readonly otp?: string
  /** Another spelling of `otp` */
  readonly code?: string
  /** Email address. */
  readonly email?: string
  /** Phone number. */
  readonly phone?: string
  /** Either of both. */
  readonly identifier?: string
  /** ISO 3166 letters: what a phone number without calling code belongs to. */
  readonly country?: string
  /** The last refresh token of a listed device of the account, whose session still lasts: the sign-in does not wait. It is not used up by this. */
  readonly refreshToken?: string
  /** A device on the device list of the account: the sign-in does not wait. */
  readonly device?: {
    readonly userId: string
    readonly deviceId: string
    /** Base64 of r and s: ECDSA P-256 with SHA-256 by the signing key of the device, over `callsign sign-in v1`, a newline and the 16 octets of `challengeId`, or the first 16 of the SHA-256 of `signInToken` */
    readonly signature: string
  }
  /** Beside `device`: its account has lost its last login method, and this address becomes the next one. */
  readonly reclaim?: boolean
  /** Of this client, where its sign-in waits already: the time goes on. */
  readonly waitingId?: string
  /** Needed from a device of the device list. Base64 of r and s: ECDSA P-256 with SHA-256 by its signing key, over `callsign step-up v1`, a newline, the user id (8 octets) and the SHA-256 of `challengeId`, of `idToken` or of the challenge that the passkey signed, as UTF-8. */
  readonly deviceSignature?: string
}

/** Messages of the queues of a device. */
export type QueueEvent =
  | CallInvitationEvent
  | CallCancelledEvent
  | CallMissedEvent
  | CallAnsweredElsewhereEvent
  | CallMovedEvent
  | CallEndedEvent
  | ParticipantRequestRejoinEvent
  | ParticipantAcceptRejoinEvent
  | KeyUpdateEvent
  | KeyMissingEvent
  | MediaReadyEvent
  | FriendRequestEvent
  | FriendRequestCancelledEvent
  | ContactAddedEvent
  | ContactChangedEvent
  | ContactRemovedEvent
  | DeviceAddedEvent
  | DeviceRemovedEvent
  | DeviceListChangedEvent
  | DeviceListResetEvent
  | DevicePushLostEvent
  | SessionStartedEvent
  | SessionEndingEvent
  | SessionRevokedEvent
  | SignInWaitingEvent
  | SignInEndedEvent
  | LoginMethodLostEvent
  | ProfileChangedEvent
  | BadgeEvent

/** Messages to all who watch a call. */
export type CallTopicEvent =
  | ParticipantInvitedEvent
  | ParticipantRingingEvent
  | ParticipantJoinedEvent
  | ParticipantLeftEvent
  | ParticipantDeclinedEvent
  | ParticipantUnreachableEvent
  | MediaChangedEvent
  | HostChangedEvent
  | CallStatusEvent

/** Operations by method and path, which begins behind `/app/api/` or `/server/api/v1/` unless it is a whole one. */
export interface Operations {
  /** Every key that was logged under a hash, each with its proof. */
  'POST /api/get-key-history': {
    readonly params: object
    readonly body: GetKeyHistoryRequest
    readonly reply: GetKeyHistoryReply
  }
  /** Keys by their hashes, each with its proof. */
  'POST /api/get-public-keys': {
    readonly params: object
    readonly body: GetPublicKeysRequest
    readonly reply: GetPublicKeysReply
  }
  /** Block a user, who does not hear of it; contact and requests between the two end, and a call of theirs that rings. */
  'POST block': { readonly params: object; readonly body: BlockUserRequest; readonly reply: undefined }
  /** Unblock a user; requests that the block kept away stay away. */
  'DELETE block': { readonly params: object; readonly body: UnblockUserRequest; readonly reply: undefined }
  /** Those whom the user has blocked, newest first. */
  'GET block': {
    readonly params: { readonly limit?: number; readonly cursor?: string }
    readonly body: undefined
    readonly reply: ListBlocksReply
  }
  /** Unblock a user, named by the path. */
  'DELETE block/{userId}': {
    readonly params: { readonly userId: string }
    readonly body: undefined
    readonly reply: undefined
  }
  /** End the call for everybody: the host, or either of two. */
  'POST call/end': { readonly params: object; readonly body: EndCallRequest; readonly reply: CallRecord }
  /** Your calls of the last `historyDays`, newest first, with the names that people have now. */
  'GET call/history': {
    readonly params: { readonly limit?: number; readonly cursor?: string }
    readonly body: undefined
    readonly reply: ListCallHistoryReply
  }
  /** Forget all calls. */
  'DELETE call/history': { readonly params: object; readonly body: undefined; readonly reply: undefined }
  /** You have looked at your missed calls: they count in the badge no more. */
  'POST call/history/seen': { readonly params: object; readonly body: undefined; readonly reply: undefined }
  /** Forget one call. */
  'DELETE call/history/{callId}': {
    readonly params: { readonly callId: string }
    readonly body: undefined
    readonly reply: undefined
  }
  /** Invitations that you have not answered, newest first, each with the key for this device. */
  'GET call/pending': {
    readonly params: object
    readonly body: undefined
    readonly reply: GetPendingCallsReply
  }
  /** Call contacts: each of their devices gets its own key. */
  'POST call/start': { readonly params: object; readonly body: StartCallRequest; readonly reply: CallRecord }
  /** A live call that you have a part in. */
  'GET call/{callId}': {
    readonly params: { readonly callId: string }
    readonly body: undefined
    readonly reply: CallRecord
  }
  /** Give the key to a device that has asked for it. */
  'POST call/{callId}/accept-rejoin': {
    readonly params: { readonly callId: string }
    readonly body: AcceptRejoinRequest
    readonly reply: AcceptRejoinReply
  }
  /** Turn an invitation down, on all devices. */
  'POST call/{callId}/decline': {
    readonly params: { readonly callId: string }
    readonly body: DeclineCallRequest | undefined
    readonly reply: undefined
  }
  /** End the call for everybody, named by the path. */
  'POST call/{callId}/end': {
    readonly params: { readonly callId: string }
    readonly body: undefined
    readonly reply: CallRecord
  }
  /** Invite contacts into a call that you are in. */
  'POST call/{callId}/invite': {
    readonly params: { readonly callId: string }
    readonly body: InviteToCallRequest
    readonly reply: CallRecord
  }
  /** Answer an invitation, with the key for this device; from a second device: move the call there. */
  'POST call/{callId}/join': {
    readonly params: { readonly callId: string }
    readonly body: undefined
    readonly reply: CallRecord
  }
  /** The devices that the key of an epoch was sealed for, as its sealer said; of the newest two. */
  'GET call/{callId}/key-members': {
    readonly params: { readonly callId: string; readonly epoch: number }
    readonly body: undefined
    readonly reply: GetKeyMembersReply
  }
  /** Give every device in the call a new key (the host), or the present one again (any device in it). */
  'POST call/{callId}/keys': {
    readonly params: { readonly callId: string }
    readonly body: SendKeysRequest
    readonly reply: SendKeysReply
  }
  /** Leave the call; it goes on without you. */
  'POST call/{callId}/leave': {
    readonly params: { readonly callId: string }
    readonly body: undefined
    readonly reply: undefined
  }
  /** People who are in the call, were in it, or are invited. */
  'GET call/{callId}/participants': {
    readonly params: { readonly callId: string }
    readonly body: undefined
    readonly reply: GetParticipantsReply
  }
  /** Come back into the call, once the key is there. */
  'POST call/{callId}/rejoin': {
    readonly params: { readonly callId: string }
    readonly body: undefined
    readonly reply: CallRecord
  }
  /** Remove a person from the call, who may not come back by themselves; for the host. */
  'POST call/{callId}/remove': {
    readonly params: { readonly callId: string }
    readonly body: RemoveFromCallRequest
    readonly reply: undefined
  }
  /** Ask everybody in the call for its key. */
  'POST call/{callId}/request-rejoin': {
    readonly params: { readonly callId: string }
    readonly body: RequestRejoinRequest | undefined
    readonly reply: RequestRejoinReply
  }
  /** The user's devices, newest first; there are never more than a page. */
  'GET devices': { readonly params: object; readonly body: undefined; readonly reply: ListDevicesReply }
  /** Renew the push tokens of this device. */
  'PUT devices/current/push': {
    readonly params: object
    readonly body: PushTokens
    readonly reply: undefined
  }
  /** Remove a device and end its sessions; removing the current one is a logout. */
  'DELETE devices/{deviceId}': {
    readonly params: { readonly deviceId: string }
    readonly body: undefined
    readonly reply: undefined
  }
  /** The contacts, newest first. */
  'GET friend': {
    readonly params: { readonly limit?: number; readonly cursor?: string }
    readonly body: undefined
    readonly reply: ListContactsReply
  }
  /** Ask by email or phone, without hearing whether a user was found, or by the hash of a key. */
  'POST friend-request': {
    readonly params: object
    readonly body: RequestBySearchRequest
    readonly reply: SentFriendRequest | RequestBySearchReply202
  }
  /** Open requests to the user, or by the user, newest first. */
  'GET friend-request': {
    readonly params: {
      readonly direction?: 'incoming' | 'outgoing'
      readonly limit?: number
      readonly cursor?: string
    }
    readonly body: undefined
    readonly reply: ListRequestsReply
  }
  /** Accept a request, named by its id or its sender: both are contacts. */
  'POST friend-request/accept': {
    readonly params: object
    readonly body: AcceptRequestRequest
    readonly reply: AcceptRequestReply
  }
  /** Ask a user to become a contact; when they have asked already, both are contacts. */
  'POST friend-request/by-id': {
    readonly params: object
    readonly body: RequestByIdRequest
    readonly reply: SentFriendRequest
  }
  /** Ask the owner of a share token to become a contact; answers with the keys of their devices. */
  'POST friend-request/by-token': {
    readonly params: object
    readonly body: RequestByTokenRequest
    readonly reply: SentFriendRequest
  }
  /** Take one's own request back, named by its id or its receiver. */
  'POST friend-request/cancel': {
    readonly params: object
    readonly body: CancelRequestRequest
    readonly reply: undefined
  }
  /** Decline a request, named by its id or its sender, who does not hear of it. */
  'POST friend-request/decline': {
    readonly params: object
    readonly body: DeclineRequestRequest
    readonly reply: undefined
  }
  /** Take one's own request back, named by the path. */
  'DELETE friend-request/{requestId}': {
    readonly params: { readonly requestId: string }
    readonly body: undefined
    readonly reply: undefined
  }
  /** Give a contact a name of your own, which every screen of yours shows; they never see it. */
  'PUT friend/{userId}': {
    readonly params: { readonly userId: string }
    readonly body: RenameContactRequest
    readonly reply: Contact
  }
  /** Remove a contact, for both sides. */
  'DELETE friend/{userId}': {
    readonly params: { readonly userId: string }
    readonly body: undefined
    readonly reply: undefined
  }
  /** Signs in or up: sends a code to an address, or takes a token of a provider or of your backend. */
  'POST login': { readonly params: object; readonly body: LoginRequest; readonly reply: LoginReply }
  /** Signs in by a passkey. */
  'POST login/passkey': {
    readonly params: object
    readonly body: LoginPasskeyRequest
    readonly reply: SignedIn
  }
  /** The outcome of a sign-in that waits: tokens once it was approved, or its time has passed. */
  'POST login/waiting': {
    readonly params: object
    readonly body: FetchWaitingLoginRequest
    readonly reply: SignedIn
  }
  /** Ends the session; its device leaves the call it is in, and nothing is pushed to it any more. */
  'POST logout': {
    readonly params: object
    readonly body: LogoutRequest | undefined
    readonly reply: undefined
  }
  /** Limits, features and public keys of this server. */
  'GET meta': { readonly params: object; readonly body: undefined; readonly reply: GetMetaReply }
  /** Options to sign in by a passkey; with a session, to prove once more who the user is. */
  'POST passkey/options': {
    readonly params: object
    readonly body: undefined
    readonly reply: PasskeyOptionsReply
  }
  /** Sign in with Apple, or with another provider of the platform. */
  'POST platform-login': {
    readonly params: object
    readonly body: PlatformLoginRequest
    readonly reply: SignedIn
  }
  /** A new pair of tokens for the last one. */
  'POST refresh-token': {
    readonly params: object
    readonly body: RefreshTokenRequest
    readonly reply: RefreshTokenReply
  }
  /** Register a device with its public key, which goes into the log. */
  'POST register_device': {
    readonly params: object
    readonly body: RegisterDeviceRequest
    readonly reply: RegisterDeviceReply
  }
  /** Report a user to the moderators of the app; the reported user never hears of it, nor who it was. */
  'POST report': {
    readonly params: object
    readonly body: ReportUserRequest
    readonly reply: ReportUserReply
  }
  /** The reasons of a report, in the order to show them in. */
  'GET report/reasons': {
    readonly params: object
    readonly body: undefined
    readonly reply: ListReportReasonsReply
  }
  /** Sends another code in the place of the last one. */
  'POST resend-otp': {
    readonly params: object
    readonly body: ResendOtpRequest
    readonly reply: LoginChallenge
  }
  /** Make a share token, by which people find the user. */
  'POST share-token': {
    readonly params: object
    readonly body: CreateShareTokenRequest | undefined
    readonly reply: CreateShareTokenReply
  }
  /** The live share tokens, newest first, without the tokens themselves. */
  'GET share-token': {
    readonly params: { readonly limit?: number; readonly cursor?: string }
    readonly body: undefined
    readonly reply: ListShareTokensReply
  }
  /** The person behind a share token: the preview before a request. */
  'POST share-token/resolve': {
    readonly params: object
    readonly body: ResolveShareTokenRequest
    readonly reply: ResolveShareTokenReply
  }
  /** Revoke a share token at once. */
  'DELETE share-token/{id}': {
    readonly params: { readonly id: string }
    readonly body: undefined
    readonly reply: undefined
  }
  /** The user who is signed in. */
  'GET user': { readonly params: object; readonly body: undefined; readonly reply: User }
  /** Change name and settings at once, addresses once their codes are confirmed. */
  'PUT user': { readonly params: object; readonly body: PutUserRequest; readonly reply: PutUserReply }
  /** Have the account erased in seven days, unless its user signs in again before. */
  'DELETE user': {
    readonly params: object
    readonly body: DeleteUserRequest
    readonly reply: DeleteUserReply
  }
  /** Replace the user's device list by one that follows it, or start over with another first one. */
  'PUT user/device-list': {
    readonly params: object
    readonly body: PutDeviceListRequest
    readonly reply: PutDeviceListReply
  }
  /** A user's device lists from the last one of seq 0 on. */
  'GET user/device-lists': {
    readonly params: { readonly userId?: string; readonly after?: number }
    readonly body: undefined
    readonly reply: ReadDeviceListsReply
  }
  /** All that the server holds of the user, in one document that is sent as it is made. */
  'GET user/export': { readonly params: object; readonly body: undefined; readonly reply: ExportUserReply }
  /** How the user signs in; there are never more than a page. */
  'GET user/login-methods': {
    readonly params: object
    readonly body: undefined
    readonly reply: ListLoginMethodsReply
  }
  /** Add an address, once its code is confirmed, or an identity at a provider. */
  'POST user/login-methods': {
    readonly params: object
    readonly body: AddLoginMethodRequest
    readonly reply: LoginMethod | Challenge
  }
  /** Make a login method the primary one. */
  'PUT user/login-methods/primary': {
    readonly params: object
    readonly body: SetPrimaryLoginMethodRequest
    readonly reply: SetPrimaryLoginMethodReply
  }
  /** Remove a login method. */
  'DELETE user/login-methods/{id}': {
    readonly params: { readonly id: string }
    readonly body: undefined
    readonly reply: undefined
  }
  /** Add a passkey as a login method. */
  'POST user/passkeys': {
    readonly params: object
    readonly body: AddPasskeyRequest
    readonly reply: LoginMethod
  }
  /** Options for an authenticator to make a passkey. */
  'POST user/passkeys/options': {
    readonly params: object
    readonly body: undefined
    readonly reply: NewPasskeyOptionsReply
  }
  /** The devices and keys of people: oneself, contacts, open requests by token, a common call. */
  'GET user/publicKeys': {
    readonly params: { readonly userIds?: string }
    readonly body: undefined
    readonly reply: ReadPublicKeysReply
  }
  /** Where the user is signed in: the sessions that last, newest first. A restricted session sees itself alone. */
  'GET user/sessions': {
    readonly params: object
    readonly body: undefined
    readonly reply: ListSessionsReply
  }
  /** End every session of the user but the current one. */
  'DELETE user/sessions': { readonly params: object; readonly body: undefined; readonly reply: undefined }
  /** End a session of the user; ending the current one is a logout. */
  'DELETE user/sessions/{id}': {
    readonly params: { readonly id: string }
    readonly body: undefined
    readonly reply: undefined
  }
  /** Prove once more who one is: by a code, a passkey or a provider; or have a code sent. */
  'POST user/step-up': {
    readonly params: object
    readonly body: StepUpRequest
    readonly reply: StepUpReply | StepUpReply202
  }
  /** A token that shows one of the operator's own services who the user is, for five minutes. */
  'POST user/tokens': {
    readonly params: object
    readonly body: CreateUserTokenRequest
    readonly reply: CreateUserTokenReply
  }
  /** The sign-in that waits for an answer, if there is one. */
  'GET user/waiting-sign-ins': {
    readonly params: object
    readonly body: undefined
    readonly reply: ListWaitingSignInsReply
  }
  /** Approve a sign-in that waits, or refuse it, by a signature of this listed device. */
  'POST user/waiting-sign-ins/{id}': {
    readonly params: { readonly id: string }
    readonly body: AnswerWaitingSignInRequest
    readonly reply: undefined
  }
  /** Confirm a new address, or who one is; without a session, sign in. */
  'POST verify': { readonly params: object; readonly body: VerifyRequest; readonly reply: VerifyReply }
  /** Takes the code and signs in. */
  'POST verify-login': {
    readonly params: object
    readonly body: VerifyLoginRequest
    readonly reply: SignedIn
  }
  /** Credentials for the TURN relay. */
  'GET /credentials': {
    readonly params: object
    readonly body: undefined
    readonly reply: GetCredentialsReply
  }
  /** The index's entry for a key, or that it has none, with its proof. */
  'GET /index/lookup/{indexKey}': {
    readonly params: { readonly indexKey: string }
    readonly body: undefined
    readonly reply: LookUpInIndexReply
  }
}

/** Examples of replies, by operation and by name. An operation that is not among them answers without a body. */
export const REPLY_FORMS: Readonly<Record<string, unknown>> = {
  'POST /api/get-key-history': 'GetKeyHistoryReply',
  'POST /api/get-public-keys': 'GetPublicKeysReply',
  'GET block': 'ListBlocksReply',
  'POST call/end': 'CallRecord',
  'GET call/history': 'ListCallHistoryReply',
  'GET call/pending': 'GetPendingCallsReply',
  'POST call/start': 'CallRecord',
  'GET call/{callId}': 'CallRecord',
  'POST call/{callId}/accept-rejoin': 'AcceptRejoinReply',
  'POST call/{callId}/end': 'CallRecord',
  'POST call/{callId}/invite': 'CallRecord',
  'POST call/{callId}/join': 'CallRecord',
  'GET call/{callId}/key-members': 'GetKeyMembersReply',
  'POST call/{callId}/keys': 'SendKeysReply',
  'GET call/{callId}/participants': 'GetParticipantsReply',
  'POST call/{callId}/rejoin': 'CallRecord',
  'POST call/{callId}/request-rejoin': 'RequestRejoinReply',
  'GET devices': 'ListDevicesReply',
  'GET friend': 'ListContactsReply',
  'POST friend-request': 'SentFriendRequest|RequestBySearchReply202',
  'GET friend-request': 'ListRequestsReply',
  'POST friend-request/accept': 'AcceptRequestReply',
  'POST friend-request/by-id': 'SentFriendRequest',
  'POST friend-request/by-token': 'SentFriendRequest',
  'PUT friend/{userId}': 'Contact',
  'POST login': 'LoginReply',
  'POST login/passkey': 'SignedIn',
  'POST login/waiting': 'SignedIn',
  'GET meta': 'GetMetaReply',
  'POST passkey/options': 'PasskeyOptionsReply',
  'POST platform-login': 'SignedIn',
  'POST refresh-token': 'RefreshTokenReply',
  'POST register_device': 'RegisterDeviceReply',
  'POST report': 'ReportUserReply',
  'GET report/reasons': 'ListReportReasonsReply',
  'POST resend-otp': 'LoginChallenge',
  'POST share-token': 'CreateShareTokenReply',
  'GET share-token': 'ListShareTokensReply',
  'POST share-token/resolve': 'ResolveShareTokenReply',
  'GET user': 'User',
  'PUT user': 'PutUserReply',
  'DELETE user': 'DeleteUserReply',
  'PUT user/device-list': 'PutDeviceListReply',
  'GET user/device-lists': 'ReadDeviceListsReply',
  'GET user/export': 'ExportUserReply',
  'GET user/login-methods': 'ListLoginMethodsReply',
  'POST user/login-methods': 'LoginMethod|Challenge',
  'PUT user/login-methods/primary': 'SetPrimaryLoginMethodReply',
  'POST user/passkeys': 'LoginMethod',
  'POST user/passkeys/options': 'NewPasskeyOptionsReply',
  'GET user/publicKeys': 'ReadPublicKeysReply',
  'GET user/sessions': 'ListSessionsReply',
  'POST user/step-up': 'StepUpReply|StepUpReply202',
  'POST user/tokens': 'CreateUserTokenReply',
  'GET user/waiting-sign-ins': 'ListWaitingSignInsReply',
  'POST verify': 'VerifyReply',
  'POST verify-login': 'SignedIn',
  'GET /credentials': 'GetCredentialsReply',
  'GET /index/lookup/{indexKey}': 'LookUpInIndexReply',
  GetKeyHistoryReply: { entries: [{ index: '', publicKey: '', proof: '' }], treeSize: '' },
  GetPublicKeysReply: {
    results: [
      {
        publicKey: '',
        vrfHash: '',
        proof: '',
        'indexProof?': {
          output_log_cp: '',
          output_log_leaf: '',
          output_log_proof: [[0]],
          index_value: [0],
          index_proof: '',
        },
      },
    ],
  },
  ListBlocksReply: { items: [{ userId: '', displayName: '', since: '' }], 'nextCursor?': '' },
  CallRecord: {
    callId: '',
    version: 0,
    roomId: 0,
    status: '',
    isVideo: true,
    initiatorId: '',
    hostUserId: '',
    createdAt: '',
    'startedAt?': '',
    'endedAt?': '',
    'endReason?': '',
    ringTimeoutIn: 0,
    keyEpoch: 0,
    keyRotationIn: 0,
    maxParticipants: 0,
    participants: ['CallParticipant'],
    media: {
      kind: '',
      'state?': '',
      'url?': '',
      'roomToken?': '',
      'pluginToken?': '',
      'token?': '',
      'keySize?': 0,
    },
    isOnGoing: true,
    'invitation?': { callerId: '', callerName: '', displayName: '', 'alias?': '', isContact: true },
    'encryptedAESKey?': '',
    'keyFromUserId?': '',
    'keyFromDeviceId?': '',
    'keySets?': ['KeySet'],
  },
  ListCallHistoryReply: { items: ['PastCall'], 'nextCursor?': '' },
  GetPendingCallsReply: { items: ['CallRecord'] },
  AcceptRejoinReply: {},
  GetKeyMembersReply: { callId: '', epoch: 0, keyMembers: '' },
  SendKeysReply: {},
  GetParticipantsReply: { callId: '', version: 0, keyEpoch: 0, participants: ['CallParticipant'] },
  RequestRejoinReply: { expiresIn: 0, asked: 0 },
  ListDevicesReply: { items: ['Device'] },
  ListContactsReply: { items: ['Contact'], 'nextCursor?': '' },
  SentFriendRequest: {
    requestId: '',
    status: '',
    user: 'Person',
    createdAt: '',
    'publicKeyHashs?': [''],
    'devices?': ['PeerDevice'],
    'deviceList?': '',
    'deviceListHash?': '',
    'deviceListIndex?': '',
  },
  RequestBySearchReply202: { status: '=submitted' },
  ListRequestsReply: { items: ['FriendRequest'], 'nextCursor?': '' },
  AcceptRequestReply: {
    contact: { userId: '', displayName: '', since: '' },
    publicKeyHashs: [''],
    devices: ['PeerDevice'],
    'deviceList?': '',
    'deviceListHash?': '',
    'deviceListIndex?': '',
  },
  Contact: { userId: '', displayName: '', 'alias?': '', since: '', devices: 0 },
  LoginReply: 'LoginChallenge|SignedIn',
  SignedIn: {
    verified: '=true',
    sessionId: '',
    accessToken: '',
    refreshToken: '',
    tokenType: '=Bearer',
    expiresIn: 0,
    refreshExpiresIn: 0,
    challenge: '',
    isNewUser: true,
    user: 'User',
  },
  GetMetaReply: {
    apiVersion: 0,
    serverTime: '',
    limits: { '*': 0 },
    historyDays: 0,
    features: { '*': '~' },
    'webPush?': { publicKey: '' },
    loginMethods: [''],
    'minClientVersion?': '',
    'ws?': '',
    log: { origin: '', vkey: '', vrfPublicKey: '', url: '', 'index?': { vkey: '' }, 'witnessPolicy?': '' },
  },
  PasskeyOptionsReply: {
    options: {
      challenge: '',
      timeout: 0,
      rpId: '',
      allowCredentials: [{ id: '', type: '', 'transports?': [''] }],
      userVerification: '',
    },
  },
  RefreshTokenReply: {
    sessionId: '',
    accessToken: '',
    refreshToken: '',
    tokenType: '=Bearer',
    expiresIn: 0,
    refreshExpiresIn: 0,
    challenge: '',
  },
  RegisterDeviceReply: { deviceId: '', publicKeyIndex: '', vrfHash: '', publicKeyHash: '', keyAlgorithm: '' },
  ReportUserReply: { reportId: '', createdAt: '' },
  ListReportReasonsReply: { items: [{ reason: '', title: '' }] },
  LoginChallenge: {
    verified: '=false',
    challengeId: '',
    channel: '',
    sentTo: '',
    otpLength: 0,
    expiresIn: 0,
    resendIn: 0,
    'smsStop?': { scope: '', retryIn: 0 },
  },
  CreateShareTokenReply: {
    id: '',
    'label?': '',
    createdAt: '',
    expiresAt: '',
    maxUses: 0,
    uses: 0,
    token: '',
    url: '',
    deepLink: '',
  },
  ListShareTokensReply: { items: ['ShareToken'], 'nextCursor?': '' },
  ResolveShareTokenReply: { token: '', displayName: '', 'relation?': '' },
  User: {
    userId: '',
    displayName: '',
    'email?': '',
    'phone?': '',
    'emailVerified?': true,
    'phoneVerified?': true,
    'primaryMethodId?': '',
    'loginMethods?': ['LoginMethod'],
    'device?': { deviceId: '', publicKeyHash: '' },
    'badge?': 'Badge',
    'createdAt?': '',
    'settings?': 'Settings',
    'restriction?': '',
  },
  PutUserReply: {
    user: 'User',
    'pending?': [
      {
        challengeId: '',
        channel: '',
        sentTo: '',
        otpLength: 0,
        expiresIn: 0,
        resendIn: 0,
        'smsStop?': { scope: '', retryIn: 0 },
        kind: '',
      },
    ],
  },
  DeleteUserReply: { erasesAt: '' },
  PutDeviceListReply: { deviceListSeq: 0, deviceListHash: '', deviceListIndex: '' },
  ReadDeviceListsReply: { lists: [''] },
  ExportUserReply: {
    exportedAt: '',
    user: 'User',
    account: {
      language: '',
      'erasesAt?': '',
      'externalId?': '',
      madeByServer: true,
      'contactData?': { 'email?': '', 'phone?': '' },
      'suspension?': { reason: '', suspendedAt: '', 'until?': '' },
    },
    identities: [{ methodId: '', provider: '', issuer: '', subject: '' }],
    passkeys: [{ methodId: '', credentialId: '', publicKey: '', signCount: 0, transports: [''], aaguid: '' }],
    sessions: [
      {
        id: '',
        createdAt: '',
        lastUsedAt: '',
        endsAt: '',
        'network?': '',
        userAgent: '',
        proof: '',
        'device?': { deviceId: '', name: '', platform: '' },
        isCurrent: true,
      },
    ],
    devices: ['Device'],
    deviceDetails: [
      {
        deviceId: '',
        'osVersion?': '',
        'locale?': '',
        'timeZone?': '',
        publicKey: '',
        'signingKey?': '',
        push: [{ service: '', 'registeredAt?': '' }],
      },
    ],
    waitingSignIns: [
      { id: '', signInCode: '', method: '', userAgent: '', 'network?': '', createdAt: '', until: '' },
    ],
    circles: [''],
    removedDevices: [{ deviceId: '', platform: '', publicKey: '', createdAt: '', 'removedAt?': '' }],
    contacts: ['Contact'],
    incomingRequests: ['FriendRequest'],
    outgoingRequests: ['FriendRequest'],
    blocks: [{ userId: '', displayName: '', since: '' }],
    shareTokens: ['ShareToken'],
    calls: ['PastCall'],
    reports: [{ reportId: '', userId: '', 'callId?': '', reason: '', 'text?': '', createdAt: '' }],
  },
  ListLoginMethodsReply: { items: ['LoginMethod'] },
  LoginMethod: {
    id: '',
    kind: '',
    'value?': '',
    'provider?': '',
    'label?': '',
    'backedUp?': true,
    verified: true,
    primary: true,
    addedAt: '',
    lastUsedAt: '',
  },
  Challenge: {
    challengeId: '',
    channel: '',
    sentTo: '',
    otpLength: 0,
    expiresIn: 0,
    resendIn: 0,
    'smsStop?': { scope: '', retryIn: 0 },
  },
  SetPrimaryLoginMethodReply: { items: ['LoginMethod'] },
  NewPasskeyOptionsReply: {
    options: {
      rp: { id: '', name: '' },
      user: { id: '', name: '', displayName: '' },
      challenge: '',
      timeout: 0,
      pubKeyCredParams: [{ type: '', alg: 0 }],
      excludeCredentials: [{ id: '', type: '', 'transports?': [''] }],
      authenticatorSelection: { residentKey: '', requireResidentKey: true, userVerification: '' },
      attestation: '',
    },
  },
  ReadPublicKeysReply: {
    users: [
      {
        userId: '',
        displayName: '',
        devices: [
          {
            deviceId: '',
            keyAlgorithm: '',
            publicKey: '',
            publicKeyHash: '',
            publicKeyIndex: '',
            'signingKey?': '',
          },
        ],
        'deviceList?': '',
        'deviceListHash?': '',
        'deviceListIndex?': '',
        'absent?': {
          deviceId: '',
          vrfHash: '',
          vrfProof: '',
          indexProof: {
            output_log_cp: '',
            output_log_leaf: '',
            output_log_proof: [[0]],
            index_value: [0],
            index_proof: '',
          },
        },
      },
    ],
    unavailable: [''],
  },
  ListSessionsReply: {
    items: [
      {
        id: '',
        createdAt: '',
        lastUsedAt: '',
        endsAt: '',
        'network?': '',
        userAgent: '',
        proof: '',
        'device?': { deviceId: '', name: '', platform: '' },
        isCurrent: true,
      },
    ],
  },
  StepUpReply: { provenUntil: '' },
  StepUpReply202: { challenge: 'Challenge' },
  CreateUserTokenReply: { token: '', expiresIn: 0 },
  ListWaitingSignInsReply: {
    items: [{ id: '', signInCode: '', method: '', userAgent: '', 'network?': '', createdAt: '', until: '' }],
  },
  VerifyReply: 'Verified|SignedIn',
  GetCredentialsReply: {
    turnUsername: '',
    turnPassword: '',
    tlsUrl: '',
    noneTlsUrl: '',
    ttl: 0,
    expiresAt: '',
    uris: [''],
    'stunUrl?': '',
  },
  LookUpInIndexReply: {
    output_log_cp: '',
    output_log_leaf: '',
    output_log_proof: [[0]],
    index_value: [0],
    index_proof: '',
  },
  CallParticipant: {
    userId: '',
    displayName: '',
    state: '',
    isHost: true,
    invitedBy: '',
    invitedAt: '',
    'joinedAt?': '',
    'leftAt?': '',
    'deviceId?': '',
    'publicKeyHash?': '',
    mediaName: '',
    'feedIds?': [0],
    'identity?': '',
  },
  KeySet: { epoch: 0, keyMembers: '' },
  PastCall: {
    callId: '',
    direction: '',
    status: '',
    isVideo: true,
    isGroup: true,
    peers: [{ userId: '', displayName: '', 'alias?': '' }],
    createdAt: '',
    'startedAt?': '',
    'endedAt?': '',
    durationIn: 0,
    seen: true,
  },
  Device: {
    deviceId: '',
    name: '',
    platform: '',
    'model?': '',
    'appVersion?': '',
    keyAlgorithm: '',
    publicKeyHash: '',
    publicKeyIndex: '',
    current: true,
    createdAt: '',
    lastSeenAt: '',
  },
  Person: { userId: '', displayName: '' },
  PeerDevice: { deviceId: '', publicKeyHash: '', keyAlgorithm: '' },
  FriendRequest: {
    requestId: '',
    direction: '',
    status: '=pending',
    user: 'Person',
    'message?': '',
    createdAt: '',
    expiresAt: '',
  },
  ShareToken: { id: '', 'label?': '', createdAt: '', expiresAt: '', maxUses: 0, uses: 0, last4: '' },
  Badge: { total: 0, friendRequests: 0, missedCalls: 0 },
  Settings: { discoverableByEmail: true, discoverableByPhone: true, callsFromContactsOnly: true },
  Verified: { purpose: '', user: 'User' },
}

/** Members that are ids, or lists of ids. */
export const ID_MEMBERS: ReadonlySet<string> = new Set([
  'callId',
  'calleeIds',
  'callerId',
  'deviceId',
  'endedBy',
  'fromDeviceId',
  'fromUserId',
  'hostUserId',
  'id',
  'initiatorId',
  'invitedBy',
  'keyFromDeviceId',
  'keyFromUserId',
  'methodId',
  'primaryMethodId',
  'replacesDeviceId',
  'reportId',
  'requestId',
  'requesterDeviceId',
  'requesterUserId',
  'targetUserId',
  'unavailable',
  'userId',
])
