/** The auditor's quick look at an entry takes exactly what `parseEntry` takes. */

import { randomBytes } from 'node:crypto'
import t from 'tap'
import { isEntryForm } from '../../scripts/audit/bundle.ts'
import { formatEntry, parseEntry } from '../../src/log/entry.ts'
import { codeOf } from '../support/codes.ts'
import { randomFrom, seedOf } from '../support/seed.ts'

function disagreement(entry: Uint8Array): string | undefined {
  const isTaken = codeOf(() => parseEntry(entry)) === 'none'
  // Inside other bytes, as in a bundle.
  const around = Buffer.concat([Buffer.from('AAAA'), entry, Buffer.from('AAAA\n')])
  const isForm = isEntryForm(around, 4, 4 + entry.length)
  return isForm === isTaken
    ? undefined
    : `${JSON.stringify(Buffer.from(entry).toString('latin1'))}: ${isForm}`
}

t.test('one byte of an entry replaced by any other one', async t => {
  const disagreements: unknown[] = []
  for (const keyBytes of [1, 2, 3, 32]) {
    const entry = formatEntry(randomBytes(64), randomBytes(keyBytes).toString('base64'))
    for (let at = 0; at < entry.length; at++) {
      for (let byte = 0; byte < 256; byte++)
        disagreements.push(disagreement(Uint8Array.from(entry).with(at, byte)))
    }
  }
  t.strictSame(
    disagreements.filter(found => found !== undefined),
    [],
  )
  t.ok(disagreements.length > 100_000)
})

t.test('entries cut, joined, doubled and mixed at random', async t => {
  const seed = seedOf()
  const random = randomFrom(seed)
  const below = (bound: number) => Math.floor(random() * bound)
  const disagreements: string[] = []
  let taken = 0
  for (let run = 0; run < 30_000; run++) {
    const hash = Buffer.alloc(62 + below(5), below(256)).toString('base64')
    const key = Buffer.alloc(below(5), below(256)).toString('base64')
    let text = `${hash}\n${key}\n`
    for (let changes = below(3); changes > 0; changes--) {
      const at = below(text.length + 1)
      text = text.slice(0, at) + '\n=A/+-_ é\r'.charAt(below(12)) + text.slice(at + below(2))
    }
    const entry = Buffer.from(text)
    if (codeOf(() => parseEntry(entry)) === 'none') taken++
    const found = disagreement(entry)
    if (found !== undefined) disagreements.push(found)
  }
  t.strictSame(disagreements, [], `seed ${seed}`)
  t.ok(taken > 100, `${taken} are entries`)
})
