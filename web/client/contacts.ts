/** Contacts, requests to become one, and the share link by which people find the user. */

import { type Callsign, type Contact, type FriendRequest, hasCode } from '../../src/app/app.ts'
import { CameraScan, readPicture } from '../../src/ui/home/scanner.ts'
import { personName } from './names.ts'
import type { Store } from './state.ts'

export class Contacts {
  readonly #me: Callsign
  readonly #store: Store

  constructor(me: Callsign, store: Store) {
    this.#me = me
    this.#store = store
  }

  /** Reads everything; a user without contacts gets a link to share at once. */
  async load(): Promise<void> {
    const list = this.#me.contacts
    const [contacts, { items: requests }, { items: asked }] = await Promise.all([
      list.all(),
      list.requests('incoming'),
      list.requests('outgoing'),
    ])
    const isContact = (id: string) => contacts.some(({ userId }) => userId === id)
    const marked = new Set([...this.#store.state.marked].filter(isContact))
    this.#store.update({ contacts, requests, asked, marked, areContactsLoaded: true })
    if (contacts.length === 0) await this.share()
    else await this.showLink()
  }

  /** Makes the link, if there is none that is still good. */
  async share(): Promise<void> {
    if (this.#keptToken === undefined) {
      const made = await this.#me.request('POST share-token', { label: 'development client' })
      localStorage.setItem(this.#linkName, JSON.stringify(made))
    }
    await this.showLink()
  }

  /** The link leads to this page, and names the person's device list of now. */
  async showLink(): Promise<void> {
    const token = this.#keptToken
    if (token === undefined) return
    const url = `${location.origin}${location.pathname}#c=${token}`
    // The SDK says it where the list does not hold.
    const link = await this.#me.contacts.renewLink(url).catch(() => url)
    this.#store.update({ shareLink: link.replace(/(#.*)#/, '$1&') })
  }

  /** Has the server's simulator make up a person who answers calls, and who asks to be a contact. */
  async makeUp(): Promise<void> {
    await simulate({ kind: 'people', behaviours: ['answer'] })
    await simulate({ kind: 'befriend', shareToken: this.#keptToken })
  }

  /** Shows whom a text leads to that was opened, pasted or scanned. Asks nothing of them. */
  async open(text: string): Promise<void> {
    try {
      const opened = await this.#me.contacts.open(text)
      const isOwn = opened.kind === 'link' ? opened.relation === 'self' : opened.userId === this.#me.userId
      if (isOwn) {
        const sentence = 'This link is your own. Open it in another tab and sign in there as somebody else.'
        this.#store.say('bad', sentence)
      } else if (opened.kind === 'link' && opened.relation === 'contact')
        this.#store.say('good', `${opened.displayName} is a contact of yours.`)
      else this.#store.update({ opened })
    } catch (error) {
      if (!hasCode(error, 'SHARE_TOKEN_NOT_FOUND', 'SHARE_TOKEN_EXPIRED')) throw error
      this.#store.say('bad', 'The link is not good any more: ask for a new one.')
    }
  }

  /** Asks whom the link or code leads to to become a contact. */
  async ask(): Promise<void> {
    const { opened } = this.#store.state
    if (opened === undefined) return
    this.#store.update({ opened: undefined })
    const reply = await opened.request().catch(error => {
      if (!hasCode(error, 'KEYS_REFUSED')) throw error
      throw new Error('The server names another person than the link does. They are not added.')
    })
    if (reply.status === 'accepted')
      this.#store.say('good', `You and ${reply.user.displayName} are contacts.`)
    await this.load()
  }

  /** Looks for a code by the camera until there is one, and opens it. */
  async scan(): Promise<void> {
    this.stopScan()
    const scan = await CameraScan.open().catch(() => {
      throw new Error('The camera can’t be used: allow it in the browser’s settings, or choose a picture.')
    })
    this.#store.update({ scan })
    const text = await scan.read().finally(() => {
      if (this.#store.state.scan === scan) this.#store.update({ scan: undefined })
    })
    if (text !== undefined) await this.open(text)
  }

  stopScan(): void {
    this.#store.state.scan?.close()
  }

  /** Opens the code in a picture. */
  async scanPicture(file: Blob): Promise<void> {
    const text = await readPicture(file).catch(() => undefined)
    if (text === undefined)
      throw new Error('There is no QR code in that picture. Try one that shows it larger.')
    await this.open(text)
  }

  accept({ user }: FriendRequest): Promise<void> {
    return this.#change(this.#me.contacts.accept(user.userId))
  }

  decline({ user }: FriendRequest): Promise<void> {
    return this.#change(this.#me.contacts.decline(user.userId))
  }

  cancel({ user }: FriendRequest): Promise<void> {
    return this.#change(this.#me.contacts.cancel(user.userId))
  }

  async remove(contact: Contact): Promise<void> {
    await this.#change(this.#me.contacts.remove(contact.userId))
    this.#store.say('good', `${personName(contact)} is no longer a contact.`)
  }

  /** Shows the form for a contact's name, or puts it away. */
  askName(userId: string | undefined): void {
    this.#store.update({ renaming: userId })
  }

  /** The person's own name for a contact; an empty one takes it back. */
  async rename({ userId }: Contact, name: string): Promise<void> {
    await this.#me.contacts.rename(userId, name)
    this.askName(undefined)
    await this.load()
  }

  /** Shows the digits to compare with a contact. */
  async showCode({ userId }: Pick<Contact, 'userId'>): Promise<void> {
    const code = await this.#me.contacts.comparisonCode(userId)
    this.#store.update({ codes: new Map(this.#store.state.codes).set(userId, code) })
  }

  /** Marks a contact for a call of several, or takes the mark away. */
  mark(userId: string): void {
    const marked = new Set(this.#store.state.marked)
    if (!marked.delete(userId)) marked.add(userId)
    this.#store.update({ marked })
  }

  async #change(done: Promise<unknown>): Promise<void> {
    try {
      await done
    } finally {
      // Also when it has been closed: then it is not to be shown any more.
      await this.load()
    }
  }

  get #linkName(): string {
    return `callsign.share.${this.#me.userId}`
  }

  /** While it is good for a minute yet. */
  get #keptToken(): string | undefined {
    const { token, expiresAt } = JSON.parse(localStorage.getItem(this.#linkName) ?? '{}')
    return Date.parse(expiresAt) > this.#me.nowMs() + 60_000 ? token : undefined
  }
}

async function simulate(command: object): Promise<void> {
  const headers = { 'content-type': 'application/json' }
  const answer = await fetch('/dev/simulator', { method: 'POST', headers, body: JSON.stringify(command) })
  if (!answer.ok) throw new Error(`The simulator answers with status ${answer.status}.`)
}
