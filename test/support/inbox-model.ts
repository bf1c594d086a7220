/** One device's inbox as a list that is searched from end to end, for comparison with the store. */

const DAY_MS = 86_400_000

export interface PaperMessage {
  readonly offset: number
  readonly queue: string
  /** Distinguishes it from its siblings. */
  readonly label: string
  readonly atMs: number
  readonly expiresAtMs: number
  /** An invitation's call. */
  readonly callId?: bigint
}

export class InboxModel {
  #messages: PaperMessage[] = []
  #nextOffset = 1
  lost = { full: 0, expired: 0 }
  lostOffset = 0

  get nextOffset(): number {
    return this.#nextOffset
  }

  shown(nowMs: number): readonly PaperMessage[] {
    return this.#messages.filter(({ expiresAtMs }) => nowMs < expiresAtMs)
  }

  get offsets(): number[] {
    return this.#messages.map(({ offset }) => offset)
  }

  append(message: Omit<PaperMessage, 'offset' | 'atMs'>, nowMs: number): void {
    if (message.callId !== undefined) this.drop(message.callId)
    if (this.#messages.length === 500) {
      this.lostOffset = Math.max(this.lostOffset, this.#messages.shift()!.offset)
      this.lost.full += 1
    }
    const expiresAtMs = Math.min(message.expiresAtMs, nowMs + 7 * DAY_MS)
    this.#messages.push({ ...message, offset: this.#nextOffset++, atMs: nowMs, expiresAtMs })
  }

  settle(offsets: readonly number[]): void {
    this.#messages = this.#messages.filter(({ offset }) => !offsets.includes(offset))
  }

  drop(callId: bigint): boolean {
    const kept = this.#messages.filter(message => message.callId !== callId)
    const isThere = kept.length < this.#messages.length
    this.#messages = kept
    return isThere
  }

  sweep(nowMs: number): void {
    const isOver = ({ expiresAtMs, callId }: PaperMessage) =>
      nowMs >= expiresAtMs + (callId === undefined ? 0 : 60_000)
    const over = this.#messages.filter(isOver)
    this.#messages = this.#messages.filter(message => !isOver(message))
    for (const { callId, offset, atMs, expiresAtMs } of over) {
      if (callId !== undefined) {
        const label = `call_missed ${callId}`
        this.append({ queue: 'calls', label, expiresAtMs: Number.POSITIVE_INFINITY }, nowMs)
      } else if (expiresAtMs === atMs + 7 * DAY_MS) {
        this.lostOffset = Math.max(this.lostOffset, offset)
        this.lost.expired += 1
      }
    }
  }
}
