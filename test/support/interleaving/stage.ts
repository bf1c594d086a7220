/** Shared by a seeded run's parts: the system, the choices, and the record of events. */
import { ActorSystem } from '../../../src/runtime/system.ts'
import { type SeededRandom, SeededWorld } from '../world.ts'

/** A mistake made on purpose, to see that the runs would show it. */
export type PlantedBug =
  /** A register answers a retry from memory, while the first attempt is still being written. */
  | 'reply before commit'
  /** The runtime does not look at the generation of a timer that fired. */
  | 'late timer'
  /** An inbox clears its flag at the end of a read instead of before it. */
  | 'lost wake-up'

export type Action = () => void

/** One kind of actor with its surroundings. */
export interface Part {
  /** Its possible next events, all equally likely. */
  actions(): Action[]
  /** Lets everything that is under way around it end well. */
  settleAll(): void
  isAtRest(): boolean
  check(): void
}

export class Stage {
  readonly bug: PlantedBug | undefined
  readonly world: SeededWorld
  readonly draw: SeededRandom
  readonly system: ActorSystem
  readonly violations: string[] = []
  readonly trace: string[] = []
  areFaultsOver = false

  constructor(seed: number, bug: PlantedBug | undefined) {
    this.bug = bug
    this.world = new SeededWorld(seed)
    this.draw = this.world.draw
    this.system = new ActorSystem({
      world: this.world,
      turnsPerVisitMax: 1 + this.draw.below(3),
      refuseAskCycles: true,
      fatal: error => this.violate(`fatal: ${error}`),
      onFailure: ({ kind, id, error }) => this.note(`${kind}/${id} failed: ${error}`),
    })
  }

  note(event: string): void {
    this.trace.push(event)
  }

  violate(what: string): void {
    this.trace.push(what)
    this.violations.push(what)
  }

  /** Throws now and then, while faults go on. */
  mayThrow(): void {
    if (!this.areFaultsOver && this.draw.chance(0.04)) throw new Error('injected')
  }

  actions(): Action[] {
    const tick = () => {
      this.note('tick')
      this.world.jump(100)
    }
    const drain = () => this.world.runOne()
    return this.world.isIdle ? [tick] : [tick, drain, drain, drain, drain]
  }

  async checkNothingLeft(): Promise<void> {
    // The first finds all idle actors, the second those that had to be asked again.
    for (let i = 0; i < 2; i++) this.world.jump(120_000)
    const { liveActors, timersArmed, commitsUnderWay, outcomesUnderWay, asksOpen } = this.system.figures()
    const left = liveActors + timersArmed + commitsUnderWay + outcomesUnderWay + asksOpen
    if (left > 0) this.violate(`left behind: ${JSON.stringify(this.system.figures())}`)
    const stop = this.system.drainAndStop(1_000)
    this.world.jump(2_000)
    if ((await stop) !== 'finished') this.violate('it does not stop')
  }
}
