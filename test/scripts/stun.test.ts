/** The doctor's STUN messages, against the vectors of RFC 5769 and against what a relay must not say. */

import t from 'tap'
import {
  ATTRIBUTES,
  formatRequest,
  formatXorAddress,
  METHODS,
  messageBytes,
  parseAnswer,
  parseXorAddress,
} from '../../scripts/doctor/stun.ts'

/** RFC 5769, section 2.2: a response over IPv4. */
const RESPONSE = Buffer.from(
  `0101003c2112a442b7e7a701bc34d686fa87dfae8022000b7465737420766563746f7220
   002000080001a147e112a643000800142b91f599fd9e90c38c7489f92af9ba53f06be7d780280004c07d4c96`.replace(
    /\s/g,
    '',
  ),
  'hex',
)
const TRANSACTION = RESPONSE.subarray(8, 20)
const XOR_MAPPED_ADDRESS = 0x0020

t.test('the response of RFC 5769 is taken apart', async t => {
  t.equal(messageBytes(RESPONSE), RESPONSE.length)
  const answer = parseAnswer(RESPONSE, TRANSACTION)
  t.match(answer, { isSuccess: true, errorCode: 0 })
  t.equal(parseXorAddress(answer?.attributes.get(XOR_MAPPED_ADDRESS)), '192.0.2.1:32853')
  t.same(formatXorAddress('192.0.2.1', 32_853), answer?.attributes.get(XOR_MAPPED_ADDRESS))
})

t.test('a datagram that is no answer to the request is not taken for one', async t => {
  const request = formatRequest(METHODS.allocate, [])
  t.equal(parseAnswer(RESPONSE, request.transactionId), undefined, 'another transaction')
  t.equal(parseAnswer(request.bytes, request.transactionId), undefined, 'a request')
  for (let length = 0; length < RESPONSE.length; length++) {
    if (parseAnswer(RESPONSE.subarray(0, length), TRANSACTION) !== undefined) t.fail(`cut at ${length}`)
  }
  const overlong = Buffer.from(RESPONSE)
  overlong.writeUInt16BE(0xffff, 22)
  t.equal(parseAnswer(overlong, TRANSACTION), undefined, 'an attribute that is longer than the message')
  t.equal(messageBytes(RESPONSE.subarray(0, 19)), undefined)
})

t.test('an error names its code, in hundreds and the rest', async t => {
  const value = Buffer.from([0, 0, 4, 1])
  const { bytes, transactionId } = formatRequest(METHODS.allocate, [[ATTRIBUTES.errorCode, value]])
  bytes.writeUInt16BE(0x0113, 0)
  t.match(parseAnswer(bytes, transactionId), { isSuccess: false, errorCode: 401 })
})

t.test('a request with credentials ends with a MAC, and counts it in its length', async t => {
  const credentials = { username: '1:2', password: 'p', realm: 'r', nonce: Buffer.from('n') }
  const { bytes } = formatRequest(METHODS.refresh, [], credentials)
  t.equal(bytes.readUInt16BE(2), bytes.length - 20)
  t.equal(bytes.readUInt16BE(bytes.length - 24), ATTRIBUTES.messageIntegrity)
  t.equal(bytes.length % 4, 0)
})
