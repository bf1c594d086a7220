/** A server that keeps messages until they are acknowledged, as the load of `durable-load.ts` speaks to it. */

export interface BrokerClient {
  /** Resolves when so many receivers are there: each acknowledges what it gets, and then calls `onReceived`. */
  open(receivers: number, onReceived: (receiver: number) => void): Promise<void>
  /** Gives each receiver a message of its own. `sender`: the number of the one at work. */
  send(receivers: readonly number[], sender: number): Promise<void>
}

/** As long as the invitation of a call to ten. */
const MESSAGE_BYTES = 1_500
/** Senders at work at once, at most. */
export const SENDERS = 16

export const BODY = 'x'.repeat(MESSAGE_BYTES)
