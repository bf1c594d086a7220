/**
 * One kind of actor: its definition, its live actors by id, and their order by last activity, which finds idle ones
 * directly.
 */
import type { ActorKind } from './actor.ts'
import type { Cell } from './cell.ts'
import { KindFigures } from './figures.ts'
import type { Internals } from './internals.ts'
import type { FailureRecord } from './supervisor.ts'

export class Kind {
  readonly name: string
  readonly definition: ActorKind<unknown>
  readonly internals: Internals
  readonly figures = new KindFigures()
  readonly cells = new Map<string, Cell>()
  /** Ids that failed lately, or were given up. */
  readonly failures = new Map<string, FailureRecord>()
  #leastRecent: Cell | undefined = undefined
  #mostRecent: Cell | undefined = undefined

  constructor(internals: Internals, definition: ActorKind<unknown>) {
    this.name = definition.kind
    this.definition = definition
    this.internals = internals
  }

  /** The live actor that has been without a turn for longest. */
  get leastRecent(): Cell | undefined {
    return this.#leastRecent
  }

  add(cell: Cell): void {
    this.cells.set(cell.id, cell)
    this.internals.liveActors += 1
    this.#append(cell)
  }

  remove(cell: Cell): void {
    this.cells.delete(cell.id)
    this.internals.liveActors -= 1
    this.#unlink(cell)
  }

  /** Notes activity. Within one tick the order does not matter, which spares a busy actor the moving. */
  touch(cell: Cell): void {
    if (cell.activeTick === this.internals.wheel.tick) return
    this.#unlink(cell)
    this.#append(cell)
  }

  #append(cell: Cell): void {
    cell.activeTick = this.internals.wheel.tick
    cell.lessRecent = this.#mostRecent
    cell.moreRecent = undefined
    if (this.#mostRecent === undefined) this.#leastRecent = cell
    else this.#mostRecent.moreRecent = cell
    this.#mostRecent = cell
  }

  #unlink(cell: Cell): void {
    if (cell.lessRecent === undefined) this.#leastRecent = cell.moreRecent
    else cell.lessRecent.moreRecent = cell.moreRecent
    if (cell.moreRecent === undefined) this.#mostRecent = cell.lessRecent
    else cell.moreRecent.lessRecent = cell.lessRecent
    cell.lessRecent = undefined
    cell.moreRecent = undefined
  }
}
