/** Durable messages to one device: those that the server has promised, delivered, and had acknowledged. Names tell them apart. */

export interface InboxCounts {
  readonly promised: number
  readonly settled: number
}

export class InboxLedger {
  readonly #promised = new Set<string>()
  readonly #received = new Set<string>()
  /** Their ACK had a receipt. */
  readonly #settled = new Set<string>()
  readonly #again: string[] = []
  readonly #waiting = new Map<string, () => void>()

  get counts(): InboxCounts {
    return { promised: this.#promised.size, settled: this.#settled.size }
  }

  /** The request that sends it was answered. */
  promise(message: string): void {
    this.#promised.add(message)
  }

  receive(message: string): void {
    if (this.#settled.has(message)) this.#again.push(message)
    this.#received.add(message)
    this.#waiting.get(message)?.()
    this.#waiting.delete(message)
  }

  settle(message: string): void {
    this.#settled.add(message)
  }

  /** Resolves when it has come. One caller waits for a message. */
  async arrival(message: string): Promise<void> {
    if (this.#received.has(message)) return
    await new Promise<void>(resolve => this.#waiting.set(message, resolve))
  }

  /** Promised, and not come. */
  get missing(): readonly string[] {
    return [...this.#promised].filter(message => !this.#received.has(message))
  }

  /** Came although their ACK had a receipt. */
  get again(): readonly string[] {
    return this.#again
  }
}
