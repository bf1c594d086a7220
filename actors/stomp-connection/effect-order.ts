/**
 * The order of effects: they wait for durability, and RECEIPTs go out in the order of frames.
 *
 * A frame's work may take time: a commit, a room's answer. Its RECEIPT leaves when what it did is durable and all earlier
 * work of the connection is done. So does the ERROR for a later frame. Choice: the RECEIPT of a SUBSCRIBE waits for no
 * earlier work, since it has to precede the subscription's first MESSAGE.
 *
 * STOMP 1.2, "RECEIPT": a RECEIPT also acknowledges that all earlier frames were received; here, that they are durable.
 */

import { SignalError } from '../../src/errors.ts'
import type { Context } from '../../src/runtime/actor.ts'
import type { StompConnectionMessage } from '../messages.ts'
import type { ConnectedDevice, StompConnectionDeps } from './deps.ts'
import type { Peer } from './peer.ts'

export class EffectOrder {
  readonly #deps: Pick<StompConnectionDeps, 'inbox' | 'onFault'>
  readonly #context: Context<StompConnectionMessage>
  readonly #peer: Peer
  /** Ends the connection: the frame of this RECEIPT can't have it. */
  readonly #onNotSettled: (failure: SignalError, receiptId: string) => void
  /** Works without an outcome yet. */
  #underWay = 0
  /** Set while an effect runs: its turn has come. */
  #isReleasing = false
  /** Set while no RECEIPT waits for an acknowledgement that was given since: how many had failed before it. */
  #failedBefore: number | undefined

  constructor(
    deps: Pick<StompConnectionDeps, 'inbox' | 'onFault'>,
    context: Context<StompConnectionMessage>,
    peer: Peer,
    onNotSettled: (failure: SignalError, receiptId: string) => void,
  ) {
    this.#deps = deps
    this.#context = context
    this.#peer = peer
    this.#onNotSettled = onNotSettled
  }

  /** Calls `done` once the work has ended and all earlier work of the connection is done. */
  after(work: PromiseLike<unknown>, done: (failure: SignalError | undefined) => void): void {
    let failure: SignalError | undefined
    const ended = work.then(undefined, (error: unknown) => {
      failure = this.signalErrorOf(error)
    })
    this.#underWay += 1
    // The runtime releases commits in the order of frames. This one never rejects: a full disk must not drop the actor.
    this.#context.commit(ended, () => {
      this.#underWay -= 1
      this.#isReleasing = true
      done(failure)
      this.#isReleasing = false
    })
  }

  /** Calls `run` once all earlier work is done: at once, most of the time. */
  inOrder(run: () => void): void {
    if (this.#isNext) run()
    else this.after(NO_WORK, run)
  }

  /** Sends the RECEIPT, if the frame asked for one, once it and all earlier frames are durable. */
  receipt(receiptId: string | undefined): void {
    if (receiptId === undefined) return
    this.settleBefore(receiptId)
    if (this.#isNext) this.#peer.receipt(receiptId)
    else this.after(NO_WORK, () => this.#peer.receipt(receiptId))
  }

  /**
   * Settles offsets whose acknowledgement asked for no RECEIPT. An offset that the store fails to settle comes again, and
   * no later frame has a RECEIPT then.
   */
  settleSoon({ userId, deviceId }: ConnectedDevice, offsets: readonly number[]): void {
    if (offsets.length === 0) return
    const { inbox } = this.#deps
    this.#failedBefore ??= inbox.failedSettles
    inbox.settleSoon(userId, deviceId, offsets)
  }

  /** Has a RECEIPT wait for earlier acknowledgements too. */
  settleBefore(receiptId: string | undefined): void {
    const failedBefore = this.#failedBefore
    if (receiptId === undefined || failedBefore === undefined) return
    this.#failedBefore = undefined
    const { inbox } = this.#deps
    this.after(inbox.settleNow(), failure => {
      if (inbox.failedSettles > failedBefore) this.#onNotSettled(failure ?? NOT_SETTLED, receiptId)
    })
  }

  /** Returns an error that the peer may see; reports a fault of ours to the log instead. */
  signalErrorOf(error: unknown): SignalError {
    if (error instanceof SignalError) return error
    this.#deps.onFault(error, this.#peer.connection.id)
    return new SignalError('INTERNAL', 'a fault of the server')
  }

  get #isNext(): boolean {
    return this.#underWay === 0 || this.#isReleasing
  }
}

const NO_WORK = Promise.resolve()
const NOT_SETTLED = new SignalError('STORE_UNAVAILABLE', 'an earlier acknowledgement could not be stored')
