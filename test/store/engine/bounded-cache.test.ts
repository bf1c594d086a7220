import fc from 'fast-check'
import t from 'tap'
import { BoundedCache } from '../../../src/store/engine/bounded-cache.ts'
import { checkProperty } from '../../support/property.ts'

const ENTRIES_MAX = 8
const key = fc.nat(19)
const step = fc.oneof(
  { weight: 40, arbitrary: fc.record({ kind: fc.constantFrom('set', 'set', 'set', 'get', 'delete'), key }) },
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('get all'), key }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('clear'), key }) },
)

t.test('it holds what it has room for, no more, and nothing that was replaced or deleted', async t => {
  checkProperty(t, [fc.array(step, { maxLength: 200, size: 'max' })], steps => {
    const cache = new BoundedCache<number, object>(ENTRIES_MAX)
    const truth = new Map<number, object>()
    /** Entries that may have been dropped since. */
    const dropped = new Set<number>()
    const isRight = (key: number) => {
      const found = cache.get(key)
      return found === undefined ? !truth.has(key) || dropped.has(key) : found === truth.get(key)
    }
    return steps.every(({ kind, key }) => {
      if (kind === 'set') {
        const isFull = cache.size === ENTRIES_MAX && !(truth.has(key) && !dropped.has(key))
        if (isFull) for (const other of truth.keys()) dropped.add(other)
        const value = {}
        cache.set(key, value)
        truth.set(key, value)
        dropped.delete(key)
      } else if (kind === 'delete') {
        cache.delete(key)
        truth.delete(key)
      } else if (kind === 'clear') {
        cache.clear()
        truth.clear()
      }
      const looked = kind === 'get all' ? [...truth.keys()] : kind === 'clear' ? [] : [key]
      return cache.size <= ENTRIES_MAX && cache.size <= truth.size && looked.every(isRight)
    })
  })
})

t.test('entries in use stay, and of the rest the oldest goes', async t => {
  const cache = new BoundedCache<number, number>(4)
  for (const key of [1, 2, 3, 4]) cache.set(key, key)
  cache.get(1)
  cache.get(3)
  for (const key of [5, 6]) cache.set(key, key)
  t.same(
    [1, 2, 3, 4, 5, 6].map(key => cache.get(key)),
    [1, undefined, 3, undefined, 5, 6],
  )
})
