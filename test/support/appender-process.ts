/**
 * One life of the server around the log appender in a seeded run, from a start to a kill or a fatal error: store,
 * published log, actor system, and the asks of its clients. Checks each publication, answer and refusal when it
 * happens.
 */

import { type LogAppenderDeps, logAppenderKind } from '../../actors/log-appender.ts'
import type { LogAppenderMessage } from '../../actors/messages.ts'
import type { SignalError } from '../../src/errors.ts'
import { LogStore } from '../../src/keyserver/log-store.ts'
import { PublishedLog } from '../../src/keyserver/published-log.ts'
import type { Checkpoint, LogHead } from '../../src/log/checkpoint.ts'
import { formatEntry } from '../../src/log/entry.ts'
import type { ActorKind, Ref, Reply } from '../../src/runtime/actor.ts'
import { ActorSystem } from '../../src/runtime/system.ts'
import { type PlantedBug, plantBug } from './appender-bugs.ts'
import type { MemoryStore } from './memory-store.ts'
import {
  type Device,
  type DeviceKey,
  type ExpectedLog,
  faultsOfStore,
  openOwnCheckpoint,
  SIGNER,
} from './stored-log.ts'
import { type SeededRandom, SeededWorld } from './world.ts'

/** Witnesses, and their durable cosignatures. */
export interface Quorum {
  readonly isQuorumLost: boolean
  /** The head to be shown, at a start too. */
  readonly kept: LogHead
  submit(head: LogHead): void
}

/** One server life's needs from its run, and its legacy to the next. */
export interface RunState {
  readonly bug: PlantedBug | undefined
  readonly draw: SeededRandom
  readonly database: MemoryStore
  /** All that is durable. */
  readonly log: ExpectedLog
  /** The largest tree that anyone was shown. */
  publishedSize: number
  readonly hasHeadFile: boolean
  /** The tree that is in the head file. */
  readonly recordedSize: number
  /** Absent where no policy asks for witnesses. */
  readonly quorum: Quorum | undefined
  /** Resolves when the checkpoint is in the head file. */
  record(head: LogHead): Promise<void>
  note(event: string): void
  violate(what: string): void
}

/** Possible and required consequences of an injected fault, in rising order. */
export type Consequence = 'none' | 'refusals' | 'must stop'

export class ServerProcess {
  /** Killed or stopped by a fatal error: whatever it still does is not seen by anyone. */
  isDead = false
  readonly #run: RunState
  readonly #world: SeededWorld
  readonly #store: LogStore
  readonly #published: PublishedLog
  readonly #system: ActorSystem
  readonly #appender: Ref<LogAppenderMessage>
  readonly #asks: Ask[] = []
  #consequence: Consequence = 'none'

