/** Everything that the page shows, in one object: parts of the app put into it what they know, and the views read it. */

/** `crowded`: signed in, but the user has as many devices as may be, without this one. */
export type Stage = 'starting' | 'unusable' | 'forgetful' | 'signed-out' | 'code' | 'crowded' | 'signed-in'

export interface State {
  readonly stage: Stage
  /** Work under way, by the name of its button: that button waits. */
  readonly doing: ReadonlySet<string>
  readonly notices: readonly Notice[]
  /** Names that are signed in to open tabs of this browser, so that the next one suggests another. */
  readonly namesTaken: readonly string[]
  readonly challenge: Challenge | undefined
  readonly user: User | undefined
  readonly ownKey: OwnKey
  /** The user's own, the newest first. */
  readonly devices: readonly Device[]
  readonly ownList: OwnListView
  readonly connection: Connection
  readonly contacts: readonly Contact[]
  readonly areContactsLoaded: boolean
  readonly requests: readonly FriendRequest[]
  /** Whom the user has asked. */
  readonly asked: readonly FriendRequest[]
  /** The link that lets people find the user. */
  readonly shareLink: string | undefined
  /** From the link that this tab was opened with. */
  readonly invitedBy: Invitation | undefined
  /** User ids of the contacts that are marked for a call of several. */
  readonly marked: ReadonlySet<string>
  readonly rings: readonly Ring[]
  readonly call: Call | undefined
  readonly media: MediaView
  /** Devices that ask for the call's key, and had not joined the call. */
  readonly keyAsks: readonly KeyAsk[]
  /** Codes to compare with contacts, by user id. */
  readonly codes: ReadonlyMap<string, string>
  readonly history: readonly PastCall[]
  readonly missedCalls: number
}

export interface Notice {
  readonly id: number
  readonly kind: 'good' | 'bad'
  readonly text: string
}

/** A code is on its way. */
export interface Challenge {
  readonly challengeId: string
  readonly identifier: string
  readonly sentTo: string
  readonly otpLength: number
  readonly resendAtMs: number
}

export interface User {
  readonly userId: string
  readonly displayName: string
}

export type OwnKey =
  | { readonly kind: 'none' | 'checking' }
  | { readonly kind: 'clean'; readonly index: number; readonly treeSize: number; readonly hash: string }
  | { readonly kind: 'doubtful' | 'unchecked'; readonly sentence: string }

export interface Device {
  readonly deviceId: string
  readonly name: string
  readonly platform: string
  /** Whether it is this one. */
  readonly current: boolean
  readonly createdAt: string
  readonly lastSeenAt: string
}

/**
 * The person's device list as this device sees it. `waiting`: another device has to approve this one, which shows `code`;
 * `none`: there is no list.
 */
export type OwnListView =
  | { readonly kind: 'unknown' | 'none' }
  | { readonly kind: 'waiting'; readonly code: string }
  | { readonly kind: 'listed'; readonly waiting: readonly WaitingDevice[] }

/** A device of the person's that is not on their list yet. */
export interface WaitingDevice {
  readonly deviceId: string
  readonly name: string
  readonly publicKey: string
  readonly signingKey: string
  /** Shown on its screen, too. */
  readonly code: string
}

/** `blocked`: the server answers, but not by WebSocket; `unanswered`: not at all. Both are tried again, as `connecting` is. */
export type Connection = 'off' | 'connecting' | 'connected' | 'elsewhere' | 'blocked' | 'unanswered'

export interface Contact extends User {
  readonly devices: number
}

export interface FriendRequest {
  readonly requestId: string
  readonly user: User
}

export interface Invitation {
  readonly token: string
  readonly displayName: string
  readonly relation: string
}

/** An incoming call. */
export interface Ring {
  readonly callId: string
  readonly callerId: string
  readonly callerName: string
  readonly isVideo: boolean
  readonly isOnGoing: boolean
  /** `verified`: the call's key is open, and the log proves whose device has sent it. Else why not, as a sentence. */
  readonly check: 'checking' | 'verified' | { readonly refusal: string }
}

export interface Participant extends User {
  readonly state:
    | 'invited'
    | 'ringing'
    | 'joined'
    | 'left'
    | 'lost'
    | 'declined'
    | 'busy'
    | 'missed'
    | 'removed'
  readonly isHost: boolean
  readonly invitedBy: string
  readonly invitedAt: string
  readonly deviceId?: string
}

