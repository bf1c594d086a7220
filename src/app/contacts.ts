/** The user's contacts: found by link, id or address, asked, accepted, removed, blocked. */

import type { SharedPerson } from '../client/client.ts'
import type { CallPerson } from './calls/call.ts'
import { CallsignError, hasCode } from './callsign-error.ts'
import type { KeyLog } from './devices/key-log.ts'
import type { Names } from './names.ts'
import type { BodyOf, ReplyOf } from './session/operations.ts'
import type { Session } from './session/session.ts'
import type { Contact } from './wire.ts'

/** A page of a list. */
interface PageParams {
  readonly limit?: number
  readonly cursor?: string
}

/** How a person is named; `country` (ISO 3166) is for a phone number without calling code. */
export type Wanted =
  | { readonly link: string }
  | { readonly userId: string }
  | { readonly email: string }
  | { readonly phone: string; readonly country?: string }

/** The owner of a link. */
export interface LinkOwner {
  readonly displayName: string
  /** How this user knows them already. */
  readonly relation: ReplyOf<'POST share-token/resolve'>['relation']
  /** Whether the link itself names the person, so that no server can substitute another person. */
  readonly isNamed: boolean
}

export class Contacts {
  readonly #session: Session
  readonly #keyLog: KeyLog
  readonly #names: Names

  constructor(session: Session, keyLog: KeyLog, names: Names) {
    this.#session = session
    this.#keyLog = keyLog
    this.#names = names
  }

  /** Newest first. Show each by `nameOf`. */
  list(page: PageParams = {}): Promise<ReplyOf<'GET friend'>> {
    return this.#session.request('GET friend', undefined, page)
  }

  /**
   * The name to show for a person in any list or message: this user's own name for them, else their display name. For contacts it is
   * the present one.
   */
  nameOf(person: Pick<CallPerson, 'userId' | 'displayName' | 'alias'>): string {
    return this.#names.of(person).name
  }

  /** Gives a contact a name of this user's own, for all their devices; the contact never sees it. Left out: takes it back. */
  async rename(userId: string, alias = ''): Promise<Contact> {
    const contact = await this.#session.request('PUT friend/{userId}', { alias }, { userId })
    this.#names.put(contact)
    return contact
  }

  /** The names of all contacts as the server has them. */
  loadNames(): Promise<void> {
    return this.#names.load(() => this.#all())
  }

  requests(
    direction: 'incoming' | 'outgoing' = 'incoming',
    page: PageParams = {},
  ): Promise<ReplyOf<'GET friend-request'>> {
    return this.#session.request('GET friend-request', undefined, { direction, ...page })
  }

  /**
   * A link by which people ask to become contacts. It names this user and the device list, so that their apps
   * verify both; without a list it does not.
   */
  async shareLink(
    options: BodyOf<'POST share-token'> = {},
  ): Promise<ReplyOf<'POST share-token'> & { readonly link: string }> {
    const token = await this.#session.request('POST share-token', options)
    return { ...token, link: await this.renewLink(token.url) }
  }

