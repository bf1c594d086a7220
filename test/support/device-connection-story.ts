/**
 * Plays the stories of `test/vectors/device-connection.jsonl`: inputs to the connection of a device, and the acts that follow.
 * The file's first line says how a story is read; a player in another language needs no more than this one does.
 */

import type { Act, Frame } from '../../src/app/connection/act.ts'
import { decide, newConnection, nextDeadlineMs } from '../../src/app/connection/device-connection.ts'
import type { Input } from '../../src/app/connection/input.ts'
import type { DeviceConnection } from '../../src/app/connection/phase.ts'
import { readStoryFile, type StoryFile } from './story-file.ts'

export interface Step {
  readonly at?: number | string
  readonly random?: number
  readonly in: Said
  readonly acts?: readonly string[]
}

/** Steps whose acts no story looks at. */
interface Repeated {
  readonly times: number
  readonly steps: readonly Step[]
}

type Said = Readonly<Record<string, unknown>> & { readonly on: string }

export interface Story {
  readonly name?: string
  readonly given?: string
  readonly only?: readonly string[]
  readonly tabs?: true
  readonly steps: readonly (Step | Repeated)[]
  /** At the end: where it is, and when `time` is to be said; null for never. */
  readonly phase: string
  readonly next: number | null
}

export function readStories(): StoryFile<Story> {
  return readStoryFile<Story>('device-connection')
}

export class ConnectionPlayer {
  connection: DeviceConnection
  nowMs = 0
  /** Acts without an outcome so far, the oldest first. */
  readonly unanswered: { readonly act: number; readonly name: string; readonly kind: string }[] = []
  /** States and inputs that have met. */
  readonly met = new Set<string>()
  /** How often each command was answered. */
  readonly answers = new Map<string, number>()
  readonly #commands: string[] = []
  /** As the machine numbers them. */
  readonly #sockets: number[] = []
  readonly #leads: number[] = []

  constructor(hasTabs: boolean) {
    this.connection = newConnection(hasTabs)
  }

  /** Begins as the story says: its situation was played, whose acts it does not look at. */
  static of({ given, tabs }: Story, file: StoryFile<Story>): ConnectionPlayer {
    if (given === undefined) return new ConnectionPlayer(tabs === true)
    const situation = file.situations.get(given)!
    const player = ConnectionPlayer.of(situation, file)
    for (const step of situation.steps) player.play(step)
    return player
  }

  /** Gives the acts, told; none of steps that are repeated. */
  play(step: Step | Repeated): string[] {
    if ('in' in step) return this.#playOnce(step)
    for (let count = 1; count <= step.times; count++) {
      const numbered = JSON.parse(JSON.stringify(step.steps).replaceAll('#', String(count)))
      for (const each of numbered) this.#playOnce(each)
    }
    return []
  }

  get nextMs(): number | null {
    return nextDeadlineMs(this.connection) ?? null
  }

  /** Disconnects and lets every act fail. Returns the rest, which should be nothing. */
  leave(): object {
    this.play({ in: { on: 'disconnect' } })
    while (this.unanswered.length > 0)
      this.play({ in: { on: 'failed', of: '', failure: { code: 'OFFLINE' } } })
    const { phase, tabs, queues, watches, waiting } = this.connection
    const notAnsweredOnce = [...this.answers].filter(([, count]) => count !== 1).map(([name]) => name)
    const messages = queues.flatMap(queue => queue.waiting)
    return {
      ...{ phase: phase.kind, next: this.nextMs, watches, waiting, messages, notAnsweredOnce },
      isLeading: tabs.kind === 'asked',
    }
  }

  #playOnce({ at, random, in: said }: Step): string[] {
    if (at !== undefined) this.nowMs = Number(at)
    const { input, name } = this.#inputOf(said)
    this.met.add(`${this.connection.phase.kind} / ${name}`)
    const { connection, acts } = decide(this.connection, input, this.nowMs, random ?? 0.5)
    this.connection = connection
    return acts.map(act => this.#told(act))
  }

  /** With the numbers of the machine. */
  #inputOf(said: Said): { readonly input: Input; readonly name: string } {
    const { of, ...input } = said
    if (said.on === 'done' || said.on === 'failed') {
      const at = this.unanswered.findLastIndex(({ name }) => name.startsWith(String(of)))
      if (at < 0) throw new Error(`nothing unanswered begins with ${of}`)
      const [{ act, kind } = { act: 0, kind: '' }] = this.unanswered.splice(at, 1)
      return { input: { ...input, act } as Input, name: `${said.on}: ${kind}` }
    }
    const name = said.on === 'connect' && said.takeOver === true ? 'connect: take over' : said.on
    return { input: { ...input, ...this.#numbersOf(said) } as Input, name }
  }

  #numbersOf({ on, socket, lead }: Said): object {
    if (typeof socket === 'number') return { socket: this.#sockets[socket - 1] }
    if (typeof lead === 'number') return { lead: this.#leads[lead - 1] }
    if (!COMMANDS.includes(on)) return {}
    const count = this.#commands.filter(one => one.split(' ')[0] === on).length
    this.#commands.push(count === 0 ? on : `${on} ${count + 1}`)
    this.answers.set(this.#commands.at(-1)!, 0)
    return { command: this.#commands.length }
  }

  #told(act: Act): string {
    if (act.do === 'lead') this.#leads.push(act.act)
    if (act.do === 'open') this.#sockets.push(act.socket)
    const name = this.#nameOf(act)
    if ('act' in act) {
      const waiting = this.connection.waiting.find(one => one.act === act.act)
      this.unanswered.push({ act: act.act, name, kind: waiting?.for ?? act.do })
    }
    return name
  }

  #nameOf(act: Act): string {
    switch (act.do) {
      case 'release':
      case 'token':
      case 'register':
        return act.do
      case 'lead':
        return act.isTaken ? 'take the lead' : 'lead'
      case 'renew':
        return `renew ${act.token}`
      case 'end session':
      case 'trouble':
        return `${act.do} ${act.failure.code}`
      case 'hear time':
        return `hear time ${act.serverMs}`
      case 'open':
        return `open ${this.#socket(act)} with ${act.token}`
      case 'request':
        return [this.#frame(act), act.body].filter(Boolean).join(' ')
      case 'tell':
        return `${this.#frame(act)}, no receipt`
      case 'disconnect':
      case 'abandon':
        return `${act.do} ${this.#socket(act)}`
      case 'handle':
        return `handle ${act.event.eventId}`
      case 'topic':
        return `${act.watch} hears ${JSON.stringify(act.event)}`
      case 'settle': {
        const name = this.#commands[act.command - 1]!
        this.answers.set(name, this.answers.get(name)! + 1)
        return [`settle ${name}`, act.watch, act.error?.code].filter(Boolean).join(': ')
      }
      case 'state':
        return `state ${act.state}, failures ${act.failures}`
      case 'ready':
        return act.mayHaveMissed ? 'ready, may have missed events' : 'ready, has missed nothing'
    }
  }

  #frame({ command, headers, ...act }: Frame): string {
    const lines = Object.entries(headers).map(([name, value]) => `${name}:${value}`)
    return `${this.#socket(act)}: ${[command, ...lines].join(' ')}`
  }

  #socket({ socket }: { readonly socket: number }): number {
    return this.#sockets.indexOf(socket) + 1
  }
}

/** Inputs of the app that are answered. */
const COMMANDS: readonly string[] = ['disconnect', 'watch', 'send']
