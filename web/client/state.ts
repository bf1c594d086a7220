/** Everything that the page shows, in one object: parts of the app put into it what they know, and the views read it. */

import type {
  Call,
  CallsignError,
  ConnectionState,
  Contact,
  Device,
  FriendRequest,
  ListSessionsReply,
  ListWaitingSignInsReply,
  LoginMethod,
  Opened,
  OwnListState,
  PastCall,
  ProofNeeded,
  User,
  WaitingSignIn,
} from '../../src/app/app.ts'
import type { WebPushState } from '../../src/app/push/web-push.ts'
import type { LeastProved } from '../../src/client/client.ts'
import type { CameraScan } from '../../src/ui/home/scanner.ts'
import { personName } from './names.ts'
import { sentenceOf } from './sentences.ts'

/**
 * - `waiting`: the code was right, and another device of the user has to approve the sign-in
 * - `crowded`: signed in, but the user has as many devices as may be, without this one
 */
export type Stage =
  | 'starting'
  | 'unusable'
  | 'forgetful'
  | 'signed-out'
  | 'code'
  | 'waiting'
  | 'crowded'
  | 'signed-in'

export interface State {
  readonly stage: Stage
  /** Work under way, by the name of its button: that button waits. */
  readonly doing: ReadonlySet<string>
  readonly notices: readonly Notice[]
  /** Names that are signed in to open tabs of this browser, so that the next one suggests another. */
  readonly namesTaken: readonly string[]
  readonly challenge: Challenge | undefined
  /** This tab's own sign-in, while another device of the user has to approve it. */
  readonly waiting: WaitingSignIn | undefined
  /** Why that came to nothing. */
  readonly waitedInVain: string | undefined
  readonly user: Pick<User, 'userId' | 'displayName'> | undefined
  readonly ownKey: OwnKey
  /** The user's own, the newest first. */
  readonly devices: readonly Device[]
  readonly listState: OwnListState | undefined
  /** Set while the user has not approved this device: it may do little. */
  readonly restriction: User['restriction']
  /** Whether this page can make and use passkeys: `elsewhere` at the server's domain alone. */
  readonly passkeysHere: 'on' | 'off' | 'elsewhere'
  readonly passkeys: readonly LoginMethod[]
  /** Whether calls ring when this page is closed. */
  readonly closedRings: WebPushState
  /** An operation waits for a proof of who the user is. */
  readonly proof: ProofAsked | undefined
  /** Where the user is signed in, the newest first. */
  readonly sessions: readonly UserSession[]
  /** Sign-ins on other devices that ask the user. */
  readonly asking: readonly AskingSignIn[]
  readonly connection: Connection
  readonly contacts: readonly Contact[]
  readonly areContactsLoaded: boolean
  readonly requests: readonly FriendRequest[]
  /** Whom the user has asked. */
  readonly asked: readonly FriendRequest[]
  /** The link that lets people find the user. */
  readonly shareLink: string | undefined
  /** Whom a link or code leads to, before they are asked. */
  readonly opened: Opened | undefined
  /** The camera, while it looks for a code. */
  readonly scan: CameraScan | undefined
  /** User ids of the contacts that are marked for a call of several. */
  readonly marked: ReadonlySet<string>
  readonly rings: readonly Call[]
  /** Something waits for the answer. */
  readonly question: KeyQuestion | undefined
  /** The call that this tab is in, or comes back to. */
  readonly call: Call | undefined
  /** The user id of the contact whose name the person changes. */
  readonly renaming: string | undefined
  /** Codes to compare with contacts, by user id. */
  readonly codes: ReadonlyMap<string, string>
  readonly history: readonly PastCall[]
  readonly missedCalls: number
}

export type UserSession = ListSessionsReply['items'][number]
export type AskingSignIn = ListWaitingSignInsReply['items'][number]

export interface ProofAsked {
  readonly needed: ProofNeeded
  /** Where the code goes, as a development server has it. */
  readonly address: string | undefined
  /** Why the last try was in vain. */
  readonly sentence?: string | undefined
}

