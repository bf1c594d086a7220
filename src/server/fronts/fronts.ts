/**
 * The fronts of this machine, for their parent process: it sends them all that they need to answer reads, and the
 * writer's place, which may be this process.
 */

import type { Duplex } from 'node:stream'
import { serialize } from 'node:v8'
import type { FrontMessage } from '../../../actors/messages.ts'
import { SignalError } from '../../errors.ts'
import { socketsToShed } from '../../fronts/balance.ts'
import { FrontLink } from '../../fronts/front-link.ts'
import { Link } from '../../fronts/link/link.ts'
import type { NodePlace } from '../../fronts/link/node-sockets.ts'
import {
  FRONT_SILENCE_MS_MAX,
  type MessageToWriter,
  WRITER_SERVES,
  type WriterPlace,
} from '../../fronts/messages.ts'
import { FRONT_STOP_MS } from '../../limits.ts'
import type { LogHead } from '../../log/checkpoint.ts'
import type { MediaSettings } from '../../media/media-settings.ts'
import type { ProcessMetrics } from '../../operations/merged-metrics.ts'
import type { Ref } from '../../runtime/actor.ts'
import { machineMs, type World } from '../../runtime/clock.ts'
import type { ActorSystem } from '../../runtime/system.ts'
import type { LmdbStore } from '../../store/engine/lmdb-store.ts'
import type { TlsFiles } from '../../transport/http-deps.ts'
import type { HttpRoute } from '../../transport/route.ts'
import type { OwnAddresses } from '../addresses.ts'
import { binaryChoice } from '../process/own-binaries.ts'
import type { Process } from '../process/process.ts'
import { VERSION } from '../process/version.ts'
import type { Config } from '../settings/config.ts'
import type { FrontDesks } from './front-desks.ts'
import { type FrontHandle, FrontProcesses } from './front-processes.ts'

export interface FrontsDeps {
  readonly context: Process
  readonly system: ActorSystem
  readonly database: LmdbStore
  /** The published head of the log. */
  readonly head: () => LogHead
  /** Routes of the writer beside those that every front has. */
  readonly routes: readonly HttpRoute[]
  /** All fronts listen on the ports of HTTP and of the server API. */
  readonly addresses: OwnAddresses
  /** A front of a node waits for a newer `current`. */
  readonly onPoll: () => void
}

/** Where fronts find the writer. */
export type WriterAt =
  /** In this process. */
  | { readonly kind: 'here'; readonly desks: FrontDesks }
  | { readonly kind: 'node'; readonly place: NodePlace }
  | { readonly kind: 'nowhere' }

export interface RunningFronts {
  readonly fronts: Fronts
  readonly processes: FrontProcesses
  /** Resolves when all fronts serve; rejects where they don't in time. */
  readonly serving: Promise<void>
  /** Resolves when all fronts have ended. */
  stop(): Promise<void>
}

/** Starts `count` processes that serve the port, and restarts those that end. */
export function startFronts(fronts: Fronts, { context, database }: FrontsDeps, count: number): RunningFronts {
  const processes = new FrontProcesses({
    count,
    args: [binaryChoice(context.config)],
    onStarted: fronts.open,
    onEnded: () => database.dropDeadReaders(),
    world: context.world,
    logger: context.logger,
  })
  return {
    fronts,
    processes,
    serving: fronts.ready(count, FRONTS_START_MS_MAX),
    stop: () => processes.stop(FRONT_STOP_MS),
  }
}

class OpenFront extends FrontLink implements FrontHandle {
  readonly self: Ref<FrontMessage>
  isReady = false
  sockets = 0
  isShedding = false

  constructor(name: string, link: Link, world: World, self: Ref<FrontMessage>) {
    super(link, world, false)
    this.name = name
    this.self = self
  }

  shed(sockets: number): void {
    this.self.tellControl({ kind: 'shed', sockets })
  }

  stop(): void {
    this.self.tellControl({ kind: 'stop' })
  }
}

export class Fronts {
  readonly #deps: FrontsDeps
  readonly #open = new Set<OpenFront>()
  /** Each checks again when one more front serves. */
  readonly #waiting = new Set<() => void>()
  #writer: WriterAt
  #currentAtMs: number | undefined

  constructor(deps: FrontsDeps, writer: WriterAt) {
    this.#deps = deps
    this.#writer = writer
  }

  /** Speaks to a front that has just been started. */
  readonly open = (socket: Duplex, name: string): FrontHandle => {
    const { system, context, database } = this.#deps
    let stopFollowing = () => {}
    const link: Link = new Link({
      socket,
      self: { name: 'writer', version: VERSION },
      system,
      serves: WRITER_SERVES,
      silenceMsMax: FRONT_SILENCE_MS_MAX,
      world: context.world,
      onOpen: () => {
        this.#open.add(front)
        this.#welcome(front)
        stopFollowing = database.follow(change => front.send({ kind: 'changed', ...change }))
      },
      onMessage: message => this.#onMessage(front, message as MessageToWriter),
      beforeAnswer: kind => this.#desks?.beforeAnswer(kind),
      onLost: reason => {
        stopFollowing()
        this.#open.delete(front)
        front.isReady = false
        context.logger.warn({ event: 'front-lost', front: name, reason: reason.message })
        front.onGone()
        this.#desks?.leave(front, link)
      },
    })
    const front = new OpenFront(
      name,
      link,
      context.world,
      system.remoteRef<FrontMessage>(link, 'front', name),
    )
    return front
  }

