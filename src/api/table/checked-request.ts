/**
 * What a handler is given of its request. Departure from a plain object with all of it: most handlers look at little, and
 * copies, closures and accessors made for each request cost a tenth of a `GET user` (`bench/user.ts`).
 */

import type { IdempotentRequest } from '../../store/tables/idempotency-store.ts'
import type { HttpRequest } from '../../transport/route.ts'
import type { Requester } from '../accounts/authentication.ts'
import type { Idempotence } from './idempotence.ts'
import type { OperationRequest } from './operation.ts'

/** The findings of the checks before the handler. */
export interface RequestChecks {
  readonly requester: Requester | undefined
  readonly body: unknown
  readonly query: unknown
  readonly idempotent: IdempotentRequest | undefined
  readonly nowMs: number
}

/** The members are described in `OperationRequest`. */
export class CheckedRequest implements OperationRequest<unknown, unknown, 'session'> {
  readonly #request: HttpRequest
  readonly #checked: RequestChecks
  readonly #idempotence: Idempotence

  constructor(request: HttpRequest, checked: RequestChecks, idempotence: Idempotence) {
    this.#request = request
    this.#checked = checked
    this.#idempotence = idempotence
  }

  get body(): unknown {
    return this.#checked.body
  }

  get query(): unknown {
    return this.#checked.query
  }

  get params(): readonly string[] {
    return this.#request.params
  }

  /** Undefined where the operation's access allows it. */
  get requester(): Requester {
    return this.#checked.requester as Requester
  }

  get requestId(): string {
    return this.#request.requestId
  }

  get acceptLanguage(): string {
    return this.#request.header('accept-language').slice(0, HEADER_CHARS_MAX)
  }

  get userAgent(): string {
    return this.#request.header('user-agent').slice(0, HEADER_CHARS_MAX)
  }

  get idempotencyKey(): string | undefined {
    return this.#request.header('idempotency-key') || undefined
  }

  get ifMatch(): string {
    return this.#request.header('if-match').slice(0, HEADER_CHARS_MAX)
  }

  get network(): string {
    return this.#request.network
  }

  get nowMs(): number {
    return this.#checked.nowMs
  }

  get commit(): OperationRequest<unknown, unknown, 'session'>['commit'] {
    const { idempotent, nowMs } = this.#checked
    return write => this.#idempotence.commit(write, idempotent, nowMs)
  }

  get askOnce(): OperationRequest<unknown, unknown, 'session'>['askOnce'] {
    return ask => this.#idempotence.askOnce(ask, this.#checked.idempotent)
  }
}

const HEADER_CHARS_MAX = 256
