/** Calls of this tab, for the views: those that ring, the one that it is in with its media, and those that were. */

import type { Call, CallEnding, Callsign } from '../../src/app/app.ts'
import { Media } from '../../src/ui/media/media.ts'
import { endingOf, ringEndingOf } from '../../src/ui/sentence.ts'
import type { Store } from './state.ts'

export class Calls {
  /** For the call that this tab is in. */
  media: Media | undefined
  #mediaCall: Call | undefined
  readonly #me: Callsign
  readonly #store: Store
  readonly #heard = new WeakSet<Call>()

  constructor(me: Callsign, store: Store) {
    this.#me = me
    this.#store = store
  }

  /** Shows the calls as they are now. */
  show(): void {
    const calls = this.#me.calls.filter(({ state }) => state !== 'ended')
    for (const call of calls) if (!this.#heard.has(call)) this.#hear(call)
    const call = calls.find(one => !isRing(one))
    this.#store.update({ rings: calls.filter(isRing), call })
    this.#showMedia(call)
  }

  #showMedia(call: Call | undefined): void {
    if (call === this.#mediaCall) return
    this.media?.close()
    this.media = call && new Media(this.#me, call, { newWorker })
    this.#mediaCall = call
  }

  async start(userIds: readonly string[], video: boolean): Promise<void> {
    await this.#me.call(userIds, { video })
    this.#store.update({ marked: new Set() })
  }

  /** Comes back into a call that was left, or asks once more for its key. */
  async rejoin(callId: string): Promise<void> {
    try {
      await this.#me.join(callId)
    } finally {
      await this.loadHistory()
    }
  }

  async loadHistory(): Promise<void> {
    const { items } = await this.#me.history.history({ limit: 30 })
    this.#store.update({ history: items })
  }

  #hear(call: Call): void {
    this.#heard.add(call)
    call.on('ended', ({ reason }) => this.#onEnded(call, reason))
  }

  async #onEnded(call: Call, reason: CallEnding): Promise<void> {
    this.show()
    // A call that only rang here has no host yet.
    const hasRung = call.hostUserId === undefined
    const words = hasRung ? ringEndingOf(reason, call.caller.name) : endingOf(reason)
    if (words !== undefined) this.#store.say('good', words)
    if (this.#me.userId !== undefined) await this.loadHistory().catch(error => this.#store.sayFailure(error))
  }
}

/** A file of this server: the policy of its pages allows no worker of a Blob URL. */
function newWorker(): Worker {
  return new Worker('/dev/pages/client/media-worker.js')
}

/** Also while it is answered. */
function isRing({ isIncoming, state }: Call): boolean {
  return isIncoming && (state === 'ringing' || state === 'joining')
}