/** Questions that the SDK leaves to the person: a contact’s new keys, an old invitation, an unknown device of one’s own. */
export interface KeyQuestion {
  readonly sentence: string
  /** A contact to compare a code with. */
  readonly userId?: string
  readonly goOn: () => Promise<void>
}

export interface Notice {
  readonly id: number
  readonly kind: 'good' | 'bad'
  readonly text: string
  /** Its button. */
  readonly action?: NoticeAction | undefined
}

export interface NoticeAction {
  readonly label: string
  readonly run: () => Promise<void>
}

/** A code is on its way. */
export interface Challenge {
  readonly identifier: string
  readonly sentTo: string
  readonly otpLength: number
  readonly resendAtMs: number
}

export type OwnKey =
  | { readonly kind: 'none' | 'checking' }
  | {
      readonly kind: 'clean'
      readonly index: number
      readonly treeSize: number
      readonly proved: LeastProved
    }
  | { readonly kind: 'doubtful' | 'unchecked'; readonly sentence: string }

/** `blocked`: the server answers, but not by WebSocket; `unanswered`: not at all. Both are tried again, as `connecting` is. */
export type Connection = ConnectionState | 'blocked' | 'unanswered'

/** The state of a tab without a user. */
export const SIGNED_OUT: State = {
  stage: 'signed-out',
  doing: new Set(),
  notices: [],
  namesTaken: [],
  challenge: undefined,
  waiting: undefined,
  waitedInVain: undefined,
  user: undefined,
  ownKey: { kind: 'none' },
  devices: [],
  listState: undefined,
  restriction: undefined,
  passkeysHere: 'off',
  passkeys: [],
  closedRings: 'unsupported',
  proof: undefined,
  sessions: [],
  asking: [],
  connection: 'off',
  contacts: [],
  areContactsLoaded: false,
  requests: [],
  asked: [],
  shareLink: undefined,
  opened: undefined,
  scan: undefined,
  marked: new Set(),
  rings: [],
  question: undefined,
  call: undefined,
  renaming: undefined,
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

  /** The name of a user on the page. */
  nameOf(userId: string): string {
    const { user, contacts, call, rings } = this.#state
    const callers = rings.map(({ caller }) => caller)
    const people = [
      ...[user, ...contacts].flatMap(one => (one === undefined ? [] : { ...one, name: personName(one) })),
      ...(call?.participants ?? []),
      ...callers,
    ]
    return people.find(one => one.userId === userId)?.name ?? 'somebody'
  }

  sentenceOf(error: unknown): string {
    const { devices } = this.#state
    const deviceNameOf = (deviceId: string) =>
      devices.find(one => one.deviceId === deviceId)?.name ?? deviceId
    return sentenceOf(error, userId => this.nameOf(userId), deviceNameOf)
  }

  /** Asks what a refusal leaves to the person. */
  ask(error: CallsignError, goOn: KeyQuestion['goOn'], userId?: string): void {
    const question = { sentence: this.sentenceOf(error), goOn, ...(userId !== undefined && { userId }) }
    this.update({ question })
  }

  sayFailure(error: unknown): void {
    this.say('bad', this.sentenceOf(error))
  }

  /** Says a sentence. Good ones go by themselves, the newest four stay. */
  say(kind: Notice['kind'], text: string, action?: NoticeAction): void {
    const others = this.#state.notices.filter(notice => notice.text !== text)
    this.#notices += 1
    const id = this.#notices
    this.update({ notices: [...others, { id, kind, text, action }].slice(-NOTICES_MAX) })
    if (kind === 'good') setTimeout(() => this.dismiss(id), GOOD_NOTICE_MS)
  }

  dismiss(id: number): void {
    this.update({ notices: this.#state.notices.filter(notice => notice.id !== id) })
  }
}

const NOTICES_MAX = 4
const GOOD_NOTICE_MS = 8_000
