/**
 * One seeded run of a small world of actors: registers that answer after their commit, calls with a ring timer, inboxes
 * woken by a flag. The seed decides who runs next, when writes and reads end, which of them fail, who throws and when
 * the clock ticks. Afterwards all is left to come to rest, and whatever an actor owes must have happened.
 */
import { ActorTimer } from '../../../src/runtime/pending.ts'
import { Calls } from './calls.ts'
import { Inboxes } from './inboxes.ts'
import { Registers } from './registers.ts'
import { type Part, type PlantedBug, Stage } from './stage.ts'

export interface Interleaving {
  /** Broken promises; empty when none was. */
  readonly violations: readonly string[]
  /** Everything that happened, in order. */
  readonly trace: readonly string[]
}

/** Plays the run of one seed. One at a time: a planted bug may change the runtime itself while it lasts. */
export async function playInterleaving(seed: number, bug?: PlantedBug): Promise<Interleaving> {
  const { renew } = ActorTimer.prototype
  if (bug === 'late timer') ActorTimer.prototype.renew = () => {}
  try {
    return await play(seed, bug)
  } finally {
    ActorTimer.prototype.renew = renew
  }
}

async function play(seed: number, bug: PlantedBug | undefined): Promise<Interleaving> {
  const stage = new Stage(seed, bug)
  const parts = [new Registers(stage), new Calls(stage), new Inboxes(stage)]
  const steps = 40 + stage.draw.below(80)
  for (let step = 0; step < steps; step++) {
    const actions = [...stage.actions(), ...parts.flatMap(part => part.actions())]
    actions[stage.draw.below(actions.length)]!()
    // Lets the promises of asks settle; one turn is enough, because nothing is chained to them.
    await null
  }
  await comeToRest(stage, parts)
  for (const part of parts) part.check()
  await stage.checkNothingLeft()
  return { violations: stage.violations, trace: stage.trace }
}

async function comeToRest(stage: Stage, parts: readonly Part[]): Promise<void> {
  stage.areFaultsOver = true
  // An actor that was given up is forgiven after a minute.
  stage.world.jump(61_000)
  for (let round = 0; round < ROUNDS_TO_REST_MAX; round++) {
    stage.world.run()
    await null
    if (stage.world.isIdle && parts.every(part => part.isAtRest())) return
    for (const part of parts) part.settleAll()
    stage.world.jump(100)
  }
  stage.violate('it does not come to rest')
}

/** Each is 100 ms; nothing in these actors waits longer than 400 once faults are over. */
const ROUNDS_TO_REST_MAX = 100
