/**
 * A message to everybody who is subscribed to a live topic. Clients of one kind number their subscriptions alike, so
 * most receivers get the very same octets: those are encoded once and sent to all of them.
 */
import type { Headers } from './frame.ts'
import { MessageTemplate, type SubscriptionHead } from './serializer.ts'

export class Broadcast {
  /** The same for every receiver, and of no other message. */
  readonly messageId: string
  readonly headers: Headers
  readonly body: Uint8Array
  readonly #template: MessageTemplate
  #lastHead: SubscriptionHead | undefined = undefined
  #lastFrame: Buffer | undefined = undefined

  /** `messageId` is of ASCII letters, digits, `-` and `_`; `headers` are those of a `MessageTemplate`. */
  constructor(messageId: string, headers: Headers, body: Uint8Array) {
    this.messageId = messageId
    this.headers = headers
    this.body = body
    this.#template = new MessageTemplate(headers, body)
  }

  /** Whether it may travel as a text WebSocket message. */
  get isText(): boolean {
    return this.#template.isText
  }

  /** The MESSAGE for a subscription. Read only: several receivers may share the bytes. */
  encode(head: SubscriptionHead): Buffer {
    if (head !== this.#lastHead || this.#lastFrame === undefined) {
      this.#lastFrame = this.#template.encode(head, this.messageId)
      this.#lastHead = head
    }
    return this.#lastFrame
  }
}
