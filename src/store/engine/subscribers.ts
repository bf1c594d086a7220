/** Listeners to the happenings of durable changes. */

import type { Happening, HappeningOf } from './store.ts'

type Listener = (happening: Happening) => void

export class Subscribers {
  readonly #listeners = new Map<Happening['kind'], Listener[]>()

  /** Returns a function that ends it. */
  add<Kind extends Happening['kind']>(
    kind: Kind,
    listener: (happening: HappeningOf<Kind>) => void,
  ): () => void {
    const known = this.#listeners.get(kind) ?? []
    this.#listeners.set(kind, known)
    known.push(listener as Listener)
    return () => void known.splice(known.indexOf(listener as Listener), 1)
  }

  /** Tells them in the order in which they subscribed. One that throws keeps no other from hearing. */
  tell(happenings: readonly Happening[], onFault: (error: unknown) => void): void {
    for (const happening of happenings) {
      for (const listener of this.#listeners.get(happening.kind) ?? []) {
        try {
          listener(happening)
        } catch (error) {
          onFault(error)
        }
      }
    }
  }
}
