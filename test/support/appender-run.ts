/**
 * One seeded run of the log appender: clients register new keys, repeat and replace them and ask again after an error,
 * while commits and records of the head file end late, fail before or after they took effect, and the process is killed
 * and started again. The seed decides who runs next, and which step fails, and when. Afterwards all is left to come to
 * rest, and the whole log is checked.
 */

import { SignalError } from '../../src/errors.ts'
import { LogStore } from '../../src/keyserver/log-store.ts'
import type { LogHead } from '../../src/log/checkpoint.ts'
import { parseEntry } from '../../src/log/entry.ts'
import type { PlantedBug } from './appender-bugs.ts'
import { type Quorum, type RunState, ServerProcess } from './appender-process.ts'
import { diskError, MemoryStore } from './memory-store.ts'
import {
  createLog,
  type Device,
  type DeviceKey,
  deviceOf,
  ExpectedLog,
  keyOf,
  LogWriter,
} from './stored-log.ts'
import { SeededRandom } from './world.ts'

export interface AppenderRun {
  /** Broken promises; empty when none was. */
  readonly violations: readonly string[]
  /** Everything that happened, in order. */
  readonly trace: readonly string[]
}

export async function playAppender(seed: number, bug?: PlantedBug): Promise<AppenderRun> {
  const run = new Run(seed, bug)
  await run.play()
  return run
}

/** The same with witnesses, which cosign late, and are lost and found. */
export async function playWitnessedAppender(seed: number, bug?: PlantedBug): Promise<AppenderRun> {
  const run = new Run(seed, bug, { hasWitnesses: true })
  await run.play()
  return run
}

type Action = () => void

/** A checkpoint on its way into the head file. */
interface Recording {
  readonly treeSize: number
  readonly resolve: () => void
  readonly reject: (error: SignalError) => void
}

class RunQuorum implements Quorum {
  isQuorumLost = false
  kept: LogHead
  submitted: LogHead | undefined
  /** The head of the round under way. */
  asked: LogHead | undefined

  constructor(kept: LogHead) {
    this.kept = kept
  }

  submit(head: LogHead): void {
    this.submitted = head
  }

  get isDue(): boolean {
    return this.submitted !== undefined && (this.isQuorumLost || this.submitted.treeSize > this.kept.treeSize)
  }
}

class Run implements RunState, AppenderRun {
  readonly bug: PlantedBug | undefined
  readonly draw: SeededRandom
  readonly violations: string[] = []
  readonly trace: string[] = []
  readonly log: ExpectedLog
  database: MemoryStore
  publishedSize = 0
  recordedSize = 0
  readonly hasHeadFile: boolean
  readonly quorum: RunQuorum | undefined
  #process: ServerProcess
  readonly #clients: Client[]
  readonly #devices = new Map<string, Device>()
  #keys = 0
  /** Commits that wait behind one that found no room. */
  #doomed = 0
  #recordings: Recording[] = []

  constructor(seed: number, bug: PlantedBug | undefined, { hasWitnesses = false } = {}) {
    this.bug = bug
    this.draw = new SeededRandom(seed)
    this.hasHeadFile = this.draw.chance(0.5)
    const { keys, database } = beginning(SIZES_AT_START[this.draw.below(SIZES_AT_START.length)]!)
    this.log = new ExpectedLog(keys)
    this.database = database.crash(0)
    this.quorum = hasWitnesses ? new RunQuorum(new LogStore(this.database).head()!) : undefined
    for (let number = 0; number < CONTESTED_DEVICES; number++) this.#know(deviceOf(number))
    this.#clients = Array.from({ length: 2 + this.draw.below(3) }, () => new Client())
    this.#process = new ServerProcess(this)
  }

