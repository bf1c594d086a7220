/** Calls of this tab, for the views: those that ring, the one that it is in with its media, and those that were. */

import { type Call, type CallEnding, type Callsign, type CallsignError, hasCode } from '../../src/app/app.ts'
import { Media } from '../../src/ui/media/media.ts'
import { ENDINGS, ringEndingOf } from './sentences.ts'
import type { Store } from './state.ts'

export class Calls {
  /** Of the call that this tab is in. */
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

  async decline(call: Call): Promise<void> {
    await call.decline()
    await this.loadHistory()
  }

  /** Comes back into a call that was left, or asks once more for its key. */
  async rejoin(callId: string): Promise<void> {
    try {
      await this.#me.join(callId)
    } finally {
      await this.loadHistory()
    }
  }

  /** An `OWN_DEVICE_IN_SET`. */
  askAboutDevice(call: Call, error: CallsignError, goOn: () => Promise<void>): void {
    this.#store.ask(error, async () => {
      await call.acceptDevice(String(error.members.name))
      await goOn()
    })
  }

  async loadHistory(): Promise<void> {
    const { items } = await this.#me.history.history({ limit: 30 })
    this.#store.update({ history: items })
  }

  #hear(call: Call): void {
    this.#heard.add(call)
    call.on('ended', ({ reason }) => this.#onEnded(call, reason))
    call.on('error', error => {
      // Without a connection the page says that; a call says what happens in it.
      if (!isRing(call) || hasCode(error, 'OFFLINE')) return
      const isQuestion = hasCode(error, 'OWN_DEVICE_IN_SET', 'KEYS_RESET', 'INVITATION_OLD')
      const refusal = { sentence: this.#store.sentenceOf(error), isQuestion }
      const refusals = new Map(this.#store.state.refusals).set(call.callId, refusal)
      this.#store.update({ refusals })
    })
  }

  async #onEnded(call: Call, reason: CallEnding): Promise<void> {
    this.show()
    // A call that only rang here has no host yet.
    const hasRung = call.hostUserId === undefined
    const words = hasRung ? ringEndingOf(reason, call.caller.name) : (ENDINGS[reason] ?? 'The call is over.')
    if (words !== undefined) this.#store.say('good', words)
    if (this.#me.userId !== undefined) await this.loadHistory().catch(error => this.#store.sayFailure(error))
  }
}

/** A file of this server: the policy of its pages allows no worker of a Blob URL. */
function newWorker(): Worker {
  return new Worker(new URL('../../src/app/media/worker.js', import.meta.url), { type: 'module' })
}

/** Also while it is answered. */
function isRing({ isIncoming, state }: Call): boolean {
  return isIncoming && (state === 'ringing' || state === 'joining')
}
