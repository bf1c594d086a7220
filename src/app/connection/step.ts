/** One step of a connection: an input comes in, and with the connection as it is then go the acts. */

import type { Failure } from '../callsign-error.ts'
import type { Act, Frame } from './act.ts'
import { type DeviceConnection, type Phase, type Purpose, stateOf } from './phase.ts'

export class Step {
  connection: DeviceConnection
  readonly acts: Act[] = []
  readonly nowMs: number
  /** From 0 up to 1, which is not reached. */
  readonly random: number

  constructor(connection: DeviceConnection, nowMs: number, random: number) {
    this.connection = connection
    this.nowMs = nowMs
    this.random = random
  }

  get phase(): Phase {
    return this.connection.phase
  }

  change(change: Partial<DeviceConnection>): void {
    this.connection = { ...this.connection, ...change }
  }

  /** The app hears of another state, and of each attempt that failed. */
  enter(phase: Phase, failures = this.connection.failures): void {
    const before = this.connection
    this.change({ phase, failures })
    const state = stateOf(phase)
    if (state !== stateOf(before.phase) || failures !== before.failures)
      this.act({ do: 'state', state, failures })
  }

  act(act: Act): void {
    this.acts.push(act)
  }

  /** Sends a frame, whose outcome has the number that this returns. */
  request(frame: Frame & { readonly body?: string }, purpose: Purpose): number {
    const act = this.wait(purpose)
    this.act({ do: 'request', act, ...frame })
    return act
  }

  settle(command: number | undefined, error?: Failure): void {
    if (command !== undefined) this.act({ do: 'settle', command, ...(error && { error }) })
  }

  wait(purpose: Purpose): number {
    const act = this.number()
    this.change({ waiting: [...this.connection.waiting, { ...purpose, act }] })
    return act
  }

  number(): number {
    const count = this.connection.count + 1
    this.change({ count })
    return count
  }
}

export const OFFLINE: Failure = {
  code: 'OFFLINE',
  message: 'There is no connection to the server now.',
}