  /** Whether at least one front serves. */
  get isServing(): boolean {
    return [...this.#open].some(({ isReady }) => isReady)
  }

  /** Resolves when `count` fronts serve; rejects where they don't within `ms`. */
  ready(count: number, ms: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const end = () => {
        clearTimeout(tooLate)
        this.#waiting.delete(look)
      }
      const look = () => {
        if ([...this.#open].filter(({ isReady }) => isReady).length < count) return
        end()
        resolve()
      }
      const tooLate = setTimeout(() => {
        end()
        reject(new SignalError('INTERNAL', `the fronts did not start within ${ms} ms`))
      }, ms)
      this.#waiting.add(look)
    })
  }

  /** Tells the fronts where the writer is. */
  follow(writer: WriterAt): void {
    this.#writer = writer
    const desks = this.#desks
    for (const front of this.#open) {
      this.#sendWriter(front)
      desks?.join(front)
    }
  }

  /** The store has all changes that the ledger had at this time of the monotonic clock. */
  current(atMs: number): void {
    this.#currentAtMs = atMs
    for (const front of this.#open) this.#sendCurrent(front, atMs)
  }

  /** Call this when a checkpoint is published. */
  onPublished(): void {
    for (const front of this.#open) front.send({ kind: 'published', head: this.#deps.head() })
  }

  /** Resolves when all fronts give it to new connections. */
  async renewCertificate(files: TlsFiles): Promise<void> {
    const asked = Array.from(this.#open, ({ self }) =>
      self.ask<'renewed'>(reply => ({ kind: 'renew-certificate', files, reply }), RENEW_MS_MAX),
    )
    await Promise.all(asked)
  }

  /** Resolves when all fronts make tokens for these gateways. */
  async renewMedia(settings: MediaSettings): Promise<void> {
    const asked = Array.from(this.#open, ({ self }) =>
      self.ask<'renewed'>(reply => ({ kind: 'renew-media', settings, reply }), RENEW_MS_MAX),
    )
    await Promise.all(asked)
  }

  /** The figures of each front, in the text form of Prometheus; one that does not answer is left out. */
  async metrics(): Promise<readonly ProcessMetrics[]> {
    const answers = Array.from(this.#open, async ({ name, self }) => {
      const text = await self.ask<string>(reply => ({ kind: 'metrics', reply }), METRICS_MS_MAX)
      return { process: name, text }
    })
    const settled = await Promise.allSettled(answers)
    return settled.flatMap(each => (each.status === 'fulfilled' ? [each.value] : []))
  }

  /** Undefined where the writer is another process. */
  get #desks(): FrontDesks | undefined {
    return this.#writer.kind === 'here' ? this.#writer.desks : undefined
  }

  #welcome(front: OpenFront): void {
    const { context, database, head, addresses, routes } = this.#deps
    front.send({
      kind: 'welcome',
      config: serialize(presentConfig(context)),
      addresses: addresses.all,
      routes: routes.map(({ handle: _, ...route }) => route),
      lastChange: database.lastChange,
      head: head(),
    })
    // First: a head that is announced is only awaited by a front that knows whose it is.
    this.#sendWriter(front)
    this.#desks?.join(front)
    if (this.#currentAtMs !== undefined) this.#sendCurrent(front, this.#currentAtMs)
  }

  #sendWriter(front: OpenFront): void {
    front.send({ kind: 'writer', at: placeOf(this.#writer) })
  }

  #sendCurrent(front: OpenFront, atMs: number): void {
    const ageMs = this.#deps.context.world.monotonicMs() - atMs
    front.send({ kind: 'current', atMs: machineMs() - ageMs })
  }

  #onMessage(front: OpenFront, message: MessageToWriter): undefined {
    if (message.kind === 'ready') {
      front.isReady = true
      for (const look of this.#waiting) look()
    } else if (message.kind === 'load') this.#onLoad(front, message.sockets)
    else if (message.kind === 'poll') this.#deps.onPoll()
    else if (this.#desks !== undefined) this.#desks.onMessage(front, message)
    else if (message.kind === 'acknowledged') front.onAcknowledged(message.count)
    return undefined
  }

  #onLoad(front: OpenFront, sockets: number): void {
    front.sockets = sockets
    const serving = [...this.#open].filter(({ isReady }) => isReady)
    const socketsOfAll = serving.reduce((sum, each) => sum + each.sockets, 0)
    const { isShedding } = front
    const shed = socketsToShed({ sockets, socketsOfAll, fronts: serving.length, isShedding })
    front.isShedding = shed > 0
    if (front.isShedding) front.shed(shed)
  }
}

/** A front that starts later has the media gateways as they are then. */
function presentConfig({ config, media: { settings } }: Process): Config {
  return { ...config, application: { ...config.application, ...(settings && { media: settings }) } }
}

function placeOf(writer: WriterAt): WriterPlace | undefined {
  switch (writer.kind) {
    case 'here':
      return 'here'
    case 'node':
      return writer.place
    case 'nowhere':
      return undefined
  }
}

const FRONTS_START_MS_MAX = 30_000
const METRICS_MS_MAX = 2_000
const RENEW_MS_MAX = 10_000
