import fc from 'fast-check'
import t from 'tap'
import { BoundedCache } from '../../src/store/bounded-cache.ts'
import { checkProperty } from '../support/property.ts'

const ENTRIES_MAX = 8
const key = fc.nat(19)
const step = fc.oneof(
  fc.record({ kind: fc.constant('set' as const), key }),
  fc.record({ kind: fc.constant('get' as const), key }),
  fc.record({ kind: fc.constant('delete' as const), key }),
  fc.record({ kind: fc.constant('clear' as const) }),
)

t.test('it holds no more than it may, what came last, and nothing that was replaced or deleted', async t => {
  checkProperty(t, [fc.array(step, { maxLength: 200 })], steps => {
    const cache = new BoundedCache<number, object>(ENTRIES_MAX)
    const truth = new Map<number, object>()
    /** Keys that came or were found, the last one at the end. */
    let lately: number[] = []
    return steps.every(step => {
      if (step.kind === 'clear') {
        cache.clear()
        truth.clear()
        lately = []
        return cache.size === 0
      }
      const { kind, key } = step
      if (kind === 'set') {
        const value = {}
        cache.set(key, value)
        truth.set(key, value)
      } else if (kind === 'delete') {
        cache.delete(key)
        truth.delete(key)
      }
      const found = cache.get(key)
      const wasToBeThere =
        truth.has(key) && (kind === 'set' || lately.slice(1 - ENTRIES_MAX / 2).includes(key))
      lately = lately.filter(other => other !== key)
      if (found !== undefined) lately.push(key)
      return (
        cache.size <= ENTRIES_MAX &&
        (found === undefined || found === truth.get(key)) &&
        (found !== undefined || !wasToBeThere)
      )
    })
  })
})
