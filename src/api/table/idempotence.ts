/**
 * `Idempotency-Key` of one operation (contract 1.4): what a request's reply is kept under, and that a request which comes
 * again gets the kept reply instead of being carried out again.
 */

import { createHash } from 'node:crypto'
import { assert, SignalError } from '../../errors.ts'
import type { Change, View } from '../../store/engine/store.ts'
import type { IdempotentRequest } from '../../store/tables/idempotency-store.ts'
import type { HttpRequest } from '../../transport/route.ts'
import type { Requester } from '../accounts/authentication.ts'
import type { ApiDeps } from '../deps.ts'
import type { OperationForm, Reply } from './operation.ts'
import { isMadeInParts } from './reply-body.ts'

/** The keys of an operation's requests, and the replies kept under them. */
export class KeyedRequests {
  readonly #operation: OperationForm
  readonly #keptReplies: ApiDeps['keptReplies']

  constructor(operation: OperationForm, { keptReplies }: Pick<ApiDeps, 'keptReplies'>) {
    this.#operation = operation
    this.#keptReplies = keptReplies
  }

  /** As `requestBy`, for the user who asks, or for their session alone. */
  requestOf(request: HttpRequest, requester: Requester | undefined): IdempotentRequest | undefined {
    if (requester === undefined) return undefined
    const session = this.#operation.areRepliesOfSession
      ? ` ${Buffer.from(requester.sessionName, 'latin1').toString('hex')}`
      : ''
    return this.requestBy(request, `${requester.userId}${session}`)
  }

  /** The key that the reply is kept under for this asker; undefined where none is kept. Throws `VALIDATION_FAILED`. */
  requestBy({ body, params, header }: HttpRequest, asker: string): IdempotentRequest | undefined {
    const { id, isIdempotent } = this.#operation
    if (!isIdempotent) return undefined
    const key = header('idempotency-key')
    if (key === '') return undefined
    if (!KEY_FORM.test(key)) {
      const errors = [
        { pointer: '', code: 'HEADER', detail: 'Idempotency-Key has 1 to 128 visible characters' },
      ]
      throw new SignalError('VALIDATION_FAILED', 'the Idempotency-Key is not one', { errors })
    }
    const hash = createHash('sha256').update(JSON.stringify(params)).update(body).digest()
    return { scope: `${id} ${asker}`, key, hash }
  }

  /** Throws `IDEMPOTENCY_KEY_REUSED`. */
  kept(view: View, request: IdempotentRequest): Reply | undefined {
    const kept = this.#keptReplies.find(view, request)
    return kept === undefined ? undefined : JSON.parse(kept)
  }
}

type Deps = Pick<ApiDeps, 'database' | 'idempotency' | 'keptReplies'>

export class Idempotence extends KeyedRequests {
  readonly #deps: Deps
  readonly #bodyText: (body: object | string) => string

  /** `bodyText` makes the text of a reply's body, as it is to be repeated. */
  constructor(operation: OperationForm, deps: Deps, bodyText: (body: object | string) => string) {
    super(operation, deps)
    this.#deps = deps
    this.#bodyText = bodyText
  }

  /** `OperationRequest.commit`. */
  commit(
    write: (change: Change) => Reply,
    request: IdempotentRequest | undefined,
    nowMs: number,
  ): Promise<Reply> {
    const { database, idempotency } = this.#deps
    if (request === undefined) return database.change(write, nowMs)
    return database.change(change => {
      const kept = this.kept(change, request)
      if (kept !== undefined) return kept
      const { status, body } = write(change)
      assert(body === undefined || !isMadeInParts(body), 'a reply that is kept is whole')
      const reply = body === undefined ? { status } : { status, body: this.#bodyText(body) }
      idempotency.keep(change, request, JSON.stringify(reply))
      return reply
    }, nowMs)
  }
}

const KEY_FORM = /^[\x21-\x7e]{1,128}$/
