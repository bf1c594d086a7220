/**
 * People who sign up, register devices, make contacts, call each other and send durable messages, all at once, until
 * the server dies. Acknowledged writes are kept as claims, each to be checked in the next server.
 */

import { once } from 'node:events'
import type { App } from './app.ts'
import {
  befriend,
  meetPeople,
  newCallKey,
  type Person,
  settingsFor,
  signInPerson,
  startCall,
} from './call-people.ts'
import { lookUp } from './live-log.ts'
import { sendFrame } from './naive-client.ts'
import { headerOf } from './naive-stomp.ts'
import { type RunningServer, startServer } from './server.ts'
import { SocketClient } from './socket-client.ts'

/** Names a broken claim; undefined when all is well. */
type Claim = () => Promise<string | undefined>

interface Known {
  readonly claims: ReadonlyMap<string, Claim>
  readonly acknowledged: ReadonlyMap<Sender, number>
}

/** A person's messages to their own queue, numbered from 1. */
interface Sender {
  readonly person: Person
  /** The last message of each kind: settled (it came back), sent, acknowledged. */
  settled: number
  sent: number
  acknowledged: number
}

export class KillLoad {
  readonly #dataFolder: string
  /** By what they are about: a later one takes the place of an earlier one. */
  readonly #claims = new Map<string, Claim>()
  #server: RunningServer | undefined
  #pairs: (readonly [Person, Person])[] = []
  #senders: Sender[] = []
  #people: Person[] = []
  #acknowledgements = 0
  #onAcknowledged: () => void = () => {}

  private constructor(dataFolder: string) {
    this.#dataFolder = dataFolder
  }

  static async start(dataFolder: string): Promise<KillLoad> {
    const load = new KillLoad(dataFolder)
    const { http } = await load.startServer()
    const people = await meetPeople(http, 1 + CALLEES)
    const callers = await Promise.all(
      Array.from({ length: CALLEES }, (_, at) => signInPerson(http, people.length + at)),
    )
    load.#people = [...people, ...callers]
    for (const [at, caller] of callers.entries()) {
      const callee = people[1 + at]!
      await befriend(caller, callee)
      load.#pairs.push([caller, callee])
    }
    load.#senders = load.#people.map(person => ({ person, settled: 0, sent: 0, acknowledged: 0 }))
    return load
  }

