/**
 * The state that the parts of one actor system share. `system.ts` builds it; the parts know each other only through it. They
 * form the one circle of imports in the project: a cell runs in a kind, a kind in the system, and the system makes cells.
 */
import type { Cell } from './cell.ts'
import type { World } from './clock.ts'
import type { DeadLetters, Refusal } from './figures.ts'
import type { MailboxPool } from './mailbox.ts'
import type { TimerWheel } from './timers.ts'

/** Work begun and not ended, over all actors. A stopping system waits until all four are zero. */
export interface UnderWay {
  commits: number
  outcomes: number
  asks: number
  /** Actors that wait out the pause after a failure. */
  pauses: number
}

/** Known to the runtime alone. */
export interface Internals {
  readonly world: World
  readonly wheel: TimerWheel
  readonly mailboxes: MailboxPool
  readonly deadLetters: DeadLetters
  readonly underWay: UnderWay
  readonly refuseAskCycles: boolean
  liveActors: number
  /** Set when only turns may send. */
  stopping: boolean
  /** The actor in its turn; undefined between turns. */
  running: Cell | undefined
  /** Addresses of the asks that led to this turn, this actor's last. Undefined when none did or tracing is off. */
  askChain: readonly string[] | undefined

  /** The live cell of an address, made if need be, or why there is none. The control lane knows no bound. */
  cellFor(kind: string, id: string, lane: 'user' | 'control'): Cell | Refusal
  /** Puts a sleeping or held cell into the run queue. */
  wake(cell: Cell): void
  /** Takes one of the reasons away for which a cell is held. */
  release(cell: Cell): void
  /** Call when work under way has ended. */
  onEnded(): void
  /** Passes on a thrown value, for the log. */
  report(kind: string, id: string, error: unknown): void
}
