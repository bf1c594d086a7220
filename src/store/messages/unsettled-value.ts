/** A value that a row stands for, in memory: as durable changes have left it, and as changes before them have. */

import { isChange, type View } from '../engine/store.ts'

export class UnsettledValue<Value extends string | number> {
  /** Undefined where the store has to be asked. */
  #durable: Value | undefined
  #written: Value | undefined
  /** How many writes are not durable, and have not failed. */
  #writes = 0
  #hasFailed = false

  constructor(durable: Value) {
    this.#durable = durable
  }

  get isUnsettled(): boolean {
    return this.#writes > 0
  }

  /** Undefined where it is not known, or about to change. */
  get durable(): Value | undefined {
    return this.#writes === 0 ? this.#durable : undefined
  }

  /** As this view, or this change, sees it; `read` asks the store. */
  of(view: View, read: () => Value): Value {
    const known = this.known(view)
    if (known !== undefined) return known
    const value = read()
    if (this.#writes === 0) this.#durable = value
    else if (isChange(view)) this.#written = value
    return value
  }

  /** The same where the store need not be asked; else undefined. */
  known(view: View): Value | undefined {
    return this.#writes > 0 && isChange(view) ? this.#written : this.#durable
  }

  /** Takes a value that another process has made durable; undefined has the store asked. */
  set(durable: Value | undefined): void {
    this.#durable = durable
  }

  write(value: Value): void {
    this.#writes += 1
    this.#written = value
  }

  takeBack(): void {
    this.#written = undefined
  }

  settle(isDurable: boolean): void {
    if (!isDurable) this.#hasFailed = true
    if (this.#writes > 0) this.#writes -= 1
    if (this.#writes > 0) return
    // After a write of unknown outcome the store alone knows.
    this.#durable = this.#hasFailed ? undefined : this.#written
    this.#written = undefined
    this.#hasFailed = false
  }
}
