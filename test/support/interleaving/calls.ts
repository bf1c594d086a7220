/** Calls ring for 300 ms unless answered. Stored calls survive a failure, and arm the timer again. */
import type { Actor, ActorKind, Context, Ref } from '../../../src/runtime/actor.ts'
import type { Action, Part, Stage } from './stage.ts'

interface CallMessage {
  readonly kind: 'ring' | 'answer' | 'timeout'
  /** Position among the user messages to this call. */
  readonly n?: number
}

interface StoredCall {
  isRinging: boolean
  deadlineMs: number
}

class Call implements Actor<CallMessage> {
  readonly #stage: Stage
  readonly #stored: StoredCall
  readonly #context: Context<CallMessage>

  constructor(stage: Stage, stored: StoredCall, context: Context<CallMessage>) {
    this.#stage = stage
    this.#stored = stored
    this.#context = context
    if (stored.isRinging) this.#arm()
  }

  receive({ kind }: CallMessage): void {
    switch (kind) {
      case 'ring':
        this.#stored.isRinging = true
        this.#stored.deadlineMs = this.#context.nowMs() + 300
        this.#arm()
        return this.#stage.mayThrow()
      case 'answer':
        this.#stored.isRinging = false
        this.#context.cancelTimer('ring')
        return this.#stage.mayThrow()
      case 'timeout':
        return this.#onTimeout()
    }
  }

  #onTimeout(): void {
    if (!this.#stored.isRinging) this.#stage.violate('a call timed out that did not ring')
    else if (this.#context.nowMs() < this.#stored.deadlineMs) this.#stage.violate('a call timed out early')
    this.#stored.isRinging = false
  }

  #arm(): void {
    const leftMs = Math.max(0, this.#stored.deadlineMs - this.#context.nowMs())
    this.#context.startTimer('ring', leftMs, { kind: 'timeout' })
  }
}

export class Calls implements Part {
  readonly #stage: Stage
  readonly #stored = new Map(['c', 'd'].map(id => [id, { isRinging: false, deadlineMs: 0 }]))
  readonly #call: (id: string) => Ref<CallMessage>
  readonly #told = new Map<string, number[]>()
  readonly #seen = new Map<string, number[]>()
  readonly #givenUp = new Set<string>()
  #messages = 0

  constructor(stage: Stage) {
    this.#stage = stage
    this.#call = stage.system.define(this.#kind())
  }

  actions(): Action[] {
    return [...this.#stored.keys()].flatMap(id => [
      () => this.#tell(id, 'ring'),
      () => this.#tell(id, 'answer'),
    ])
  }

  settleAll(): void {}

  isAtRest(): boolean {
    return [...this.#stored.values()].every(call => !call.isRinging)
  }

  check(): void {
    for (const [id, told] of this.#told) {
      const seen = this.#seen.get(id) ?? []
      // One that was given up is refused what waited for it; the rest must still be in order.
      const due = this.#givenUp.has(id) ? told.filter(n => seen.includes(n)) : told
      if (due.join() !== seen.join()) this.#stage.violate(`call ${id} was told ${told} and saw ${seen}`)
    }
  }

  #kind(): ActorKind<CallMessage> {
    return {
      kind: 'call',
      mailboxMessagesMax: 3,
      onFailure: 'rebuild',
      idleMs: 300,
      onGivenUp: id => {
        this.#givenUp.add(id)
        this.#stored.get(id)!.isRinging = false
      },
      create: (id, context) => {
        const call = new Call(this.#stage, this.#stored.get(id)!, context)
        return { receive: message => this.#watch(id, message, call) }
      },
    }
  }

  #watch(id: string, message: CallMessage, call: Call): void {
    this.#stage.note(`call ${id} ${message.kind} ${message.n ?? ''}`)
    if (message.n !== undefined) push(this.#seen, id, message.n)
    call.receive(message)
  }

  #tell(id: string, kind: 'ring' | 'answer'): void {
    // A socket's end comes in the control lane, where a firing may stand behind it.
    if (this.#stage.draw.chance(0.3)) return this.#call(id).tellControl({ kind })
    const n = this.#messages++
    if (this.#call(id).tell({ kind, n }) === 'accepted') push(this.#told, id, n)
  }
}

function push(lists: Map<string, number[]>, id: string, n: number): void {
  const list = lists.get(id)
  if (list === undefined) lists.set(id, [n])
  else list.push(n)
}
