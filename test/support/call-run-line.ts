/**
 * A phone's end of one connection in a seeded run: it signs in, subscribes, reads and acknowledges as STOMP has it. What
 * the server sends is checked in the moment it is sent: that it is durable and the device's own, in order and whole, and
 * neither settled nor taken back.
 */

import type { CallTopicEvent } from '../../src/domain/call-notice.ts'
import type { CallId } from '../../src/domain/ids.ts'
import { parsePosition } from '../../src/domain/inbox.ts'
import { eventText, type Message, noticeIn, ownersOfKeys } from './call-run-ledger.ts'
import { Link, type LinkOwner, type ServerFrame } from './call-run-link.ts'
import type { RunPhone } from './call-run-phone.ts'

/** How a line is used. An obedient one is told everything and acknowledges all of it at once. */
export interface LineManners {
  readonly mode: 'auto' | 'client' | 'client-individual'
  readonly window: number
  readonly hasHeartBeat: boolean
  /** Whether it wants only what is behind the last message that it has seen. */
  readonly goesOn: boolean
  readonly isObedient: boolean
}

interface QueueLine {
  readonly queue: string
  /** The last offset that was sent. */
  cursor: number
  /** Offsets that were sent and that the client has not acknowledged, in order. */
  readonly open: number[]
}

interface TopicLine {
  readonly callId: CallId
  /** Of the call's events the last that was sent; undefined before the first. */
  at: number | undefined
}

export class Line implements LinkOwner {
  readonly link: Link
  readonly manners: LineManners
  readonly #phone: RunPhone
  readonly #queues = new Map<string, QueueLine>()
  readonly #topics = new Map<string, TopicLine>()
  /** By receipt: what is settled when it comes. */
  readonly #acks = new Map<string, readonly number[]>()
  /** Message-ids that are to be acknowledged later, each with its subscription. */
  #waiting: (readonly [QueueLine, string])[] = []

  constructor(phone: RunPhone, manners: LineManners) {
    this.#phone = phone
    this.manners = manners
    const { accept, serial } = phone.run
    this.link = new Link(`line-${serial()}`, accept, this)
    const heartBeat = manners.hasHeartBeat ? '\nheart-beat:10000,10000' : ''
    this.link.write(`CONNECT\naccept-version:1.2\nauthorization:Bearer ${phone.name}${heartBeat}\n\n\0`)
    if (!manners.isObedient) this.link.write('SUBSCRIBE\nid:errors\ndestination:/user/queue/errors\n\n\0')
    for (const queue of ['calls', 'account']) this.#subscribeToQueue(queue)
  }

  watch(callId: CallId): void {
    const id = `call-${callId}`
    if (this.#topics.has(id)) return
    this.#topics.set(id, { callId, at: undefined })
    this.link.write(`SUBSCRIBE\nid:${id}\ndestination:/topic/call.${callId}\n\n\0`)
  }

  unwatch(callId: CallId): void {
    if (this.#topics.delete(`call-${callId}`)) this.link.write(`UNSUBSCRIBE\nid:call-${callId}\n\n\0`)
  }

  send(callId: CallId, command: string, body: object): void {
    const json = JSON.stringify(body, (_, value) => (typeof value === 'bigint' ? String(value) : value))
    const head = `destination:/app/call/${callId}/${command}\ncontent-length:${json.length}`
    this.link.write(`SEND\n${head}\n\n${json}\0`)
  }

  disconnect(): void {
    this.link.write('DISCONNECT\nreceipt:bye\n\n\0')
  }

  /** Acknowledges what was left for later. */
  acknowledge(): void {
    const waiting = this.#waiting
    this.#waiting = []
    for (const [line, messageId] of waiting) this.#acknowledge(line, messageId)
  }

  /** Whether the client knows all that there is for it. */
  get isUpToDate(): boolean {
    const { link } = this
    if (link.isEnding || link.isUnread) return false
    return [...this.#phone.ledger.messages.values()].every(({ offset, queue }) => {
      const line = this.#queues.get(queue)
      return line === undefined || offset <= line.cursor
    })
  }

  /** Messages that the server has neither sent nor is kept from sending; to be called at rest. */
  missing(nowMs: number): Message[] {
    if (this.link.isEnding || this.manners.goesOn) return []
    return [...this.#phone.ledger.messages.values()].filter(message => {
      const line = this.#queues.get(message.queue)
      if (line === undefined || message.offset <= line.cursor || nowMs >= message.expiresAtMs) return false
      return this.manners.mode === 'auto' || line.open.length < this.manners.window
    })
  }

