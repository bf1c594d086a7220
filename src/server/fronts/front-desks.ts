/**
 * The writer as its fronts know it, on this machine and other nodes: the actors that they send to, and the end of a
 * front's connections with its link. `FrontLinks` waits for the fronts.
 */

import { randomUUID } from 'node:crypto'
import { type DeskAnswer, frontDeskKind } from '../../../actors/front-desk.ts'
import type {
  ForwardedRequest,
  FrontDeskMessage,
  PresenceMessage,
  SentCommand,
} from '../../../actors/messages.ts'
import type { CallAnswer } from '../../domain/calls/call-command.ts'
import type { CallId, DeviceId, UserId } from '../../domain/ids.ts'
import { SignalError } from '../../errors.ts'
import { FrontLink } from '../../fronts/front-link.ts'
import { Link } from '../../fronts/link/link.ts'
import type { NodeSocket } from '../../fronts/link/node-sockets.ts'
import { type MessageToWriter, nameOfRoute, READ_LEASE_MS, WRITER_SERVES } from '../../fronts/messages.ts'
import type { LogHead } from '../../log/checkpoint.ts'
import { RemoteRef } from '../../runtime/remote-ref.ts'
import type { ActorSystem } from '../../runtime/system.ts'
import type { IdempotentRequest } from '../../store/tables/idempotency-store.ts'
import { dropStream, isStream } from '../../transport/answer-body.ts'
import type { Register } from '../../transport/grpc.ts'
import type { HttpAnswer, HttpRequest, HttpRoute } from '../../transport/route.ts'
import type { WritingProcess } from '../process/process.ts'
import type { Stops } from '../process/stages.ts'
import { VERSION } from '../process/version.ts'
import type { Writer } from '../writer/writer.ts'
import { readCommand } from './sent-command.ts'

export interface FrontDesksDeps {
  readonly context: WritingProcess
  readonly system: ActorSystem
  readonly writer: Writer
  /** All routes that the writer would serve itself. */
  readonly routes: readonly HttpRoute[]
  /** For how long no other node can write; on one machine, always. */
  readonly leaseLastsMs: () => number
}

export class FrontDesks {
  readonly stops: Stops
  readonly #deps: FrontDesksDeps
  readonly #routes: ReadonlyMap<string, HttpRoute>
  /** Each ends the link with a front of another node. */
  readonly #far = new Set<() => void>()
  #isStopping = false

  constructor(deps: FrontDesksDeps) {
    const { context, system, writer } = deps
    this.#deps = deps
    this.#routes = new Map(deps.routes.map(route => [nameOfRoute(route), route]))
    system.define(
      frontDeskKind({
        command: (...commanded) => this.#command(...commanded),
        answer: (route, request) => this.#answer(route, request),
        newStreamName: randomUUID,
        inbox: writer.application.stores.inboxWrites,
        register: this.register,
        liveCallsOf: userId => this.#liveCallsOf(userId),
        catchUp: () => this.#catchUp(),
        onServed: context.devConsole?.onServedByFront,
        onFault: context.onFault,
      }),
    )
    this.stops = {
      'read-leases': () => {
        this.#isStopping = true
        return writer.fronts.endReadLeases()
      },
    }
  }

  /** The published checkpoint. */
  get head(): LogHead {
    return this.#deps.writer.log.published.head
  }

  /** Serves a front of this machine until `leave`. */
  join(front: FrontLink): void {
    this.#deps.writer.fronts.joinNear(front)
  }

  leave(front: FrontLink, link: Link): void {
    this.#deps.writer.fronts.leave(front, true)
    this.#end(front, link)
  }

  /** Serves a front of another node, until the connection ends. */
  readonly accept = (node: NodeSocket): void => {
    const { system, context, writer } = this.#deps
    const { database } = writer.log
    let stopFollowing = () => {}
    const end = () => {
      stopFollowing()
      this.#far.delete(end)
      link.close()
    }
    this.#far.add(end)
    const link: Link = new Link({
      ...node,
      self: { name: 'writer', version: VERSION },
      system,
      serves: WRITER_SERVES,
      world: context.world,
      onOpen: peer => {
        front.name = peer.name
        context.logger.info({ event: 'far-front-joined', front: front.name, version: peer.version })
        const sendPosition = (number: number) => front.sendSoon({ kind: 'position', number })
        sendPosition(database.lastChange)
        stopFollowing = database.follow(({ number }) => sendPosition(number))
        writer.fronts.joinFar(front)
      },
      onMessage: message => this.onMessage(front, message as MessageToWriter),
      beforeAnswer: this.beforeAnswer,
      onLost: reason => {
        end()
        context.logger.warn({ event: 'far-front-lost', front: front.name, reason: reason.message })
        // Its process has closed the link, or has ended; a network that fails says nothing to the other end.
        writer.fronts.leave(front, reason.by === 'closed')
        this.#end(front, link)
      },
    })
    const front = new FrontLink(link, context.world, true)
  }

