/** References to users: the texts that are one, and the refusal of any other text. */
import fc from 'fast-check'
import t from 'tap'
import { isExternalId, readUserRef } from '../../../src/domain/operators/user-ref.ts'
import { checkProperty } from '../../support/property.ts'

t.test('an id that the server gave', async t => {
  t.same(readUserRef('id:4294967297'), { kind: 'id', userId: 4294967297n })
  t.same(readUserRef('id:18446744073709551615'), { kind: 'id', userId: 2n ** 64n - 1n })
})

t.test('an external id is every text of 1 to 256 octets, as it stands', async t => {
  for (const externalId of [
    '7',
    ' ',
    'id:7',
    'ext:7',
    'a/b?c#d%20',
    '\u0000\n',
    'é',
    'e\u0301',
    '😀'.repeat(64),
  ])
    t.same(readUserRef(`ext:${externalId}`), { kind: 'ext', externalId })
  const text = fc.string({ unit: 'binary', maxLength: 300 })
  checkProperty(t, [text], externalId => {
    const bytes = Buffer.byteLength(externalId)
    return isExternalId(externalId) === (bytes >= 1 && bytes <= 256)
  })
})

t.test('any other text is refused with the place and a sentence', async t => {
  const lone = ['ext:\ud800', 'ext:a\udc00b', `ext:${'\udfff'.repeat(80)}`]
  const long = ['ext:', `ext:${'a'.repeat(257)}`, `ext:${'é'.repeat(129)}`, `ext:${'😀'.repeat(65)}`]
  const ids = ['id:', 'id:-1', 'id:01', 'id:1.0', 'id: 1', 'id:18446744073709551616', 'id:abc']
  for (const text of ['', '7', 'EXT:7', 'Id:7', 'user:7', ' id:7', ...lone, ...long, ...ids])
    t.throws(
      () => readUserRef(text, '/a'),
      { code: 'VALIDATION_FAILED', errors: [{ pointer: '/a', code: 'FORMAT', detail: /octets of UTF-8$/ }] },
      JSON.stringify(text.slice(0, 40)),
    )
})
