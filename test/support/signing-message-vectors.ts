/**
 * Makes `test/vectors/signing-messages.json`:
 * `node dist/test/support/signing-message-vectors.js > test/vectors/signing-messages.json`. A test holds the file against
 * what this makes.
 */
import { pathToFileURL } from 'node:url'
import {
  possessionMessage,
  signInAnswerMessage,
  signInMessage,
  stepUpMessage,
} from '../../src/log/signing-messages.ts'
import { toHex } from './bytes.ts'
import { listSigner, signWith } from './device-lists.ts'

/** Octets are in hex. */
export interface SigningMessageVectors {
  readonly signing_key: string
  readonly possession: readonly ({ readonly challenge: string } & SignedMessage)[]
  readonly sign_in: readonly ({ readonly challenge_id: string } & SignedMessage)[]
  readonly answer: readonly ({
    readonly user_id: string
    readonly id: string
    readonly approve: boolean
  } & SignedMessage)[]
  readonly step_up: readonly ({ readonly user_id: string; readonly proof: string } & SignedMessage)[]
}

interface SignedMessage {
  readonly message: string
  readonly signature: string
}

export function signingMessageVectors(): SigningMessageVectors {
  const signer = listSigner('phone')
  const signed = (message: Uint8Array) => ({
    message: toHex(message),
    signature: toHex(signWith(signer, message)),
  })
  const [challenge, challengeId] = [
    new Uint8Array(32).fill(9),
    Uint8Array.from({ length: 16 }, (_, at) => at),
  ]
  const id = new Uint8Array(16).fill(255)
  const answers = [1n, 2n ** 40n + 7n, 2n ** 64n - 1n].flatMap(userId =>
    [true, false].map(approve => ({ userId, approve })),
  )
  const proof = Uint8Array.from({ length: 32 }, (_, at) => 255 - at)
  return {
    signing_key: toHex(signer.signingKey),
    possession: [{ challenge: toHex(challenge), ...signed(possessionMessage(challenge)) }],
    sign_in: [{ challenge_id: toHex(challengeId), ...signed(signInMessage(challengeId)) }],
    answer: answers.map(({ userId, approve }) => ({
      user_id: String(userId),
      id: toHex(id),
      approve,
      ...signed(signInAnswerMessage(userId, id, approve)),
    })),
    step_up: [1n, 2n ** 64n - 1n].map(userId => ({
      user_id: String(userId),
      proof: toHex(proof),
      ...signed(stepUpMessage(userId, proof)),
    })),
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href)
  console.log(JSON.stringify(signingMessageVectors(), undefined, 1))