  onSent(_link: Link, frame: ServerFrame): void {
    const { run, name } = this.#phone
    for (const owner of ownersOfKeys(frame.body)) {
      if (owner !== name) run.violate(`${name} is sent a key of ${owner}`)
    }
    if (frame.body.includes('"INTERNAL"')) run.violate(`${name} is told of a fault: ${frame.body}`)
    if (frame.command !== 'MESSAGE') return
    const id = frame.header('subscription')!
    const queue = this.#queues.get(id)
    if (queue !== undefined) return this.#checkMessage(queue, frame)
    const topic = this.#topics.get(id)
    if (topic !== undefined) this.#checkEvent(topic, frame)
  }

  onFrame(_link: Link, frame: ServerFrame): void {
    if (frame.command === 'RECEIPT') return this.#onReceipt(frame.header('receipt-id')!)
    const line = this.#queues.get(frame.header('subscription') ?? '')
    if (line === undefined) return
    const messageId = frame.header('message-id')!
    const { offset } = parsePosition(messageId)!
    this.#phone.onMessage(line.queue, messageId, offset, frame.body)
    if (this.manners.mode === 'auto') return
    const { draw } = this.#phone.run
    if (this.manners.isObedient || draw.chance(0.7)) this.#acknowledge(line, messageId)
    else if (draw.chance(0.5)) this.#waiting.push([line, messageId])
  }

  onOver(): void {
    this.#phone.onLineOver(this)
  }

  #subscribeToQueue(queue: string): void {
    const { mode, window, goesOn } = this.manners
    const since = goesOn ? this.#phone.positions.get(queue) : undefined
    const cursor = since === undefined ? 0 : parsePosition(since)!.offset
    this.#queues.set(queue, { queue, cursor, open: [] })
    const more = `ack:${mode}\nprefetch-count:${window}${since === undefined ? '' : `\nsince:${since}`}`
    this.link.write(`SUBSCRIBE\nid:${queue}\ndestination:/user/queue/${queue}\n${more}\n\n\0`)
  }

  #checkMessage(line: QueueLine, frame: ServerFrame): void {
    const { run, name, ledger, confirmed } = this.#phone
    const { offset } = parsePosition(frame.header('message-id')!)!
    const wrong = (what: string) => run.violate(`${name} is sent ${frame.header('type')} ${offset}: ${what}`)
    if (confirmed.has(offset)) wrong('it has acknowledged it')
    const message = ledger.messages.get(offset)
    if (message === undefined) return wrong(`it is ${ledger.gone.get(offset) ?? 'not durable'}`)
    const notice = noticeIn(message)!
    if (!frame.body.includes(notice.eventId) || frame.header('type') !== notice.kind) wrong('that is another')
    const nowMs = run.nowMs()
    if (nowMs > message.expiresAtMs + CLOCK_DRIFT_MS) wrong('its time is over')
    if (offset <= line.cursor) wrong(`after ${line.cursor}`)
    for (const before of ledger.messages.values()) {
      const isMissing = before.offset > line.cursor && before.offset < offset && before.queue === line.queue
      if (!isMissing || nowMs >= before.expiresAtMs || run.isSettling(this.#phone, before.offset)) continue
      wrong(`${before.offset} is missing before it`)
    }
    line.cursor = offset
    line.open.push(offset)
  }

  /** The events of a call come in their order and without gap from the first one on. */
  #checkEvent(topic: TopicLine, frame: ServerFrame): void {
    const { run, name } = this.#phone
    const body = JSON.parse(frame.body)
    const text = eventText({ ...body, kind: body.type } as CallTopicEvent, body.sentAt)
    const events = run.ledger.calls.get(topic.callId)?.events ?? []
    const at = topic.at === undefined ? events.indexOf(text) : topic.at + 1
    if (events[at] !== text) run.violate(`${name} is sent "${text}" of ${topic.callId} out of order`)
    topic.at = at
  }

  #acknowledge(line: QueueLine, messageId: string): void {
    const { offset } = parsePosition(messageId)!
    const isOne = this.manners.mode === 'client-individual'
    const covered = line.open.filter(each => (isOne ? each === offset : each <= offset))
    for (const each of covered) line.open.splice(line.open.indexOf(each), 1)
    const receipt = `ack-${this.#phone.run.serial()}`
    this.#acks.set(receipt, covered)
    this.link.write(`ACK\nid:${messageId}\nreceipt:${receipt}\n\n\0`)
  }

  #onReceipt(receipt: string): void {
    for (const offset of this.#acks.get(receipt) ?? []) this.#phone.confirmed.add(offset)
    this.#acks.delete(receipt)
  }
}

/** The clock moves with each reading, and was read a little before. */
const CLOCK_DRIFT_MS = 200
