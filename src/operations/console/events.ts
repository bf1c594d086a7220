/**
 * What the console of a development server shows, as it goes over the wire: `GET /dev/state` says how things are,
 * `GET /dev/feed?after=N` lists events after N. Ids are decimal strings, times Unix milliseconds. Neither
 * holds a token, a private key or an encrypted key of a call; codes and messages are the point of it.
 */

/** The answer of `GET /dev/feed?after=N`. */
export interface FeedAnswer {
  readonly events: readonly ConsoleEvent[]
  /** The number to ask after next. */
  readonly next: number
  /** Those since request M, where `requestsAfter=M` asks for them, and what to ask after next. */
  readonly requests?: readonly RequestRow[]
  readonly nextRequest?: number
  /** A different value: the server has restarted, and counts from 1 again. Then ask after 0. */
  readonly startedAtMs?: number
}

/** One thing that happened; `sequence` counts from 1 since the start of the server. */
export type ConsoleEvent = { readonly sequence: number; readonly atMs: number } & ConsoleFact

export type ConsoleFact =
  | LetterFact
  | PushFact
  | CallFact
  | ConnectionFact
  /** The log has a new signed checkpoint; `rootHash` is base64. */
  | { readonly type: 'checkpoint'; readonly treeSize: number; readonly rootHash: string }

/** A mail or text message that left, or would have. */
export interface LetterFact {
  readonly type: 'letter'
  readonly channel: 'mail' | 'sms'
  readonly to: string
  readonly text: string
  readonly otp?: string
}

/** A push that left, or would have. `bytes` is the size of the payload, `bytesMax` what its provider takes. */
export interface PushFact {
  readonly type: 'push'
  readonly kind: string
  readonly userId: string
  readonly deviceId: string
  readonly provider: string
  readonly headers: Readonly<Record<string, string>>
  readonly payload: object
  readonly bytes: number
  readonly bytesMax: number
}

/** A message to a call's room that was carried out, and what devices were told of it. */
export interface CallFact {
  readonly type: 'call'
  readonly callId: string
  /** Such as `start`, `join`, `deadline`. */
  readonly command: string
  /** Whose device it came from; absent for the room's own timer. */
  readonly userId?: string
  readonly deviceId?: string
  /** The call's status afterwards. */
  readonly status: string
  readonly participants: readonly {
    readonly userId: string
    readonly displayName: string
    readonly status: string
  }[]
  readonly told: readonly { readonly userId: string; readonly deviceId: string; readonly type: string }[]
  /** How many devices the event reached; absent when `told` names all, else it names the first. */
  readonly toldCount?: number
  /** The live events that those who watch the call were told of, such as `participant_joined`. */
  readonly watchersTold?: readonly string[]
}

/** A device has come or gone. */
export interface ConnectionFact {
  readonly type: 'connection'
  readonly isOnline: boolean
  readonly userId: string
  readonly deviceId: string
}

/** A request to the API and what became of it. It holds no secret: what looks like one is left out of path and query. */
export interface RequestRow {
  /** Counts from 1 since the start of the server. */
  readonly sequence: number
  /** When it was answered. */
  readonly atMs: number
  readonly method: string
  /** As it was asked for, with the query. */
  readonly path: string
  readonly status: number
  /** A refusal's code; a preflight from a forbidden origin has one too, with status 204. */
  readonly code?: string
  /** The first element at fault; empty for the body as a whole. */
  readonly pointer?: string
  readonly ms: number
  readonly requestId: string
  /** Pointers to members of the body that the operation does not know. */
  readonly unknownFields?: readonly string[]
  /** The user of the request's session. */
  readonly userId?: string
  readonly deviceId?: string
}

/** The answer of `GET /dev/requests/{sequence}`: bodies as JSON without secrets, empty for none. */
export interface RequestDetail extends RequestRow {
  readonly route: string
  readonly request: string
  readonly answer: string
}

/** How things are: the answer of `GET /dev/state`. */
export interface ConsoleState {
  /** The newest event, to ask for the feed after it. */
  readonly sequence: number
  readonly startedAtMs: number
  readonly version: string
  /** Where programs on this machine find the server, and phones on the same network, where it serves those. */
  readonly addresses: { readonly local: string; readonly phones?: string }
  readonly log: {
    readonly origin: string
    readonly vkey: string
    readonly vrfPublicKey: string
    readonly treeSize: number
    /** Absent where the log has no index. */
    readonly index?: {
      readonly vkey: string
      /** How many entries of the log its map has. */
      readonly entries: number
      /** Size of its output log; 0 while it is built for the first time. */
      readonly leaves: number
      /** Whether something is wrong with it. */
      readonly isHeld: boolean
    }
  }
  readonly devices: readonly {
    readonly userId: string
    readonly deviceId: string
    readonly displayName: string
    readonly connectedAtMs: number
    /** Messages in its inbox not yet acknowledged. */
    readonly waiting: number
  }[]
  /** How many there are; `devices` holds the last 500 that came. */
  readonly deviceCount?: number
  readonly calls: readonly Pick<CallFact, 'callId' | 'status' | 'participants'>[]
  /** How many there are; `calls` holds the last 200 that changed. */
  readonly callCount?: number
  readonly actors: readonly {
    readonly kind: string
    readonly live: number
    readonly turns: number
    readonly handlingMs: number
    readonly mailboxDepthMax: number
    readonly restarts: number
  }[]
  /** Why this server can't be reset; absent where it can. */
  readonly resetRefusal?: string
  /** Absent where no simulator is running. */
  readonly simulator?: SimulatorState
  /** Why the last simulator died, unless it was stopped. */
  readonly simulatorTrouble?: string
}

/** The body of `POST /dev/reset`. */
export interface ResetRequest {
  readonly confirm: 'reset everything'
}

/** Commands to the simulator: the body of `POST /dev/simulator`, and a line of JSON to the program's standard input. */
export type SimulatorCommand =
  /** Makes fake users, who sign in with real keys. */
  | { readonly kind: 'people'; readonly behaviours: readonly Behaviour[] }
  /** All simulated people ask the share link's owner to be a contact, and accept their requests. */
  | { readonly kind: 'befriend'; readonly shareToken: string }
  /** One simulated person calls a contact. */
  | { readonly kind: 'call'; readonly from: string; readonly to: string; readonly isVideo: boolean }
  /** They call one another, so many calls a second. */
  | { readonly kind: 'load'; readonly users: number; readonly callsPerSecond: number }
  | { readonly kind: 'stop' }

/** How a fake user treats an invitation. */
export type Behaviour = 'answer' | 'decline' | 'time-out' | 'drop' | 'drop-and-rejoin'

/** The simulator also prints it with `--json`, a line of JSON a second. */
export interface SimulatorState {
  readonly people: readonly {
    readonly userId: string
    readonly displayName: string
    readonly behaviour: Behaviour
    readonly isOnline: boolean
    /** Current activity, such as `ringing`, `in a call`, `idle`. */
    readonly doing: string
    /** Opening it asks this person to be a contact. */
    readonly shareLink?: string
  }[]
  readonly calls: {
    readonly started: number
    readonly answered: number
    readonly ended: number
    readonly failed: number
  }
  /** While users call one another. */
  readonly load?: {
    readonly users: number
    readonly online: number
    readonly callsPerSecond: number
    readonly callsUnderWay: number
    /** From the request that starts a call to a device that rings; without it none has rung yet. */
    readonly ringMs?: { readonly p50: number; readonly p99: number }
  }
  /** The last thing that went wrong, as a sentence. */
  readonly trouble?: string
}
