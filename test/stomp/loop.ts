/**
 * The least session around the codec: no sockets, no store, no clock, one client that hears itself on live topics. It
 * decides nothing but what the codec needs of a session, so what it lets through is what the codec lets through.
 */
import type { Frame, Headers, StompVersion } from '../../src/stomp/frame.ts'
import { negotiateVersion } from '../../src/stomp/frame.ts'
import { negotiateHeartBeat } from '../../src/stomp/heart-beat.ts'
import { StompParser } from '../../src/stomp/parser.ts'
import { FrameRefusal } from '../../src/stomp/refusal.ts'
import { encodeFrame, MessageTemplate, SubscriptionHead } from '../../src/stomp/serializer.ts'
import { userHeaders } from '../../src/stomp/user-headers.ts'
import { type NaiveFrame, NaiveParser, serverRules } from '../support/naive-stomp.ts'

/** A frame as the client got it: one WebSocket message. */
export interface SentFrame extends NaiveFrame {
  readonly octets: Buffer
  readonly isText: boolean
}

interface Subscription {
  readonly id: string | undefined
  readonly destination: string
  readonly head: SubscriptionHead
}

export class CodecLoop {
  readonly parser = new StompParser()
  readonly sent: SentFrame[] = []
  refusal: FrameRefusal | undefined = undefined
  isOver = false
  #subscriptions: Subscription[] = []
  #messages = 0

  receive(chunk: Uint8Array): void {
    if (this.isOver || this.refusal !== undefined) return
    // The memory of a chunk is its owner's again once it is read; damage reveals octets that were not copied out of it.
    const lent = Uint8Array.from(chunk)
    try {
      this.parser.feed(lent)
      while (!this.isOver) {
        const frame = this.parser.next()
        if (frame === undefined) break
        this.#onFrame(frame)
      }
    } catch (error) {
      if (!(error instanceof FrameRefusal)) throw error
      this.refusal = error
    }
    lent.fill(0xff)
  }

  #onFrame(frame: Frame): void {
    switch (frame.command) {
      case 'CONNECT':
      case 'STOMP':
        return this.#onConnect(frame)
      case 'SUBSCRIBE':
        this.#onSubscribe(frame)
        break
      case 'UNSUBSCRIBE':
        this.#onUnsubscribe(frame)
        break
      case 'SEND':
        this.#onSend(frame)
        break
      case 'DISCONNECT':
        this.isOver = true
    }
    const receipt = frame.header('receipt')
    if (receipt !== undefined) this.#send(encodeFrame('RECEIPT', ['receipt-id', receipt], this.#version))
  }

  #onConnect(frame: Frame): void {
    const version = negotiateVersion(frame.header('accept-version'))
    if (version === undefined) return
    const { header } = negotiateHeartBeat(frame.header('heart-beat'), version)
    const beats: Headers = header === undefined ? [] : ['heart-beat', header]
    this.parser.version = version
    this.parser.frameBytesMax = 256 * 1024
    this.#send(encodeFrame('CONNECTED', ['version', version, 'session', 's-1', ...beats], version))
  }

  #onSubscribe(frame: Frame): void {
    const id = frame.header('id')
    const destination = frame.header('destination') ?? ''
    const head = new SubscriptionHead(
      this.#version,
      id,
      destination,
      (frame.header('ack') ?? 'auto') !== 'auto',
    )
    this.#subscriptions.push({ id, destination, head })
  }

  #onUnsubscribe(frame: Frame): void {
    const name = frame.header('id') === undefined ? 'destination' : 'id'
    this.#subscriptions = this.#subscriptions.filter(each => each[name] !== frame.header(name))
  }

  #onSend(frame: Frame): void {
    const template = new MessageTemplate(userHeaders(frame.headers), frame.body)
    for (const { destination, head } of this.#subscriptions) {
      if (destination !== frame.header('destination')) continue
      this.#send(template.encode(head, `m-${++this.#messages}`), template.isText)
    }
  }

  get #version(): StompVersion {
    return this.parser.version ?? '1.0'
  }

  #send(octets: Buffer, isText = true): void {
    const [frame, ...more] = new NaiveParser(serverRules(this.#version)).read(octets)
    if (frame === undefined || more.length > 0) throw new Error('not one frame')
    this.sent.push({ ...frame, octets, isText })
  }
}

/** A loop in the state that a case begins with. */
export function loopIn(session: string): CodecLoop {
  const loop = new CodecLoop()
  const connected = /^C1([012])/.exec(session)
  if (connected === null) return loop
  loop.receive(Buffer.from(`CONNECT\naccept-version:1.${connected[1]}\nhost:h\n\n\0`))
  const subscribed = /\+s1([ci]?)/.exec(session)
  if (subscribed !== null) {
    const ack = { '': 'auto', c: 'client', i: 'client-individual' }[subscribed[1]!]
    loop.receive(Buffer.from(`SUBSCRIBE\nid:s1\ndestination:/topic/dev.t\nack:${ack}\n\n\0`))
  }
  loop.sent.length = 0
  return loop
}
