/**
 * The writer's desk for one front (id = the front's name): requests that change something, which the front's own store
 * can't answer.
 */

import type { CallAnswer } from '../src/domain/calls/call-command.ts'
import type { CallId } from '../src/domain/ids.ts'
import { SignalError } from '../src/errors.ts'
import type { Registration } from '../src/keyserver/registration.ts'
import type { Actor, ActorKind, Context, Reply } from '../src/runtime/actor.ts'
import type { InboxWrites } from '../src/store/messages/inbox-writes.ts'
import type { IdempotentRequest } from '../src/store/tables/idempotency-store.ts'
import type { ShownRequest } from '../src/transport/http-deps.ts'
import type { HttpAnswer } from '../src/transport/route.ts'
import { AnswerStreams } from './answer-streams.ts'
import type { ForwardedAnswer, ForwardedRequest, FrontDeskMessage, SentCommand } from './messages.ts'

/** An answer: whole, or its head and the parts that its body is made of. */
export interface DeskAnswer {
  readonly answer: HttpAnswer & { readonly body: string | Uint8Array }
  readonly parts?: AsyncIterable<Uint8Array>
}

export interface FrontDeskDeps {
  /** Has the room of a call carry the command out. Rejects as `answer`. */
  readonly command: (
    callId: CallId,
    command: SentCommand,
    idempotent: IdempotentRequest | undefined,
  ) => Promise<CallAnswer>
  /** Has the route of this method and path answer. Rejects with a `SignalError` for what the peer may hear of. */
  readonly answer: (route: string, request: ForwardedRequest) => Promise<DeskAnswer>
  /** Makes a name that no writer has given to a stream before. */
  readonly newStreamName: () => string
  readonly inbox: InboxWrites
  /** Shown what the front has answered; absent but in development. */
  readonly onServed?: ((requests: readonly ShownRequest[]) => void) | undefined
  /** Resolves when every process shows the key. */
  readonly register: (userId: bigint, deviceId: bigint, publicKey: string) => Promise<Registration>
  /** See `catch-up` of `FrontDeskMessage`. */
  readonly catchUp: () => Promise<void>
  /** Told of a fault of ours. */
  readonly onFault: (error: unknown, requestId?: string) => void
}

export function frontDeskKind(deps: FrontDeskDeps): ActorKind<FrontDeskMessage> {
  return {
    kind: 'front-desk',
    mailboxMessagesMax: MAILBOX_MESSAGES_MAX,
    onFailure: 'rebuild',
    create: (_id, context) => new FrontDesk(deps, context),
  }
}

class FrontDesk implements Actor<FrontDeskMessage> {
  readonly #deps: FrontDeskDeps
  readonly #streams: AnswerStreams

  constructor(deps: FrontDeskDeps, context: Context<FrontDeskMessage>) {
    this.#deps = deps
    const remind = (stream: string, ms: number | undefined) =>
      ms === undefined
        ? context.cancelTimer(stream)
        : context.startTimer(stream, ms, { kind: 'stop-stream', stream })
    this.#streams = new AnswerStreams(deps.newStreamName, remind, deps.onFault)
  }

  onStopped(): void {
    this.#streams.close()
  }

  receive(message: FrontDeskMessage): void {
    const { inbox, onServed, register, catchUp } = this.#deps
    switch (message.kind) {
      case 'request': {
        const { route, request, reply } = message
        return this.#pass(this.#answer(route, request), reply, request.requestId)
      }
      case 'command': {
        const { callId, command, idempotent, reply } = message
        return this.#pass(this.#deps.command(callId, command, idempotent), reply)
      }
      case 'next-part':
        return this.#pass(this.#streams.next(message.stream), message.reply)
      case 'stop-stream':
        return this.#streams.stop(message.stream)
      case 'front-gone':
        return this.#streams.stopAll()
      case 'settle':
        return this.#pass(inbox.settle(message.settled, message.sent), message.reply)
      case 'register': {
        const { userId, deviceId, publicKey, reply } = message
        return this.#pass(register(userId, deviceId, publicKey), reply)
      }
      case 'mark-delivered': {
        const { userId, deviceId, delivered, reply } = message
        return this.#pass(inbox.markDelivered(userId, deviceId, delivered), reply)
      }
      case 'catch-up':
        return this.#pass(catchUp(), message.reply)
      case 'served':
        return onServed?.(message.requests)
    }
  }

  async #answer(route: string, request: ForwardedRequest): Promise<ForwardedAnswer> {
    const { answer, parts } = await this.#deps.answer(route, request)
    return parts === undefined ? answer : { ...answer, stream: this.#streams.open(parts) }
  }

  #pass<Answer>(answer: Promise<unknown>, reply: Reply<Answer>, requestId?: string): void {
    answer.then(
      value => reply.answer(value as Answer),
      error => this.#refuse(reply, error, requestId),
    )
  }

  #refuse(reply: Reply<never>, error: unknown, requestId: string | undefined): void {
    if (error instanceof SignalError) return reply.refuse(error)
    this.#deps.onFault(error, requestId)
    reply.refuse(new SignalError('INTERNAL', 'the writer met a fault of its own'))
  }
}

/** The link bounds them by octets. After a pause of the writer more may come at once than any smaller number of plain writes. */
const MAILBOX_MESSAGES_MAX = 131_072
