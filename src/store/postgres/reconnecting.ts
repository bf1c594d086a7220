/** One connection, opened anew where the one before has ended. */

import { SignalError } from '../../errors.ts'
import { Connection, type ConnectionDeps } from './connection.ts'

export class Reconnecting {
  readonly #deps: ConnectionDeps
  readonly #onOpened: (connection: Connection) => Promise<void>
  #connection: Connection | undefined
  #opening: Promise<Connection> | undefined
  #isClosed = false

  /** `onOpened` runs before anything else on each connection; where it throws, the connection is cut. */
  constructor(deps: ConnectionDeps, onOpened: (connection: Connection) => Promise<void> = async () => {}) {
    this.#deps = deps
    this.#onOpened = onOpened
  }

  /** Throws `STORE_UNAVAILABLE`, and what `onOpened` throws. */
  async get(): Promise<Connection> {
    if (this.#isClosed) throw new SignalError('STORE_UNAVAILABLE', 'the ledger is closed')
    if (this.#connection?.isOpen === true) return this.#connection
    this.#opening ??= this.#open().finally(() => {
      this.#opening = undefined
    })
    return await this.#opening
  }

  async #open(): Promise<Connection> {
    const connection = await Connection.open(this.#deps)
    try {
      await this.#onOpened(connection)
    } catch (error) {
      connection.cut()
      throw error
    }
    this.#connection = connection
    if (this.#isClosed) await this.close()
    return connection
  }

  /** Statements that are under way are rejected. */
  cut(): void {
    this.#connection?.cut()
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await this.#connection?.close()
  }
}

/** Between attempts, which their callers make. */
export const BACK_OFF = { firstMs: 50, maxMs: 1_000 }
