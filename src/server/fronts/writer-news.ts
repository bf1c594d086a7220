/** News of the writer at a front: from its parent, or over a link of its own when the writer is on another node. */

import { SignalError } from '../../errors.ts'
import { FAR_FRONT_SERVES, type MessageToFront } from '../../fronts/messages.ts'
import { WriterLink, type WriterLinkDeps } from '../../fronts/writer-link.ts'
import { machineMs } from '../../runtime/clock.ts'
import type { DeviceInbox } from '../../store/messages/device-inbox.ts'
import type { Following, Welcome } from './following.ts'

/** A message of the parent behind its welcome. */
export type ParentMessage = Exclude<MessageToFront, Welcome | { kind: 'barrier' }>

export class WriterNews {
  readonly #following: Following
  readonly #deviceInbox: DeviceInbox
  readonly #link: WriterLink

  constructor(
    following: Following,
    deviceInbox: DeviceInbox,
    link: Omit<WriterLinkDeps, 'serves' | 'onMessage'>,
  ) {
    this.#following = following
    this.#deviceInbox = deviceInbox
    this.#link = new WriterLink({
      ...link,
      serves: FAR_FRONT_SERVES,
      onMessage: message => this.#onFarWriter(message),
    })
  }

  onParent(message: ParentMessage): void {
    const { store, shownLog, readLease } = this.#following
    switch (message.kind) {
      case 'changed':
        return store.apply(message)
      case 'published':
        return shownLog.onStored(message.head, message.isComing === true)
      case 'writer':
        this.#link.goTo(message.at)
        shownLog.goTo(message.at)
        if (message.at === 'here') readLease?.needsNone()
        return
      case 'current':
        readLease?.current(message.atMs)
        if (this.#link.isFar) this.#link.port.sendSoon({ kind: 'renew-read-lease', askedAtMs: machineMs() })
        return
      case 'flush':
        return this.#deviceInbox.settleCollected()
      case 'position':
      case 'read-lease':
        return
    }
  }

  /** Resolves when the writer has what connections here have settled. */
  settled(): Promise<void> {
    return this.#deviceInbox.settleNow()
  }

  close(): void {
    this.#link.goTo(undefined)
  }

  /** The writer of another node has its changes to here by a way of their own. */
  #onFarWriter(message: MessageToFront): Promise<void> | undefined {
    const { store, shownLog, readLease } = this.#following
    switch (message.kind) {
      case 'position':
        return store.applied(message.number)
      case 'published':
        shownLog.onPublished(message.head, message.isComing === true)
        return undefined
      case 'flush':
        this.#deviceInbox.settleCollected()
        return undefined
      case 'read-lease':
        if (message.askedAtMs === undefined) readLease?.end()
        else readLease?.given(message.askedAtMs)
        return undefined
      default:
        throw new SignalError('MALFORMED', 'a writer says what it may')
    }
  }
}
