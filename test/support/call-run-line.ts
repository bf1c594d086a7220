/**
 * A phone's end of one connection in a seeded run: it signs in, subscribes, reads and acknowledges by STOMP's rules.
 * Each message is checked as it is sent: durable, the device's own, in order and whole, and neither settled nor taken
 * back.
 */

import type { CallTopicEvent } from '../../src/domain/calls/call-notice.ts'
import type { CallId } from '../../src/domain/ids.ts'
import { isLiveId, parsePosition } from '../../src/domain/messages/inbox-position.ts'
import { eventText, type Message, noticeIn, ownersOfKeys } from './call-run-ledger.ts'
import { Link, type LinkOwner, type ServerFrame } from './call-run-link.ts'
import type { RunPhone } from './call-run-phone.ts'

/** How a line is used. An obedient one gets everything and acknowledges all of it at once. */
export interface LineManners {
  readonly mode: 'auto' | 'client' | 'client-individual'
  readonly window: number
  readonly hasHeartBeat: boolean
  /** Whether it wants only messages behind the last one that it has seen. */
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
  /** The last sent event of the call; undefined before the first. */
  at: number | undefined
}

export class Line implements LinkOwner {
  readonly link: Link
  readonly manners: LineManners
  readonly #phone: RunPhone
  readonly #queues = new Map<string, QueueLine>()
  readonly #topics = new Map<string, TopicLine>()
  /** By receipt: the offsets that it settles. */
  readonly #acks = new Map<string, readonly number[]>()
  /** Message-ids that are to be acknowledged later, each with its subscription. */
  #waiting: (readonly [QueueLine, string])[] = []
  /** How many missed calls the server said last, by a badge or beside the end of a ring. */
  missedCalls: number | undefined

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

  /** Acknowledges the messages left for later. */
  acknowledge(): void {
    const waiting = this.#waiting
    this.#waiting = []
    for (const [line, messageId] of waiting) this.#acknowledge(line, messageId)
  }

  /** Whether the connection goes on, and the client has read everything sent. */
  get isReading(): boolean {
    return !this.link.isEnding && !this.link.isUnread
  }

  /** Whether the client knows all that there is for it. */
  get isUpToDate(): boolean {
    if (!this.isReading) return false
    return [...this.#phone.ledger.messages.values()].every(({ offset, queue }) => {
      const line = this.#queues.get(queue)
      return line === undefined || offset <= line.cursor
    })
  }

  /** Messages that the server has neither sent nor is kept from sending. Call at rest. */
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
    if (queue !== undefined) {
      if (frame.header('type') === 'badge') return this.#checkBadge(queue, frame)
      this.#checkMessage(queue, frame)
      return this.#noteBadgeBeside(frame)
    }
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

  /** A badge is sent when it has changed, and names the message before it. */
  #checkBadge(line: QueueLine, frame: ServerFrame): void {
    const { run, name } = this.#phone
    const wrong = (what: string) => run.violate(`${name} is sent a badge ${what}`)
    const { missedCalls } = JSON.parse(frame.body)
    if (line.queue !== 'account') wrong(`on ${line.queue}`)
    if (missedCalls === this.missedCalls) wrong('that it knows')
    if (frame.header('redelivered') !== undefined) wrong('again')
    const messageId = frame.header('message-id')!
    const { offset } = parsePosition(messageId)!
    if (!isLiveId(messageId) || offset !== line.cursor) wrong(`as ${messageId} after ${line.cursor}`)
    this.missedCalls = missedCalls
  }

  #noteBadgeBeside(frame: ServerFrame): void {
    const isFirst = frame.header('redelivered') === undefined
    if (!frame.body.includes('"badge":') || !isFirst || this.missedCalls === undefined) return
    this.missedCalls = JSON.parse(frame.body).badge.missedCalls
  }

  /** The events of a call come in their order and without gap from the first one on. */
  #checkEvent(topic: TopicLine, frame: ServerFrame): void {
    const { run, name } = this.#phone
    const body = JSON.parse(frame.body)
    // It follows from no change of the call.
    if (body.type === 'participant_unreachable') return
    const text = eventText({ ...body, kind: body.type } as CallTopicEvent, body.sentAt)
    const events = run.ledger.calls.get(topic.callId)?.events ?? []
    const at = topic.at === undefined ? events.indexOf(text) : topic.at + 1
    if (events[at] !== text) run.violate(`${name} is sent "${text}" of ${topic.callId} out of order`)
    topic.at = at
  }

  #acknowledge(line: QueueLine, messageId: string): void {
    const { offset } = parsePosition(messageId)!
    const isOne = this.manners.mode === 'client-individual'
    const covers = (each: number) => (isOne ? each === offset && !isLiveId(messageId) : each <= offset)
    const covered = line.open.filter(covers)
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
