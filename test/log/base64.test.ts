import fc from 'fast-check'
import t from 'tap'
import * as node from '../../src/log/primitives-node.ts'
import * as portable from '../../src/log/primitives-portable.ts'
import { fromBase64, toBase64, toHex } from '../support/bytes.ts'
import { codeOf } from '../support/codes.ts'
import { checkProperty } from '../support/property.ts'

const BOTH = [node, portable]

t.test('the examples of RFC 4648 come out', async t => {
  const examples = {
    '': '',
    f: 'Zg==',
    fo: 'Zm8=',
    foo: 'Zm9v',
    foob: 'Zm9vYg==',
    fooba: 'Zm9vYmE=',
    foobar: 'Zm9vYmFy',
  }
  for (const { encodeBase64, decodeBase64 } of BOTH) {
    for (const [text, base64] of Object.entries(examples)) {
      t.equal(encodeBase64(Buffer.from(text)), base64)
      t.equal(Buffer.from(decodeBase64(base64)).toString(), text)
    }
  }
})

t.test('bytes of every length are encoded as Node encodes them, and come back', async t => {
  for (const { encodeBase64, decodeBase64, isCanonicalBase64 } of BOTH) {
    checkProperty(t, [fc.uint8Array({ maxLength: 600 })], bytes => {
      const text = encodeBase64(bytes)
      return text === toBase64(bytes) && isCanonicalBase64(text) && toHex(decodeBase64(text)) === toHex(bytes)
    })
    // A view into larger memory, as most of our bytes are.
    const view = Uint8Array.from({ length: 300 }, (_, at) => at).subarray(17, 217)
    t.equal(encodeBase64(view), toBase64(view))
  }
})

t.test('text is taken exactly when Node writes it back unchanged', async t => {
  const character = fc.constantFrom(...'ABQgwxyz0189+/=-_ \n\r\tÁ€\u0141\u{1F600}')
  const text = fc.array(character, { maxLength: 16 }).map(characters => characters.join(''))
  for (const { decodeBase64, isCanonicalBase64 } of BOTH) {
    checkProperty(
      t,
      [text],
      text => {
        const isCanonical = toBase64(fromBase64(text)) === text
        const code = codeOf(() => decodeBase64(text))
        return isCanonicalBase64(text) === isCanonical && code === (isCanonical ? 'none' : 'MALFORMED')
      },
      5000,
    )
  }
})

t.test('every group of one digit and one wrong character is refused', async t => {
  const wrong: string[] = []
  for (const { decodeBase64, isCanonicalBase64 } of BOTH) {
    for (let code = 0; code < 0x400; code++) {
      const character = String.fromCharCode(code)
      if (/[A-Za-z0-9+/]/.test(character)) continue
      for (const text of [`${character}AAA`, `A${character}AA`, `AA${character}A`, `AAAA${character}AA=`]) {
        if (codeOf(() => decodeBase64(text)) !== 'MALFORMED' || isCanonicalBase64(text)) wrong.push(text)
      }
    }
  }
  t.same(wrong, [])
})

t.test('spellings that lax decoders take are refused', async t => {
  const spellings = [
    'Zg',
    'Zg=',
    'Zg===',
    'Zm8',
    'Zm8==',
    'Zm9v=',
    'Zm9v====',
    '=',
    '==',
    '====',
    'Z===',
    'A',
    'AAAAA',
    'Zh==',
    'Zm9=',
    'YR==',
    'ypeBEsobvcr6wjGzmiPcTaeG7/gUfE5yuYB3ha/uSLt=',
    'Zm9v\n',
    ' Zm9v',
    'Zm 9v',
    'Zg==Zg==',
    'Zg==Zm9v',
    'Zm-v',
    'Zm_v',
    'Zg=A',
  ]
  for (const { decodeBase64, isCanonicalBase64 } of BOTH) {
    for (const text of spellings) {
      t.throws(() => decodeBase64(text), { code: 'MALFORMED' })
      t.notOk(isCanonicalBase64(text))
    }
  }
})
