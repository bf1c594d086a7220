/** Contacts, requests to become one, and the share link by which people find the user. */

import type { SharedPerson } from '../../src/client/client.ts'
import type { KeyLog } from './key-log.ts'
import { serverNowMs } from './server-clock.ts'
import { Problem, type Session } from './session.ts'
import type { Contact, FriendRequest, Store, User } from './state.ts'

interface Page<Item> {
  readonly items: readonly Item[]
}

interface AskReply {
  readonly user: User
  readonly status: string
  readonly requestId: string
}

export class Contacts {
  readonly #store: Store
  readonly #session: Session
  readonly #userId: string
  readonly #keyLog: KeyLog
  /** Whom the opened link names, by itself. */
  #linked: SharedPerson | undefined
  /** Names this person in the link. */
  #fragment = ''

  constructor(store: Store, session: Session, keyLog: KeyLog, userId: string) {
    this.#store = store
    this.#session = session
    this.#userId = userId
    this.#keyLog = keyLog
  }

  /** Reads everything; a user without contacts gets a link to share at once. */
  async load(): Promise<void> {
    const [contacts, requests, asked] = await Promise.all([
      this.#list<Contact>('friend'),
      this.#list<FriendRequest>('friend-request?direction=incoming'),
      this.#list<FriendRequest>('friend-request?direction=outgoing'),
    ])
    const marked = new Set(
      [...this.#store.state.marked].filter(id => contacts.some(({ userId }) => userId === id)),
    )
    this.#store.update({ contacts, requests, asked, marked, areContactsLoaded: true })
    const kept = this.#keptLink()
    if (kept !== undefined) this.#store.update({ shareLink: kept })
    else if (contacts.length === 0) await this.share()
  }

  /** The person's device list has changed, and the link names it. */
  async renewLink(): Promise<void> {
    this.#fragment = await this.#keyLog.shareFragment()
    const { shareLink } = this.#store.state
    if (shareLink !== undefined) this.#store.update({ shareLink: this.#keptLink() })
  }

  /** Makes the link, if there is none that is still good. */
  async share(): Promise<void> {
    if (this.#keptLink() === undefined) {
      const { token, expiresAt } = await this.#session.request<{ token: string; expiresAt: string }>(
        'POST',
        'share-token',
        { label: 'development client' },
      )
      localStorage.setItem(this.#linkName, JSON.stringify({ token, expiresAt }))
    }
    this.#store.update({ shareLink: this.#keptLink() })
  }

  /** Has the server's simulator make up a person who answers calls, and who asks to be a contact. */
  async makeUp(): Promise<void> {
    const shareToken = this.#kept()?.token
    await this.#session.request('POST', '/dev/simulator', { kind: 'people', behaviours: ['answer'] })
    await this.#session.request('POST', '/dev/simulator', { kind: 'befriend', shareToken })
  }

  /** Resolves the token that the page was opened with to its owner. `fragment` comes from its link. */
  async resolve(token: string, fragment: string): Promise<void> {
    this.#linked = await this.#keyLog.openShared(fragment)
    const { displayName, relation } = await this.#session.request<{ displayName: string; relation: string }>(
      'POST',
      'share-token/resolve',
      { token },
    )
    if (relation === 'self') {
      this.#store.say(
        'bad',
        'This link is your own. Open it in another tab and sign in there as somebody else.',
      )
    } else if (relation !== 'contact') this.#store.update({ invitedBy: { token, displayName, relation } })
  }

  /** Asks the owner of the token to become a contact. */
  async ask(token: string): Promise<void> {
    const { user, status, requestId } = await this.#session.request<AskReply>(
      'POST',
      'friend-request/by-token',
      { token },
    )
    this.#store.update({ invitedBy: undefined })
    const linked = this.#linked
    this.#linked = undefined
    if (linked !== undefined && user.userId !== `${linked.userId}`) {
      if (status === 'accepted') await this.#session.request('DELETE', `friend/${user.userId}`)
      else await this.#session.request('POST', 'friend-request/cancel', { requestId })
      throw new Error(
        `The server says that the link is ${user.displayName}’s, and the link itself names somebody else. They are not added.`,
      )
    }
    if (linked !== undefined) this.#keyLog.expect(linked)
    if (status === 'accepted') this.#store.say('good', `You and ${user.displayName} are contacts.`)
    await this.load()
  }

  async accept({ requestId }: FriendRequest): Promise<void> {
    await this.#answer('accept', requestId)
  }

  async decline({ requestId }: FriendRequest): Promise<void> {
    await this.#answer('decline', requestId)
  }

  async cancel({ requestId }: FriendRequest): Promise<void> {
    await this.#answer('cancel', requestId)
  }

  async remove({ userId, displayName }: Contact): Promise<void> {
    await this.#session.request('DELETE', `friend/${userId}`)
    this.#store.say('good', `${displayName} is no contact any more.`)
    await this.load()
  }

  /** Marks a contact for a call of several, or takes the mark away. */
  mark(userId: string): void {
    const marked = new Set(this.#store.state.marked)
    if (!marked.delete(userId)) marked.add(userId)
    this.#store.update({ marked })
  }

  async #answer(verb: string, requestId: string): Promise<void> {
    try {
      await this.#session.request('POST', `friend-request/${verb}`, { requestId })
    } finally {
      // Also when it was closed meanwhile: then it is not to be shown any more.
      await this.load()
    }
  }

  async #list<Item>(path: string): Promise<readonly Item[]> {
    return (await this.#session.request<Page<Item>>('GET', path)).items
  }

  get #linkName(): string {
    return `callsign.share.${this.#userId}`
  }

  #keptLink(): string | undefined {
    const kept = this.#kept()
    return kept && `${location.origin}${location.pathname}#c=${kept.token}${this.#fragment.replace('#', '&')}`
  }

  /** The link's token, while it is good for a minute yet. */
  #kept(): { readonly token: string } | undefined {
    const { token, expiresAt } = JSON.parse(localStorage.getItem(this.#linkName) ?? '{}')
    return token === undefined || Date.parse(expiresAt) < serverNowMs() + 60_000 ? undefined : { token }
  }
}

/** The token in the address that the page was opened with: `#c=`, `#share=` or `?share=`. */
export function sharedToken({ hash, search }: Location): string | undefined {
  const fragment = new URLSearchParams(hash.slice(1))
  const token = fragment.get('c') ?? fragment.get('share') ?? new URLSearchParams(search).get('share')
  return token ?? undefined
}

/** The token in a link of any form, or by itself. */
export function tokenIn(text: string): string | undefined {
  return /c_[A-Za-z0-9_-]{22}(?![A-Za-z0-9_-])/.exec(text)?.[0]
}

/** Whether the token is of no use any more, so that nothing is to be asked with it. */
export function isTokenGone(error: unknown): boolean {
  return error instanceof Problem && ['SHARE_TOKEN_NOT_FOUND', 'SHARE_TOKEN_EXPIRED'].includes(error.code)
}
