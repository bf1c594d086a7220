/** The way to the actors of another process, as the runtime uses it. `src/fronts/link` has the one that there is. */
import type { PendingAsk } from './ask.ts'

export interface Port {
  /** Whether the other process is gone. */
  readonly isClosed: boolean
  /**
   * False where there is no room, or the other process is gone. `instead` goes into the control lane there if the mailbox
   * does not take `message`.
   */
  tell(kind: string, id: string, message: unknown, instead?: unknown): boolean
  /** False where the other process is gone. */
  tellControl(kind: string, id: string, message: unknown): boolean
  /** As `tell`, of the content of `ask`, whose answer comes back to it. */
  ask(kind: string, id: string, ask: PendingAsk<never>, deadlineMs: number): boolean
}
