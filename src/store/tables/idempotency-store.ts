/** Replies kept for repeated requests (contract 1.4, `Idempotency-Key`): sealed, by scope and key. */

import type { Secrets } from '../../domain/secrets.ts'
import { SignalError } from '../../errors.ts'
import { EXPIRY, type Expiries } from '../engine/expiries.ts'
import { HASH } from '../engine/key-parts.ts'
import { textKey } from '../engine/keys.ts'
import { bytes, object, sealed } from '../engine/row-form.ts'
import type { Change, View } from '../engine/store.ts'
import { rowTable } from '../engine/table.ts'
import { Sealed } from './sealed.ts'

export interface IdempotentRequest {
  /** Who asks for what: operation, user, and the session where the reply is its alone. */
  readonly scope: string
  /** The `Idempotency-Key`. */
  readonly key: string
  /** SHA-256 of the values in its path and of its body, which are the same when the request comes again. */
  readonly hash: Uint8Array
}

/** As every process reads them. */
export class KeptReplies {
  protected readonly replies: Sealed

  constructor(secrets: Pick<Secrets, 'seal'>, randomBytes: (length: number) => Uint8Array) {
    this.replies = new Sealed(secrets, randomBytes, 'idempotency')
  }

  /** The reply that this request got before. Throws `IDEMPOTENCY_KEY_REUSED` when its key came with another request. */
  find(view: View, request: IdempotentRequest): string | undefined {
    const row = view.get(IDEMPOTENCY, rowKey(request))
    if (row === undefined) return undefined
    if (!Buffer.from(row.bodyHash).equals(request.hash)) {
      throw new SignalError('IDEMPOTENCY_KEY_REUSED', 'this Idempotency-Key came with another request before')
    }
    const plain = this.replies.open(row.sealedReply)
    return plain === undefined ? undefined : Buffer.from(plain).toString('utf8')
  }
}

export class IdempotencyStore extends KeptReplies {
  readonly #expiries: Expiries

  constructor(
    expiries: Expiries,
    secrets: Pick<Secrets, 'seal'>,
    randomBytes: (length: number) => Uint8Array,
  ) {
    super(secrets, randomBytes)
    this.#expiries = expiries
    expiries.define(EXPIRY.idempotency, (change, key) => void change.remove(IDEMPOTENCY, key))
  }

  /** Keeps the reply for a day. */
  keep(change: Change, request: IdempotentRequest, reply: string): void {
    const sealedReply = this.replies.seal(Buffer.from(reply))
    const key = rowKey(request)
    change.put(IDEMPOTENCY, key, { bodyHash: Buffer.from(request.hash), sealedReply })
    this.#expiries.add(change, EXPIRY.idempotency, change.nowMs + KEPT_MS, key)
  }
}

function rowKey({ scope, key }: IdempotentRequest): Uint8Array {
  return textKey(`${scope}\n${key}`)
}

/** `bodyHash`: `hash` of the request. */
const KEPT_REPLY = object({ bodyHash: bytes(32), sealedReply: sealed })

export const IDEMPOTENCY = rowTable('idempotency', { request: HASH }, KEPT_REPLY, {
  holds: 'the reply to a request that may come again, sealed',
  ending: { kind: EXPIRY.idempotency },
  remedy: 'a request that is repeated within a day may be refused, or done twice',
})

const KEPT_MS = 86_400_000
