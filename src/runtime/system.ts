/**
 * One actor system: the kinds it knows, the addresses of their actors, its figures and its end. Nothing here knows
 * what actors are for. Beside this file: `dispatcher.ts` gives turns, `supervisor.ts` ends actors, `cell.ts` is what
 * the runtime holds of each, `pending.ts` what each has under way.
 */
import { SignalError } from '../errors.ts'
import type { ActorKind, Ref } from './actor.ts'
import { Cell } from './cell.ts'
import type { World } from './clock.ts'
import { Dispatcher, TURNS_PER_VISIT_MAX } from './dispatcher.ts'
import { DeadLetters, type Figures, type KindFigures, type Refusal } from './figures.ts'
import type { Internals } from './internals.ts'
import { Kind } from './kind.ts'
import { MailboxPool } from './mailbox.ts'
import type { Port } from './port.ts'
import { ActorRef } from './ref.ts'
import { RemoteRef } from './remote-ref.ts'
import { Supervisor } from './supervisor.ts'
import { CallbackTimer, TICK_MS, TimerWheel } from './timers.ts'

export interface ActorSystemOptions {
  readonly world: World
  /** Called when an actor of a `stop-process` kind failed. The process must not go on for long after it. */
  readonly fatal: (error: unknown) => void
  /** Hears of everything an actor threw and of every rejected commit, for the log. Must not throw. */
  readonly onFailure?: (failure: { kind: string; id: string; error: unknown }) => void
  /** Throws for an ask to an actor that is itself waiting for this turn's answer. For development builds. */
  readonly refuseAskCycles?: boolean
  /** Above it, messages to an actor that is not live are refused. */
  readonly liveActorsMax?: number
  /** How many turns one actor gets before the next. Fewer give tests more orders to try. */
  readonly turnsPerVisitMax?: number
}

export class ActorSystem {
  readonly #kinds = new Map<string, Kind>()
  readonly #internals: Internals
  readonly #dispatcher: Dispatcher
  readonly #supervisor: Supervisor
  readonly #liveActorsMax: number
  readonly #stopTicking: () => void
  #onStopped: ((how: 'finished' | 'deadline') => void) | undefined = undefined
  #stopped: Promise<'finished' | 'deadline'> | undefined = undefined
  #hasStopped = false

