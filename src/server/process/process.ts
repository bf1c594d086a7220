/** Shared by every part of the process: settings, clocks, figures, the version, and how it ends when it must. */

import { SignalError } from '../../errors.ts'
import { CurrentMedia } from '../../media/current-media.ts'
import { DevConsole } from '../../operations/console/console.ts'
import { observeHost, observeProcess } from '../../operations/host-figures.ts'
import { LinkRefusalLog } from '../../operations/link-refusal-log.ts'
import type { Logger } from '../../operations/log.ts'
import { Metrics } from '../../operations/metrics.ts'
import { OriginLog } from '../../operations/origin-log.ts'
import { RefusalLog } from '../../operations/refusal-log.ts'
import { realWorld } from '../../runtime/clock.ts'
import { ActorSystem } from '../../runtime/system.ts'
import { isEchoOfFailedCommit, isOfLostLease } from '../../store/engine/write-failure.ts'
import type { RefusedRequest } from '../../transport/http-deps.ts'
import type { Config } from '../settings/config.ts'
import { endByFault } from './end-process.ts'
import { VERSION } from './version.ts'

type Phase =
  | { readonly kind: 'starting' }
  | { readonly kind: 'open'; readonly isServing: () => boolean }
  | { readonly kind: 'stopping' }

export class Process {
  readonly config: Config
  readonly logger: Logger
  /** See `StartDeps`. */
  readonly say: (text: string) => void
  readonly world = realWorld()
  readonly metrics = new Metrics()
  readonly media: CurrentMedia
  /** In development, in the writer. */
  readonly devConsole: DevConsole | undefined
  /** Logs a connection at the nodes' port that is no node's. */
  readonly onLinkRefused: LinkRefusalLog['note']
  #phase: Phase = { kind: 'starting' }
  readonly #refusals: RefusalLog
  readonly #origins: OriginLog
  #noWritesUntilMs = 0

  constructor(
    config: Config,
    logger: Logger,
    say: (text: string) => void,
    { isFront = false }: { readonly isFront?: boolean } = {},
  ) {
    this.config = config
    this.media = new CurrentMedia(config.application.media)
    this.logger = logger
    this.say = say
    this.#refusals = new RefusalLog(logger, this.world.monotonicMs)
    this.#origins = new OriginLog(logger, this.world.monotonicMs)
    this.onLinkRefused = new LinkRefusalLog(logger, this.world.monotonicMs).note
    this.devConsole = config.isDevelopment && !isFront ? new DevConsole(this.world.nowMs, say) : undefined
    observeProcess(this.metrics)
    if (isFront) this.metrics.leaveOutWriters()
    else {
      observeHost(this.metrics, {
        version: VERSION,
        dataFolder: config.dataFolder,
        hasHeadFile: config.log.headFile !== undefined,
        isReady: () => this.notReady() === undefined,
      })
    }
    process.on('unhandledRejection', this.#onUnhandled)
  }

  /** Ends the process: it can't say what its state is any more. */
  readonly fatal = (error: unknown): never => endByFault(this.logger, error)

  readonly #onUnhandled = (error: unknown): void => {
    if (!isEchoOfFailedCommit(error)) this.fatal(error)
  }

  readonly onActorFailure = ({ kind, error }: { kind: string; error: unknown }): void => {
    // The store, or the head file: what else fails ends the process.
    const cannotWrite =
      error instanceof SignalError && error.code === 'STORE_UNAVAILABLE' && !isOfLostLease(error)
    if (cannotWrite) this.#noWritesUntilMs = this.world.monotonicMs() + NO_WRITES_MS
    this.logger.error({ event: 'actor-failed', kind, err: error })
  }

  readonly onFault = (error: unknown, requestId?: string): void =>
    this.logger.error({ event: 'fault', requestId, err: error })

  readonly onRefused = (code: string, request: Partial<RefusedRequest>): void => {
    if (code === 'STORE_UNAVAILABLE') this.#noWritesUntilMs = this.world.monotonicMs() + NO_WRITES_MS
    this.metrics.refusals.inc({ code })
    this.#refusals.note(code, request)
  }

  readonly onOriginRefused = (origin: string): void => this.#origins.note(origin)

  /** The public port takes connections. `isServing` says whether it does at a given moment; left out: always. */
  opened(isServing: () => boolean = () => true): void {
    // A front may be stopped while it starts.
    if (this.#phase.kind === 'starting') this.#phase = { kind: 'open', isServing }
  }

  stopping(): void {
    this.#phase = { kind: 'stopping' }
  }

  get phase(): Phase['kind'] {
    return this.#phase.kind
  }

  /** Call this when every part has ended: nothing of this process is called any more. */
  close(): void {
    this.world.stop()
    process.off('unhandledRejection', this.#onUnhandled)
  }

  /** Why the process should get no traffic now. */
  notReady(): string | undefined {
    if (this.#phase.kind !== 'open') return this.#phase.kind
    if (!this.#phase.isServing()) return 'no front serves'
    return this.world.monotonicMs() < this.#noWritesUntilMs ? 'the last write failed' : undefined
  }
}

/** The process as its writing parts use it: a node's may end before it does. */
export type WritingProcess = Pick<
  Process,
  'config' | 'logger' | 'world' | 'metrics' | 'media' | 'onActorFailure' | 'devConsole' | 'fatal' | 'onFault'
>

/** The actors of a process. */
export function actorSystem({ world, fatal, onActorFailure, config }: Process): ActorSystem {
  return new ActorSystem({
    world,
    fatal,
    onFailure: onActorFailure,
    refuseAskCycles: config.isDevelopment,
  })
}

/** How long a failed write keeps the process out of traffic; the next one may succeed again. */
const NO_WRITES_MS = 10_000
