/** The names of people for screens: this user's own name for a contact, else the person's display name. */

import type { CallPerson } from './calls/call.ts'
import type { Contact, QueueEvent } from './wire.ts'

/** A person as the server names them, who may be a contact. */
export type Named = Omit<CallPerson, 'name'>

type KnownContact = Pick<Contact, 'userId' | 'displayName' | 'alias'>

export class Names {
  #contacts: ReadonlyMap<string, KnownContact> = new Map()
  /** Contacts that have changed while the list was read: what it says of them may be older. */
  readonly #changed = new Set<string>()
  /** Contacts that were added since the list was read last. */
  readonly #added = new Map<string, KnownContact>()
  #isWhole = false
  #version = 0
  readonly #onChanged: () => void

  constructor(onChanged: () => void) {
    this.#onChanged = onChanged
  }

  /** Another number for each change. */
  get version(): number {
    return this.#version
  }

  /** The names that count now: those of the contact, else those that came with the person. */
  of({ userId, displayName, alias, isContact }: Named): CallPerson {
    const contact = this.#contacts.get(userId)
    const known = contact ?? { displayName, ...(alias !== undefined && { alias }) }
    return {
      userId,
      name: known.alias ?? known.displayName,
      displayName: known.displayName,
      ...(known.alias !== undefined && { alias: known.alias }),
      ...this.#isContact(contact, isContact),
    }
  }

  /** A list may be read before a call's person has become a contact, whose invitation then knows better. */
  #isContact(contact: KnownContact | undefined, said: boolean | undefined): { readonly isContact?: boolean } {
    if (contact !== undefined) return { isContact: true }
    if (said !== undefined) return { isContact: said }
    return this.#isWhole ? { isContact: false } : {}
  }

  put(contact: KnownContact): void {
    this.#changed.add(contact.userId)
    this.#replace(new Map(this.#contacts).set(contact.userId, contact))
  }

  /** All contacts, read anew. */
  async load(read: () => Promise<readonly KnownContact[]>): Promise<void> {
    this.#changed.clear()
    this.#added.clear()
    const listed = (await read()).map(contact => [contact.userId, contact] as const)
    const contacts = new Map([...this.#added, ...listed])
    for (const userId of this.#changed) {
      const newer = this.#contacts.get(userId)
      if (newer === undefined) contacts.delete(userId)
      else contacts.set(userId, newer)
    }
    this.#isWhole = true
    this.#replace(contacts)
  }

  onEvent(event: QueueEvent): void {
    if (event.type === 'contact_added') this.#add(event)
    if (event.type === 'contact_changed') this.put(event)
    if (event.type === 'contact_removed') this.#remove(event.userId)
  }

  /** An addition may be told late, and does not say by which name this user calls them: whatever else does counts. */
  #add(contact: KnownContact): void {
    const { userId } = contact
    this.#added.set(userId, contact)
    if (this.#contacts.has(userId)) return
    this.#changed.delete(userId)
    if (this.#isWhole) this.#replace(new Map(this.#contacts).set(userId, contact))
  }

  #remove(userId: string): void {
    this.#changed.add(userId)
    this.#added.delete(userId)
    const contacts = new Map(this.#contacts)
    if (contacts.delete(userId)) this.#replace(contacts)
  }

  #replace(contacts: ReadonlyMap<string, KnownContact>): void {
    const isSame = (contact: KnownContact) => isSameContact(contact, this.#contacts.get(contact.userId))
    if (contacts.size === this.#contacts.size && [...contacts.values()].every(isSame)) return
    this.#contacts = contacts
    this.#version += 1
    this.#onChanged()
  }
}

function isSameContact(one: KnownContact, other: KnownContact | undefined): boolean {
  return one.displayName === other?.displayName && one.alias === other.alias
}