  /** How much was acknowledged, and of how many things that can be asked for. */
  get counts(): { readonly acknowledgements: number; readonly claims: number } {
    return { acknowledgements: this.#acknowledgements, claims: this.#claims.size }
  }

  async end(): Promise<void> {
    await this.#server?.end('SIGKILL')
  }

  /** One who has messages in their inbox. */
  get person(): Person {
    return this.#senders[0]!.person
  }

  async startServer(more: Partial<Parameters<typeof startServer>[0]> = {}): Promise<RunningServer> {
    const environment = {
      CALLSIGN_STOMP_TCP_PORT: '0',
      CALLSIGN_LOG_LEVEL: 'error',
      ...settingsFor(PEOPLE_MAX),
    }
    const server = await startServer({
      dataFolder: this.#dataFolder,
      ...more,
      environment: { ...environment, ...more.environment },
    })
    this.#server = server
    for (const { app } of this.#people) app.http = server.http
    return server
  }

  /** Everybody works until so many things were acknowledged; the server is killed at that moment. */
  async runUntilKilled(acknowledgements: number): Promise<void> {
    await this.runWhile(acknowledgements, async () => undefined)
  }

  /** Everybody works; once so many things were acknowledged `act` begins, and when it has ended the server is killed. */
  async runWhile(acknowledgements: number, act: () => Promise<void>): Promise<void> {
    const server = this.server
    const until = this.#acknowledgements + acknowledgements
    const acted = new Promise<void>((resolve, reject) => {
      this.#onAcknowledged = () => {
        if (this.#acknowledgements < until) return
        this.#onAcknowledged = () => {}
        act().then(resolve, reject)
      }
    })
    const killed = acted.finally(() => server.process.kill('SIGKILL'))
    await Promise.all([killed, this.#work()])
    await server.end('SIGKILL')
  }

  /** Everybody works until the server ends by itself; resolves with its exit code, or the signal that ended it. */
  async runUntilEnded(): Promise<number | NodeJS.Signals> {
    const { process } = this.server
    const ended = once(process, 'close')
    await this.#work()
    const [code, signal] = await ended
    return code ?? signal
  }

  /** Only durable messages, one after the other, of one person. */
  async sendUntilKilled(acknowledgements: number): Promise<void> {
    const server = this.server
    const sender = this.#senders[0]!
    const until = sender.acknowledged + acknowledgements
    this.#onAcknowledged = () => {
      if (sender.acknowledged >= until) server.process.kill('SIGKILL')
    }
    await this.#send(sender).catch(() => undefined)
    await server.end('SIGKILL')
  }

  /** The acknowledged state so far. */
  known(): Known {
    const acknowledged = new Map(this.#senders.map(sender => [sender, sender.acknowledged]))
    return { claims: new Map(this.#claims), acknowledged }
  }

  /** Everything that was acknowledged by then and is not there in the server that runs now. */
  async lost({ claims, acknowledged } = this.known()): Promise<string[]> {
    const faults = [...claims].map(async ([what, claim]) => {
      const fault = await claim().catch((error: Error) => error.message)
      return fault === undefined ? [] : [`${what}: ${fault}`]
    })
    const sends = [...acknowledged].map(([sender, last]) => this.#receive(sender, last))
    return (await Promise.all([...faults, ...sends])).flat()
  }

  /** Ends the calls that the killed server left, so that everybody can call again. */
  async hangUp(): Promise<void> {
    for (const [{ app }] of this.#pairs) {
      const { items } = await app.get(200, 'GET /app/api/call/history')
      for (const { callId, status } of items) {
        if (status === 'active') await app.get(200, 'POST /app/api/call/end', { callId })
      }
    }
  }

  get server(): RunningServer {
    if (this.#server === undefined) throw new Error('no server runs')
    return this.#server
  }

  #acknowledge(what: string, claim?: Claim): void {
    this.#acknowledgements += 1
    if (claim !== undefined) this.#claims.set(what, claim)
    this.#onAcknowledged()
  }

  /** Ends with the server. */
  async #work(): Promise<void> {
    await Promise.allSettled([
      ...this.#pairs.map(pair => this.#call(...pair)),
      ...this.#senders.map(sender => this.#send(sender)),
      this.#signUp(),
    ])
  }

  async #signUp(): Promise<void> {
    const { http } = this.server
    const [host] = this.#people
    for (;;) {
      const newcomer = await signInPerson(http, this.#people.length)
      this.#people.push(newcomer)
      const { app, userId, deviceId, publicKey, publicKeyHash } = newcomer
      this.#acknowledge(`device ${deviceId}`, async () => {
        const { device } = await app.get(200, 'GET /app/api/user')
        const [found] = await lookUp(this.server.http, [publicKeyHash])
        return device?.deviceId === deviceId && found?.publicKey === publicKey ? undefined : 'not registered'
      })
      await befriend(newcomer, host!)
      this.#acknowledge(`contact ${userId}`, async () => {
        const [theirs, ours] = [await contactsOf(app), await contactsOf(host!.app)]
        return theirs.includes(host!.userId) && ours.includes(userId) ? undefined : 'no contact'
      })
    }
  }

  /** Calls are started, and joined or declined, and ended. */
  async #call(caller: Person, callee: Person): Promise<void> {
    for (let round = 0; ; round++) {
      const { status, body } = await startCall(caller, [callee])
      if (status !== 201) throw new Error(`call/start answers ${status}`)
      const { callId } = body
      const what = `call ${callId}`
      const recorded = () => caller.app.outcome(`GET /app/api/call/${callId}`)
      this.#acknowledge(what, async () =>
        /^200|CALL_ENDED/.test(await recorded()) ? undefined : 'not there',
      )
      if (round % 3 === 0) await callee.app.get(204, `POST /app/api/call/${callId}/decline`, {})
      else {
        await callee.app.get(200, `POST /app/api/call/${callId}/join`, {})
        this.#acknowledge(what, async () => {
          const joined = await callsOf(callee.app)
          return joined.includes(callId) ? undefined : 'not joined'
        })
        const encryptedAESKeys = { [`${callee.userId}_${callee.deviceId}`]: newCallKey() }
        await caller.app.get(202, `POST /app/api/call/${callId}/keys`, {
          epoch: 2,
          reason: 'rotation',
          encryptedAESKeys,
        })
        await caller.app.get(200, 'POST /app/api/call/end', { callId })
      }
      this.#acknowledge(what, async () => {
        const outcome = await recorded()
        return outcome === '410 CALL_ENDED' ? undefined : `it is over, and answers ${outcome}`
      })
    }
  }

  async #send(sender: Sender): Promise<void> {
    const client = await this.#connect(sender)
    client.onFrame = ({ command, headers }) => {
      if (command !== 'RECEIPT') return
      sender.acknowledged = Number(headers[0]![1])
      this.#acknowledge('send')
    }
    const last = sender.sent + SENDS
    while (sender.sent < last) {
      const number = `${++sender.sent}`
      client.write(sendFrame(QUEUE, number, `receipt:${number}\n`))
      if (sender.sent % SENT_AT_ONCE === 0) await client.receipt(number)
    }
    await client.closed()
  }

  /** Everything that was acknowledged comes back, in order and without a gap; then it is settled. */
  async #receive(sender: Sender, acknowledged: number): Promise<string[]> {
    const { person, settled } = sender
    const client = await this.#connect(sender)
    client.onFrame = frame => {
      if (frame.command === 'MESSAGE') client.write(`ACK\nid:${headerOf(frame, 'ack')}\n\n\0`)
    }
    await client.subscribe(QUEUE, 'all', 'ack:client\n')
    await client.send(QUEUE, 'end')
    await client.until(() => String(client.frames.at(-1)?.body) === 'end')
    const numbers = (await client.disconnect()).slice(0, -1).map(({ body }) => Number(String(body)))
    const last = numbers.at(-1) ?? settled
    sender.settled = sender.sent = Math.max(last, acknowledged)
    const isInOrder = numbers.every((number, at) => number === settled + 1 + at)
    if (isInOrder && last >= acknowledged) return []
    return [`${person.userId} sent ${settled + 1} to ${acknowledged}, acknowledged, and has ${numbers}`]
  }

  #connect({ person }: Sender): Promise<SocketClient> {
    return SocketClient.connect('tcp', this.server.stompTcp!, person.app.accessToken!)
  }
}

async function contactsOf(app: App): Promise<string[]> {
  const contacts = await everyItem(app, 'friend?limit=200')
  return contacts.map(({ userId }) => userId)
}

async function callsOf(app: App): Promise<string[]> {
  const calls = await everyItem(app, 'call/history?limit=100')
  return calls.map(({ callId }) => callId)
}

/** All of them, page by page. */
async function everyItem(
  app: App,
  list: string,
): Promise<{ readonly userId: string; readonly callId: string }[]> {
  const found: { readonly userId: string; readonly callId: string }[] = []
  for (let cursor = ''; ; ) {
    const { items, nextCursor } = await app.get(200, `GET /app/api/${list}${cursor}`)
    found.push(...items)
    if (nextCursor === undefined) return found
    cursor = `&cursor=${nextCursor}`
  }
}

const CALLEES = 3
const PEOPLE_MAX = 1_000
/** For one person before one kill; an inbox holds 500. */
const SENDS = 60
const SENT_AT_ONCE = 8
const QUEUE = '/user/queue/dev.numbers'
