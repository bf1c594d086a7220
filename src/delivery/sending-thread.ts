/**
 * The senders of pushes in a thread of their own: a request over HTTP/2 costs the thread that makes it 200 µs and more, which calls
 * would wait for. The pushes of one turn of the event loop go there together, and outcomes come back together.
 *
 * The first push starts the thread. One that dies takes its pushes with it: they end as `retry`, and the next push starts
 * another.
 */

import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import type { DeliveryOutcome } from './outcome.ts'
import { openPushSenders, type PushSenderName, type PushSenders, type PushSettings } from './push-senders.ts'

/** JSON to the thread: pushes, whose ids count on from the first. */
export interface Asked {
  readonly firstId: number
  readonly pushes: readonly (readonly [name: PushSenderName, push: unknown])[]
}

/** JSON from the thread: a list of these. */
export type Answered = readonly [id: number, outcome: DeliveryOutcome]

export interface ThreadSettings {
  readonly push: PushSettings
  /** A thread has ended by itself, or was ended since it had fallen silent. */
  readonly onLost: (cause: string) => void
  /** Tests give their own to end threads at will. */
  readonly startWorker?: typeof startSendingWorker
  /** A thread that answers nothing for so long is ended. */
  readonly silentMs?: number
}

export const startSendingWorker = (settings: PushSettings): Worker =>
  new Worker(PROGRAM, { name: 'sending', workerData: settings })

export class SendingThread {
  /** One for each provider in the settings, used as those in the thread are. */
  readonly senders: PushSenders
  readonly #settings: ThreadSettings
  readonly #underWay = new Map<number, (outcome: DeliveryOutcome) => void>()
  #worker: Worker | undefined
  /** Those of this turn, as JSON. */
  #pushes: string[] = []
  #firstId = 0
  #silence: NodeJS.Timeout | undefined
  #isClosed = false

  /** Throws as `openPushSenders` does. */
  constructor(settings: ThreadSettings) {
    for (const sender of Object.values(openPushSenders(settings.push))) sender.close()
    this.#settings = settings
    this.senders = Object.fromEntries(
      Object.keys(settings.push).map(name => [
        name,
        { send: (push: unknown) => this.#send(name as PushSenderName, push) },
      ]),
    )
  }

  /** Pushes under way end with `retry`, as every later one does. Resolves when the thread has ended. */
  async close(): Promise<void> {
    this.#isClosed = true
    const worker = this.#worker
    this.#giveUp()
    await worker?.terminate()
  }

  #send(name: PushSenderName, push: unknown): Promise<DeliveryOutcome> {
    if (this.#isClosed) return Promise.resolve(ENDED)
    const named: Asked['pushes'][number] = [name, push]
    return new Promise(resolve => {
      const text = JSON.stringify(named)
      this.#underWay.set(this.#firstId + this.#pushes.length, resolve)
      if (this.#pushes.push(text) === 1) setImmediate(() => this.#post())
    })
  }

  #post(): void {
    const pushes = this.#pushes
    // The thread has ended since, and they with it.
    if (pushes.length === 0) return
    const asked = `{"firstId":${this.#firstId},"pushes":[${pushes.join(',')}]}`
    this.#firstId += pushes.length
    this.#pushes = []
    const worker = this.#worker ?? this.#start()
    // A thread holds the process up only while something waits for its answer.
    worker.ref()
    this.#silence ??= setTimeout(() => this.#end(worker, 'it has fallen silent'), this.#silentMs).unref()
    worker.postMessage(asked)
  }

  #start(): Worker {
    const worker = (this.#settings.startWorker ?? startSendingWorker)(this.#settings.push)
    worker.on('message', (text: string) => {
      if (worker === this.#worker) this.#onAnswers(worker, JSON.parse(text))
    })
    let cause = 'it has ended'
    worker.on('error', error => {
      cause = placesOf(error)
    })
    worker.once('exit', () => this.#end(worker, cause))
    this.#worker = worker
    return worker
  }

  #onAnswers(worker: Worker, answers: readonly Answered[]): void {
    for (const [id, outcome] of answers) {
      this.#underWay.get(id)?.(outcome)
      this.#underWay.delete(id)
    }
    this.#silence?.refresh()
    if (this.#underWay.size > this.#pushes.length) return
    this.#rest()
    worker.unref()
  }

  /** Once for each thread that is not closed. */
  #end(worker: Worker, cause: string): void {
    if (worker !== this.#worker) return
    this.#giveUp()
    this.#settings.onLost(cause)
    void worker.terminate()
  }

  #giveUp(): void {
    this.#worker = undefined
    this.#rest()
    this.#firstId += this.#pushes.length
    this.#pushes = []
    const waiting = [...this.#underWay.values()]
    this.#underWay.clear()
    for (const resolve of waiting) resolve(ENDED)
  }

  #rest(): void {
    clearTimeout(this.#silence)
    this.#silence = undefined
  }

  get #silentMs(): number {
    return this.#settings.silentMs ?? SILENT_MS
  }
}

/** Where an error was thrown. Not its words: they may hold a token or a part of a key. */
function placesOf({ name, stack = '' }: Error): string {
  const places = stack.split('\n').filter(line => /^ +at /.test(line))
  return [name, ...places.map(place => place.trim())].join(' ')
}

/** As where the network fails. */
const ENDED: DeliveryOutcome = { kind: 'retry', reason: 'network' }
/** Longer than any sender tries. */
const SILENT_MS = 120_000
/** Beside this file, compiled or not. */
const PROGRAM = new URL(`./sending-worker${extname(import.meta.filename)}`, import.meta.url)