  onMessage(front: FrontLink, message: MessageToWriter): undefined {
    const { rooms, stores } = this.#deps.writer.application
    switch (message.kind) {
      case 'acknowledged':
        front.onAcknowledged(message.count)
        return
      case 'seen':
        rooms.onSeen(message.userId as UserId, message.deviceId as DeviceId)
        return
      case 'renew-read-lease':
        // Once this writer's own lease has run out another node may answer, which doesn't wait for this front.
        if (this.#deps.leaseLastsMs() > READ_LEASE_MS && !this.#isStopping)
          front.renewReadLease(message.askedAtMs)
        return
      case 'pair-used':
        void stores.markPairUsed(message.sessionId, message.generation).catch(() => undefined)
        return
      default:
        throw new SignalError('MALFORMED', 'a front says what it may')
    }
  }

  /** Holds a room's answer until every front shows the change, and its refusal until they show the reason. */
  readonly beforeAnswer = (kind: string): Promise<void> | undefined =>
    kind === 'call-room' ? this.#shown() : undefined

  /** As `Writer.register`. */
  readonly register: Register = async (...key) => {
    const registration = await this.#deps.writer.register(...key)
    this.#assertWriter()
    return registration
  }

  /** Ends the links with fronts of other nodes: this node is no longer the writer. */
  close(): void {
    for (const end of this.#far) end()
    this.#deps.writer.fronts.end()
  }

  /** Resolves when every front shows all changes so far, and no other node can have written since. */
  async #shown(): Promise<void> {
    await this.#deps.writer.fronts.caughtUp()
    this.#assertWriter()
  }

  /** After a pause of this process another node may be the writer, which the fronts' next reads are of. */
  #assertWriter(): void {
    if (this.#deps.leaseLastsMs() > 0) return
    throw new SignalError('OUTCOME_UNKNOWN', 'the lease has run out: another node may be the writer')
  }

  async #liveCallsOf(userId: UserId): Promise<readonly CallId[]> {
    const live = this.#deps.writer.application.rooms.index.callsOf(userId)
    await this.#shown()
    return live
  }

  async #catchUp(): Promise<void> {
    const { fronts, log } = this.#deps.writer
    fronts.flush()
    await fronts.caughtUp()
    // Behind the fronts' latest messages, also of connections that have just closed.
    await log.database.settled()
    await this.#shown()
  }

  async #command(
    callId: CallId,
    command: SentCommand,
    idempotent: IdempotentRequest | undefined,
  ): Promise<CallAnswer> {
    try {
      return await this.#deps.writer.application.rooms.ask(callId, readCommand(command), idempotent)
    } finally {
      await this.#shown()
    }
  }

  async #answer(name: string, { headers, ...request }: ForwardedRequest): Promise<DeskAnswer> {
    const route = this.#routes.get(name)
    if (route === undefined) throw new SignalError('NOT_FOUND', 'there is nothing at this path')
    const { body, ...answer } = await this.#handled(route, {
      ...request,
      header: header => headers[header] ?? '',
    })
    if (!isStream(body)) return { answer: { ...answer, body } }
    return { answer: { ...answer, body: '' }, parts: this.#shownParts(body) }
  }

  async #handled(route: HttpRoute, request: HttpRequest): Promise<HttpAnswer> {
    let answer: HttpAnswer
    try {
      answer = await route.handle(request)
    } catch (error) {
      // A refusal, too, tells what this node knows.
      await this.#shown()
      throw error
    }
    try {
      await this.#shown()
    } catch (error) {
      dropStream(answer.body, this.#deps.context.onFault)
      throw error
    }
    return answer
  }

  /** Each part may tell of changes since the one before. No generator: one that has not begun would not stop `parts`. */
  #shownParts(parts: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
    const made = parts[Symbol.asyncIterator]()
    const shown: AsyncIterator<Uint8Array> = {
      next: async () => {
        const part = await made.next()
        await this.#shown()
        return part
      },
      return: async () => {
        await made.return?.()
        return { done: true, value: undefined }
      },
    }
    return { [Symbol.asyncIterator]: () => shown }
  }

  /** Its connections, and the answers on their way to it, have ended with the link. */
  #end(front: FrontLink, link: Link): void {
    const { system, writer } = this.#deps
    system.ref<FrontDeskMessage>('front-desk', front.name).tellControl({ kind: 'front-gone' })
    for (const [userId, connection] of writer.application.liveConnections.all()) {
      if (!(connection.ref instanceof RemoteRef) || connection.ref.port !== link) continue
      const user = system.ref<PresenceMessage>('presence', String(userId))
      user.tellControl({ kind: 'detached', connectionId: connection.ref.id })
    }
  }
}