  async play(): Promise<void> {
    const steps = 40 + this.draw.below(80)
    for (let step = 0; step < steps; step++) {
      const actions = [...this.#process.actions(), ...this.#clientActions(), ...this.#storeActions()]
      actions[this.draw.below(actions.length)]!()
      await this.#afterStep()
    }
    await this.#comeToRest()
    this.#checkRepeats()
    if (this.publishedSize !== this.log.size)
      this.violate(`published ${this.publishedSize} of ${this.log.size}`)
    await this.#process.checkAndStop()
  }

  note(event: string): void {
    this.trace.push(event)
  }

  violate(what: string): void {
    this.trace.push(`AGAINST A PROMISE: ${what}`)
    this.violations.push(what)
  }

  record(head: LogHead): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#recordings.push({ treeSize: head.treeSize, resolve, reject })
    })
  }

  async #afterStep(): Promise<void> {
    // Lets promises settle, however many are chained.
    await new Promise(resolve => setImmediate(resolve))
    this.#process.checkDropped()
    if (this.#process.isDead) this.#restart()
  }

  #clientActions(): Action[] {
    const ready = this.#clients.filter(client => !client.isAsking && !client.isOfCrowd)
    const asks = ready.map(client => () => this.#askNext(client))
    return this.draw.chance(0.1) ? [...asks, () => this.#askAsCrowd()] : [...asks, ...asks]
  }

  #askNext(client: Client): void {
    const mustChoose = client.key === undefined || (!client.mustAskAgain && this.draw.chance(0.75))
    this.#ask(client, mustChoose ? this.#chooseKey() : client.key!)
  }

  /** A new key of a contested device, its newest, or one that it had before. */
  #chooseKey(): DeviceKey {
    const device = deviceOf(this.draw.below(CONTESTED_DEVICES))
    let index = this.log.newestIndex(device)
    if (index === undefined || this.draw.chance(0.5)) return { device, publicKey: keyOf(this.#keys++) }
    while (this.draw.chance(0.4)) index = this.log.identity(index)!.previousIndex ?? index
    return { device, publicKey: parseEntry(this.log.entry(index)!).publicKey }
  }

  #ask(client: Client, key: DeviceKey): void {
    client.isAsking = true
    client.key = key
    this.#process.ask(key, isAnswered => {
      client.isAsking = false
      client.mustAskAgain = !isAnswered
    })
  }

  /** Some who register a first key, and ask again at the end if that failed. */
  #askAsCrowd(): void {
    for (let left = 1 + this.draw.below(12); left > 0; left--) {
      const key = { device: deviceOf(1_000 + this.#keys), publicKey: keyOf(this.#keys++) }
      this.#know(key.device)
      const client = new Client()
      client.isOfCrowd = true
      this.#clients.push(client)
      this.#ask(client, key)
    }
  }

  #storeActions(): Action[] {
    const { database, draw } = this
    const actions: Action[] = []
    const write = () => this.#write()
    const tell = () => this.#tell()
    if (database.waiting > 0) actions.push(write, write)
    if (database.written > 0) actions.push(tell, tell)
    const recordings = this.#recordings
    if (recordings.length > 0)
      actions.push(
        () => this.#recordNext(),
        () => this.#recordNext(),
      )
    if (this.quorum !== undefined) actions.push(...this.#quorumActions(this.quorum))
    if (!draw.chance(0.2)) return actions
    if (recordings.length > 0) actions.push(() => this.#failRecording())
    if (database.waiting > 0 && database.written === 0) actions.push(() => this.#refuseCommits())
    if (database.written > 0 && draw.chance(0.2)) actions.push(() => this.#tellFailed())
    if (draw.chance(0.2)) actions.push(() => this.#kill())
    return actions
  }

  #quorumActions(quorum: RunQuorum): Action[] {
    const actions: Action[] = []
    if (quorum.asked !== undefined)
      actions.push(
        () => this.#cosign(quorum),
        () => this.#cosign(quorum),
        () => this.#lose(quorum),
      )
    else if (quorum.isDue)
      actions.push(() => {
        quorum.asked = quorum.submitted
      })
    return actions
  }

  #cosign(quorum: RunQuorum): void {
    const head = quorum.asked!
    quorum.asked = undefined
    quorum.isQuorumLost = false
    quorum.kept = head
    this.note(`cosigned ${head.treeSize}`)
    this.#process.tell({ kind: 'cosigned', head })
  }

  #lose(quorum: RunQuorum): void {
    quorum.asked = undefined
    quorum.isQuorumLost = true
    this.note('the quorum is lost')
    this.#process.tell({ kind: 'quorum-lost' })
  }

  #write(): void {
    this.database.writeNext()
    this.#doomed = Math.max(0, this.#doomed - 1)
  }

  #tell(): void {
    this.database.tellNext()
    this.#readDurable(this.database.durable())
    this.note(`durable ${this.log.size}`)
  }

  #recordNext(): void {
    const { treeSize, resolve } = this.#recordings.shift()!
    this.#enterRecord(treeSize)
    resolve()
  }

  /** The file may or may not have the checkpoint then. */
  #failRecording(): void {
    const { treeSize, reject } = this.#recordings.shift()!
    this.note(`recording ${treeSize} fails`)
    if (this.draw.chance(0.3)) this.#enterRecord(treeSize)
    this.#process.onFault('refusals')
    reject(new SignalError('STORE_UNAVAILABLE', 'no room for the head file'))
  }

  #enterRecord(treeSize: number): void {
    this.note(`recorded ${treeSize}`)
    if (treeSize < this.recordedSize) this.violate(`recorded ${treeSize} after ${this.recordedSize}`)
    this.recordedSize = treeSize
  }

  #refuseCommits(): void {
    const { database, draw } = this
    const count = 1 + draw.below(database.waiting)
    // A batch built on one that found no room fails in any case, and says nothing of the store.
    const isRoom = this.#doomed > 0 || draw.chance(0.8)
    this.note(`${count} of ${database.waiting} commits ${isRoom ? 'find no room' : 'fail'}`)
    this.#process.onFault(isRoom ? 'refusals' : 'must stop')
    database.refuseWaiting(count, diskError(isRoom ? NO_ROOM : CORRUPTED))
    this.#doomed = database.waiting
  }

  #tellFailed(): void {
    const isThere = this.database.tellNextFailed(diskError(NO_ROOM))
    this.note(`a commit is told that it failed${isThere ? ', and is there' : ''}`)
    this.#process.onFault(isThere ? 'must stop' : 'refusals')
  }

  #kill(): void {
    this.note('killed')
    this.#process.isDead = true
  }

  #restart(): void {
    this.#process.cutOff()
    if (this.quorum !== undefined) this.quorum.asked = this.quorum.submitted = undefined
    this.database = this.database.crash(this.draw.below(this.database.written + 1))
    this.#doomed = 0
    const [recording] = this.#recordings.splice(0)
    if (recording !== undefined && this.draw.chance(0.5)) this.#enterRecord(recording.treeSize)
    this.#readDurable(this.database)
    this.note(`started with ${this.log.size}`)
    if (this.log.size < this.recordedSize) this.violate(`${this.recordedSize} recorded of ${this.log.size}`)
    this.#process = new ServerProcess(this)
  }

  /** Takes newly durable writes into `log`. Each start checks that the rest is unchanged. */
  #readDurable(database: MemoryStore): void {
    const store = new LogStore(database)
    const size = store.head()!.treeSize
    if (size < this.log.size) this.violate(`the durable log shrank from ${this.log.size} to ${size}`)
    while (this.log.size < size) {
      const { vrfHash, publicKey } = parseEntry(store.entryVolatile(this.log.size))
      const device = this.#devices.get(nameOf(vrfHash))
      if (device === undefined) return this.violate(`leaf ${this.log.size} is of nobody`)
      this.log.push({ device, publicKey })
    }
  }

  async #comeToRest(): Promise<void> {
    for (let round = 0; round < ROUNDS_TO_REST_MAX; round++) {
      for (const client of this.#clients)
        if (client.mustAskAgain && !client.isAsking) this.#ask(client, client.key!)
      this.#process.runAll()
      while (this.database.waiting > 0) this.#write()
      while (this.database.written > 0) this.#tell()
      while (this.#recordings.length > 0) this.#recordNext()
      if (this.quorum?.isDue) {
        this.quorum.asked = this.quorum.submitted
        this.#cosign(this.quorum)
      }
      await this.#afterStep()
      const isServed = this.#clients.every(client => !client.mustAskAgain && !client.isAsking)
      const isSettled = this.database.waiting + this.#recordings.length === 0
      if (isServed && isSettled && this.#process.isAtRest) return
    }
    this.violate('it does not come to rest')
  }

  #checkRepeats(): void {
    for (let index = 0; index < this.log.size; index++) {
      const previous = this.log.identity(index)!.previousIndex
      if (previous === undefined) continue
      const isRepeat = Buffer.compare(this.log.entry(index)!, this.log.entry(previous)!) === 0
      if (isRepeat) this.violate(`leaf ${index} repeats ${previous}, the newest key of its device`)
    }
  }

  #know(device: Device): void {
    this.#devices.set(nameOf(device.vrfHash), device)
  }
}

