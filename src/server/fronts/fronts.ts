/**
 * The fronts of this machine, as the process that has started them knows them: it tells them what they need to answer reads
 * by themselves, and where the writer is, which may be this process.
 */

import type { Duplex } from 'node:stream'
import { serialize } from 'node:v8'
import type { FrontMessage } from '../../../actors/messages.ts'
import { SignalError } from '../../errors.ts'
import { FrontLink } from '../../fronts/front-link.ts'
import { Link } from '../../fronts/link/link.ts'
import {
  type Addresses,
  FRONT_SILENCE_MS_MAX,
  type MessageToWriter,
  WRITER_SERVES,
  type WriterPlace,
} from '../../fronts/messages.ts'
import type { LogHead } from '../../log/checkpoint.ts'
import type { ProcessMetrics } from '../../operations/merged-metrics.ts'
import type { Ref } from '../../runtime/actor.ts'
import { machineMs } from '../../runtime/clock.ts'
import type { ActorSystem } from '../../runtime/system.ts'
import type { LmdbStore } from '../../store/engine/lmdb-store.ts'
import type { TlsFiles } from '../../transport/http-deps.ts'
import type { HttpRoute } from '../../transport/route.ts'
import type { Process } from '../process/process.ts'
import { VERSION } from '../process/version.ts'
import type { FrontDesks } from './front-desks.ts'
import type { FrontHandle } from './front-processes.ts'

export interface FrontsDeps {
  readonly host: Pick<Process, 'config' | 'world' | 'logger'>
  readonly system: ActorSystem
  readonly database: Pick<LmdbStore, 'follow' | 'lastChange'>
  /** The log as it is published now. */
  readonly head: () => LogHead
  /** Routes of the writer beside those that every front has. */
  readonly routes: readonly HttpRoute[]
  readonly addresses: Addresses
  /** All fronts listen on this port. */
  readonly port: number
  /** A front of a node waits for a newer `current`. */
  readonly onPoll?: () => void
}

class OpenFront extends FrontLink implements FrontHandle {
  readonly name: string
  readonly self: Ref<FrontMessage>
  isReady = false

  constructor(name: string, link: Link, self: Ref<FrontMessage>) {
    super(link)
    this.name = name
    this.self = self
  }

  stop(): void {
    this.self.tellControl({ kind: 'stop' })
  }
}

export class Fronts {
  readonly #deps: FrontsDeps
  readonly #open = new Map<OpenFront, Link>()
  #onReady: (() => void) | undefined
  #writer: WriterPlace | undefined
  #desks: FrontDesks | undefined
  #currentAtMs: number | undefined

  constructor(deps: FrontsDeps) {
    this.#deps = deps
  }

  /** Speaks to a front that has just been started. */
  readonly open = (socket: Duplex, name: string): FrontHandle => {
    const { system, host, database } = this.#deps
    let stopFollowing = () => {}
    const link: Link = new Link({
      socket,
      self: { name: 'writer', version: VERSION },
      system,
      serves: WRITER_SERVES,
      silenceMsMax: FRONT_SILENCE_MS_MAX,
      world: host.world,
      onOpen: () => {
        this.#open.set(front, link)
        this.#welcome(front)
        stopFollowing = database.follow(change => front.send({ kind: 'changed', ...change }))
      },
      onMessage: message => this.#onMessage(front, message as MessageToWriter),
      beforeAnswer: kind => this.#desks?.beforeAnswer(kind),
      onLost: reason => {
        stopFollowing()
        this.#open.delete(front)
        front.isReady = false
        host.logger.warn({ event: 'front-lost', front: name, reason: reason.message })
        front.onLost()
        this.#desks?.leave(front, link)
      },
    })
    const front = new OpenFront(name, link, system.remoteRef<FrontMessage>(link, 'front', name))
    return front
  }

  /** Whether at least one front serves. */
  get isServing(): boolean {
    return [...this.#open.keys()].some(({ isReady }) => isReady)
  }

  /** Resolves when `count` fronts serve; rejects where they don't within `ms`. */
  ready(count: number, ms: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const tooLate = setTimeout(
        () => reject(new SignalError('INTERNAL', `the fronts did not start within ${ms} ms`)),
        ms,
      )
      this.#onReady = () => {
        if ([...this.#open.keys()].filter(({ isReady }) => isReady).length < count) return
        clearTimeout(tooLate)
        resolve()
      }
    })
  }

  /** From now on this process is the writer, and these are its desks. */
  serveBy(desks: FrontDesks): void {
    this.#desks = desks
    for (const front of this.#open.keys()) desks.join(front)
    this.sendTo('here')
  }

  /** Where the fronts find the writer from now on; undefined while there is none. */
  sendTo(writer: WriterPlace | undefined): void {
    this.#writer = writer
    for (const front of this.#open.keys()) front.send({ kind: 'writer', at: writer })
  }

  /** The store has all that was recorded then, in the monotonic clock. */
  current(atMs: number): void {
    this.#currentAtMs = atMs
    for (const front of this.#open.keys()) this.#sayCurrent(front, atMs)
  }

  /** Call this when a checkpoint is published. */
  onPublished(): void {
    for (const front of this.#open.keys()) front.send({ kind: 'published', head: this.#deps.head() })
  }

  /** Resolves when all of them give it to new connections. */
  async renewCertificate(files: TlsFiles): Promise<void> {
    const asked = Array.from(this.#open.keys(), ({ self }) =>
      self.ask<'renewed'>(reply => ({ kind: 'renew-certificate', files, reply }), RENEW_MS_MAX),
    )
    await Promise.all(asked)
  }

  /** The figures of each front, in the text form of Prometheus; one that does not answer is left out. */
  async metrics(): Promise<readonly ProcessMetrics[]> {
    const answers = Array.from(this.#open.keys(), async ({ name, self }) => {
      const text = await self.ask<string>(reply => ({ kind: 'metrics', reply }), METRICS_MS_MAX)
      return { process: name, text }
    })
    const settled = await Promise.allSettled(answers)
    return settled.flatMap(each => (each.status === 'fulfilled' ? [each.value] : []))
  }

  #welcome(front: OpenFront): void {
    const { host, database, head, addresses, port, routes } = this.#deps
    front.send({
      kind: 'welcome',
      config: serialize(host.config),
      port,
      addresses,
      routes: routes.map(({ handle: _, ...route }) => route),
      lastChange: database.lastChange,
      head: head(),
    })
    this.#desks?.join(front)
    front.send({ kind: 'writer', at: this.#writer })
    if (this.#currentAtMs !== undefined) this.#sayCurrent(front, this.#currentAtMs)
  }

  #sayCurrent(front: OpenFront, atMs: number): void {
    const ageMs = this.#deps.host.world.monotonicMs() - atMs
    front.send({ kind: 'current', atMs: machineMs() - ageMs })
  }

  #onMessage(front: OpenFront, message: MessageToWriter): undefined {
    if (message.kind === 'ready') {
      front.isReady = true
      this.#onReady?.()
    } else if (message.kind === 'poll') this.#deps.onPoll?.()
    else if (this.#desks !== undefined) this.#desks.onMessage(front, message)
    else if (message.kind === 'acknowledged') front.onAcknowledged(message.count)
    return undefined
  }
}

const METRICS_MS_MAX = 2_000
const RENEW_MS_MAX = 10_000
