/**
 * Commands on their way to the rooms of calls, in the writer, whichever process has checked them. Here they count against
 * their rates, and those with one `Idempotency-Key` are carried out one after the other: none that has a kept reply.
 */

import type { CallAnswer, CallReply, CallRequest } from '../../domain/calls/call-command.ts'
import type { CallId } from '../../domain/ids.ts'
import type { IdempotentRequest } from '../../store/tables/idempotency-store.ts'
import type { ApiDeps } from '../deps.ts'

type Deps = Pick<ApiDeps, 'keptReplies' | 'requestRates'> & {
  readonly database: Pick<ApiDeps['database'], 'view'>
}

export class CommandIntake {
  readonly #deps: Deps
  /** Commands with a key that are under way; each resolves when it has ended. */
  readonly #underWay = new Map<string, Promise<void>>()

  constructor(deps: Deps) {
    this.#deps = deps
  }

  /** Takes a device's command. Rejects with `RATE_LIMITED`, `IDEMPOTENCY_KEY_REUSED`, or as `carryOut`. */
  take(
    callId: CallId,
    command: CallRequest,
    idempotent: IdempotentRequest | undefined,
    carryOut: () => Promise<CallReply>,
  ): Promise<CallAnswer> {
    return this.once(idempotent, async () => {
      this.#count(callId, command)
      return carryOut()
    })
  }

  async once(
    request: IdempotentRequest | undefined,
    carryOut: () => Promise<CallReply>,
  ): Promise<CallAnswer> {
    if (request === undefined) return carryOut()
    const name = `${request.scope}\n${request.key}`
    for (let earlier = this.#underWay.get(name); earlier !== undefined; earlier = this.#underWay.get(name)) {
      await earlier
    }
    const { database, keptReplies } = this.#deps
    const text = database.view(view => keptReplies.find(view, request))
    if (text !== undefined) return { kind: 'kept', text }
    const carried = carryOut()
    const isOver = () => void this.#underWay.delete(name)
    this.#underWay.set(name, carried.then(isOver, isOver))
    return carried
  }

  #count(callId: CallId, { kind, by }: CallRequest): void {
    const { requestRates } = this.#deps
    if (requestRates === undefined) return
    const user = `${by.userId}`
    switch (kind) {
      case 'start':
        requestRates.take('call-start', 'user', user)
        return requestRates.take('call-start-day', 'user', user)
      case 'invite':
        return requestRates.take('call-invite', 'user', user)
      case 'request-rejoin':
        return requestRates.take('request-rejoin', 'call', `${user} ${callId}`)
    }
  }
}