class Client {
  key: DeviceKey | undefined
  isAsking = false
  mustAskAgain = false
  /** Asks once, and again only until it is answered. */
  isOfCrowd = false
}

interface Beginning {
  readonly keys: readonly DeviceKey[]
  readonly database: MemoryStore
}

/** A log of that size, in which the contested devices have had some keys. Made once. */
function beginning(size: number): Beginning {
  const known = beginnings.get(size)
  if (known !== undefined) return known
  const keys = Array.from({ length: size }, (_, index) => {
    const device = deviceOf(index % 3 === 0 ? index % CONTESTED_DEVICES : 500_000 + index)
    return { device, publicKey: keyOf(500_000 + index) }
  })
  const database = new MemoryStore()
  const store = new LogStore(database)
  void createLog(store)
  database.settleAll()
  if (size > 0) void new LogWriter(store, new ExpectedLog()).append(keys)
  database.settleAll()
  beginnings.set(size, { keys, database })
  return { keys, database }
}

const beginnings = new Map<number, Beginning>()

function nameOf(vrfHash: Uint8Array): string {
  return Buffer.from(vrfHash).toString('latin1')
}

/** Mostly small, the rest where a block of identities, a tile or the second one is about to fill. */
const SIZES_AT_START = [0, 0, 0, 0, 1, 2, 7, 7, 160, 168, 250, 255, 505]
/** So few that clients are often at the same one. */
const CONTESTED_DEVICES = 4
/** Each is 100 ms and lets every commit end. */
const ROUNDS_TO_REST_MAX = 60
/** ENOSPC. */
const NO_ROOM = 28
/** MDB_CORRUPTED. */
const CORRUPTED = -30_796
