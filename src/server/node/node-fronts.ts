/** The fronts of a node: started when its copy may be shown, stopped when that may be old, and told where the writer is. */

import { type Addresses, isSamePlace, type WriterPlace } from '../../fronts/messages.ts'
import { LogStore } from '../../keyserver/log-store.ts'
import { FRONT_STOP_MS } from '../../limits.ts'
import type { LogHead } from '../../log/checkpoint.ts'
import { observeFronts } from '../../operations/figures.ts'
import type { ProcessMetrics } from '../../operations/merged-metrics.ts'
import type { ActorSystem } from '../../runtime/system.ts'
import type { LmdbStore } from '../../store/engine/lmdb-store.ts'
import type { TlsFiles } from '../../transport/http-deps.ts'
import { portIn } from '../addresses.ts'
import type { FrontDesks } from '../fronts/front-desks.ts'
import { FrontProcesses } from '../fronts/front-processes.ts'
import { Fronts } from '../fronts/fronts.ts'
import type { Process } from '../process/process.ts'

export interface NodeFrontsDeps {
  readonly host: Process
  readonly system: ActorSystem
  readonly database: LmdbStore
  readonly addresses: Addresses
  /** A front waits for a newer `current`. */
  readonly onPoll: () => void
}

export class NodeFronts {
  /** Resolves when they serve for the first time. */
  readonly serving: Promise<void>
  readonly #deps: NodeFrontsDeps
  readonly #logStore: LogStore
  readonly #onServing: () => void
  #fronts: Fronts | undefined
  #processes: FrontProcesses | undefined
  /** Under way. */
  #stopping: Promise<void> | undefined
  #restartsBefore = 0
  #head: () => LogHead | undefined
  #sentHead: LogHead | undefined
  #place: WriterPlace | undefined
  #desks: FrontDesks | undefined
  #isOver = false

  constructor(deps: NodeFrontsDeps) {
    this.#deps = deps
    this.#logStore = new LogStore(deps.database)
    this.#head = () => this.#logStore.shownHead()
    let onServing = () => {}
    this.serving = new Promise(resolve => {
      onServing = resolve
    })
    this.#onServing = onServing
    observeFronts(deps.host.metrics, () => this.#figures())
  }

  get isServing(): boolean {
    return this.#fronts?.isServing === true
  }

  /** The copy has more changes, or a checkpoint was published. */
  onApplied(): void {
    const head = this.#head()
    if (head === undefined || head.checkpoint === this.#sentHead?.checkpoint) return
    this.#sentHead = head
    this.#fronts?.onPublished()
  }

  /** See `Fronts.sendTo`. */
  sendTo(place: WriterPlace | undefined): void {
    if (isSamePlace(place, this.#place)) return
    this.#place = place
    this.#fronts?.sendTo(place)
  }

  /** See `Fronts.serveBy`. */
  serveBy(desks: FrontDesks, head: () => LogHead): void {
    this.#head = head
    this.#desks = desks
    this.#place = 'here'
    this.#fronts?.serveBy(desks)
    this.mayServe(true)
  }

  /** See `Fronts.current`. */
  current(atMs: number): void {
    this.#fronts?.current(atMs)
  }

  /** Whether the copy may be shown from now on. */
  mayServe(isFresh: boolean): void {
    if (this.#isOver || this.#stopping !== undefined) return
    const mayStart = isFresh && this.#head() !== undefined
    if (mayStart && this.#processes === undefined) this.#start()
    if (!isFresh && this.#processes !== undefined) {
      this.#deps.host.logger.error({
        event: 'copy-may-be-old',
        advice: 'PostgreSQL does not answer this node, or the node is slower than the writer',
      })
      void this.#end()
    }
  }

  async metrics(): Promise<readonly ProcessMetrics[]> {
    return (await this.#fronts?.metrics()) ?? []
  }

  async renewCertificate(files: TlsFiles): Promise<void> {
    await this.#fronts?.renewCertificate(files)
  }

  /** Resolves when none is left. */
  async stop(): Promise<void> {
    this.#isOver = true
    await this.#stopping
    await this.#end()
  }

  #start(): void {
    const { host, system, database, addresses, onPoll } = this.#deps
    const { config, world, logger } = host
    const fronts = new Fronts({
      host,
      system,
      database,
      head: () => this.#head()!,
      routes: [],
      addresses,
      port: portIn(addresses.http),
      onPoll,
    })
    this.#fronts = fronts
    this.#sentHead = this.#head()
    if (this.#desks === undefined) fronts.sendTo(this.#place)
    else fronts.serveBy(this.#desks)
    const count = Math.max(1, config.fronts)
    this.#processes = new FrontProcesses({
      count,
      onStarted: fronts.open,
      onEnded: () => database.dropDeadReaders(),
      world,
      logger,
    })
    fronts.ready(count, FRONTS_START_MS_MAX).then(this.#onServing, error => {
      // Stopped before they served, because the copy may have become old.
      if (this.#fronts === fronts) host.fatal(error)
    })
  }

  async #end(): Promise<void> {
    const processes = this.#processes
    if (processes === undefined) return
    this.#restartsBefore += processes.figures.restarts
    this.#stopping = processes.stop(FRONT_STOP_MS)
    await this.#stopping
    this.#processes = undefined
    this.#fronts = undefined
    this.#stopping = undefined
  }

  #figures(): { readonly ready: number; readonly restarts: number } {
    const { ready, restarts } = this.#processes?.figures ?? NO_FRONTS
    return { ready, restarts: restarts + this.#restartsBefore }
  }
}

const FRONTS_START_MS_MAX = 30_000
const NO_FRONTS = { ready: 0, restarts: 0 }
