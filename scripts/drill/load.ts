/**
 * Work at all nodes that goes on while one fails: pairs of test users call each other and change the call's key, and keys
 * of made-up devices are registered. Each change that was acknowledged is kept, to be looked for afterwards.
 */

import { setTimeout as sleep } from 'node:timers/promises'
import { CallsignError, hasCode } from '../../src/app/callsign-error.ts'
import { randomId } from '../../src/app/random-id.ts'
import { messageOf } from '../../src/errors.ts'
import { type DrillPhone, keyUpdateName } from './phone.ts'
import type { RegisteredKey, Registrar } from './registrar.ts'

export interface DrillCall {
  readonly callId: string
  readonly caller: DrillPhone
  isEnded: boolean
}

/** An acknowledged change. */
export interface Acknowledgement {
  readonly node: string
  readonly sentAtMs: number
  readonly answeredAtMs: number
}

export class Load {
  readonly phones: readonly DrillPhone[]
  readonly calls: DrillCall[] = []
  /** Refusals that no client deserved, and messages that did not come. */
  readonly faults: string[] = []
  readonly registrar: Registrar | undefined
  readonly #stop: AbortSignal
  readonly #sealed = new Map<string, string>()
  #acknowledgements: Acknowledgement[] = []
  #waiting: (() => void)[] = []
  #work: Promise<void>[] = []
  #isOn = false

  constructor(phones: readonly DrillPhone[], registrar: Registrar | undefined, stop: AbortSignal) {
    this.phones = phones
    this.registrar = registrar
    this.#stop = stop
  }

  get keys(): readonly RegisteredKey[] {
    return [...this.phones.map(({ key }) => key), ...(this.registrar?.keys ?? [])]
  }

  get callsUnderWay(): readonly DrillCall[] {
    return this.calls.filter(({ isEnded }) => !isEnded)
  }

