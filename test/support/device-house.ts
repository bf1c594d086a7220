/**
 * The device operations over a real store and a real log appender, in one process. A fault can be ordered for any of
 * the writes of a registration, and the house can be left as a crash leaves it and opened again.
 */

import { createHash, generateKeyPairSync } from 'node:crypto'
import type { Test } from 'tap'
import { logAppenderKind } from '../../actors/log-appender.ts'
import type { LogAppenderMessage } from '../../actors/messages.ts'
import { DeviceLists } from '../../src/api/devices/device-lists.ts'
import { DeviceRegistration } from '../../src/api/devices/device-registration.ts'
import { deviceOperations } from '../../src/api/devices/devices.ts'
import type { KeysShown } from '../../src/domain/contacts/friend-request.ts'
import type { DeviceId, UserId } from '../../src/domain/ids.ts'
import { SignalError } from '../../src/errors.ts'
import { LogStore } from '../../src/keyserver/log-store.ts'
import { PublishedLog } from '../../src/keyserver/published-log.ts'
import { type Alongside, registerKey } from '../../src/keyserver/registration.ts'
import { parseEntry } from '../../src/log/entry.ts'
import type { Ref } from '../../src/runtime/actor.ts'
import { realWorld } from '../../src/runtime/clock.ts'
import { ActorSystem } from '../../src/runtime/system.ts'
import { AccountLetters } from '../../src/store/accounts/account-letters.ts'
import { AppleConsents } from '../../src/store/accounts/apple-consents.ts'
import { ChallengeStore } from '../../src/store/accounts/challenge-store.ts'
import { LoginMethods } from '../../src/store/accounts/login-methods.ts'
import type { Database } from '../../src/store/engine/database.ts'
import type { Change } from '../../src/store/engine/store.ts'
import {
  newSession,
  newUser,
  openWorld,
  type Send,
  sender,
  type TestAnswer,
  type TestWorld,
} from './application.ts'
import { createLog, SIGNER } from './stored-log.ts'

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

export interface HouseOptions {
  readonly rates?: boolean
  readonly isFrozen?: boolean
  readonly keysShown?: (asker: UserId, owner: UserId) => KeysShown | undefined
}

export interface DeviceHouse {
  readonly world: TestWorld
  readonly registration: DeviceRegistration
  readonly lists: DeviceLists
  readonly send: Send
  /** Messages to devices, pushed or not: `<kind> <deviceId> except <deviceId>`. */
  readonly told: readonly string[]
  /** `<userId>_<deviceId> <publicKey>` of every entry of the log. */
  logged(): string[]
  /** Orders faults for the writes to come; resolves when the process would have ended in one. */
  harm(...faults: readonly Fault[]): Promise<void>
  /** Lets the log do what faults of kind `late` put off. */
  logLate(): Promise<unknown>
  /** Has something happen while the log is asked. */
  onLog(act: () => Promise<unknown>): void
  /** Ends it as the process would end, whatever is under way. */
  close(): Promise<void>
}

export async function openHouse(
  t: Test,
  folder: string,
  { rates, isFrozen = false, keysShown = () => undefined }: HouseOptions = {},
): Promise<DeviceHouse> {
  const world = openWorld(folder, undefined, { rates: rates ?? false })
  const faults = new Faults()
  const database = faults.around(world.database)
  const { system, register, store } = await openLog(world.database, isFrozen)
  const told: string[] = []
  const notices = {
    tell: (...[change, userId, body, except]: Parameters<TestWorld['notices']['tell']>) => {
      if ('deviceId' in body) told.push(`${body.kind} ${body.deviceId} except ${except}`)
      world.notices.tell(change, userId, body, except)
    },
  }
  let duringLog: () => Promise<unknown> = async () => {}
  const api = {
    ...world,
    notices,
    database,
    register: async (...key: Parameters<typeof register>) => {
      await duringLog()
      return faults.run('log', () => register(...key))
    },
  }
  const lists = new DeviceLists(api)
  const registration = new DeviceRegistration({ ...api, lists })
  const challenges = new ChallengeStore({ ...world, testCodes: new Map(), canSend: () => true })
  const letters = new AccountLetters({ ...world, isTestIdentifier: () => false })
  const loginMethods = new LoginMethods({ ...world, letters, appleConsents: new AppleConsents(world) })
  const proofs = { challenges, loginMethods, stepUpSeconds: 600 }
  const operations = deviceOperations({ ...world, ...proofs, notices, lists, registration, keysShown })
  let isClosed = false
  const close = async () => {
    if (isClosed) return
    isClosed = true
    await system.drainAndStop(5_000)
    await world.database.close()
  }
  t.teardown(close)
  return {
    world,
    registration,
    lists,
    send: sender({ ...world, database }, operations),
    told,
    logged: () => entriesOf(store),
    harm: (...ordered) => faults.order(ordered),
    logLate: () => faults.runLate(),
    onLog: act => {
      duringLog = act
    },
    close,
  }
}

