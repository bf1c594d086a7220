/**
 * A real log for the registrations of devices. A fault can be ordered for any of the writes of a registration, and the
 * store can be left as a crash leaves it.
 */

import type { DeviceId, UserId } from '../../src/domain/ids.ts'
import { SignalError } from '../../src/errors.ts'
import type { Alongside, Registration } from '../../src/keyserver/registration.ts'
import type { LmdbStore } from '../../src/store/engine/lmdb-store.ts'
import type { Change } from '../../src/store/engine/store.ts'
import type { LogInStore } from './log-in-store.ts'

/**
 * A write's fate: it fails, it fails though it took effect, its deadline passes, the process ends before it or after
 * it.
 */
export type Harm = 'refused' | 'done but refused' | 'late' | 'crash before' | 'crash after'

/** `at` is the number of the commit, from 1 on, in the order in which the operations ask for them; or the log. */
export interface Fault {
  readonly at: number | 'log'
  readonly harm: Harm
}

export class RegistrationLog {
  #log: LogInStore | undefined
  #during: () => Promise<unknown> = async () => {}
  #ordered: readonly Fault[] = []
  #commits = 0
  readonly #late: (() => Promise<unknown>)[] = []
  #onCrash: () => void = () => {}

  /** The database as the operations know it: every change is counted. */
  around(database: LmdbStore): LmdbStore {
    const change = <Result>(write: (change: Change) => Result, atMs?: number) =>
      this.#run(++this.#commits, () => database.change(write, atMs))
    return new Proxy(database, {
      get: (target, name) => {
        if (name === 'change') return change
        const member = Reflect.get(target, name)
        return typeof member === 'function' ? member.bind(target) : member
      },
    })
  }

  get isOpen(): boolean {
    return this.#log !== undefined
  }

  async open(database: LmdbStore, { isFrozen }: { readonly isFrozen: boolean }): Promise<void> {
    // Loaded for this: most set-ups have no log.
    const { openLog } = await import('./log-in-store.ts')
    this.#log = await openLog(database, isFrozen)
  }

  readonly register = async (
    userId: UserId,
    deviceId: DeviceId,
    publicKey: string,
    alongside?: Alongside,
  ): Promise<Registration> => {
    await this.#during()
    return this.#run('log', () => this.#opened.register(userId, deviceId, publicKey, alongside))
  }

  /** Orders faults for the writes to come; resolves when the process would have ended in one. */
  harm(...faults: readonly Fault[]): Promise<void> {
    this.#ordered = faults
    this.#commits = 0
    return new Promise(resolve => {
      this.#onCrash = resolve
    })
  }

  /** Lets the log do what faults of kind `late` put off. */
  runLate(): Promise<unknown> {
    return Promise.all(this.#late.splice(0).map(act => act()))
  }

  /** Has something happen while the log is asked. */
  during(act: () => Promise<unknown>): void {
    this.#during = act
  }

  /** `<userId>_<deviceId> <publicKey>` of every entry. */
  entries(): string[] {
    return this.#opened.entries()
  }

  async close(): Promise<void> {
    await this.#log?.system.drainAndStop(5_000)
  }

  get #opened() {
    if (this.#log === undefined) throw new Error('the log is not open')
    return this.#log
  }

  async #run<Result>(at: Fault['at'], act: () => Promise<Result>): Promise<Result> {
    const harm = this.#ordered.find(fault => fault.at === at)?.harm
    if (harm === undefined) return act()
    const refusal = new SignalError(
      at === 'log' ? 'LOG_UNAVAILABLE' : 'STORE_UNAVAILABLE',
      'ordered by a test',
    )
    if (harm === 'refused') throw refusal
    if (harm === 'late') {
      this.#late.push(act)
      throw new SignalError('DEADLINE_EXCEEDED', 'ordered by a test')
    }
    if (harm !== 'crash before') await act().catch(() => undefined)
    if (harm === 'done but refused') throw refusal
    this.#onCrash()
    return new Promise(() => {})
  }
}