/** The call that this tab is in, or comes back to. */
export interface Call {
  readonly callId: string
  readonly isVideo: boolean
  /** `asking`: the key is gone, and the other devices were asked for it; `keyless`: none has answered. */
  readonly phase: 'ringing' | 'active' | 'asking' | 'keyless'
  readonly participants: readonly Participant[]
  readonly hostUserId: string
  readonly keyEpoch: number
  /** The key's fingerprint: twenty digits in groups of five. */
  readonly fingerprint: string | undefined
  /** By the server's clock. */
  readonly startedAtMs: number | undefined
}

/** A participant's device, but not the one that they had joined with. */
export interface KeyAsk extends User {
  readonly callId: string
  readonly deviceId: string
  readonly publicKeyHash: string
}

export interface MediaView {
  readonly local: MediaStream | undefined
  /** Why there is no picture or sound of one's own. */
  readonly problem: string | undefined
  readonly isMuted: boolean
  readonly isCameraOff: boolean
  /** Whether other people's sound is on. */
  readonly isSoundOn: boolean
  readonly peers: readonly MediaPeer[]
}

export interface MediaPeer {
  readonly userId: string
  /** `gone`: it was connected and closed its page; `unreachable`: it never was connected, and no way is left to try. */
  readonly state: 'connecting' | 'connected' | 'interrupted' | 'gone' | 'unreachable'
  readonly stream: MediaStream | undefined
}

export interface PastCall {
  readonly callId: string
  readonly direction: 'outgoing' | 'incoming'
  readonly status: 'active' | 'ended' | 'missed' | 'declined' | 'cancelled' | 'failed'
  readonly isVideo: boolean
  readonly peers: readonly User[]
  readonly createdAt: string
  readonly durationIn: number
}

export const NO_MEDIA: MediaView = {
  local: undefined,
  problem: undefined,
  isMuted: false,
  isCameraOff: false,
  isSoundOn: true,
  peers: [],
}

/** The state of a tab without a user. */
export const SIGNED_OUT: State = {
  stage: 'signed-out',
  doing: new Set(),
  notices: [],
  namesTaken: [],
  challenge: undefined,
  user: undefined,
  ownKey: { kind: 'none' },
  devices: [],
  ownList: { kind: 'unknown' },
  connection: 'off',
  contacts: [],
  areContactsLoaded: false,
  requests: [],
  asked: [],
  shareLink: undefined,
  invitedBy: undefined,
  marked: new Set(),
  rings: [],
  call: undefined,
  media: NO_MEDIA,
  keyAsks: [],
  codes: new Map(),
  history: [],
  missedCalls: 0,
}

/** Holds the state; changes of one moment redraw the page once. */
export class Store {
  #state: State = { ...SIGNED_OUT, stage: 'starting' }
  #isDrawing = false
  #notices = 0
  readonly #draw: (state: State) => void

  constructor(draw: (state: State) => void) {
    this.#draw = draw
  }

  get state(): State {
    return this.#state
  }

  /** Throws a sentence when this tab is in no call. */
  get presentCall(): Call {
    if (this.#state.call === undefined) throw new Error('There is no call any more.')
    return this.#state.call
  }

  isPresent({ callId }: { readonly callId: string }): boolean {
    return this.#state.call?.callId === callId
  }

  update(changed: Partial<State>): void {
    this.#state = { ...this.#state, ...changed }
    if (this.#isDrawing) return
    this.#isDrawing = true
    // No animation frame: a tab in the background gets none, and its title has to say who calls.
    queueMicrotask(() => {
      this.#isDrawing = false
      this.#draw(this.#state)
    })
  }

  /** Changes the call, if there is one. */
  updateCall(changed: Partial<Call>): void {
    const { call } = this.#state
    if (call !== undefined) this.update({ call: { ...call, ...changed } })
  }

  updateMedia(changed: Partial<MediaView>): void {
    this.update({ media: { ...this.#state.media, ...changed } })
  }

  /** Says a sentence. Good ones go by themselves, the newest four stay. */
  say(kind: Notice['kind'], text: string): void {
    const others = this.#state.notices.filter(notice => notice.text !== text)
    this.#notices += 1
    const id = this.#notices
    this.update({ notices: [...others, { id, kind, text }].slice(-NOTICES_MAX) })
    if (kind === 'good') setTimeout(() => this.dismiss(id), GOOD_NOTICE_MS)
  }

  dismiss(id: number): void {
    this.update({ notices: this.#state.notices.filter(notice => notice.id !== id) })
  }
}

const NOTICES_MAX = 4
const GOOD_NOTICE_MS = 8_000