/** The base64 of a key that no other device has: X9.63 of P-256. */
export function newKey(): string {
  const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  return publicKey.export({ type: 'spki', format: 'der' }).subarray(-65).toString('base64')
}

export const REGISTER = 'POST /app/api/register_device'

/** Registers a key with the session of this token. */
export function registerDevice(
  { send }: DeviceHouse,
  { token }: { readonly token: string },
  publicKey = newKey(),
  more: object = {},
): Promise<TestAnswer> {
  return send(REGISTER, { token, body: { publicKey, ...more } })
}

/** Ids of the devices that are listed, in their order. */
export async function deviceIds({ send }: DeviceHouse, { token }: { token: string }): Promise<string[]> {
  const { body } = await send('GET /app/api/devices', { token })
  return body.items.map(({ deviceId }: { deviceId: string }) => deviceId)
}

/** The id that a text in an answer stands for. */
export function idOf(text: string): DeviceId {
  return BigInt(text) as DeviceId
}

/** A row of the store. */
export function activeDevice({ world }: DeviceHouse, { userId }: { userId: UserId }, id: string) {
  return world.database.view(view => world.devices.active(view, userId, idOf(id)))
}

/** A house, a user with a registered device, and a second session of theirs with a device of its own. */
export async function twoDevices(t: Test) {
  const house = await openHouse(t, t.testdir())
  const ann = await newUser(house.world)
  const first: string = (await registerDevice(house, ann)).body.deviceId
  const other = await newSession(house.world, ann.userId)
  const second: string = (await registerDevice(house, other)).body.deviceId
  return { house, ann, other, first, second }
}

class Faults {
  #ordered: readonly Fault[] = []
  #commits = 0
  readonly #late: (() => Promise<unknown>)[] = []
  #onCrash: () => void = () => {}

  order(faults: readonly Fault[]): Promise<void> {
    this.#ordered = faults
    this.#commits = 0
    return new Promise(resolve => {
      this.#onCrash = resolve
    })
  }

  /** The database as the operations know it: every change is counted. */
  around(database: Database): Database {
    const change = <Result>(write: (change: Change) => Result, atMs?: number) =>
      this.run(++this.#commits, () => database.change(write, atMs))
    return new Proxy(database, {
      get: (target, name) => {
        if (name === 'change') return change
        const member = Reflect.get(target, name)
        return typeof member === 'function' ? member.bind(target) : member
      },
    })
  }

  runLate(): Promise<unknown> {
    return Promise.all(this.#late.splice(0).map(act => act()))
  }

  async run<Result>(at: Fault['at'], act: () => Promise<Result>): Promise<Result> {
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

/** A log in the store, with an appender of its own. */
export async function openLog(database: Database, isFrozen = false) {
  const store = new LogStore(database)
  if (store.maker() === undefined) await createLog(store)
  const published = new PublishedLog(store, SIGNER)
  const fatal = (error: unknown) => {
    throw error
  }
  const system = new ActorSystem({ world: realWorld(), fatal })
  const kind = logAppenderKind({
    store,
    signer: SIGNER,
    publishedSize: () => published.size,
    publish: head => published.publish(head),
    fatal,
  })
  const appender: Ref<LogAppenderMessage> = system.define(kind)('log')
  await appender.ask<number>(reply => ({ kind: 'open', reply }), 10_000)
  const log = {
    isFrozen,
    vrf: { hash: async (userId: bigint, deviceId: bigint) => hashOf(`${userId}_${deviceId}`) },
    append: (key: Omit<Extract<LogAppenderMessage, { kind: 'append' }>, 'kind' | 'reply'>) =>
      appender.ask<number>(reply => ({ kind: 'append', ...key, reply }), 10_000),
    onRegistered: () => {},
  }
  const register = (userId: UserId, deviceId: DeviceId, publicKey: string, alongside?: Alongside) =>
    registerKey(log, userId, deviceId, publicKey, alongside)
  return { store, system, register }
}

function entriesOf(store: LogStore): string[] {
  const { treeSize } = store.head()!
  return Array.from({ length: treeSize }, (_, index) => {
    const { userId, deviceId } = store.identity(index)!
    const { publicKey, vrfHash } = parseEntry(store.entryVolatile(index))
    const name = `${userId}_${deviceId}`
    if (!hashOf(name).equals(vrfHash)) throw new Error(`entry ${index} is under another hash than ${name}`)
    return `${name} ${publicKey}`
  })
}

function hashOf(name: string): Buffer {
  return createHash('sha512').update(name).digest()
}
