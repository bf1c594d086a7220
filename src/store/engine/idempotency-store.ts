/** Replies kept for repeated requests (contract 1.4, `Idempotency-Key`): sealed, by scope and key. */

import type { Secrets } from '../../domain/secrets.ts'
import { SignalError } from '../../errors.ts'
import type { Database, Table } from './database.ts'
import { EXPIRY, type Expiries } from './expiries.ts'
import { textKey } from './keys.ts'
import { Sealed } from './sealed.ts'

interface Row {
  /** `hashOf` the request. */
  readonly bodyHash: Uint8Array
  readonly sealedReply: Uint8Array
}

export interface IdempotentRequest {
  /** Who asks for what: operation, user, and the session where the reply is its alone. */
  readonly scope: string
  /** The `Idempotency-Key`. */
  readonly key: string
  /** What must be the same when the request comes again: the values in its path, and its body. */
  readonly body: Uint8Array
}

export class IdempotencyStore {
  readonly #expiries: Expiries
  readonly #rows: Table<Row>
  readonly #replies: Sealed

  constructor(
    database: Database,
    expiries: Expiries,
    secrets: Pick<Secrets, 'seal'>,
    randomBytes: (length: number) => Uint8Array,
  ) {
    this.#expiries = expiries
    this.#rows = database.table('idempotency')
    this.#replies = new Sealed(secrets, randomBytes, 'idempotency')
    expiries.define(EXPIRY.idempotency, key => void this.#rows.remove(key))
  }

  /** The reply that this request got before. Throws `IDEMPOTENCY_KEY_REUSED` when its key came with another request. */
  find(request: IdempotentRequest): string | undefined {
    const row = this.#rows.get(rowKey(request))
    if (row === undefined) return undefined
    if (!Buffer.from(row.bodyHash).equals(hashOf(request))) {
      throw new SignalError('IDEMPOTENCY_KEY_REUSED', 'this Idempotency-Key came with another request before')
    }
    const plain = this.#replies.open(row.sealedReply)
    return plain === undefined ? undefined : Buffer.from(plain).toString('utf8')
  }

  /** In a transaction: keeps the reply for a day. */
  keep(request: IdempotentRequest, reply: string, nowMs: number): void {
    const sealedReply = this.#replies.seal(Buffer.from(reply))
    const key = rowKey(request)
    this.#rows.put(key, { bodyHash: hashOf(request), sealedReply })
    this.#expiries.add(EXPIRY.idempotency, nowMs + KEPT_MS, key)
  }
}

function rowKey({ scope, key }: IdempotentRequest): Uint8Array {
  return textKey(`${scope}\n${key}`)
}

/** Of the body as a text of a character for each byte, in UTF-8: the form that kept rows have. */
function hashOf({ body }: IdempotentRequest): Uint8Array {
  return textKey(Buffer.from(body).toString('latin1'))
}

const KEPT_MS = 86_400_000
