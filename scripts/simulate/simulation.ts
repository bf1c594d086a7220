/** All fake users of one run, and the commands to them. */

import { setTimeout as sleep } from 'node:timers/promises'
import type { Call } from '../../src/app/app.ts'
import { developmentPins } from '../../src/app/development.ts'
import { messageOf } from '../../src/errors.ts'
import type { Behaviour, SimulatorCommand, SimulatorState } from '../../src/operations/console/events.ts'
import { BEHAVIOURS, pausesAt } from './behaviour.ts'
import { Crowd } from './crowd.ts'
import { Gate } from './gate.ts'
import { PeopleMedia } from './people-media.ts'
import { Person, type PersonObserver } from './person.ts'
import { Phone, sentenceOf, type World } from './phone.ts'
import { shareTokenIn } from './settings.ts'

export interface SimulationOptions {
  /** `http://host:port` */
  readonly url: string
  readonly pace: number
  readonly callsYouAfterMs: number | undefined
  /** Whether people send sound and picture; `if-there`: where gateway and Chromium are. */
  readonly media: 'no' | 'if-there' | 'yes'
  /** A sentence about a person. */
  readonly onDeed: (name: string, deed: string) => void
  readonly onTrouble: (sentence: string) => void
  /** Something of `state` is another. */
  readonly onChange: () => void
}

export class Simulation implements PersonObserver {
  readonly #options: SimulationOptions
  readonly #world: World
  readonly #stop: AbortController
  readonly #calls = { started: 0, answered: 0, ended: 0, failed: 0 }
  #people: Person[] = []
  #crowd: Crowd | undefined = undefined
  #callsPerSecond = 0
  #trouble: string | undefined = undefined
  /** The last real user who has become a fake user's contact. */
  #you: string | undefined = undefined
  #hasCalledYou = false
  #media: PeopleMedia | undefined = undefined

  private constructor(options: SimulationOptions, world: World, stop: AbortController) {
    this.#options = options
    this.#world = world
    this.#stop = stop
  }

  /** Rejects with a `CannotBegin` unless a development server is there, and what media needs. */
  static async open(options: SimulationOptions): Promise<Simulation> {
    const { url } = options
    await assertDevelopmentServer(url)
    const stop = new AbortController()
    const pins = await developmentPins(url)
    const trouble = (sentence: string) => simulation.onTrouble(sentence)
    const world: World = { url, pins, gate: new Gate(AT_ONCE), stop: stop.signal, trouble }
    const simulation = new Simulation(options, world, stop)
    await simulation.#openMedia(options.media)
    return simulation
  }

