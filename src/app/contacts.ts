/** The user's contacts: found by link, id or address, asked, accepted, removed, blocked. */

import type { SharedPerson } from '../client/client.ts'
import type { CallPerson } from './calls/call.ts'
import { CallsignError, hasCode } from './callsign-error.ts'
import type { KeyLog } from './devices/key-log.ts'
import type { Names } from './names.ts'
import { type ContactLink, readContactLink, readScan } from './scans.ts'
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

/** Whom a text leads to. Nothing is asked of them before `request`. */
export type Opened =
  | {
      readonly kind: 'link'
      readonly displayName: string
      /** How this user knows the link's owner already. */
      readonly relation: ReplyOf<'POST share-token/resolve'>['relation']
      /** Whether the link itself names the person, so that no server can substitute another person. */
      readonly isNamed: boolean
      /** As `Contacts.request`. */
      readonly request: (message?: string) => Promise<ReplyOf<'POST friend-request/by-token'>>
    }
  | {
      readonly kind: 'user'
      readonly userId: string
      readonly request: (message?: string) => Promise<ReplyOf<'POST friend-request/by-id'>>
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

  /** All contacts, newest first: as many pages as a user's can have. */
  async all(): Promise<readonly Contact[]> {
    const all: Contact[] = []
    let cursor: string | undefined
    for (let pages = 0; pages < PAGES_MAX && (pages === 0 || cursor !== undefined); pages++) {
      const page = await this.list({ limit: 200, ...(cursor !== undefined && { cursor }) })
      all.push(...page.items)
      cursor = page.nextCursor
    }
    return all
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
    return this.#names.load(() => this.all())
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
   * Whom a text leads to that the user has scanned, opened or pasted: a contact's link anywhere in it, or a user id.
   * Rejects with `INVALID_QR` for any other text, and with `MALFORMED` for a damaged link or another server's, before it
   * asks for the name.
   */
  async open(text: string): Promise<Opened> {
    const scan = readScan(text)
    if (scan === undefined)
      throw new CallsignError('INVALID_QR', 'The text has no link of a contact and no user id.')
    if (scan.kind === 'user')
      return { ...scan, request: message => this.#requestById(scan.userId, said(message)) }
    const person = await this.#keyLog.openShared(scan.fragment)
    const { displayName, relation } = await this.#session.request('POST share-token/resolve', {
      token: scan.token,
    })
    const request = (message?: string) => this.#requestByLink(scan, said(message))
    return { kind: 'link', displayName, relation, isNamed: person !== undefined, request }
  }

  /**
   * Asks a person to become a contact, or accepts what they have asked. By an address it is `submitted`, also where no user
   * has it. A link that names another user than the server does is refused with `KEYS_REFUSED`.
   */
  async request(
    wanted: Wanted,
    message?: string,
  ): Promise<ReplyOf<'POST friend-request/by-id'> | ReplyOf<'POST friend-request'>> {
    if ('userId' in wanted) return this.#requestById(wanted.userId, said(message))
    if (!('link' in wanted))
      return this.#session.request('POST friend-request', { ...wanted, ...said(message) })
    const link = readContactLink(wanted.link)
    if (link === undefined) throw new CallsignError('MALFORMED', 'That is no link of a contact.')
    return this.#requestByLink(link, said(message))
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

  /**
   * Tells the app's moderators about a user, who never hears of it. `reason` is one of `reportReasons`, `callId` names a call
   * with them.
   */
  report(userId: string, report: Omit<BodyOf<'POST report'>, 'userId'>): Promise<ReplyOf<'POST report'>> {
    return this.#session.request('POST report', { userId, ...report })
  }

  /** In the order to show them in, with titles in English. */
  async reportReasons(): Promise<ReplyOf<'GET report/reasons'>['items']> {
    return (await this.#session.request('GET report/reasons', undefined)).items
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

  #requestById(targetUserId: string, message: Said): Promise<ReplyOf<'POST friend-request/by-id'>> {
    return this.#session.request('POST friend-request/by-id', { targetUserId, ...message })
  }

  async #requestByLink({ token, fragment }: ContactLink, message: Said) {
    const person = await this.#keyLog.openShared(fragment)
    // Before the server hears of it: an app that ends now still knows whom to expect.
    if (person !== undefined) await this.#keyLog.expect(person)
    const reply = await this.#session.request('POST friend-request/by-token', { token, ...message })
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

type Said = { readonly message?: string }

function said(message: string | undefined): Said {
  return message === undefined ? {} : { message }
}

const PAGES_MAX = 10
