/** Header text to the wire and back, per version. */
import fc from 'fast-check'
import t from 'tap'
import { decodeHeader, encodeHeaderName, encodeHeaderValue, isPlainValue } from '../../src/stomp/escape.ts'
import { STOMP_VERSIONS } from '../../src/stomp/frame.ts'
import { checkProperty } from '../support/property.ts'

const raw = String.raw
/** Text with many characters that need an escape. */
const TEXT = fc.string({
  unit: fc.oneof(
    fc.constantFrom('\n', '\r', ':', '\\', 'n', 'r', 'c', ' '),
    fc.constantFrom('\0', 'é', '🎥'),
  ),
  maxLength: 12,
})

t.test('each version decodes its own escapes, in one pass', async t => {
  t.equal(decodeHeader(raw`a\nb\cc\\d`, '1.1'), 'a\nb:c\\d')
  t.equal(decodeHeader(raw`a\nb\cc\\d\re`, '1.2'), 'a\nb:c\\d\re')
  t.equal(decodeHeader(raw`a\\nb`, '1.2'), raw`a\nb`)
  t.equal(decodeHeader(raw`\\\\c`, '1.2'), raw`\\c`)
  t.equal(decodeHeader(raw`a\nb\t\\`, '1.0'), raw`a\nb\t\\`, '1.0 has no escapes')
})

t.test('an escape that the version does not define is none', async t => {
  for (const text of [raw`\t`, raw`a\ b`, raw`\N`, raw`\0`, 'a\\', '\\\\\\']) {
    t.equal(decodeHeader(text, '1.1'), undefined, text)
    t.equal(decodeHeader(text, '1.2'), undefined, text)
  }
  t.equal(decodeHeader(raw`\r`, '1.1'), undefined)
})

t.test('what a version can say comes back as it was', async t => {
  checkProperty(
    t,
    [TEXT],
    text => decodeHeader(encodeHeaderValue(sayable(text), '1.2'), '1.2') === sayable(text),
  )
  checkProperty(t, [TEXT], text => {
    const sayableIn11 = sayable(text).replaceAll('\r', '')
    return decodeHeader(encodeHeaderName(sayableIn11, '1.1'), '1.1') === sayableIn11
  })
})

t.test('no text breaks out of its line, in any version', async t => {
  checkProperty(t, [TEXT, fc.constantFrom(...STOMP_VERSIONS)], (text, version) => {
    const name = encodeHeaderName(text, version)
    const value = encodeHeaderValue(text, version)
    return !/[\n\r\0:]/.test(name) && (version === '1.0' ? !/[\n\r\0]/.test(value) : !/[\n\r\0:]/.test(value))
  })
})

t.test('what a version can not say becomes a blank', async t => {
  t.equal(encodeHeaderValue('a\nb\r\\:\0', '1.0'), 'a b \\: ')
  t.equal(encodeHeaderName('type:x', '1.0'), 'type x', 'a colon would make another header of it')
  t.equal(encodeHeaderValue('a\rb', '1.1'), 'a b')
  t.equal(encodeHeaderValue('a\0b', '1.2'), 'a b')
})

t.test('a value of a frame without escapes has neither line breaks nor NUL', async t => {
  t.ok(isPlainValue('a:b\\c é'))
  for (const text of ['a\nb', 'a\rb', 'a\0b']) t.notOk(isPlainValue(text))
})

function sayable(text: string): string {
  return text.replaceAll('\0', '')
}
