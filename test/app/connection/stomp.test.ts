/** The codec of `@callsign/sdk/app` against the server's own, with random frames. */

import fc from 'fast-check'
import t from 'tap'
import { formatFrame, parseFrame } from '../../../src/app/connection/stomp.ts'
import { StompParser } from '../../../src/stomp/parser.ts'
import { encodeFrame } from '../../../src/stomp/serializer.ts'
import { rejectionOf } from '../../support/app-sessions.ts'
import { checkProperty } from '../../support/property.ts'

const text = fc.string({ unit: fc.constantFrom(...'ab:\\\n\r c\té🎥') })
const name = text.filter(each => each !== '' && each !== 'content-length')
const headers = fc.uniqueArray(fc.tuple(name, text), { selector: ([each]) => each, maxLength: 6 })

t.test('the server reads what the app writes', async t => {
  checkProperty(t, [headers, text], (pairs, body) => {
    const parser = new StompParser()
    parser.version = '1.2'
    parser.feed(Buffer.from(formatFrame('SEND', Object.fromEntries(pairs), body)))
    const frame = parser.next()!
    const read = pairs.every(([each, value]) => frame.header(each) === value)
    return read && frame.headers.length === 2 * pairs.length && `${frame.body}` === body
  })
})

t.test('the app reads what the server writes, with and without the NUL', async t => {
  const commands = fc.constantFrom('MESSAGE', 'RECEIPT', 'ERROR')
  checkProperty(t, [commands, headers, text], (command, pairs, body) => {
    const octets = encodeFrame(command as 'MESSAGE', pairs.flat(), '1.2', Buffer.from(body))
    return [`${octets}`, `${octets}`.slice(0, -1)].every(each => {
      const frame = parseFrame(each)
      const read = pairs.every(([each, value]) => frame.headers.get(each) === value)
      return read && frame.command === command && frame.body === body
    })
  })
})

t.test('CONNECT and CONNECTED are not escaped, and the first of repeated headers counts', async t => {
  t.equal(formatFrame('CONNECT', { host: 'a:1' }), 'CONNECT\nhost:a:1\n\n\0')
  const { headers, body } = parseFrame('CONNECTED\nserver:a:\\c\nserver:b\n\n\0\n')
  t.same([...headers], [['server', 'a:\\c']])
  t.equal(body, '')
})

t.test('octets that are no frame are refused', async t => {
  const faulty = ['', 'MESSAGE', 'MESSAGE\n', 'MESSAGE\na\n\n\0', 'MESSAGE\n:a\n\n\0', 'MESSAGE\na:\\t\n\n\0']
  for (const each of [...faulty, 'MESSAGE\na:\\\n\n\0']) {
    t.equal(await rejectionOf(Promise.resolve().then(() => parseFrame(each))), 'ANSWER_INVALID', each)
  }
  checkProperty(t, [fc.string({ unit: fc.constantFrom(...'M:\\\n\0a') })], each => {
    try {
      parseFrame(each)
      return true
    } catch (error) {
      return (error as { code?: unknown }).code === 'ANSWER_INVALID'
    }
  })
})
