/**
 * One connection to another process of the same server, for the messages of all actors. The messages of one turn of the
 * event loop leave as one frame: each frame wakes the other process up, which costs more than to read it (`fronts` in
 * `bench/`). Both ends first say which form they speak; an end that falls silent is given up.
 *
 * Nothing here is for strangers: the other end is a child or parent of this process, or a node that has proven itself
 * (`link-proof.ts`). It may all the same be of another version, broken, or slow, so frames are bounded, only kinds that are
 * served are spoken to, and one mistake ends the link.
 */

import type { Duplex } from 'node:stream'
import { messageOf, SignalError } from '../../errors.ts'
import type { Ref } from '../../runtime/actor.ts'
import type { PendingAsk } from '../../runtime/ask.ts'
import type { World } from '../../runtime/clock.ts'
import type { Port } from '../../runtime/port.ts'
import type { ActorSystem } from '../../runtime/system.ts'
import { Codec, type RemoteReply } from './codec.ts'
import { FrameWriter } from './frame-writer.ts'
import { FrameReader } from './frames.ts'
import type { LinkMacs } from './link-proof.ts'

/** The other process, by its own words. */
export interface Peer {
  readonly name: string
  readonly version: string
}

export type LossOf = 'closed' | 'failed' | 'silent' | 'malformed' | 'other form'

/** The link has ended, and why. */
export class LinkLost extends SignalError {
  readonly by: LossOf

  constructor(by: LossOf, why: string) {
    super('STORE_UNAVAILABLE', `the link to the other process is lost: ${why}`)
    this.by = by
  }
}

export interface LinkOptions {
  readonly socket: Duplex
  /** To another node. */
  readonly macs?: LinkMacs
  /** This process, for the other one. */
  readonly self: Peer
  readonly system: Pick<ActorSystem, 'ref' | 'remoteRef'>
  /** The kinds of actors that the other process may speak to, each with a check of its messages' form. */
  readonly serves: ReadonlyMap<string, (message: unknown) => boolean>
  readonly world: Pick<World, 'monotonicMs' | 'immediate' | 'every'>
  /**
   * Hears what the other process sends by `send`, before any later message of it reaches an actor; where a promise is returned,
   * they wait until it has resolved.
   */
  readonly onMessage?: (message: unknown, link: Link) => Promise<void> | undefined
  /**
   * What an actor of this kind answers, or refuses with, waits for it before it goes to the other process; where it rejects,
   * that goes.
   */
  readonly beforeAnswer?: (kind: string) => Promise<void> | undefined
  /** The other end has said who it is. */
  readonly onOpen?: (peer: Peer) => void
  /** Called once, unless this end closed the link. Asks under way have been refused. */
  readonly onLost?: (reason: LinkLost) => void
  /** How long the other end may say nothing. */
  readonly silenceMsMax?: number
  /** Octets on their way, above which messages are refused. */
  readonly waitingBytesMax?: number
}

export class Link implements Port {
  readonly #options: LinkOptions
  readonly #codec: Codec
  readonly #reader: FrameReader
  readonly #writer: FrameWriter
  readonly #waitingBytesMax: number
  #silenceMsMax: number
  readonly #stopTicking: () => void
  /** Asks that wait for the other end, by number. */
  readonly #asks = new Map<number, PendingAsk<never>>()
  #lastNumber = 0
  /** Told to several actors in a row, it is written once. */
  #told: Told | undefined
  #peer: Peer | undefined
  #isClosed = false
  #heardAtMs: number
  #tickedAtMs: number
  /** Whether a promise of `onMessage` is waited for. */
  #isHolding = false
  /** Entries that came during that. */
  #held: HeldEntry[] = []

