/**
 * A node's fronts. Starts them when its copy may be shown, stops them when the copy may be old, and tells them where
 * the writer is.
 */

import { isSamePlace } from '../../fronts/messages.ts'
import { LogStore } from '../../keyserver/log-store.ts'
import type { LogHead } from '../../log/checkpoint.ts'
import type { MediaSettings } from '../../media/media-settings.ts'
import { observeFronts } from '../../operations/figures.ts'
import type { ProcessMetrics } from '../../operations/merged-metrics.ts'
import type { TlsFiles } from '../../transport/http-deps.ts'
import type { FrontDesks } from '../fronts/front-desks.ts'
import { Fronts, type FrontsDeps, type RunningFronts, startFronts, type WriterAt } from '../fronts/fronts.ts'

export type NodeFrontsDeps = Omit<FrontsDeps, 'head' | 'routes'>

type State =
  /** The copy may not be shown. */
  | { readonly kind: 'none' }
  | { readonly kind: 'running'; readonly running: RunningFronts }
  /** The last requests are answered. */
  | { readonly kind: 'ending'; readonly running: RunningFronts; readonly ended: Promise<void> }
  /** They end, or have ended, and none starts again. */
  | { readonly kind: 'over'; readonly running: RunningFronts | undefined }

export class NodeFronts {
  /** Resolves when they serve for the first time. */
  readonly serving: Promise<void>
  readonly #deps: NodeFrontsDeps
  readonly #logStore: LogStore
  readonly #onServing: () => void
  #state: State = { kind: 'none' }
  #writer: WriterAt = { kind: 'nowhere' }
  #restartsBefore = 0
  #sentHead: LogHead | undefined
  /** The newest of the ledger, and the newest that the copy has. */
  #recordedHead: LogHead | undefined
  #copiedHead: LogHead | undefined
  readonly #startFronts: typeof startFronts

  /** `start` is for tests. */
  constructor(deps: NodeFrontsDeps, start = startFronts) {
    this.#deps = deps
    this.#startFronts = start
    this.#logStore = new LogStore(deps.database)
    let onServing = () => {}
    this.serving = new Promise(resolve => {
      onServing = resolve
    })
    this.#onServing = onServing
    observeFronts(deps.context.metrics, () => this.#figures())
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

  /** The ledger has this head; the copy may not have it yet. */
  onRecorded(note: string): void {
    if (note === this.#recordedHead?.checkpoint) return
    // The second line of a checkpoint.
    this.#recordedHead = { treeSize: Number(note.split('\n', 2)[1]), checkpoint: note }
    this.onApplied()
  }

  /** Another node writes, or none. */
  follow(place: Extract<WriterAt, { kind: 'node' }>['place'] | undefined): void {
    const before = this.#writer.kind === 'node' ? this.#writer.place : undefined
    if (this.#writer.kind !== 'here' && isSamePlace(place, before)) return
    this.#tell(place === undefined ? { kind: 'nowhere' } : { kind: 'node', place })
  }

  /** This node writes. */
  serveBy(desks: FrontDesks): void {
    this.#tell({ kind: 'here', desks })
    this.mayServe(true)
  }

  /** See `Fronts.current`. */
  current(atMs: number): void {
    this.#fronts?.current(atMs)
  }

  /** Shows the copy, or stops showing it. */
  mayServe(isFresh: boolean): void {
    const { context, addresses } = this.#deps
    if (this.#state.kind === 'none' && isFresh && addresses.areOpen && this.#head() !== undefined) {
      this.#start()
    } else if (this.#state.kind === 'running' && !isFresh) {
      context.logger.error({
        event: 'copy-may-be-old',
        advice: 'PostgreSQL does not answer this node, or the node is slower than the writer',
      })
      void this.#end(this.#state.running)
    }
  }

  async metrics(): Promise<readonly ProcessMetrics[]> {
    return (await this.#fronts?.metrics()) ?? []
  }

  async renewCertificate(files: TlsFiles): Promise<void> {
    await this.#fronts?.renewCertificate(files)
  }

  async renewMedia(settings: MediaSettings): Promise<void> {
    await this.#fronts?.renewMedia(settings)
  }

  /** Resolves when all fronts have ended. */
  async stop(): Promise<void> {
    const state = this.#state
    this.#state = { kind: 'over', running: this.#running }
    if (state.kind === 'running') await state.running.stop()
    else if (state.kind === 'ending') await state.ended
  }

  /** Fronts that end get every message until they have ended: reads wait for it. */
  get #running(): RunningFronts | undefined {
    return this.#state.kind === 'none' ? undefined : this.#state.running
  }

  get #fronts(): Fronts | undefined {
    return this.#running?.fronts
  }

  #head(): LogHead | undefined {
    if (this.#writer.kind === 'here') return this.#writer.desks.head
    if (this.#logStore.keepsShown) return this.#logStore.shownHead()
    // The copy may have a head that the writer has not shown yet: at other nodes clients would see the tree before it.
    const copiedSize = this.#logStore.head()?.treeSize ?? -1
    if (this.#recordedHead !== undefined && this.#recordedHead.treeSize <= copiedSize)
      this.#copiedHead = this.#recordedHead
    return this.#copiedHead
  }

  #tell(writer: WriterAt): void {
    // A front that starts before the ledger is heard again shows no older tree than this node did as the writer.
    if (this.#writer.kind === 'here') this.#recordedHead = this.#copiedHead = this.#writer.desks.head
    this.#writer = writer
    this.#fronts?.follow(writer)
  }

  #start(): void {
    const deps: FrontsDeps = { ...this.#deps, head: () => this.#head()!, routes: [] }
    this.#sentHead = this.#head()
    const fronts = new Fronts(deps, this.#writer)
    const running = this.#startFronts(fronts, deps, Math.max(1, deps.context.config.fronts))
    this.#state = { kind: 'running', running }
    running.serving.then(this.#onServing, error => {
      const { kind } = this.#state
      // Else they were stopped before they served, because the copy may have become old.
      if (kind === 'running' && this.#running === running) deps.context.fatal(error)
    })
  }

  async #end(running: RunningFronts): Promise<void> {
    this.#restartsBefore += running.processes.figures.restarts
    const ended = running.stop()
    this.#state = { kind: 'ending', running, ended }
    await ended
    if (this.#state.kind !== 'ending') return
    this.#state = { kind: 'none' }
    // This node's own writes are never old, and no front asks again.
    if (this.#writer.kind === 'here') this.mayServe(true)
  }

  #figures(): { readonly ready: number; readonly restarts: number } {
    const { ready, restarts } =
      this.#state.kind === 'running' ? this.#state.running.processes.figures : NO_FRONTS
    return { ready, restarts: restarts + this.#restartsBefore }
  }
}

const NO_FRONTS = { ready: 0, restarts: 0 }
