/** Sealed values: the same when they are opened, whether they are remembered or not, and by their own secret alone. */

import { randomBytes } from 'node:crypto'
import t from 'tap'
import { deriveSecrets } from '../../../src/domain/secrets.ts'
import { SealedValues } from '../../../src/store/tables/sealed-values.ts'

const SECRETS = deriveSecrets(Buffer.alloc(32, 7))

function open(secrets = SECRETS, use = 'a use') {
  return new SealedValues<{ readonly number: bigint; readonly name?: string }>(secrets, randomBytes, use)
}

t.test('many values open as what they were, the last ones without being read', t => {
  const values = open()
  const all = Array.from({ length: 1_000 }, (_, at) => ({ number: BigInt(at), name: `Đặng ${at}` }))
  const sealed = all.map(value => values.seal(value))
  for (const [at, value] of all.entries()) t.same(values.open(sealed[at]!), value)
  t.equal(values.open(sealed[999]!), all[999])
  t.not(values.open(sealed[0]!), all[0], 'no more than some are kept')
  const changed = Uint8Array.from(sealed[999]!)
  changed[changed.length - 1]! ^= 1
  t.equal(values.open(changed), undefined, 'a remembered value whose bytes have changed')
  t.end()
})

t.test('another process with the same secret reads them, and none with another secret', t => {
  const sealed = open().seal({ number: 2n ** 64n - 1n })
  t.same(open().open(sealed), { number: 2n ** 64n - 1n })
  t.equal(open(deriveSecrets(Buffer.alloc(32, 8))).open(sealed), undefined)
  t.equal(open(SECRETS, 'another use').open(sealed), undefined)
  t.equal(open().open(sealed.subarray(0, 12)), undefined)
  t.end()
})
