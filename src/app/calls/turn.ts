/** One step of a device: an input comes in, and with the device as it is then go the acts. */

import type { Failure } from '../callsign-error.ts'
import type { SetHints } from '../devices/key-members.ts'
import type { OperationName } from '../session/operations.ts'
import type { Act, Receivers, Use } from './act.ts'
import {
  type Device,
  type DeviceCall,
  type Kept,
  keysIn,
  type Phase,
  type Purpose,
  type Sender,
  stateOf,
} from './device.ts'

/** One step: the device as it becomes, and the acts so far. */
export class Turn {
  device: Device
  readonly acts: Act[] = []
  readonly nowMs: number
  readonly #made: number[] = []

  constructor(device: Device, nowMs: number) {
    this.device = device
    this.nowMs = nowMs
  }

  get serverMs(): number {
    return this.nowMs + this.device.clock.aheadMs
  }

  /** Undefined for one that is not there, or has ended. */
  call(callId: string): DeviceCall | undefined {
    return this.device.calls.find(one => one.callId === callId && one.phase.kind !== 'ended')
  }

  /** The call as it becomes; one that has ended stays as it is. */
  change(callId: string, change: Partial<DeviceCall>): void {
    const calls = this.device.calls.map(one =>
      one.callId === callId && one.phase.kind !== 'ended' ? { ...one, ...change } : one,
    )
    this.device = { ...this.device, calls }
  }

  /** With an event where the app sees another state. */
  enterPhase(callId: string, phase: Phase): void {
    const before = this.call(callId)
    if (before === undefined) return
    this.change(callId, { phase })
    const state = stateOf(phase)
    if (state !== stateOf(before.phase)) this.act({ do: 'emit', callId, name: 'state', value: state })
  }

  act(act: Act): void {
    this.acts.push(act)
  }

  emit(callId: string, name: 'ringing' | 'resumed'): void {
    this.act({ do: 'emit', callId, name })
  }

  /** Overwrites those of these keys, and of all that were made in this step, that nothing has a use for any more. */
  wipeUnused(keys: readonly number[]): void {
    const used = keysIn(this.device)
    const unused = [...new Set([...keys, ...this.#made])].filter(key => !used.includes(key))
    if (unused.length > 0) this.act({ do: 'wipe', keys: unused })
  }

  /** Notes it for the next start, once in a step. */
  keep(kept: Kept): void {
    if (isSame(kept, this.device.kept)) return
    this.device = { ...this.device, kept }
    const noted = this.acts.findIndex(act => act.do === 'keep')
    if (noted < 0) this.act({ do: 'keep', ...kept })
    else this.acts[noted] = { do: 'keep', ...kept }
  }

  settle(commands: number | readonly number[] | undefined, error?: Failure, callId?: string): void {
    for (const command of commands === undefined ? [] : [commands].flat())
      this.act({ do: 'settle', command, ...(callId && { callId }), ...(error && { error }) })
  }

  /** About the purpose's call, unless `callId` names a different one. */
  request(
    operation: OperationName,
    purpose: Purpose,
    body?: unknown,
    { callId, nonce }: { readonly callId?: string; readonly nonce?: number } = {},
  ): number {
    const act = this.wait(purpose)
    const about = callId ?? ('callId' in purpose ? purpose.callId : undefined)
    this.act({
      do: 'request',
      act,
      operation,
      ...(about !== undefined && operation.includes('{callId}') && { callId: about }),
      ...(body !== undefined && { body }),
      ...(nonce !== undefined && { nonce }),
    })
    return act
  }

  open(text: string, from: readonly Sender[], { callId, epoch, ...rest }: Opening, purpose: Purpose): void {
    this.act({ do: 'open', act: this.wait(purpose), key: this.number(), text, from, callId, epoch, ...rest })
  }

  seal(key: number, to: Receivers, use: Sealing, purpose: Purpose): void {
    this.act({ do: 'seal', act: this.wait(purpose), key, to, ...use })
  }

  makeKey(): number {
    const key = this.number()
    this.#made.push(key)
    this.act({ do: 'make', key })
    return key
  }

  wait(purpose: Purpose): number {
    const act = this.number()
    this.device = { ...this.device, waiting: [...this.device.waiting, { ...purpose, act }] }
    return act
  }

  number(): number {
    this.device = { ...this.device, count: this.device.count + 1 }
    return this.device.count
  }
}

function isSame(one: Kept, other: Kept): boolean {
  const isSameCall = one.callId === other.callId && one.leaving?.join() === other.leaving?.join()
  return isSameCall && one.opened === other.opened && one.accepted === other.accepted
}

interface Opening extends Use, SetHints {
  readonly nonce?: number
}

/** With the nonce of the device that asked for the key. */
interface Sealing extends Use {
  readonly nonce?: string
}
