/** Bodies of the server API and of webhooks. Made by scripts/support/write-wire-types.ts: do not edit. */

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
  /** With `ACCOUNT_SUSPENDED`: the operator's code. */
  readonly reason?: string
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
