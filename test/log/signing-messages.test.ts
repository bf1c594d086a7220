/** Messages that devices sign besides lists: the vectors, and that no octet of a signature, message or key may change. */
import t from 'tap'
import * as node from '../../src/log/primitives-node.ts'
import * as portable from '../../src/log/primitives-portable.ts'
import {
  possessionMessage,
  signInAnswerMessage,
  signInMessage,
  stepUpMessage,
} from '../../src/log/signing-messages.ts'
import { fromHex, toHex } from '../support/bytes.ts'
import { codeOf } from '../support/codes.ts'
import { type SigningMessageVectors, signingMessageVectors } from '../support/signing-message-vectors.ts'
import { readVectors } from '../support/vectors.ts'

const vectors = readVectors<SigningMessageVectors>('signing-messages')
const key = fromHex(vectors.signing_key)

t.test('the vectors are those that their key makes', async t => {
  t.same(JSON.parse(JSON.stringify(signingMessageVectors())), vectors)
})

t.test('messages have the octets of the vectors', async t => {
  for (const { challenge, message } of vectors.possession)
    t.equal(toHex(possessionMessage(fromHex(challenge))), message)
  for (const { challenge_id, message } of vectors.sign_in)
    t.equal(toHex(signInMessage(fromHex(challenge_id))), message)
  for (const { user_id, id, approve, message } of vectors.answer)
    t.equal(toHex(signInAnswerMessage(BigInt(user_id), fromHex(id), approve)), message)
  for (const { user_id, proof, message } of vectors.step_up)
    t.equal(toHex(stepUpMessage(BigInt(user_id), fromHex(proof))), message)
})

t.test('a challenge or id of another length is refused', async t => {
  for (const message of [
    () => possessionMessage(new Uint8Array(31)),
    () => signInMessage(new Uint8Array(17)),
    () => signInAnswerMessage(1n, new Uint8Array(15), true),
    () => stepUpMessage(1n, new Uint8Array(33)),
  ])
    t.equal(codeOf(message), 'MALFORMED')
})

t.test('both primitives take the signatures of the vectors, each for its own message alone', async t => {
  const signed = [...vectors.possession, ...vectors.sign_in, ...vectors.answer, ...vectors.step_up]
  t.equal(new Set(signed.map(({ message }) => message)).size, signed.length)
  for (const { p256Verify } of [node, portable]) {
    for (const each of signed) {
      const holding = signed.filter(({ signature }) =>
        p256Verify(key, fromHex(each.message), fromHex(signature)),
      )
      t.strictSame(holding, [each])
    }
  }
})

t.test('both primitives refuse a signature with a bit changed in it, its message or its key', async t => {
  const { message, signature } = vectors.possession[0]!
  for (const { p256Verify } of [node, portable]) {
    const wrong: string[] = []
    const parts = [key, fromHex(message), fromHex(signature)] as const
    for (const [part, bytes] of parts.entries()) {
      for (let at = 0; at < bytes.length; at++) {
        const [changedKey, text, proof] = parts.with(part, bytes.with(at, bytes[at]! ^ 1)) as [
          Uint8Array,
          Uint8Array,
          Uint8Array,
        ]
        if (p256Verify(changedKey, text, proof)) wrong.push(`octet ${at} of part ${part}`)
      }
    }
    t.same(wrong, [])
    t.notOk(p256Verify(parts[0].subarray(1), parts[1], parts[2]))
    t.notOk(p256Verify(new Uint8Array(65), parts[1], parts[2]))
    t.notOk(p256Verify(parts[0], parts[1], new Uint8Array(64)))
  }
})