  constructor(run: RunState) {
    this.#run = run
    this.#world = new SeededWorld(run.draw.below(2 ** 31))
    this.#store = new LogStore(run.database)
    this.#published = new PublishedLog(this.#store, SIGNER)
    const fatal = (error: unknown) => this.#onFatal(error)
    this.#system = new ActorSystem({ world: this.#world, turnsPerVisitMax: 1 + run.draw.below(3), fatal })
    const world: LogAppenderDeps = {
      store: this.#store,
      signer: SIGNER,
      publishedSize: () => this.#published.size,
      ...(run.hasHeadFile ? { record: head => this.#record(head) } : {}),
      ...(run.quorum && { witnesses: this.#witnessesOf(run.quorum) }),
      publish: head => this.#onPublished(head),
      fatal,
    }
    if (run.quorum !== undefined) this.#showKept(run.quorum.kept)
    const kind = logAppenderKind(run.bug === undefined ? world : plantBug(run.bug, world, run))
    this.#appender = this.#system.define(this.#watched(kind))('log')
    this.#open()
  }

  /** A server shows it before the appender runs. */
  #showKept(head: LogHead): void {
    this.#run.publishedSize = Math.max(this.#run.publishedSize, head.treeSize)
    this.#published.publish(head)
  }

  tell(message: LogAppenderMessage): void {
    this.#appender.tellControl(message)
  }

  #witnessesOf(quorum: Quorum): NonNullable<LogAppenderDeps['witnesses']> {
    return {
      get isQuorumLost() {
        return quorum.isQuorumLost
      },
      submit: head => {
        if (!this.isDead) quorum.submit(head)
      },
    }
  }

  /** Its possible next steps. */
  actions(): (() => void)[] {
    const tick = () => this.#world.jump(100)
    const runOne = () => this.#world.runOne()
    return this.#world.isIdle ? [tick] : [tick, runOne, runOne, runOne, runOne, runOne]
  }

  get isAtRest(): boolean {
    return this.#world.isIdle && this.#asks.every(ask => ask.hasEnded)
  }

  /** Runs all that waits to be run, and lets a tick pass. */
  runAll(): void {
    while (!this.isDead && !this.#world.isIdle) this.#world.runOne()
    if (!this.isDead) this.#world.jump(100)
  }

  onFault(consequence: Consequence): void {
    const isMore = CONSEQUENCES.indexOf(consequence) > CONSEQUENCES.indexOf(this.#consequence)
    if (isMore) this.#consequence = consequence
  }

  /** Asks for `key` to be registered; `onEnd` hears once whether it was. */
  ask(key: DeviceKey, onEnd: (isAnswered: boolean) => void): void {
    const { device, publicKey } = key
    const ask = new Ask(key, this.#rightAnswers(key), onEnd)
    const deadlineMs = this.#run.draw.chance(0.2) ? 300 : 10_000
    this.#asks.push(ask)
    this.#run.note(`ask ${ask.name}`)
    this.#appender
      .ask<number>(reply => {
        const watched = new WatchedReply(ask, reply, index => this.#onAnswer(ask, index))
        return { kind: 'append', ...device, publicKey, reply: watched }
      }, deadlineMs)
      .then(
        index => this.#end(ask, true, `${index}`),
        (error: SignalError) => this.#onRefused(ask, error.code),
      )
  }

  /** Cuts off callers that wait for an answer, after the process died. */
  cutOff(): void {
    this.isDead = true
    for (const ask of this.#asks) ask.end(false)
  }

  /** A dropped appender leaves no caller waiting. */
  checkDropped(): void {
    if (this.isDead) return
    for (const ask of this.#asks) {
      if (ask.holder?.isOver && !ask.hasEnded) this.#run.violate(`${ask.name} waits for a dropped appender`)
    }
  }

  /** Call at rest. */
  async checkAndStop(): Promise<void> {
    const { asksOpen, commitsUnderWay } = this.#system.figures()
    const run = this.#run
    if (asksOpen + commitsUnderWay > 0) run.violate(`left: ${asksOpen} asks, ${commitsUnderWay} commits`)
    if (this.#consequence === 'must stop') run.violate('it went on after a fault that must stop it')
    for (const fault of faultsOfStore(this.#store, run.log)) run.violate(`at the end: ${fault}`)
    const stopped = this.#system.drainAndStop(1_000)
    this.#world.run()
    this.#world.jump(2_000)
    if ((await stopped) !== 'finished') run.violate('it does not stop')
  }

  #open(): void {
    this.#appender
      .ask<number>(reply => ({ kind: 'open', reply }), 60_000)
      .then(
        size => this.#run.note(`opened at ${size}`),
        error => {
          if (!this.isDead && this.#consequence === 'none') this.#run.violate(`not opened: ${error}`)
        },
      )
  }

  #rightAnswers({ device, publicKey }: DeviceKey): RightAnswers {
    const { log } = this.#run
    const newest = log.newestIndex(device)
    const entry = formatEntry(device.vrfHash, publicKey)
    const isNewest = newest !== undefined && Buffer.compare(log.entry(newest)!, entry) === 0
    // Another key of the device that is under way may come before this one.
    const isAlone = !this.#asks.some(other => other.mayTakeEffect && isSameDevice(other.key.device, device))
    return { entry, indexMin: newest ?? 0, indexMax: isNewest && isAlone ? newest : undefined }
  }

  #watched(kind: ActorKind<LogAppenderMessage>): ActorKind<LogAppenderMessage> {
    return {
      ...kind,
      create: (id, context) => {
        const actor = kind.create(id, context)!
        for (const fault of faultsOfStore(this.#store, this.#run.log))
          this.#run.violate(`at a start: ${fault}`)
        const incarnation: Incarnation = { isOver: false }
        return {
          receive: message => {
            if (message.kind === 'append') (message.reply as WatchedReply).ask.holder = incarnation
            actor.receive(message)
          },
          onStopped: () => {
            incarnation.isOver = true
            this.#run.note('the appender is dropped')
          },
        }
      },
    }
  }

  #record(head: LogHead): Promise<void> {
    return this.isDead ? new Promise(() => {}) : this.#run.record(head)
  }

  #onPublished(head: LogHead): void {
    if (this.isDead) return
    const run = this.#run
    const checkpoint = this.#openHead(head)
    if (checkpoint === undefined) return
    const { treeSize, rootHash } = checkpoint
    run.note(`published ${treeSize}`)
    if (treeSize < run.publishedSize) run.violate(`published ${treeSize} after ${run.publishedSize}`)
    if (run.hasHeadFile && treeSize > run.recordedSize) run.violate(`published ${treeSize}, not recorded`)
    if (run.quorum !== undefined && treeSize > run.quorum.kept.treeSize)
      run.violate(`published ${treeSize}, not cosigned`)
    if (treeSize > run.log.size) run.violate(`published ${treeSize} of ${run.log.size} durable entries`)
    else if (Buffer.compare(rootHash, run.log.tree.root(0, treeSize)) !== 0)
      run.violate(`root of ${treeSize}`)
    run.publishedSize = Math.max(run.publishedSize, treeSize)
    this.#published.publish(head)
  }

  #openHead({ treeSize, checkpoint }: LogHead): Checkpoint | undefined {
    try {
      const opened = openOwnCheckpoint(checkpoint)
      if (opened.treeSize === treeSize) return opened
      this.#run.violate(`the checkpoint of ${treeSize} says ${opened.treeSize}`)
    } catch (error) {
      this.#run.violate(`the checkpoint of ${treeSize}: ${error}`)
    }
    return undefined
  }

  #onAnswer(ask: Ask, index: number): void {
    if (this.isDead) return
    const { log, publishedSize } = this.#run
    const { entry, indexMin, indexMax } = ask.right
    ask.mayTakeEffect = false
    const wrong = (what: string) => this.#run.violate(`${ask.name} was answered ${index}: ${what}`)
    if (index >= log.size) return wrong('it is not durable')
    if (index >= publishedSize) return wrong('it is not published')
    if (Buffer.compare(log.entry(index)!, entry) !== 0) wrong('that is another entry')
    if (index < indexMin) wrong(`it had been replaced at ${indexMin}`)
    if (indexMax !== undefined && index > indexMax) wrong(`it repeats ${indexMax}`)
  }

  #onRefused(ask: Ask, code: string): void {
    if (this.isDead) return
    // After its deadline a registration may still be under way; behind a failed record its batch may yet be written.
    const mayBeDurable = this.#run.hasHeadFile || this.#run.quorum !== undefined
    if (code !== 'DEADLINE_EXCEEDED' && !mayBeDurable) ask.mayTakeEffect = false
    const isExpected =
      code === 'DEADLINE_EXCEEDED' ||
      (code === 'LOG_UNAVAILABLE' && this.#run.quorum !== undefined) ||
      (code === 'STORE_UNAVAILABLE' && this.#consequence !== 'none')
    if (!isExpected) this.#run.violate(`${ask.name} was refused with ${code}`)
    this.#end(ask, false, code)
  }

  #end(ask: Ask, isAnswered: boolean, how: string): void {
    if (this.isDead) return
    this.#run.note(`${ask.name}: ${how}`)
    ask.end(isAnswered)
  }

  #onFatal(error: unknown): void {
    if (this.isDead) return
    this.isDead = true
    this.#run.note(`stopped by ${error}`)
    if (this.#consequence !== 'must stop') this.#run.violate(`it stopped without a reason: ${error}`)
  }
}

/** One appender object. */
interface Incarnation {
  isOver: boolean
}

interface RightAnswers {
  readonly entry: Uint8Array
  /** The newest index of the device when it was asked. */
  readonly indexMin: number
  /** The newest index, when it had this key and no other request asked for the device. */
  readonly indexMax: number | undefined
}

/** A registration that a client waits for. */
class Ask {
  readonly key: DeviceKey
  readonly right: RightAnswers
  readonly name: string
  readonly #onEnd: (isAnswered: boolean) => void
  /** The appender that has it. */
  holder: Incarnation | undefined
  /** The client waits no more. */
  hasEnded = false
  mayTakeEffect = true

  constructor(key: DeviceKey, right: RightAnswers, onEnd: (isAnswered: boolean) => void) {
    const { device, publicKey } = key
    this.key = key
    this.right = right
    this.name = `${device.userId}_${device.deviceId} ${Buffer.from(publicKey, 'base64').toString().replace(/\.+$/, '')}`
    this.#onEnd = onEnd
  }

  end(isAnswered: boolean): void {
    if (this.hasEnded) return
    this.hasEnded = true
    this.#onEnd(isAnswered)
  }
}

/** Sees an answer in the moment it is given. */
class WatchedReply implements Reply<number> {
  readonly ask: Ask
  readonly #reply: Reply<number>
  readonly #onAnswer: (index: number) => void

  constructor(ask: Ask, reply: Reply<number>, onAnswer: (index: number) => void) {
    this.ask = ask
    this.#reply = reply
    this.#onAnswer = onAnswer
  }

  answer(index: number): void {
    this.#onAnswer(index)
    this.#reply.answer(index)
  }

  refuse(error: SignalError): void {
    this.#reply.refuse(error)
  }
}

function isSameDevice(a: Device, b: Device): boolean {
  return a.userId === b.userId && a.deviceId === b.deviceId
}

const CONSEQUENCES: readonly Consequence[] = ['none', 'refusals', 'must stop']
