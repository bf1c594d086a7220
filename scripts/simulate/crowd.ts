/** Many users in groups, who call one another at a rate. */

import { setTimeout as sleep } from 'node:timers/promises'
import { CallsignError } from '../../src/app/app.ts'
import { calleesOf, newPlot, playCall, type Stage } from './crowd-call.ts'
import { Figures } from './figures.ts'
import { Failure, type Fingerprints, Member } from './member.ts'
import { isRate, Phone, sentenceOf, type World } from './phone.ts'

export interface CrowdOptions {
  readonly users: number
  /** Called as people sign in and get to know each other. */
  readonly onProgress?: (done: number, of: number) => void
}

export class Crowd {
  readonly figures = new Figures()
  readonly users: number
  readonly #world: World
  readonly #members: Member[] = []
  readonly #calls = new Set<Promise<unknown>>()
  readonly #closing = new AbortController()
  #timer: NodeJS.Timeout | undefined = undefined
  #said = 0

  private constructor(world: World, users: number) {
    this.#world = world
    this.users = users
  }

  /** Signs all people in, makes those of a group contacts, and connects them: all or none. */
  static async gather(world: World, { users, onProgress = () => {} }: CrowdOptions): Promise<Crowd> {
    const crowd = new Crowd(world, users)
    let done = 0
    const groups = Array.from({ length: Math.ceil(users / GROUP_SIZE) }, (_, at) =>
      Math.min(GROUP_SIZE, users - at * GROUP_SIZE),
    )
    const gathered = groups.map(async (size, at) => {
      await crowd.#gatherGroup(at, size).catch(error => {
        // One is enough: the rest need not try.
        crowd.#closing.abort()
        throw error
      })
      done += size
      onProgress(done, users)
    })
    try {
      await Promise.all(gathered)
    } catch (error) {
      await Promise.allSettled(gathered)
      await crowd.end()
      throw error
    }
    return crowd
  }

  get online(): number {
    return this.#members.filter(({ phone }) => phone.isOnline).length
  }

  /** Connections that were accepted, the first ones included. */
  get connects(): number {
    return this.#members.reduce((sum, { phone }) => sum + phone.connects, 0)
  }

  get callsUnderWay(): number {
    return this.#calls.size
  }

  /** Starts calls until `end`. */
  start(callsPerSecond: number): void {
    const startMs = performance.now()
    let begun = 0
    this.#timer = setInterval(() => {
      const due = Math.floor(((performance.now() - startMs) * callsPerSecond) / 1_000)
      // After a pause of this process the crowd makes up for at most a second.
      begun = Math.max(begun, due - Math.ceil(callsPerSecond))
      for (; begun < due; begun++) this.#begin()
    }, TICK_MS)
  }

  /** Starts no more calls, lets those under way end, and sends everybody home. */
  async end(): Promise<void> {
    clearInterval(this.#timer)
    this.#closing.abort()
    await Promise.race([Promise.all(this.#calls), sleep(DRAIN_MS_MAX, undefined, { ref: false })])
    for (const _ of this.#calls) this.figures.fail('a call that does not end')
    await Promise.all(this.#members.map(({ phone }) => phone.disconnect()))
  }

  async #gatherGroup(group: number, size: number): Promise<void> {
    const members = await Promise.all(
      Array.from({ length: size }, async (_, at) => {
        const name = `Soak ${group * GROUP_SIZE + at}`
        const phone = await Phone.unpack(this.#world, name, this.#closing.signal)
        return new Member(phone, error => this.#fail(error))
      }),
    )
    const pairs = members.flatMap((one, at) => members.slice(at + 1).map(other => [one, other] as const))
    await Promise.all(pairs.map(([one, other]) => this.#world.gate.through(() => befriend(one, other))))
    this.#members.push(...members)
  }

  #begin(): void {
    const plot = newPlot()
    const wanted = calleesOf(plot)
    for (let tries = 0; tries < TRIES_MAX; tries++) {
      const caller = this.#members[Math.floor(Math.random() * this.#members.length)]!
      const callees = caller.contacts.filter(({ isFree }) => isFree).slice(0, wanted)
      if (!caller.isFree || callees.length === 0) continue
      if (callees.length < Math.min(wanted, caller.contacts.length)) continue
      const stage: Stage = { figures: this.figures, closing: this.#closing.signal }
      const members = [caller, ...callees]
      const fingerprints: Fingerprints = new Map()
      for (const member of members) member.reserve(fingerprints)
      const call = playCall(stage, plot, caller, callees)
        .catch(error => this.#fail(error))
        .then(() => Promise.all(members.map(member => member.release())))
        .finally(() => this.#calls.delete(call))
      this.#calls.add(call)
      return
    }
    this.figures.heldBack += 1
  }

  #fail(error: unknown): void {
    if (error instanceof Failure) this.figures.fail(error.reason)
    else if (error instanceof CallsignError) this.figures.fail(isRate(error) ? '429' : error.code)
    else this.figures.fail(sentenceOf(error))
    if (this.#said++ < SENTENCES_MAX) this.#world.trouble(sentenceOf(error))
  }
}

async function befriend(one: Member, other: Member): Promise<void> {
  await one.phone.app.contacts.request({ userId: other.phone.userId })
  await other.phone.app.contacts.accept(one.phone.userId)
  one.contacts.push(other)
  other.contacts.push(one)
}

/** All people of a group know one another. */
const GROUP_SIZE = 6
const TICK_MS = 5
/** Longer than any plot lasts once it has to end. */
const DRAIN_MS_MAX = 60_000
/** How often a caller is drawn who turns out to be busy. */
const TRIES_MAX = 20
/** Sentences about failures; the rest are only counted. */
const SENTENCES_MAX = 50
