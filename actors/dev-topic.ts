/**
 * A topic of the development surface (contract 14), id = its name: plain publish-subscribe among signed-in devices, to
 * try protocol, fan-out and stock clients without a call.
 */

import type { Actor, ActorKind, Context } from '../src/runtime/actor.ts'
import { Broadcast } from '../src/stomp/broadcast.ts'
import type { Headers } from '../src/stomp/frame.ts'
import { LiveTopic } from './live-topic.ts'
import type { DevTopicMessage } from './messages.ts'

/** A topic that lost its subscribers by failing is a defect to be seen, not one to be mended: it is for trying things. */
export function devTopicKind(): ActorKind<DevTopicMessage> {
  return {
    kind: 'dev-topic',
    mailboxMessagesMax: MAILBOX_MESSAGES_MAX,
    onFailure: 'rebuild',
    idleMs: IDLE_MS,
    create: (id, context) => new DevTopic(context, id),
  }
}

class DevTopic implements Actor<DevTopicMessage> {
  readonly #context: Context<DevTopicMessage>
  readonly #topic: LiveTopic
  /** Unlike those of an actor that was here before under the same name. */
  readonly #messageIdStart: string
  #published = 0

  constructor(context: Context<DevTopicMessage>, name: string) {
    this.#context = context
    this.#topic = new LiveTopic(name)
    const born = context.nowMs().toString(36)
    this.#messageIdStart = `t${born}${Math.floor(context.random() * 36 ** 4).toString(36)}-`
  }

  receive(message: DevTopicMessage): void {
    switch (message.kind) {
      case 'subscribe':
        return this.#topic.subscribe(message.subscriber, message.tag)
      case 'unsubscribe':
        return void this.#topic.unsubscribe(message.connectionId)
      case 'publish':
        return this.#onPublish(message.headers, message.body)
      case 'tell-more':
        if (!this.#topic.tellMore()) this.#tellMoreLater()
    }
  }

  canPassivate(): boolean {
    return this.#topic.subscriberCount === 0
  }

  #onPublish(headers: Headers, body: Uint8Array): void {
    this.#published += 1
    const broadcast = new Broadcast(`${this.#messageIdStart}${this.#published.toString(36)}`, headers, body)
    const wasQuiet = this.#topic.isQuiet
    if (!this.#topic.publish(broadcast) && wasQuiet) this.#tellMoreLater()
  }

  /** In the control lane: a mailbox full of messages to publish must not delay it. */
  #tellMoreLater(): void {
    this.#context.self.tellControl({ kind: 'tell-more' })
  }
}

/** A burst of the most frames that one WebSocket message can hold does not fill it. */
const MAILBOX_MESSAGES_MAX = 32_768
const IDLE_MS = 60_000
