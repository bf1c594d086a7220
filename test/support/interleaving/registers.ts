/** Registers append to a store and answer with the index once that is durable. Clients ask again when refused. */
import type { Actor, Context, Ref, Reply } from '../../../src/runtime/actor.ts'
import { Deferred } from '../deferred.ts'
import type { Action, Part, Stage } from './stage.ts'

interface Append {
  readonly kind: 'append'
  readonly key: string
  readonly reply: Reply<number>
}

interface Write {
  readonly index: number
  readonly key: string
  readonly done: Deferred<void>
  isDoomed: boolean
}

/** The rows of one register, and the writes that are not durable yet. They settle in order. */
class Table {
  readonly durable: string[] = []
  readonly writes: Write[] = []

  append(index: number, key: string): Deferred<void> {
    const write = { index, key, done: new Deferred<void>(), isDoomed: false }
    this.writes.push(write)
    return write.done
  }
}

class Register implements Actor<Append> {
  readonly #stage: Stage
  readonly #table: Table
  readonly #context: Context<Append>
  readonly #indexes: Map<string, number>
  readonly #waiting = new Map<string, Reply<number>[]>()

  constructor(stage: Stage, table: Table, context: Context<Append>) {
    this.#stage = stage
    this.#table = table
    this.#context = context
    this.#indexes = new Map(table.durable.map((key, index) => [key, index]))
  }

  receive({ key, reply }: Append): void {
    this.#stage.mayThrow()
    const waiting = this.#waiting.get(key)
    const known = this.#indexes.get(key)
    // A retry may come while the first attempt is being written: its answer, too, has to wait for that.
    const mayAnswer = waiting === undefined || this.#stage.bug === 'reply before commit'
    if (known !== undefined && mayAnswer) reply.answer(known)
    else if (waiting !== undefined) waiting.push(reply)
    else this.#append(key, reply)
    this.#stage.mayThrow()
  }

  #append(key: string, reply: Reply<number>): void {
    const index = this.#indexes.size
    this.#indexes.set(key, index)
    this.#waiting.set(key, [reply])
    this.#context.commit(this.#table.append(index, key), () => {
      for (const waiting of this.#waiting.get(key)!) waiting.answer(index)
      this.#waiting.delete(key)
      this.#stage.mayThrow()
    })
  }
}

interface Client {
  readonly name: string
  appended: number
  isAsking: boolean
}

export class Registers implements Part {
  readonly #stage: Stage
  readonly #tables = new Map(['a', 'b'].map(id => [id, new Table()]))
  readonly #clients: Client[] = ['x', 'y', 'z'].map(name => ({ name, appended: 0, isAsking: false }))
  readonly #register: (id: string) => Ref<Append>

  constructor(stage: Stage) {
    this.#stage = stage
    this.#register = stage.system.define({
      kind: 'register',
      mailboxMessagesMax: 2,
      onFailure: 'rebuild',
      idleMs: 300,
      create: (id, context) => new Register(stage, this.#tables.get(id)!, context),
    })
  }

  actions(): Action[] {
    const asks = this.#clients.filter(canAsk).map(client => () => this.#ask(client))
    const settles = [...this.#tables.values()].filter(hasWrites).map(table => () => this.#settle(table))
    return [...asks, ...settles, ...settles]
  }

  settleAll(): void {
    for (const table of this.#tables.values()) while (table.writes.length > 0) this.#settle(table)
    for (const client of this.#clients) if (canAsk(client)) this.#ask(client)
  }

  isAtRest(): boolean {
    return this.#clients.every(client => client.appended === APPENDS_PER_CLIENT && !client.isAsking)
  }

  check(): void {
    const keys = [...this.#tables.values()].flatMap(table => table.durable)
    if (new Set(keys).size !== keys.length) this.#stage.violate(`appended twice: ${keys}`)
    const expected = this.#clients.length * APPENDS_PER_CLIENT
    if (keys.length !== expected) this.#stage.violate(`${keys.length} of ${expected} appended`)
  }

  #ask(client: Client): void {
    const id = client.appended % 2 === 0 ? 'a' : 'b'
    const key = `${client.name}${client.appended}`
    client.isAsking = true
    this.#stage.note(`ask ${key}`)
    this.#register(id)
      .ask<number>(reply => ({ kind: 'append', key, reply }), 300)
      .then(
        index => {
          client.isAsking = false
          client.appended += 1
          this.#stage.note(`answer ${key} ${index}`)
          if (this.#tables.get(id)!.durable[index] !== key) this.#stage.violate(`${key} is not durable`)
        },
        error => {
          client.isAsking = false
          this.#stage.note(`refused ${key} ${error.code}`)
        },
      )
  }

  #settle(table: Table): void {
    const write = table.writes.shift()!
    const fails = write.isDoomed || (!this.#stage.areFaultsOver && this.#stage.draw.chance(0.15))
    this.#stage.note(`write ${write.key} at ${write.index} ${fails ? 'failed' : 'durable'}`)
    if (fails) {
      // A write on top of it can not stand without it.
      for (const later of table.writes) later.isDoomed = true
      return write.done.reject(new Error('injected'))
    }
    if (write.index !== table.durable.length) this.#stage.violate(`${write.key} written over another`)
    table.durable[write.index] = write.key
    write.done.resolve()
  }
}

const canAsk = (client: Client) => !client.isAsking && client.appended < APPENDS_PER_CLIENT
const hasWrites = (table: Table) => table.writes.length > 0

const APPENDS_PER_CLIENT = 3