  constructor(options: LinkOptions) {
    const {
      socket,
      macs,
      self,
      system,
      world,
      waitingBytesMax = WAITING_BYTES_MAX,
      silenceMsMax = SILENCE_MS,
    } = options
    this.#options = options
    this.#waitingBytesMax = waitingBytesMax
    this.#silenceMsMax = silenceMsMax
    this.#codec = new Codec({
      port: this,
      remoteRef: (kind, id) => system.remoteRef(this, kind, id),
      localRef: (kind, id) => this.#served(kind, id),
    })
    this.#reader = new FrameReader(FRAME_BYTES_MAX, frame => this.#onFrame(frame), macs?.received)
    this.#writer = new FrameWriter(socket, world, () => this.#writeTold(), macs?.sent)
    this.#heardAtMs = this.#tickedAtMs = world.monotonicMs()
    socket.on('data', (chunk: Buffer) => this.#onBytes(chunk))
    socket.on('error', error => this.#lose('failed', `the connection failed: ${messageOf(error)}`))
    for (const event of ['end', 'close'])
      socket.on(event, () => this.#lose('closed', 'the other process has closed it'))
    this.#stopTicking = world.every(BEAT_MS, () => this.#onTick())
    this.#pack([LINK_FORM, self.name, self.version])
  }

  tell(kind: string, id: string, message: unknown, instead?: unknown): boolean {
    if (!this.#hasRoom) return false
    const told = this.#told
    if (told?.kind === kind && told.message === message && told.instead === instead) {
      told.ids.push(id)
      return true
    }
    this.#writeTold()
    this.#told = { kind, ids: [id], message, instead }
    this.#writer.flushSoon()
    return true
  }

  tellControl(kind: string, id: string, message: unknown): boolean {
    if (this.#isClosed) return false
    this.#write([CONTROL, kind, id, message])
    return true
  }

  /** To the other process as such, in order with its messages. */
  send(message: unknown): void {
    if (!this.#isClosed) this.#write([MESSAGE, message])
  }

  /** As `send`, but it may wait some milliseconds for the next message. */
  sendSoon(message: unknown): void {
    if (this.#isClosed) return
    this.#writeTold()
    this.#pack([MESSAGE, message], () => this.#writer.flushLater())
  }

  ask(kind: string, id: string, ask: PendingAsk<never>, deadlineMs: number): boolean {
    if (!this.#hasRoom) return false
    const number = ++this.#lastNumber
    ask.heldBy({ forgetAsk: () => this.#asks.delete(number) })
    this.#asks.set(number, ask)
    this.#write([ASK, kind, id, number, deadlineMs, ask.content])
    return true
  }

  /** Sends the messages told so far and ends the connection. Refuses asks under way. */
  close(): void {
    if (this.#isClosed) return
    this.#writer.flush()
    this.#end(new SignalError('STORE_UNAVAILABLE', 'the link to the other process is closed'))
    this.#options.socket.end()
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  /** Loses the link when the other end is silent for longer. */
  limitSilence(ms: number): void {
    this.#silenceMsMax = ms
  }

  get #hasRoom(): boolean {
    return !this.#isClosed && this.#writer.waitingBytes <= this.#waitingBytesMax
  }

  #write(entry: readonly unknown[]): void {
    this.#writeTold()
    this.#pack(entry)
  }

  #writeTold(): void {
    if (this.#told === undefined) return
    const { kind, ids, message, instead } = this.#told
    this.#told = undefined
    this.#pack(instead === undefined ? [TELL, kind, ids, message] : [TELL, kind, ids, message, instead])
  }

  #pack(entry: readonly unknown[], schedule = () => this.#writer.flushSoon()): void {
    try {
      this.#add(this.#codec.pack(entry), schedule)
    } catch (error) {
      // The other end would miss the names that it had in it.
      this.#lose('failed', `a message could not be written: ${messageOf(error)}`)
    }
  }

  #add(part: Buffer, schedule: () => void): void {
    // Control messages have a bound, too: an end that does not read is given up.
    if (this.#writer.waitingBytes + part.length > this.#waitingBytesMax + CONTROL_BYTES_MAX)
      return this.#lose('failed', 'the other process is too slow')
    schedule()
    this.#writer.add(part)
  }

  #onTick(): void {
    this.#writer.beat()
    const { world } = this.#options
    const nowMs = world.monotonicMs()
    // After a pause of this process itself, what the other end said may still wait to be read.
    const wasAwake = nowMs - this.#tickedAtMs < this.#silenceMsMax / 2
    this.#tickedAtMs = nowMs
    const silenceMsMax = this.#peer === undefined ? START_MS_MAX : this.#silenceMsMax
    if (wasAwake && !this.#isHolding && nowMs - this.#heardAtMs > silenceMsMax)
      this.#lose('silent', `nothing was heard for ${silenceMsMax} ms`)
  }

  #onBytes(chunk: Buffer): void {
    if (this.#isClosed) return
    this.#heardAtMs = this.#options.world.monotonicMs()
    try {
      this.#reader.add(chunk)
    } catch (error) {
      this.#lose('malformed', `what came is not of its form: ${messageOf(error)}`)
    }
  }

  #onFrame(frame: Buffer): void {
    if (frame.length === 0 || this.#isClosed) return
    this.#codec.unpackAll(frame, (entry, replies) => {
      if (this.#isClosed) return
      if (this.#isHolding) this.#held.push({ entry, replies })
      else this.#onEntry(entry, replies)
    })
  }

  /** Reads nothing more until then. */
  #hold(until: Promise<void>): void {
    this.#isHolding = true
    this.#options.socket.pause()
    until.then(
      () => this.#goOn(),
      (error: unknown) => this.#lose('failed', `a message can not be handled: ${messageOf(error)}`),
    )
  }

  #goOn(): void {
    this.#isHolding = false
    this.#heardAtMs = this.#options.world.monotonicMs()
    try {
      while (this.#held.length > 0 && !this.#isHolding && !this.#isClosed) {
        const { entry, replies } = this.#held.shift()!
        this.#onEntry(entry, replies)
      }
    } catch (error) {
      return this.#lose('malformed', `what came is not of its form: ${messageOf(error)}`)
    }
    if (!this.#isHolding) this.#options.socket.resume()
  }

  #onEntry(entry: unknown, replies: readonly RemoteReply[]): void {
    if (!Array.isArray(entry)) throw malformed('an entry is an array')
    if (this.#peer === undefined) return this.#onHello(entry)
    const [type, ...members] = entry
    switch (type) {
      case TELL:
        return this.#onTell(members)
      case CONTROL: {
        const [kind, id, message] = members
        return this.#served(kind, id).tellControl(this.#checked(kind, message))
      }
      case ASK:
        return this.#onAsk(members, replies)
      case MESSAGE:
        return this.#onMessage(members[0])
      case ANSWER:
      case REFUSAL:
        return this.#onOutcome(type, members)
      default:
        throw malformed('an entry is of a known type')
    }
  }

  #onMessage(message: unknown): void {
    const until = this.#options.onMessage?.(message, this)
    if (until !== undefined) this.#hold(until)
  }

  #onHello([form, name, version]: readonly unknown[]): void {
    if (typeof form !== 'number' || typeof name !== 'string' || typeof version !== 'string')
      throw malformed('a process says first which form it speaks, and who it is')
    if (form !== LINK_FORM) {
      const forms = `${name} of version ${version} speaks form ${form} between processes, this program form ${LINK_FORM}`
      return this.#lose('other form', forms)
    }
    this.#peer = { name, version }
    this.#options.onOpen?.(this.#peer)
  }

  #onTell([kind, ids, message, instead]: readonly unknown[]): void {
    if (!Array.isArray(ids)) throw malformed('a message has receivers')
    this.#checked(kind, message)
    if (instead !== undefined) this.#checked(kind, instead)
    for (const id of ids) {
      const ref = this.#served(kind, id)
      if (instead === undefined) ref.tell(message)
      else ref.tellOr(message, instead)
    }
  }

  #onAsk([kind, id, number, deadlineMs, message]: readonly unknown[], replies: readonly RemoteReply[]): void {
    if (
      typeof number !== 'number' ||
      typeof deadlineMs !== 'number' ||
      !(deadlineMs > 0 && deadlineMs <= DEADLINE_MS_MAX)
    )
      throw malformed('an ask has a number and a deadline')
    const ref = this.#served(kind, id)
    this.#checked(kind, message)
    const asked = ref.ask<unknown>(reply => {
      for (const each of replies) each.bind(reply)
      return message
    }, deadlineMs)
    asked
      .finally(() => this.#options.beforeAnswer?.(ref.kind))
      .then(
        answer => this.#isClosed || this.#write([ANSWER, number, answer]),
        (error: unknown) => this.#isClosed || this.#write([REFUSAL, number, error]),
      )
  }

  /** The ask may have ended since. */
  #onOutcome(type: typeof ANSWER | typeof REFUSAL, [number, outcome]: readonly unknown[]): void {
    const ask = this.#asks.get(number as number)
    if (ask === undefined) return
    if (type === ANSWER) ask.answer(outcome as never)
    else if (outcome instanceof SignalError) ask.refuse(outcome)
    else throw malformed('a refusal has a reason')
  }

  #served(kind: unknown, id: unknown): Ref<unknown> {
    const { serves, system } = this.#options
    if (typeof kind !== 'string' || typeof id !== 'string' || !serves.has(kind))
      throw malformed(`actors of kind ${String(kind)} are not spoken to from elsewhere`)
    return system.ref(kind, id)
  }

  #checked(kind: unknown, message: unknown): unknown {
    if (this.#options.serves.get(kind as string)?.(message) !== true)
      throw malformed(`a message to ${String(kind)} is of a known form`)
    return message
  }

  /** Refuses asks under way: the other process will not answer them. */
  refuseAsks(reason: SignalError): void {
    for (const ask of [...this.#asks.values()]) ask.discard(reason)
  }

  #lose(by: LossOf, why: string): void {
    if (this.#isClosed) return
    const reason = new LinkLost(by, why)
    this.#end(reason)
    this.#options.socket.destroy()
    this.#options.onLost?.(reason)
  }

  #end(reason: SignalError): void {
    this.#isClosed = true
    this.#stopTicking()
    this.#writer.close()
    this.#told = undefined
    this.refuseAsks(new SignalError('OUTCOME_UNKNOWN', reason.message))
  }
}

interface HeldEntry {
  readonly entry: unknown
  readonly replies: readonly RemoteReply[]
}

interface Told {
  readonly kind: string
  readonly ids: string[]
  readonly message: unknown
  readonly instead: unknown
}

function malformed(rule: string): SignalError {
  return new SignalError('MALFORMED', rule)
}

/**
 * The form of entries and of the messages in them, raised when the program before this one would misread any. A process
 * with another form gets no messages.
 */
export const LINK_FORM = 9
const TELL = 0
const CONTROL = 1
const ASK = 2
const ANSWER = 3
const REFUSAL = 4
const MESSAGE = 5
const FRAME_BYTES_MAX = 64 * 1_048_576
const WAITING_BYTES_MAX = 16 * 1_048_576
const CONTROL_BYTES_MAX = 32 * 1_048_576
const DEADLINE_MS_MAX = 600_000
const BEAT_MS = 500
const SILENCE_MS = 2_000
/** Before the peer's first frame: on crowded cores a program takes seconds to load. */
const START_MS_MAX = 30_000
