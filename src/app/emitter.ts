/** Typed events of an object. */

import { CallsignError } from './callsign-error.ts'

type Listener = (event: never) => unknown

export class Emitter<Events extends { readonly error: CallsignError }> {
  readonly #listeners = new Map<keyof Events, Set<Listener>>()

  /** Calls the listener at each such event. Gives the function that takes it away. */
  on<Name extends keyof Events>(name: Name, listener: (event: Events[Name]) => unknown): () => void {
    const listeners = this.#listeners.get(name) ?? new Set()
    this.#listeners.set(name, listeners.add(listener))
    return () => void listeners.delete(listener)
  }

  /** The next such event. */
  once<Name extends keyof Events>(name: Name): Promise<Events[Name]> {
    return new Promise(resolve => {
      const stop = this.on(name, event => {
        stop()
        resolve(event)
      })
    })
  }

  /** Calls the listeners of the event, and `onFailed` for each that rejects, or where there are none. */
  protected emit<Name extends keyof Events>(name: Name, event: Events[Name], onFailed?: () => void): void {
    const listeners = [...(this.#listeners.get(name) ?? [])]
    if (listeners.length === 0) onFailed?.()
    for (const listener of listeners) {
      // It stops nothing here. A refusal, such as of `call => call.answer()`, comes as `error`; the platform shows a defect.
      void (async () => (listener as (event: Events[Name]) => unknown)(event))().catch(error => {
        onFailed?.()
        const isTold = error instanceof CallsignError && name !== 'error' && this.#listeners.has('error')
        if (!isTold) throw error
        this.emit('error', error)
      })
    }
  }
}
