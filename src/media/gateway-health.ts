/**
 * Whether a media gateway is there, from the answers to all that it is asked. One that is away for ten seconds, or has refused the
 * server's secrets twice, is lost: its calls go to another. It may flap, so that it gets no calls before it has answered for half a minute.
 */

export class GatewayHealth {
  readonly #monotonicMs: () => number
  readonly #onTurned: (isUp: boolean, reason: string) => void
  /** When it last answered before the first failure, as far as looks are that often. */
  #awaySinceMs: number | undefined
  #answeredAtMs = Number.NEGATIVE_INFINITY
  /** The first of its answers without a failure between them. */
  #answersSinceMs: number | undefined
  /** In a row. */
  #refusals = 0
  #isOnProbation: boolean

  /** `isOnProbation`: it is new in a list that was in use, so that another process may not know it yet. */
  constructor(
    monotonicMs: () => number,
    onTurned: (isUp: boolean, reason: string) => void,
    isOnProbation = false,
  ) {
    this.#monotonicMs = monotonicMs
    this.#onTurned = onTurned
    this.#isOnProbation = isOnProbation
  }

  /** It answered, whatever it said. */
  answered(): void {
    const nowMs = this.#monotonicMs()
    if (this.isLost) this.#isOnProbation = true
    this.#answeredAtMs = nowMs
    this.#answersSinceMs ??= nowMs
    const wasUp = this.isUp
    this.#awaySinceMs = undefined
    this.#turnedFrom(wasUp, '')
  }

  failed(reason: string): void {
    const nowMs = this.#monotonicMs()
    const wasUp = this.isUp
    this.#awaySinceMs ??= Math.max(this.#answeredAtMs, nowMs - NOTICED_MS)
    this.#answersSinceMs = undefined
    this.#turnedFrom(wasUp, reason)
  }

  /** Whether it takes what the server knows it by: one that does not can be given no call. */
  tookSecrets(areTaken: boolean): void {
    const wasUp = this.isUp
    this.#refusals = areTaken ? 0 : this.#refusals + 1
    this.#turnedFrom(wasUp, 'refused')
  }

  /** Whether it answered last and takes the server's secrets; true before the first word. */
  get isUp(): boolean {
    return this.#awaySinceMs === undefined && this.#refusals === 0
  }

  /** Its calls are to go to another. */
  get isLost(): boolean {
    // It has begun anew with other secrets, and has no room of ours.
    if (this.#refusals >= LOST_REFUSALS) return true
    return this.#awaySinceMs !== undefined && this.#monotonicMs() - this.#awaySinceMs >= LOST_MS
  }

  /** It was never lost, or has answered for so long that it will not be soon. */
  get isSteady(): boolean {
    if (!this.#isOnProbation) return true
    const sinceMs = this.#answersSinceMs
    if (sinceMs === undefined || this.#monotonicMs() - sinceMs < PROBATION_MS) return false
    this.#isOnProbation = false
    return true
  }

  #turnedFrom(wasUp: boolean, reason: string): void {
    if (this.isUp !== wasUp) this.#onTurned(this.isUp, reason)
  }
}

/** How often each gateway is asked whether it is there. */
export const LOOK_MS = 2_000
/** A look that begins just after the gateway went away has failed by then. */
const NOTICED_MS = 4_000
const LOST_MS = 10_000
/** One look each minute asks for what needs the secrets. */
const LOST_REFUSALS = 2
const PROBATION_MS = 30_000