  get state(): SimulatorState {
    const figures = this.#crowd?.figures
    const { started, answered, ended, failed } = this.#calls
    return {
      people: this.#people.map(({ shown }) => shown),
      calls: {
        started: started + (figures?.started ?? 0),
        answered: answered + (figures?.answered ?? 0),
        ended: ended + (figures?.ended ?? 0),
        failed: failed + (figures?.failed ?? 0),
      },
      ...(this.#crowd === undefined ? {} : { load: this.#loadOf(this.#crowd) }),
      ...(this.#trouble === undefined ? {} : { trouble: this.#trouble }),
    }
  }

  get people(): readonly Person[] {
    return this.#people
  }

  get crowd(): Crowd | undefined {
    return this.#crowd
  }

  /** Resolves with whether it is carried out; why not has been said. */
  async carryOut(command: SimulatorCommand): Promise<boolean> {
    let isDone = true
    try {
      await this.#carryOut(command)
    } catch (error) {
      isDone = false
      this.onTrouble(sentenceOf(error))
    }
    this.#options.onChange()
    return isDone
  }

  /** Everybody hangs up and goes home. */
  async end(): Promise<void> {
    const [people, crowd] = [this.#people, this.#crowd]
    this.#people = []
    this.#crowd = undefined
    await Promise.all([this.#sendHome(people), crowd?.end()])
    if (crowd !== undefined) this.#keep(crowd)
  }

  /** Ends, and gives up requests that wait for an answer. */
  async close(): Promise<void> {
    await this.end()
    this.#stop.abort()
    await this.#media?.close()
  }

  /** Leaving does not wait for a server that is gone. */
  async #sendHome(people: readonly Person[]): Promise<void> {
    const home = Promise.all(people.map(person => person.go()))
    await Promise.race([home, sleep(GOODBYE_MS_MAX, undefined, { ref: false })])
  }

  /** One fake user calls the real user. */
  async callYou(from: Person, isVideo: boolean): Promise<void> {
    if (this.#you === undefined) throw new Error('you are nobody’s contact yet')
    await from.call(this.#you, isVideo)
  }

  onDeed(person: Person, deed: string): void {
    this.#options.onDeed(person.name, deed)
    this.#options.onChange()
  }

  onTrouble(sentence: string): void {
    this.#trouble = sentence
    this.#options.onTrouble(sentence)
    this.#options.onChange()
  }

  onCount(what: keyof SimulatorState['calls']): void {
    this.#calls[what] += 1
  }

  onContact(person: Person, userId: string): void {
    this.#you = userId
    const { callsYouAfterMs } = this.#options
    if (callsYouAfterMs === undefined || person !== this.#people[0] || this.#hasCalledYou) return
    this.#hasCalledYou = true
    setTimeout(() => {
      person.call(userId, true).catch(error => this.onTrouble(sentenceOf(error)))
    }, callsYouAfterMs).unref()
  }

  onCall({ phone: { userId }, name }: Person, call: Call): void {
    this.#media?.follow(userId, name, call)
  }

  onNoCall({ phone: { userId } }: Person): void {
    this.#media?.leave(userId)
  }

  async #openMedia(wish: SimulationOptions['media']): Promise<void> {
    if (wish === 'no') return
    const missing = await PeopleMedia.missing(this.#world.url)
    if (missing !== undefined && wish === 'yes') throw new CannotBegin(missing)
    if (missing !== undefined) return
    const personOf = (userId?: string) => this.#people.find(({ phone }) => phone.userId === userId)
    this.#media = new PeopleMedia({
      onConnected: userId => personOf(userId)?.onMedia(),
      onTrouble: (sentence, userId) => {
        const { name } = personOf(userId) ?? {}
        this.onTrouble(name === undefined ? sentence : `${name}: ${sentence}`)
      },
    })
  }

  async #carryOut(command: SimulatorCommand): Promise<void> {
    switch (command.kind) {
      case 'people':
        return this.#addPeople(command.behaviours)
      case 'befriend': {
        if (this.#people.length === 0) throw new Error('there are no people yet')
        const shareToken = shareTokenIn(command.shareToken)
        await Promise.all(this.#people.map(person => person.befriend(shareToken)))
        return
      }
      case 'call': {
        const from = this.#people.find(({ phone }) => phone.userId === command.from)
        if (from === undefined) throw new Error(`there is nobody with the id ${command.from}`)
        return from.call(command.to, command.isVideo)
      }
      case 'load':
        return this.#load(command.users, command.callsPerSecond)
      case 'stop':
        return this.end()
    }
  }

  async #addPeople(behaviours: readonly Behaviour[]): Promise<void> {
    const counts = new Map<Behaviour, number>()
    for (const { behaviour } of this.#people) counts.set(behaviour, (counts.get(behaviour) ?? 0) + 1)
    const names = behaviours.map(behaviour => {
      const count = (counts.get(behaviour) ?? 0) + 1
      counts.set(behaviour, count)
      const { name } = BEHAVIOURS[behaviour]
      return count === 1 ? name : `${name} ${count}`
    })
    const people = await Promise.all(behaviours.map((each, at) => this.#newPerson(each, names[at]!)))
    this.#people.push(...people)
  }

  async #newPerson(behaviour: Behaviour, name: string): Promise<Person> {
    const phone = await Phone.unpack(this.#world, name)
    const { link } = await phone.app.contacts.shareLink()
    return new Person(phone, behaviour, link, pausesAt(this.#options.pace), this)
  }

  async #load(users: number, callsPerSecond: number): Promise<void> {
    if (this.#crowd !== undefined) {
      const before = this.#crowd
      this.#crowd = undefined
      await before.end()
      this.#keep(before)
    }
    const onProgress = (done: number, of: number) => {
      this.#options.onDeed('The crowd', `has ${done} of ${of} users`)
    }
    const crowd = await Crowd.gather(this.#world, { users, onProgress })
    this.#callsPerSecond = callsPerSecond
    this.#crowd = crowd
    crowd.start(callsPerSecond)
  }

  /** Counts of a crowd that is no more. */
  #keep({ figures }: Crowd): void {
    for (const what of ['started', 'answered', 'ended', 'failed'] as const) this.#calls[what] += figures[what]
  }

  #loadOf({ users, online, callsUnderWay, figures }: Crowd): NonNullable<SimulatorState['load']> {
    const ringMs = figures.latency
    return { users, online, callsPerSecond: this.#callsPerSecond, callsUnderWay, ...(ringMs && { ringMs }) }
  }
}

/** Something is missing that the simulator needs. */
export class CannotBegin extends Error {}

/** Only a development server shows codes, and signing in needs them. */
async function assertDevelopmentServer(url: string): Promise<void> {
  let answer: Response
  try {
    answer = await fetch(`${url}/dev/inbox?to=nobody`, { signal: AbortSignal.timeout(ANSWER_MS_MAX) })
    await answer.arrayBuffer()
  } catch (error) {
    throw new CannotBegin(
      `nothing answers at ${url} (${messageOf(error instanceof Error ? (error.cause ?? error) : error)}): start a server with npm start`,
    )
  }
  if (answer.status !== 200) {
    throw new CannotBegin(`${url} is no development server: /dev/inbox answers ${answer.status}`)
  }
}

/** Sign-ins and connections under way. */
const AT_ONCE = 32
const GOODBYE_MS_MAX = 3_000
const ANSWER_MS_MAX = 10_000