  start(): void {
    if (this.#isOn) return
    this.#isOn = true
    this.#acknowledgements = []
    for (let at = 0; at + 1 < this.phones.length; at += 2) {
      this.#work.push(this.#keepCalling(this.phones[at]!, this.phones[at + 1]!))
    }
    for (const node of this.registrar?.nodes ?? []) this.#work.push(this.#keepRegistering(node))
  }

  /** Resolves when all calls have ended, with true; with false when that takes too long. */
  async rest(): Promise<boolean> {
    this.#isOn = false
    const work = Promise.all(this.#work.splice(0)).then(() => true)
    const late = sleep(REST_MS_MAX, false, { ref: false })
    return await Promise.race([work, late])
  }

  /** The first change that was sent since, and acknowledged. */
  firstSince(atMs: number): Acknowledgement | undefined {
    return this.#acknowledgements.find(({ sentAtMs }) => sentAtMs > atMs)
  }

  /** All that were sent since, and acknowledged. */
  since(atMs: number): readonly Acknowledgement[] {
    return this.#acknowledgements.filter(({ sentAtMs }) => sentAtMs > atMs)
  }

  /** Resolves when this is so, with true; with false when the time has run out. Asked after each acknowledgement. */
  async until(isSo: () => boolean, ms: number): Promise<boolean> {
    const endMs = performance.now() + ms
    while (!isSo()) {
      const leftMs = endMs - performance.now()
      if (leftMs <= 0 || this.#stop.aborted) return false
      const timeout = new AbortController()
      const next = new Promise<void>(resolve => this.#waiting.push(resolve))
      await Promise.race([next, sleep(leftMs, undefined, { signal: timeout.signal }).catch(() => {})])
      timeout.abort()
    }
    return true
  }

  /** Keys that came to a device, and are not what the caller sealed. */
  get falsified(): readonly string[] {
    return this.phones.flatMap(({ sealed }) =>
      [...sealed]
        .filter(([message, text]) => (this.#sealed.get(message) ?? text) !== text)
        .map(([name]) => name),
    )
  }

  async #keepCalling(one: DrillPhone, other: DrillPhone): Promise<void> {
    for (let turn = 0; this.#isOn && !this.#stop.aborted; turn++) {
      const isOver = await this.#attempt(() =>
        turn % 2 === 0 ? this.#call(one, other) : this.#call(other, one),
      )
      if (!isOver) await this.#attempt(() => this.#hangUp([one, other]))
    }
  }

  async #keepRegistering(node: string): Promise<void> {
    while (this.#isOn && !this.#stop.aborted) {
      const sentAtMs = performance.now()
      // A node that is down, or without a writer, is asked again.
      await this.registrar!.registerAt(node).then(
        () => this.#acknowledge({ node, sentAtMs }),
        () => {},
      )
      await sleep(REGISTER_PAUSE_MS)
    }
  }

  async #call(caller: DrillPhone, callee: DrillPhone): Promise<void> {
    const callId = randomId()
    const first = await caller.sealNew(callee.holders, { callId, epoch: 1 })
    const started = await caller.change('POST call/start', {
      callId,
      calleeIds: [callee.userId],
      ...first,
      isVideo: false,
    })
    const call = { callId, caller, isEnded: false }
    this.calls.push(call)
    this.#acknowledge(started)
    this.#promise(callee, `call_invitation of call ${callId}`, first.encryptedAESKeys[callee.name])
    try {
      await this.#talk(call, callee)
    } finally {
      // Whatever went wrong: both are free for the next call.
      this.#acknowledge(await caller.change('POST call/{callId}/end', undefined, { callId }))
      call.isEnded = true
    }
    this.#promise(callee, `call_ended of call ${callId}`)
    await this.#arrival(callee, `call_ended of call ${callId}`)
  }

  /** Joins, and changes the key of the call for a time. */
  async #talk({ callId, caller }: DrillCall, callee: DrillPhone): Promise<void> {
    await this.#arrival(callee, `call_invitation of call ${callId}`)
    this.#acknowledge(await callee.change('POST call/{callId}/join', undefined, { callId }))
    const endMs = performance.now() + CALL_MS
    for (let epoch = 2; this.#isOn && performance.now() < endMs && epoch < EPOCHS_MAX; epoch++) {
      const next = await caller.sealNew(callee.holders.slice(0, 1), { callId, epoch })
      const body = { epoch, reason: 'rotation', ...next } as const
      this.#acknowledge(await caller.change('POST call/{callId}/keys', body, { callId }))
      this.#promise(callee, keyUpdateName(callId, epoch), next.encryptedAESKeys[callee.name])
      await this.#arrival(callee, keyUpdateName(callId, epoch))
      await sleep(KEY_PAUSE_MS)
    }
  }

  /** Else a call that failed would fail each later one. */
  async #hangUp(pair: readonly DrillPhone[]): Promise<void> {
    for (const phone of pair) await phone.hangUp()
    for (const call of this.calls) if (pair.includes(call.caller)) call.isEnded = true
  }

  #promise(phone: DrillPhone, message: string, sealed?: string): void {
    phone.inbox.promise(message)
    if (sealed !== undefined) this.#sealed.set(message, sealed)
  }

  /** A message that does not come is found missing afterwards. */
  async #arrival(phone: DrillPhone, message: string): Promise<void> {
    await Promise.race([phone.inbox.arrival(message), sleep(ARRIVAL_MS_MAX, undefined, { ref: false })])
  }

  /** Whether it was done. */
  async #attempt(act: () => Promise<void>): Promise<boolean> {
    try {
      await act()
      return true
    } catch (error) {
      const isRate = error instanceof CallsignError && error.status === 429
      if (!isRate && !hasCode(error, 'NO_ANSWER') && this.faults.length < FAULTS_MAX) {
        this.faults.push(messageOf(error))
      }
      await sleep(isRate ? RATE_PAUSE_MS : REFUSED_PAUSE_MS)
      return false
    }
  }

  #acknowledge({ node, sentAtMs }: Omit<Acknowledgement, 'answeredAtMs'>): void {
    this.#acknowledgements.push({ node, sentAtMs, answeredAtMs: performance.now() })
    for (const resolve of this.#waiting.splice(0)) resolve()
  }
}

/** A user may start 20 calls in ten minutes. */
const CALL_MS = 15_000
/** A device may make 12 keys a minute, and calls half the time. */
const KEY_PAUSE_MS = 2_500
const EPOCHS_MAX = 1_000
const REGISTER_PAUSE_MS = 500
const ARRIVAL_MS_MAX = 30_000
const REST_MS_MAX = 60_000
const RATE_PAUSE_MS = 5_000
const REFUSED_PAUSE_MS = 1_000
const FAULTS_MAX = 100
