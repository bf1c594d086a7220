/** A log appender whose world and store the test moves by hand: nothing runs and no commit ends until it says so. */

import { type LogAppenderDeps, logAppenderKind } from '../../actors/log-appender.ts'
import type { LogAppenderMessage } from '../../actors/messages.ts'
import type { SignalError } from '../../src/errors.ts'
import { LogStore } from '../../src/keyserver/log-store.ts'
import { PublishedLog } from '../../src/keyserver/published-log.ts'
import type { LogHead } from '../../src/log/checkpoint.ts'
import type { Ref } from '../../src/runtime/actor.ts'
import { ActorSystem } from '../../src/runtime/system.ts'
import { MemoryStore } from './memory-store.ts'
import { createLog, type DeviceKey, ExpectedLog, LogWriter, SIGNER } from './stored-log.ts'
import { FakeWorld } from './world.ts'

/** Changes what the appender is given, such as a step at which to crash. */
export type WorldChange = (world: LogAppenderDeps) => LogAppenderDeps

/** A store with a log of these entries in it. */
export function databaseWith(keys: readonly DeviceKey[]): MemoryStore {
  const database = new MemoryStore()
  const store = new LogStore(database)
  void createLog(store)
  database.settleAll()
  if (keys.length > 0) void new LogWriter(store, new ExpectedLog()).append(keys)
  database.settleAll()
  return database.crash(0)
}

export class AppenderStage {
  readonly database: MemoryStore
  readonly store: LogStore
  readonly world = new FakeWorld()
  /** Sizes that were published. */
  readonly published: number[] = []
  /** The errors that ended the process. */
  readonly fatal: unknown[] = []
  /** The index, or the code of the refusal, of each ask that ended, in the order of the asks. */
  readonly answers: (number | string | undefined)[] = []
  readonly system: ActorSystem
  readonly #appender: Ref<LogAppenderMessage>

  constructor(database: MemoryStore, change: WorldChange = world => world) {
    this.database = database
    this.store = new LogStore(database)
    const published = new PublishedLog(this.store, SIGNER)
    const fatal = (error: unknown) => void this.fatal.push(error)
    this.system = new ActorSystem({ world: this.world, fatal })
    const world = change({
      store: this.store,
      signer: SIGNER,
      publishedSize: () => published.size,
      publish: (head: LogHead) => {
        this.published.push(head.treeSize)
        published.publish(head)
      },
      fatal,
    })
    this.#appender = this.system.define(logAppenderKind(world))('log')
  }

  /** Asks the appender to open; resolves with the size or the code of the refusal. */
  async open(): Promise<number | string> {
    const opened = this.#appender
      .ask<number>(reply => ({ kind: 'open', reply }), 60_000)
      .catch((error: SignalError) => error.code)
    await this.run()
    return opened
  }

  /** Asks for each of these keys to be registered; `answers` gets the outcomes. */
  ask(...keys: readonly DeviceKey[]): void {
    for (const { device, publicKey } of keys) {
      const at = this.answers.push(undefined) - 1
      this.#appender
        .ask<number>(reply => ({ kind: 'append', ...device, publicKey, reply }), 10_000)
        .then(
          index => {
            this.answers[at] = index
          },
          (error: SignalError) => {
            this.answers[at] = error.code
          },
        )
    }
  }

  tell(message: LogAppenderMessage): void {
    this.#appender.tellControl(message)
  }

  /** Runs the actor until it waits for the store. */
  run(): Promise<void> {
    return this.world.settle()
  }

  /** Lets the pause after a failure pass, and commits end well until there are none. */
  async settle(): Promise<void> {
    await this.run()
    this.world.advance(PAUSE_MS)
    await this.run()
    while (this.database.waiting + this.database.written > 0) {
      this.database.settleAll()
      await this.run()
    }
  }
}

/** Longer than the runtime waits before it builds a dropped actor again. */
const PAUSE_MS = 200
