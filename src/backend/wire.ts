/** Bodies of the server API and of webhooks. Made by scripts/support/write-wire-types.ts: do not edit. */

export interface Badge {
  readonly total: number
  readonly friendRequests: number
  readonly missedCalls: number
}

export interface CallAnsweredWebhook {
  readonly type: 'call.answered'
  /** When it happened. */
  readonly timestamp: string
  readonly data: {
    /** Grows with each event of the endpoint; order what you keep by it. */
    readonly seq: number
    /** The user or call that it is about, such as `user:42`: their events come in order. */
    readonly subject: string
    readonly callId: string
    /** A user, by ids alone. */
    readonly caller: {
      readonly userId: string
      /** Your own id of the user, if you have given them one. */
      readonly externalId?: string
    }
    /** A user, by ids alone. */
    readonly user: {
      readonly userId: string
      /** Your own id of the user, if you have given them one. */
      readonly externalId?: string
    }
    readonly deviceId: string
    /** Milliseconds. */
    readonly rangMs: number
  }
}

export interface CallDeclinedWebhook {
  readonly type: 'call.declined'
  /** When it happened. */
  readonly timestamp: string
  readonly data: {
    /** Grows with each event of the endpoint; order what you keep by it. */
    readonly seq: number
    /** The user or call that it is about, such as `user:42`: their events come in order. */
    readonly subject: string
    readonly callId: string
    /** A user, by ids alone. */
    readonly caller: {
      readonly userId: string
      /** Your own id of the user, if you have given them one. */
      readonly externalId?: string
    }
    /** A user, by ids alone. */
    readonly user: {
      readonly userId: string
      /** Your own id of the user, if you have given them one. */
      readonly externalId?: string
    }
  }
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

export interface CallEndedWebhook {
  readonly type: 'call.ended'
  /** When it happened. */
  readonly timestamp: string
  readonly data: {
    /** Grows with each event of the endpoint; order what you keep by it. */
    readonly seq: number
    /** The user or call that it is about, such as `user:42`: their events come in order. */
    readonly subject: string
    readonly callId: string
    /** A user, by ids alone. */
    readonly caller: {
      readonly userId: string
      /** Your own id of the user, if you have given them one. */
      readonly externalId?: string
    }
    readonly status: CallStatus
    readonly reason: CallEndReason
    /** A user, by ids alone. */
    readonly endedBy?: {
      readonly userId: string
      /** Your own id of the user, if you have given them one. */
      readonly externalId?: string
    }
    readonly isVideo: boolean
    /** Milliseconds since the first callee came in; 0 if none did. */
    readonly talkedMs: number
    readonly participants: readonly {
      readonly userId: string
      /** Your own id of the user, if you have given them one. */
      readonly externalId?: string
      readonly state: ParticipantState
      /** Milliseconds that this person spent in it. */
      readonly talkedMs: number
    }[]
  }
}

export interface CallMissedWebhook {
  readonly type: 'call.missed'
  /** When it happened. */
  readonly timestamp: string
  readonly data: {
    /** Grows with each event of the endpoint; order what you keep by it. */
    readonly seq: number
    /** The user or call that it is about, such as `user:42`: their events come in order. */
    readonly subject: string
    readonly callId: string
    /** A user, by ids alone. */
    readonly caller: {
      readonly userId: string
      /** Your own id of the user, if you have given them one. */
      readonly externalId?: string
    }
    /** A user, by ids alone. */
    readonly user: {
      readonly userId: string
      /** Your own id of the user, if you have given them one. */
      readonly externalId?: string
    }
    readonly reason: 'unanswered' | 'cancelled' | 'busy' | 'removed'
  }
}

export interface CallStartedWebhook {
  readonly type: 'call.started'
  /** When it happened. */
  readonly timestamp: string
  readonly data: {
    /** Grows with each event of the endpoint; order what you keep by it. */
    readonly seq: number
    /** The user or call that it is about, such as `user:42`: their events come in order. */
    readonly subject: string
    readonly callId: string
    /** A user, by ids alone. */
    readonly caller: {
      readonly userId: string
      /** Your own id of the user, if you have given them one. */
      readonly externalId?: string
    }
    readonly callees: readonly {
      readonly userId: string
      /** Your own id of the user, if you have given them one. */
      readonly externalId?: string
    }[]
    readonly isVideo: boolean
  }
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

export interface ChangeReportReply {
  readonly reportId: string
  readonly state: 'open' | 'in-review' | 'resolved' | 'dismissed'
  readonly stateSince: string
  readonly createdAt: string
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
  readonly reported: Person
  readonly reporter?: Person
  readonly callId?: string
  /** Whether the server itself knows that both were in the call; else only the reporter says so. */
  readonly isCallKnown: boolean
  /** The moderators' own words. */
  readonly note?: string
  /** The person or the key that changed the report last. */
  readonly handledBy?: string
}

export interface ChangeReportRequest {
  readonly state?: 'open' | 'in-review' | 'resolved' | 'dismissed'
  /** In place of the note before; empty: takes it away. */
  readonly note?: string
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

export interface ContactAddedWebhook {
  readonly type: 'contact.added'
  /** When it happened. */
  readonly timestamp: string
  readonly data: {
    /** Grows with each event of the endpoint; order what you keep by it. */
    readonly seq: number
    /** The user or call that it is about, such as `user:42`: their events come in order. */
    readonly subject: string
    /** The one with the lower id first. */
    readonly users: readonly {
      readonly userId: string
      /** Your own id of the user, if you have given them one. */
      readonly externalId?: string
    }[]
  }
}

export interface ContactRemovedWebhook {
  readonly type: 'contact.removed'
  /** When it happened. */
  readonly timestamp: string
  readonly data: {
    /** Grows with each event of the endpoint; order what you keep by it. */
    readonly seq: number
    /** The user or call that it is about, such as `user:42`: their events come in order. */
    readonly subject: string
    /** The one with the lower id first. */
    readonly users: readonly {
      readonly userId: string
      /** Your own id of the user, if you have given them one. */
      readonly externalId?: string
    }[]
  }
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

export interface CreateSignInTokenReply {
  /** For the app, which signs in by it once: `login` with `verified: true` and `signInToken` */
  readonly token: string
  /** Seconds. */
  readonly expiresIn: number
  readonly userId: string
}

export interface CreateWebhookReply {
  /** `settings` for the one of CALLSIGN_WEBHOOK_URL. */
  readonly id: string
  readonly url: string
  /** The events that it wants to hear of; left out: all. */
  readonly events?: readonly (
    | 'user.created'
    | 'user.changed'
    | 'user.ended'
    | 'user.suspended'
    | 'user.unsuspended'
    | 'session.started'
    | 'device.added'
    | 'call.started'
    | 'call.answered'
    | 'call.missed'
    | 'call.declined'
    | 'call.ended'
    | 'report.created'
    | 'contact.added'
    | 'contact.removed'
  )[]
  /** `gone`: it answered 410, and is sent nothing. */
  readonly state: 'open' | 'gone'
  readonly createdAt: string
  /** `whsec_...`, shown this once. */
  readonly secret: string
}

export interface CreateWebhookRequest {
  readonly url: string
  /** The events that it wants to hear of; left out: all. */
  readonly events?: readonly (
    | 'user.created'
    | 'user.changed'
    | 'user.ended'
    | 'user.suspended'
    | 'user.unsuspended'
    | 'session.started'
    | 'device.added'
    | 'call.started'
    | 'call.answered'
    | 'call.missed'
    | 'call.declined'
    | 'call.ended'
    | 'report.created'
    | 'contact.added'
    | 'contact.removed'
  )[]
}

export interface DeleteUserReply {
  /** Signing in before then keeps the account. */
  readonly erasesAt: string
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

export interface DeviceAddedWebhook {
  readonly type: 'device.added'
  /** When it happened. */
  readonly timestamp: string
  readonly data: {
    /** Grows with each event of the endpoint; order what you keep by it. */
    readonly seq: number
    /** The user or call that it is about, such as `user:42`: their events come in order. */
    readonly subject: string
    /** A user, by ids alone. */
    readonly user: {
      readonly userId: string
      /** Your own id of the user, if you have given them one. */
      readonly externalId?: string
    }
    readonly deviceId: string
    readonly platform: string
  }
}

export interface ExportUserByRefReply {
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

export interface FriendRequest {
  readonly requestId: string
  readonly direction: 'incoming' | 'outgoing'
  readonly status: 'pending'
  readonly user: Person
  readonly message?: string
  readonly createdAt: string
  readonly expiresAt: string
}

export interface GetCallOfUsersReply {
  readonly callId: string
  readonly status: CallStatus
  readonly isVideo: boolean
  readonly initiatorId: string
  readonly hostUserId: string
  readonly createdAt: string
  /** When the first callee joined. */
  readonly startedAt?: string
  readonly endedAt?: string
  readonly endReason?: CallEndReason
  readonly endedBy?: string
  readonly participants: readonly {
    readonly userId: string
    readonly externalId?: string
    /** As it was when they were invited. */
    readonly displayName: string
    readonly state: ParticipantState
    readonly isHost: boolean
    readonly invitedBy: string
    readonly invitedAt: string
    readonly joinedAt?: string
    readonly leftAt?: string
    /** The device that is in the call, or was last. */
    readonly deviceId?: string
    /** Seconds in the call, up to when they last left. */
    readonly talkedIn: number
    /** The invitation was kept from them: they had blocked the inviter. */
    readonly isWithheld: boolean
  }[]
  /** What happened, oldest first; of a long call the latest. */
  readonly timeLine: readonly {
    readonly at: string
    /** Push taken: a push provider took the ring. Ringing: a device shows it. Unreachable: after 5 s no device has a socket or took a push. Moved: to another device of the user. Lost: no sign of life for 90 s. Media: the gateway’s room. */
    readonly event:
      | 'started'
      | 'invited'
      | 'push_taken'
      | 'ringing'
      | 'unreachable'
      | 'joined'
      | 'moved'
      | 'left'
      | 'lost'
      | 'declined'
      | 'busy'
      | 'missed'
      | 'removed'
      | 'media_ready'
      | 'media_lost'
      | 'ended'
    readonly userIds: readonly string[]
    /** Of `invited`, `removed` and `ended`; without one, the operator or the server. */
    readonly byUserId?: string
  }[]
}

export interface GetReportReply {
  readonly reportId: string
  readonly state: 'open' | 'in-review' | 'resolved' | 'dismissed'
  readonly stateSince: string
  readonly createdAt: string
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
  readonly reported: Person
  readonly reporter?: Person
  readonly callId?: string
  /** Whether the server itself knows that both were in the call; else only the reporter says so. */
  readonly isCallKnown: boolean
  /** The moderators' own words. */
  readonly note?: string
  /** The person or the key that changed the report last. */
  readonly handledBy?: string
}

export interface GetUserReply {
  readonly userId: string
  readonly externalId?: string
  readonly displayName: string
  /** `ending`: the account will be erased at `erasesAt`, unless its user signs in before. */
  readonly state: 'active' | 'suspended' | 'ending'
  readonly erasesAt?: string
  readonly suspension?: {
    /** A code of your own, such as `abuse`, which the suspended user’s app is told at a sign-in. */
    readonly reason: string
    /** For moderators. The user never sees it. */
    readonly note?: string
    readonly at: string
    readonly untilAt?: string
  }
  /** Who may call: contacts alone, or everybody who knows the user id. */
  readonly reachable: 'contacts' | 'all'
  /** As you have said it; unproven. */
  readonly email?: string
  /** Likewise. */
  readonly phone?: string
  /** Whether the user signs in by methods of their own: then nobody else gets a sign-in token for them. */
  readonly ownsSignIn: boolean
  /** What the user has proven. */
  readonly loginMethods: readonly LoginMethod[]
  readonly createdAt: string
}

/** For each line, in their order: `{"line":1,"status":"created","userId":"..."}`, `changed`, `unchanged`, or `{"line":2,"status":"refused","code":"...","detail":"..."}` */
export type ImportUsersReply = string

export type KeyAlgorithm = 'P-256' | 'RSA-2048'

export interface LinkContactsReply {
  /** Of `a` and `b` */
  readonly userIds: readonly string[]
  readonly since: string
}

export interface LinkContactsRequest {
  /** `id:<userId>`, or `ext:` and your own id for the user. */
  readonly a: string
  /** `id:<userId>`, or `ext:` and your own id for the user. */
  readonly b: string
}

export interface ListAuditReply {
  readonly items: readonly {
    readonly at: string
    /** Of the server key, or `operator` for the operator’s own command. */
    readonly keyId: string
    /** Whose key it is. */
    readonly person?: string
    /** An `operationId` of this document. */
    readonly operation: string
    /** Such as `id:42` or `report:7` */
    readonly target: string
    readonly requestId: string
  }[]
  /** Of the next page; left out behind the last. */
  readonly nextCursor?: string
}

export interface ListCallsReply {
  readonly items: readonly {
    readonly callId: string
    readonly status: CallStatus
    readonly isVideo: boolean
    readonly initiatorId: string
    readonly hostUserId: string
    readonly createdAt: string
    /** When the first callee joined. */
    readonly startedAt?: string
    readonly endedAt?: string
    readonly endReason?: CallEndReason
    readonly endedBy?: string
    readonly participants: readonly {
      readonly userId: string
      readonly externalId?: string
      /** As it was when they were invited. */
      readonly displayName: string
      readonly state: ParticipantState
      readonly isHost: boolean
      readonly invitedBy: string
      readonly invitedAt: string
      readonly joinedAt?: string
      readonly leftAt?: string
      /** The device that is in the call, or was last. */
      readonly deviceId?: string
      /** Seconds in the call, up to when they last left. */
      readonly talkedIn: number
      /** The invitation was kept from them: they had blocked the inviter. */
      readonly isWithheld: boolean
    }[]
  }[]
  /** Of the next page; left out behind the last. */
  readonly nextCursor?: string
}

export interface ListCircleMembersReply {
  readonly items: readonly {
    readonly userId: string
    readonly externalId?: string
    readonly displayName: string
    readonly since: string
  }[]
  /** Of the next page; left out behind the last. */
  readonly nextCursor?: string
}

export interface ListDeadWebhooksReply {
  readonly items: readonly {
    readonly seq: number
    /** The `webhook-id`; left out where it can’t be read any more. */
    readonly id?: string
    readonly type?: string
    readonly happenedAt?: string
    readonly diedAt: string
    readonly reason: 'expired' | 'crowded' | 'too-large' | 'unreadable'
    readonly tries: number
  }[]
  /** Of the next page; left out behind the last. */
  readonly nextCursor?: string
}

export interface ListReportsReply {
  readonly items: readonly {
    readonly reportId: string
    readonly state: 'open' | 'in-review' | 'resolved' | 'dismissed'
    readonly stateSince: string
    readonly createdAt: string
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
    readonly reported: Person
    readonly reporter?: Person
    readonly callId?: string
    /** Whether the server itself knows that both were in the call; else only the reporter says so. */
    readonly isCallKnown: boolean
    /** The moderators' own words. */
    readonly note?: string
    /** The person or the key that changed the report last. */
    readonly handledBy?: string
  }[]
  /** Of the next page; left out behind the last. */
  readonly nextCursor?: string
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

export interface ListUserCallsReply {
  readonly items: readonly PastCall[]
  /** Of the next page; left out behind the last. */
  readonly nextCursor?: string
}

export interface ListUserChangesReply {
  /** The latest change of each user, oldest first. */
  readonly items: readonly {
    readonly userId: string
    readonly changedAt: string
    /** `erased` is told for 30 days, without `user` */
    readonly state: 'active' | 'suspended' | 'ending' | 'erased'
    /** As the user is now. */
    readonly user?: {
      readonly userId: string
      readonly externalId?: string
      readonly displayName: string
      /** `ending`: the account will be erased at `erasesAt`, unless its user signs in before. */
      readonly state: 'active' | 'suspended' | 'ending'
      readonly erasesAt?: string
      readonly suspension?: {
        /** A code of your own, such as `abuse`, which the suspended user’s app is told at a sign-in. */
        readonly reason: string
        /** For moderators. The user never sees it. */
        readonly note?: string
        readonly at: string
        readonly untilAt?: string
      }
      /** Who may call: contacts alone, or everybody who knows the user id. */
      readonly reachable: 'contacts' | 'all'
      /** As you have said it; unproven. */
      readonly email?: string
      /** Likewise. */
      readonly phone?: string
      /** Whether the user signs in by methods of their own: then nobody else gets a sign-in token for them. */
      readonly ownsSignIn: boolean
      /** What the user has proven. */
      readonly loginMethods: readonly LoginMethod[]
      readonly createdAt: string
    }
  }[]
  /** To be sent as `since` the next time. */
  readonly next: number
  /** Whether there are more already. */
  readonly hasMore: boolean
}

export interface ListUserDevicesReply {
  readonly items: readonly {
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
    readonly createdAt: string
    readonly lastSeenAt: string
  }[]
}

export interface ListUserSessionsReply {
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
  }[]
}

export interface ListUsersReply {
  readonly items: readonly {
    readonly userId: string
    readonly externalId?: string
    readonly displayName: string
    /** `ending`: the account will be erased at `erasesAt`, unless its user signs in before. */
    readonly state: 'active' | 'suspended' | 'ending'
    readonly erasesAt?: string
    readonly suspension?: {
      /** A code of your own, such as `abuse`, which the suspended user’s app is told at a sign-in. */
      readonly reason: string
      /** For moderators. The user never sees it. */
      readonly note?: string
      readonly at: string
      readonly untilAt?: string
    }
    /** Who may call: contacts alone, or everybody who knows the user id. */
    readonly reachable: 'contacts' | 'all'
    /** As you have said it; unproven. */
    readonly email?: string
    /** Likewise. */
    readonly phone?: string
    /** Whether the user signs in by methods of their own: then nobody else gets a sign-in token for them. */
    readonly ownsSignIn: boolean
    /** What the user has proven. */
    readonly loginMethods: readonly LoginMethod[]
    readonly createdAt: string
  }[]
  /** Of the next page; left out behind the last. */
  readonly nextCursor?: string
}

export interface ListWebhooksReply {
  readonly items: readonly {
    /** `settings` for the one of CALLSIGN_WEBHOOK_URL. */
    readonly id: string
    readonly url: string
    /** The events that it wants to hear of; left out: all. */
    readonly events?: readonly (
      | 'user.created'
      | 'user.changed'
      | 'user.ended'
      | 'user.suspended'
      | 'user.unsuspended'
      | 'session.started'
      | 'device.added'
      | 'call.started'
      | 'call.answered'
      | 'call.missed'
      | 'call.declined'
      | 'call.ended'
      | 'report.created'
      | 'contact.added'
      | 'contact.removed'
    )[]
    /** `gone`: it answered 410, and is sent nothing. */
    readonly state: 'open' | 'gone'
    readonly createdAt: string
    /** Events that wait for it. */
    readonly waiting: number
    /** Events that it did not take. */
    readonly dead: number
  }[]
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

export interface LookUpKeysReply {
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

export interface LookUpKeysRequest {
  readonly targets: readonly {
    /** The vrfHash that registration returned: base64 of 64 bytes. */
    readonly publicKeyHash: string
  }[]
  /** Whether each result should say what the index has under its hash. Left out: no. */
  readonly index?: boolean
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

export interface PutUserReply {
  readonly userId: string
  readonly externalId?: string
  readonly displayName: string
  /** `ending`: the account will be erased at `erasesAt`, unless its user signs in before. */
  readonly state: 'active' | 'suspended' | 'ending'
  readonly erasesAt?: string
  readonly suspension?: {
    /** A code of your own, such as `abuse`, which the suspended user’s app is told at a sign-in. */
    readonly reason: string
    /** For moderators. The user never sees it. */
    readonly note?: string
    readonly at: string
    readonly untilAt?: string
  }
  /** Who may call: contacts alone, or everybody who knows the user id. */
  readonly reachable: 'contacts' | 'all'
  /** As you have said it; unproven. */
  readonly email?: string
  /** Likewise. */
  readonly phone?: string
  /** Whether the user signs in by methods of their own: then nobody else gets a sign-in token for them. */
  readonly ownsSignIn: boolean
  /** What the user has proven. */
  readonly loginMethods: readonly LoginMethod[]
  readonly createdAt: string
}

export interface PutUserRequest {
  /** 1 to 50 characters as a reader counts them, in at most 200 bytes. A new user without one is called by the email address. */
  readonly displayName?: string
  /** For lists and look-ups of your own. Nobody has proven it, so it signs nobody in. Empty: taken away. */
  readonly email?: string
  /** Likewise, with + and the calling code, or with `country` */
  readonly phone?: string
  /** ISO 3166 letters: what a phone number without calling code belongs to. */
  readonly country?: string
  /** Who may call: contacts alone, or everybody who knows the user id. */
  readonly reachable?: 'contacts' | 'all'
  /** Your own id of the user: text of at most 256 octets in UTF-8, compared by octets. Set for a user named by `id:`. Empty: taken away. */
  readonly externalId?: string
}

export interface RemoveUserFromCallRequest {
  /** `id:<userId>`, or `ext:` and your own id for the user. */
  readonly ref: string
}

export interface ReportCreatedWebhook {
  readonly type: 'report.created'
  /** When it happened. */
  readonly timestamp: string
  readonly data: {
    /** Grows with each event of the endpoint; order what you keep by it. */
    readonly seq: number
    /** The user or call that it is about, such as `user:42`: their events come in order. */
    readonly subject: string
    readonly reportId: string
    /** A user, by ids alone. */
    readonly user: {
      readonly userId: string
      /** Your own id of the user, if you have given them one. */
      readonly externalId?: string
    }
    readonly callId?: string
    readonly reason: string
  }
}

export interface RetryWebhooksReply {
  /** Events that wait again. */
  readonly retried: number
  /** Where to go on with `from`; left out at the end, or when no more may wait. */
  readonly next?: number
}

export interface RetryWebhooksRequest {
  /** The `seq` of the first one; left out: all. */
  readonly from?: number
}

export interface RotateWebhookSecretReply {
  /** `whsec_...`, shown this once. */
  readonly secret: string
}

export interface SessionStartedWebhook {
  readonly type: 'session.started'
  /** When it happened. */
  readonly timestamp: string
  readonly data: {
    /** Grows with each event of the endpoint; order what you keep by it. */
    readonly seq: number
    /** The user or call that it is about, such as `user:42`: their events come in order. */
    readonly subject: string
    /** A user, by ids alone. */
    readonly user: {
      readonly userId: string
      /** Your own id of the user, if you have given them one. */
      readonly externalId?: string
    }
    readonly sessionId: string
    /** Left out until the session has a device. */
    readonly deviceId?: string
  }
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

export interface StartConsoleSessionReply {
  /** Sent as a server key is, until `expiresAt` */
  readonly token: string
  readonly expiresAt: string
  readonly person?: string
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
}

export interface SuspendUserReply {
  readonly userId: string
  /** A code of your own, such as `abuse`, which the suspended user’s app is told at a sign-in. */
  readonly reason: string
  /** For moderators. The user never sees it. */
  readonly note?: string
  readonly at: string
  readonly untilAt?: string
}

export interface SuspendUserRequest {
  /** A code of your own, such as `abuse`, which the suspended user’s app is told at a sign-in. */
  readonly reason: string
  /** For moderators. The user never sees it. */
  readonly note?: string
  /** When it ends by itself; left out: when you lift it. */
  readonly untilAt?: string
}

export interface TestWebhookReply {
  readonly outcome: 'taken' | 'failed'
  /** Such as `http-500`, `timeout` or `address-not-allowed` */
  readonly reason?: string
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

export interface UserChangedWebhook {
  readonly type: 'user.changed'
  /** When it happened. */
  readonly timestamp: string
  readonly data: {
    /** Grows with each event of the endpoint; order what you keep by it. */
    readonly seq: number
    /** The user or call that it is about, such as `user:42`: their events come in order. */
    readonly subject: string
    /** A user, by ids alone. */
    readonly user: {
      readonly userId: string
      /** Your own id of the user, if you have given them one. */
      readonly externalId?: string
    }
    readonly changed: readonly (
      | 'displayName'
      | 'settings'
      | 'externalId'
      | 'contactData'
      | 'loginMethods'
      | 'erasesAt'
    )[]
    /** The account will be erased then, unless its user comes back. */
    readonly erasesAt?: string
  }
}

export interface UserCreatedWebhook {
  readonly type: 'user.created'
  /** When it happened. */
  readonly timestamp: string
  readonly data: {
    /** Grows with each event of the endpoint; order what you keep by it. */
    readonly seq: number
    /** The user or call that it is about, such as `user:42`: their events come in order. */
    readonly subject: string
    /** A user, by ids alone. */
    readonly user: {
      readonly userId: string
      /** Your own id of the user, if you have given them one. */
      readonly externalId?: string
    }
  }
}

export interface UserEndedWebhook {
  readonly type: 'user.ended'
  /** When it happened. */
  readonly timestamp: string
  readonly data: {
    /** Grows with each event of the endpoint; order what you keep by it. */
    readonly seq: number
    /** The user or call that it is about, such as `user:42`: their events come in order. */
    readonly subject: string
    /** A user, by ids alone. */
    readonly user: {
      readonly userId: string
      /** Your own id of the user, if you have given them one. */
      readonly externalId?: string
    }
  }
}

export interface UserSuspendedWebhook {
  readonly type: 'user.suspended'
  /** When it happened. */
  readonly timestamp: string
  readonly data: {
    /** Grows with each event of the endpoint; order what you keep by it. */
    readonly seq: number
    /** The user or call that it is about, such as `user:42`: their events come in order. */
    readonly subject: string
    /** A user, by ids alone. */
    readonly user: {
      readonly userId: string
      /** Your own id of the user, if you have given them one. */
      readonly externalId?: string
    }
    readonly reason: string
    readonly until?: string
  }
}

export interface UserUnsuspendedWebhook {
  readonly type: 'user.unsuspended'
  /** When it happened. */
  readonly timestamp: string
  readonly data: {
    /** Grows with each event of the endpoint; order what you keep by it. */
    readonly seq: number
    /** The user or call that it is about, such as `user:42`: their events come in order. */
    readonly subject: string
    /** A user, by ids alone. */
    readonly user: {
      readonly userId: string
      /** Your own id of the user, if you have given them one. */
      readonly externalId?: string
    }
  }
}

export interface WebhookTestWebhook {
  readonly type: 'webhook.test'
  /** When it happened. */
  readonly timestamp: string
  readonly data: {
    /** Grows with each event of the endpoint; order what you keep by it. */
    readonly seq: number
    /** The user or call that it is about, such as `user:42`: their events come in order. */
    readonly subject: string
  }
}

/** Events of webhooks, by `type`. */
export type WebhookEvent =
  | UserCreatedWebhook
  | UserChangedWebhook
  | UserEndedWebhook
  | UserSuspendedWebhook
  | UserUnsuspendedWebhook
  | SessionStartedWebhook
  | DeviceAddedWebhook
  | CallStartedWebhook
  | CallAnsweredWebhook
  | CallMissedWebhook
  | CallDeclinedWebhook
  | CallEndedWebhook
  | ReportCreatedWebhook
  | ContactAddedWebhook
  | ContactRemovedWebhook
  | WebhookTestWebhook

/** Operations by method and path, which begins behind `/app/api/` or `/server/api/v1/` unless it is a whole one. */
export interface Operations {
  /** Changes by the server API, with key and target, newest first. */
  'GET audit': {
    readonly params: { readonly since?: string; readonly limit?: number; readonly cursor?: string }
    readonly body: undefined
    readonly reply: ListAuditReply
  }
  /** Live calls, newest first, or those that ended in the last 24 hours. */
  'GET calls': {
    readonly params: { readonly live?: boolean; readonly limit?: number; readonly cursor?: string }
    readonly body: undefined
    readonly reply: ListCallsReply
  }
  /** A call with its time line, for 24 hours after its end, too. */
  'GET calls/{callId}': {
    readonly params: { readonly callId: string }
    readonly body: undefined
    readonly reply: GetCallOfUsersReply
  }
  /** Ends a call for all, with the reason `operator`; no error where it has ended. */
  'POST calls/{callId}/end': {
    readonly params: { readonly callId: string }
    readonly body: undefined
    readonly reply: undefined
  }
  /** Takes a user out of a call, who may not come back by themselves; a call that leaves one person alone for good ends. */
  'POST calls/{callId}/remove': {
    readonly params: { readonly callId: string }
    readonly body: RemoveUserFromCallRequest
    readonly reply: undefined
  }
  /** Ends a circle for all of its members; no error where there is none. */
  'DELETE circles/{circleId}': {
    readonly params: { readonly circleId: string }
    readonly body: undefined
    readonly reply: undefined
  }
  /** The members of a circle, by user id; none of a circle that there is not. */
  'GET circles/{circleId}/members': {
    readonly params: { readonly circleId: string; readonly limit?: number; readonly cursor?: string }
    readonly body: undefined
    readonly reply: ListCircleMembersReply
  }
  /** Makes a user a member of a circle, and the circle with its first member. */
  'PUT circles/{circleId}/members/{ref}': {
    readonly params: { readonly circleId: string; readonly ref: string }
    readonly body: undefined
    readonly reply: undefined
  }
  /** Takes a user out of a circle, which goes with its last member; no error where they are no member. */
  'DELETE circles/{circleId}/members/{ref}': {
    readonly params: { readonly circleId: string; readonly ref: string }
    readonly body: undefined
    readonly reply: undefined
  }
  /** Trade a moderator’s key for a session of 15 minutes, as the operators’ page does. */
  'POST console-sessions': {
    readonly params: object
    readonly body: undefined
    readonly reply: StartConsoleSessionReply
  }
  /** Makes two users contacts; requests between them are accepted by it. */
  'PUT contacts': {
    readonly params: object
    readonly body: LinkContactsRequest
    readonly reply: LinkContactsReply
  }
  /** Ends a contact for both users; no error where they are none. */
  'DELETE contacts': {
    readonly params: { readonly a: string; readonly b: string }
    readonly body: undefined
    readonly reply: undefined
  }
  /** Keys that the log has under these hashes, with proofs to verify, as `POST /api/get-public-keys` answers. */
  'POST key-lookups': {
    readonly params: object
    readonly body: LookUpKeysRequest
    readonly reply: LookUpKeysReply
  }
  /** Reports in a state, or about a user: those that wait for a moderator longest first, closed ones newest first. */
  'GET reports': {
    readonly params: {
      readonly state?: 'open' | 'in-review' | 'resolved' | 'dismissed'
      readonly about?: string
      readonly limit?: number
      readonly cursor?: string
    }
    readonly body: undefined
    readonly reply: ListReportsReply
  }
  /** One report. */
  'GET reports/{reportId}': {
    readonly params: { readonly reportId: string }
    readonly body: undefined
    readonly reply: GetReportReply
  }
  /** Take a report into review, close it or open it again, and note why. */
  'PATCH reports/{reportId}': {
    readonly params: { readonly reportId: string }
    readonly body: ChangeReportRequest
    readonly reply: ChangeReportReply
  }
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
  /** Users with an address, or all, a page at a time in the order of their ids. */
  'GET users': {
    readonly params: {
      readonly email?: string
      readonly phone?: string
      readonly limit?: number
      readonly cursor?: string
    }
    readonly body: undefined
    readonly reply: ListUsersReply
  }
  /** Users who were made, changed or erased since the last time, for a list of your own. */
  'GET users/changes': {
    readonly params: { readonly since?: number; readonly limit?: number }
    readonly body: undefined
    readonly reply: ListUserChangesReply
  }
  /** Make a user, named by your own id, or change one. Their login methods stay as they are. */
  'PUT users/{ref}': {
    readonly params: { readonly ref: string }
    readonly body: PutUserRequest
    readonly reply: PutUserReply
  }
  /** One user. */
  'GET users/{ref}': {
    readonly params: { readonly ref: string }
    readonly body: undefined
    readonly reply: GetUserReply
  }
  /** Sign a user out and have the account erased: in seven days, unless they sign in before, or at once. */
  'DELETE users/{ref}': {
    readonly params: { readonly ref: string; readonly now?: boolean }
    readonly body: undefined
    readonly reply: DeleteUserReply
  }
  /** The calls that a user remembers, newest first. */
  'GET users/{ref}/calls': {
    readonly params: { readonly ref: string; readonly limit?: number; readonly cursor?: string }
    readonly body: undefined
    readonly reply: ListUserCallsReply
  }
  /** The devices of a user, newest first. */
  'GET users/{ref}/devices': {
    readonly params: { readonly ref: string }
    readonly body: undefined
    readonly reply: ListUserDevicesReply
  }
  /** All that the server holds of a user, in one document that is sent as it is made. */
  'GET users/{ref}/export': {
    readonly params: { readonly ref: string }
    readonly body: undefined
    readonly reply: ExportUserByRefReply
  }
  /** Where a user is signed in, newest first. */
  'GET users/{ref}/sessions': {
    readonly params: { readonly ref: string }
    readonly body: undefined
    readonly reply: ListUserSessionsReply
  }
  /** A token that signs a user in once, within a minute: one whom your backend made, and who has no login method of their own. */
  'POST users/{ref}/sign-in-token': {
    readonly params: { readonly ref: string }
    readonly body: undefined
    readonly reply: CreateSignInTokenReply
  }
  /** End all sessions of a user: their devices leave calls, and nothing is pushed to them any more. */
  'POST users/{ref}/sign-out': {
    readonly params: { readonly ref: string }
    readonly body: undefined
    readonly reply: undefined
  }
  /** Suspends a user: sessions and calls end at once, and no sign-in succeeds. Contacts see nothing of it. */
  'POST users/{ref}/suspend': {
    readonly params: { readonly ref: string }
    readonly body: SuspendUserRequest
    readonly reply: SuspendUserReply
  }
  /** Lifts a suspension: the user may sign in again. */
  'POST users/{ref}/unsuspend': {
    readonly params: { readonly ref: string }
    readonly body: undefined
    readonly reply: undefined
  }
  /** Makes an endpoint of webhooks; its secret is shown this once. */
  'POST webhooks': {
    readonly params: object
    readonly body: CreateWebhookRequest
    readonly reply: CreateWebhookReply
  }
  /** All endpoints of webhooks, also the one in the settings. */
  'GET webhooks': { readonly params: object; readonly body: undefined; readonly reply: ListWebhooksReply }
  /** Deletes an endpoint of webhooks with all that waits for it. */
  'DELETE webhooks/{webhookId}': {
    readonly params: { readonly webhookId: string }
    readonly body: undefined
    readonly reply: undefined
  }
  /** Events that an endpoint did not take, oldest first; kept for 30 days. */
  'GET webhooks/{webhookId}/dead': {
    readonly params: { readonly webhookId: string; readonly limit?: number; readonly cursor?: string }
    readonly body: undefined
    readonly reply: ListDeadWebhooksReply
  }
  /** Has dead events wait again, at most 1,000 at once, and begins an endpoint that was gone. */
  'POST webhooks/{webhookId}/retry': {
    readonly params: { readonly webhookId: string }
    readonly body: RetryWebhooksRequest | undefined
    readonly reply: RetryWebhooksReply
  }
  /** Makes another secret; events are signed by it and by the one before. */
  'POST webhooks/{webhookId}/rotate': {
    readonly params: { readonly webhookId: string }
    readonly body: undefined
    readonly reply: RotateWebhookSecretReply
  }
  /** Sends an event of type webhook.test now, once, and says what came of it. */
  'POST webhooks/{webhookId}/test': {
    readonly params: { readonly webhookId: string }
    readonly body: undefined
    readonly reply: TestWebhookReply
  }
}
