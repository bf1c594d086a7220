/** The timers of a connection. One message each for all connections, since every connection arms some. */

import type { Context } from '../../src/runtime/actor.ts'
import type { ConnectionTimer, StompConnectionMessage } from '../messages.ts'

/** Replaces the connection's timer of that name. */
export function startTimer(
  context: Context<StompConnectionMessage>,
  timer: ConnectionTimer,
  ms: number,
): void {
  context.startTimer(timer, ms, TIMER_MESSAGES[timer])
}

const TIMER_MESSAGES: Record<ConnectionTimer, StompConnectionMessage> = {
  connect: { kind: 'timer', timer: 'connect' },
  life: { kind: 'timer', timer: 'life' },
  lag: { kind: 'timer', timer: 'lag' },
  settle: { kind: 'timer', timer: 'settle' },
  mark: { kind: 'timer', timer: 'mark' },
}
