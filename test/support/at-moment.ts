/** A change at another moment than its own, for simulations that take a week in one change. */

import type { Change } from '../../src/store/engine/store.ts'

export function atMoment(change: Change, nowMs: number): Change {
  return new Proxy(change, {
    get(target, name) {
      if (name === 'nowMs') return nowMs
      const member = Reflect.get(target, name)
      return typeof member === 'function' ? member.bind(target) : member
    },
  })
}
