import t from 'tap'
import { Recent } from '../src/recent.ts'

t.test('the entry that was set longest ago makes room for a new one', t => {
  const recent = new Recent<string, number>(2)
  recent.set('a', 1).set('b', 2).set('c', 3)
  t.same(
    [...recent],
    [
      ['b', 2],
      ['c', 3],
    ],
  )
  t.end()
})

t.test('an entry that is set again is the newest, and takes no other’s place', t => {
  const recent = new Recent<string, number>(2)
  recent.set('a', 1).set('b', 2).set('b', 2)
  t.same([...recent.keys()], ['a', 'b'])
  recent.set('a', 3)
  t.same([...recent.keys()], ['b', 'a'])
  recent.set('c', 4)
  t.same([...recent.keys()], ['a', 'c'])
  t.equal(recent.get('a'), 3)
  t.end()
})

t.test('an entry that is deleted leaves room', t => {
  const recent = new Recent<string, number>(2)
  recent.set('a', 1).set('b', 2)
  recent.delete('b')
  recent.set('c', 3)
  t.same([...recent.keys()], ['a', 'c'])
  t.end()
})