  constructor(options: ActorSystemOptions) {
    this.#internals = this.#makeInternals(options)
    this.#supervisor = new Supervisor(this.#internals, options.fatal)
    this.#dispatcher = new Dispatcher(
      this.#internals,
      this.#supervisor,
      options.turnsPerVisitMax ?? TURNS_PER_VISIT_MAX,
    )
    this.#liveActorsMax = options.liveActorsMax ?? LIVE_ACTORS_MAX
    this.#stopTicking = options.world.every(TICK_MS, () => this.#onTick())
  }

  /** Makes a kind known, once, and returns how to address its actors. */
  define<Message>(definition: ActorKind<Message>): (id: string) => Ref<Message> {
    if (this.#kinds.has(definition.kind)) throw new Error(`actor kind ${definition.kind} is defined twice`)
    this.#kinds.set(definition.kind, new Kind(this.#internals, definition))
    return id => this.ref<Message>(definition.kind, id)
  }

  /** An address by name. The caller vouches for `Message`; prefer what `define` returned. */
  ref<Message>(kind: string, id: string): Ref<Message> {
    return new ActorRef(this.#internals, kind, id)
  }

  /** An address in the process that `port` leads to. */
  remoteRef<Message>(port: Port, kind: string, id: string): Ref<Message> {
    return new RemoteRef(this.#internals, port, kind, id)
  }

  /** The figures of this moment. */
  figures(): Figures {
    const kinds: Record<string, KindFigures & { live: number }> = {}
    for (const kind of this.#kinds.values()) {
      kinds[kind.name] = { ...kind.figures, live: kind.cells.size }
    }
    const { deadLetters, liveActors, underWay, wheel } = this.#internals
    return {
      kinds,
      deadLetters: { ...deadLetters.counts },
      deadLetterSample: deadLetters.sample(),
      liveActors,
      runQueueLength: this.#dispatcher.queueLength,
      runQueueHeadAgeMs: this.#dispatcher.queueHeadAgeMs,
      timersArmed: wheel.armed,
      commitsUnderWay: underWay.commits,
      outcomesUnderWay: underWay.outcomes,
      asksOpen: underWay.asks,
    }
  }

  /**
   * Refuses messages from outside, lets the actors finish their queues, commits, asks and slow work, then stops them
   * all. Resolves with `finished`, or with `deadline` when that was not done after `deadlineMs`: what still waited has
   * then become dead letters, and open asks were refused. Armed timers are not waited for.
   */
  drainAndStop(deadlineMs: number): Promise<'finished' | 'deadline'> {
    if (this.#stopped !== undefined) return this.#stopped
    this.#stopped = new Promise(resolve => {
      this.#onStopped = resolve
    })
    this.#internals.stopping = true
    const deadline = new CallbackTimer(() => this.#stop('deadline'))
    this.#internals.wheel.arm(deadline, deadlineMs)
    this.#stopIfQuiet()
    return this.#stopped
  }

  /**
   * Ends all actors at once, whatever they are doing, and forgets their kinds, which can be defined anew. What they were asked
   * is refused with `reason`.
   */
  dropAll(reason: SignalError): void {
    for (const kind of this.#kinds.values()) this.#supervisor.stopAll(kind, reason)
    this.#kinds.clear()
  }

  #makeInternals({ world, onFailure, refuseAskCycles }: ActorSystemOptions): Internals {
    return {
      world,
      wheel: new TimerWheel(() => world.monotonicMs()),
      mailboxes: new MailboxPool(),
      deadLetters: new DeadLetters(() => world.nowMs()),
      underWay: { commits: 0, outcomes: 0, asks: 0, pauses: 0 },
      refuseAskCycles: refuseAskCycles ?? false,
      liveActors: 0,
      stopping: false,
      running: undefined,
      askChain: undefined,
      cellFor: (kind, id, lane) => this.#cellFor(kind, id, lane),
      wake: cell => this.#dispatcher.wake(cell),
      release: cell => this.#supervisor.release(cell),
      onEnded: () => this.#stopIfQuiet(),
      report: (kind, id, error) => onFailure?.({ kind, id, error }),
    }
  }

  #cellFor(kindName: string, id: string, lane: 'user' | 'control'): Cell | Refusal {
    const kind = this.#kinds.get(kindName)
    if (kind === undefined) return 'unknown-kind'
    const live = kind.cells.get(id)
    if (live !== undefined) return live
    if (this.#hasStopped) return 'stopped'
    if (kind.failures.get(id)?.isGivenUp) return 'given-up'
    if (lane === 'user' && this.#internals.liveActors >= this.#liveActorsMax) return 'too-many-actors'
    const cell = new Cell(kind, id)
    kind.add(cell)
    return cell
  }

  #onTick(): void {
    this.#internals.wheel.advance()
    for (const kind of this.#kinds.values()) this.#supervisor.passivateIdle(kind)
  }

  #stopIfQuiet(): void {
    if (!this.#internals.stopping || this.#hasStopped || !this.#dispatcher.isQuiet) return
    const { commits, outcomes, asks, pauses } = this.#internals.underWay
    if (commits + outcomes + asks + pauses === 0) this.#stop('finished')
  }

  #stop(how: 'finished' | 'deadline'): void {
    if (this.#hasStopped) return
    this.#hasStopped = true
    this.#stopTicking()
    const stopped = new SignalError('STORE_UNAVAILABLE', 'the process is stopping')
    for (const kind of this.#kinds.values()) this.#supervisor.stopAll(kind, stopped)
    // The armed timers are deadlines of asks whose actor stopped without an answer. Nothing else would wake them.
    this.#internals.wheel.expireAll()
    this.#onStopped?.(how)
  }
}

/** Beyond this the process would run out of memory before it ran out of work: about 4 kB per connection. */
const LIVE_ACTORS_MAX = 500_000
