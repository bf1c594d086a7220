/** An actor system in a fake world, with what went wrong in it written down, and a kind made of one function. */
import type { Actor, ActorKind, Context } from '../../src/runtime/actor.ts'
import { ActorSystem, type ActorSystemOptions } from '../../src/runtime/system.ts'
import { FakeWorld } from './world.ts'

export interface Stage {
  readonly world: FakeWorld
  readonly system: ActorSystem
  /** Whatever `fatal` was called with. */
  readonly fatal: unknown[]
  /** `kind/id: message` of everything that `onFailure` was told. */
  readonly failures: string[]
}

export function makeStage(
  options: Partial<Omit<ActorSystemOptions, 'world'>> = {},
  world = new FakeWorld(),
): Stage {
  const fatal: unknown[] = []
  const failures: string[] = []
  const system = new ActorSystem({
    world,
    fatal: error => fatal.push(error),
    onFailure: ({ kind, id, error }) => failures.push(`${kind}/${id}: ${error}`),
    ...options,
  })
  return { world, system, fatal, failures }
}

/** A kind with a function of message and context for a handler. */
export function kindOf<Message>(
  receive: (message: Message, context: Context<Message>, id: string) => void,
  options: Partial<ActorKind<Message>> & Pick<Actor<Message>, 'canPassivate' | 'onStopped'> = {},
): ActorKind<Message> {
  const { canPassivate, onStopped, ...definition } = options
  return {
    kind: 'probe',
    mailboxMessagesMax: 1_000,
    onFailure: 'rebuild',
    create: (id, context) => ({
      receive: message => receive(message, context, id),
      ...(canPassivate === undefined ? {} : { canPassivate }),
      ...(onStopped === undefined ? {} : { onStopped }),
    }),
    ...definition,
  }
}