  /** The link of a `url` from before, which names the present device list. */
  async renewLink(url: string): Promise<string> {
    const fragment = await this.#keyLog.shareFragment().catch(error => {
      if (!hasCode(error, 'KEYS_UNAVAILABLE')) throw error
      return ''
    })
    return url + fragment
  }

  /**
   * Whom a link leads to, before they are asked. Rejects with `MALFORMED` for a text that is no link; for a damaged
   * link or another server's, before it asks for the name.
   */
  async resolve(link: string): Promise<LinkOwner> {
    const { token, fragment } = partsOf(link)
    const person = await this.#keyLog.openShared(fragment)
    const { displayName, relation } = await this.#session.request('POST share-token/resolve', { token })
    return { displayName, relation, isNamed: person !== undefined }
  }

  /**
   * Asks a person to become a contact, or accepts what they have asked. By an address it is `submitted`, also where no user
   * has it. A link that names another user than the server does is refused with `KEYS_REFUSED`.
   */
  async request(
    wanted: Wanted,
    message?: string,
  ): Promise<ReplyOf<'POST friend-request/by-id'> | ReplyOf<'POST friend-request'>> {
    const said = message === undefined ? {} : { message }
    if ('link' in wanted) return this.#requestByLink(wanted.link, said)
    if (!('userId' in wanted)) return this.#session.request('POST friend-request', { ...wanted, ...said })
    return this.#session.request('POST friend-request/by-id', { targetUserId: wanted.userId, ...said })
  }

  /** Accepts what the user has asked. */
  accept(userId: string): Promise<ReplyOf<'POST friend-request/accept'>> {
    return this.#session.request('POST friend-request/accept', { userId })
  }

  /** They do not hear of it. */
  async decline(userId: string): Promise<void> {
    await this.#session.request('POST friend-request/decline', { userId })
  }

  /** Takes back what this user has asked them. */
  async cancel(userId: string): Promise<void> {
    await this.#session.request('POST friend-request/cancel', { userId })
  }

  async remove(userId: string): Promise<void> {
    await this.#session.request('DELETE friend/{userId}', undefined, { userId })
  }

  /** They do not hear of it. */
  async block(userId: string): Promise<void> {
    await this.#session.request('POST block', { userId })
  }

  async unblock(userId: string): Promise<void> {
    await this.#session.request('DELETE block/{userId}', undefined, { userId })
  }

  blocked(page: PageParams = {}): Promise<ReplyOf<'GET block'>> {
    return this.#session.request('GET block', undefined, page)
  }

  /** Sixty digits that both people compare, to be sure of one another's devices. */
  comparisonCode(userId: string): Promise<string> {
    return this.#keyLog.codeWith(userId)
  }

  /**
   * The person in front of the screen goes on with a contact's new keys: `userId` and `listHash` are those of a `KEYS_RESET`.
   * It holds for these keys alone. Rejects with `KEYS_RESET` where newer ones are asked about.
   */
  acceptKeys(userId: string, listHash: string): Promise<void> {
    return this.#keyLog.acceptKeys(userId, listHash)
  }

  /** As many pages as a user's contacts can have. */
  async #all(page: PageParams = {}, left = 10): Promise<readonly Contact[]> {
    const { items, nextCursor: cursor } = await this.list({ limit: 200, ...page })
    return cursor === undefined || left === 1 ? items : [...items, ...(await this.#all({ cursor }, left - 1))]
  }

  async #requestByLink(link: string, said: { readonly message?: string }) {
    const { token, fragment } = partsOf(link)
    const person = await this.#keyLog.openShared(fragment)
    // Before the server hears of it: an app that ends now still knows whom to expect.
    if (person !== undefined) await this.#keyLog.expect(person)
    const reply = await this.#session.request('POST friend-request/by-token', { token, ...said })
    if (person !== undefined) await this.#assertNamed(person, reply)
    return reply
  }

  async #assertNamed(
    person: SharedPerson,
    { user, status, requestId }: ReplyOf<'POST friend-request/by-token'>,
  ): Promise<void> {
    if (user.userId === String(person.userId)) return
    if (status === 'accepted') await this.remove(user.userId)
    else await this.#session.request('POST friend-request/cancel', { requestId })
    const sentence = 'The server names another user than the link does. They were not added.'
    throw new CallsignError('KEYS_REFUSED', sentence, { members: { userId: user.userId } })
  }
}

/** A link of any form, or the token by itself. */
function partsOf(link: string): { readonly token: string; readonly fragment: string } {
  const [token] = /c_[A-Za-z0-9_-]{22}(?![A-Za-z0-9_-])/.exec(link) ?? []
  if (token === undefined) throw new CallsignError('MALFORMED', 'That is no link of a contact.')
  const at = link.indexOf('#')
  return { token, fragment: at < 0 ? '' : link.slice(at) }
}
