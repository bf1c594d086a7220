/**
 * Program: a thread that does nothing but ask to be woken each millisecond, and notes how much later that was: what any
 * program would wait for on this machine just then.
 */

import { serveParent } from './program.ts'
import { latencyFigures } from './statistics.ts'

export interface TimerGapsProtocol {
  readonly setup: Record<string, never>
  readonly request: { readonly seconds: number }
  /** Milliseconds. */
  readonly answer: ReturnType<typeof latencyFigures>
}

serveParent<TimerGapsProtocol>(async () => ({ seconds }) => {
  const never = new Int32Array(new SharedArrayBuffer(4))
  const gaps: number[] = []
  const endMs = performance.now() + seconds * 1000
  for (let now = performance.now(); now < endMs; ) {
    Atomics.wait(never, 0, 0, ASKED_MS)
    const woken = performance.now()
    gaps.push(Math.max(0, woken - now - ASKED_MS))
    now = woken
  }
  return latencyFigures(gaps)
})

const ASKED_MS = 1
