/**
 * Work at several nodes at once that goes on while nodes are killed: keys are registered, calls made, durable messages sent
 * and acknowledged, checkpoints read. Answers are kept, and checked at every node.
 */

import { InboxLedger } from '../../scripts/drill/inbox-ledger.ts'
import { faultOfCall } from '../../scripts/drill/lost.ts'
import { RegisterClient } from '../../scripts/support/register-client.ts'
import { openCheckpoint } from '../../src/log/checkpoint.ts'
import { parseEntry } from '../../src/log/entry.ts'
import { equalHashes, hashLeaf } from '../../src/log/hash.ts'
import { parseVerifierKey } from '../../src/log/note.ts'
import { formatTilePath, parseBundle, TILE_WIDTH, tileWidth } from '../../src/log/tile.ts'
import { RightEdge } from '../../src/log/tree.ts'
import { befriend, type Person, signInPerson, startCall } from './call-people.ts'
import { lookUp } from './live-log.ts'
import { type ClientFrame, sendFrame } from './naive-client.ts'
import { headerOf } from './naive-stomp.ts'
import { eventually, type TestNode } from './nodes.ts'
import { freshPublicKey, type RunningServer } from './server.ts'
import { SocketClient } from './socket-client.ts'

interface Registered {
  readonly index: number
  readonly vrfHash: string
  readonly publicKey: string
}

/** A person's messages to a queue of their own device, numbered from 1. */
interface Mailbox {
  readonly person: Person
  sent: number
  /** A SEND with a receipt is a promise. */
  readonly inbox: InboxLedger
}

interface Checkpoint {
  readonly treeSize: number
  readonly rootHash: Uint8Array
}

export class NodeLoad {
  readonly #nodes: readonly TestNode[]
  readonly #random: () => number
  readonly #pairs: (readonly [Person, Person])[] = []
  readonly #mailboxes: Mailbox[] = []
  readonly #registered: Registered[] = []
  readonly #calls: { readonly caller: Person; readonly callId: string; isEnded: boolean }[] = []
  /** Each that any node has shown, by its size and root. */
  readonly #checkpoints = new Map<string, Checkpoint>()
  readonly #work: Promise<void>[] = []
  #acknowledgements = 0
  #waiting: { readonly count: number; readonly resolve: () => void }[] = []
  #isOver = false
  #nextUser = 1_000_000

  private constructor(nodes: readonly TestNode[], random: () => number) {
    this.#nodes = nodes
    this.#random = random
  }

  /** People sign in at the first node. */
  static async start(nodes: readonly TestNode[], random: () => number): Promise<NodeLoad> {
    const load = new NodeLoad(nodes, random)
    const { http } = nodes[0]!.server
    const people = await Promise.all(Array.from({ length: PEOPLE }, (_, at) => signInPerson(http, at)))
    for (let at = 0; at + 1 < people.length; at += 2) {
      const pair = [people[at]!, people[at + 1]!] as const
      await befriend(...pair)
      load.#pairs.push(pair)
    }
    for (const person of people) {
      load.#mailboxes.push({ person, sent: 0, inbox: new InboxLedger() })
    }
    load.#work.push(
      ...Array.from({ length: REGISTRARS }, () => load.#repeat(() => load.#registerAt(load.#anyServer()))),
      ...load.#pairs.map(pair => load.#repeat(() => load.#call(...pair))),
      ...load.#mailboxes.map(mailbox => load.#repeat(() => load.#send(mailbox))),
      ...load.#mailboxes.map(mailbox => load.#repeat(() => load.#receive(mailbox))),
      ...nodes.map(node => load.#repeat(() => load.#readCheckpoint(node.server))),
    )
    return load
  }

  /** How much there is to check. */
  get counts() {
    return {
      registered: this.#registered.length,
      calls: this.#calls.length,
      checkpoints: this.#checkpoints.size,
      stored: this.#mailboxes.reduce((sum, { inbox }) => sum + inbox.counts.promised, 0),
      settled: this.#mailboxes.reduce((sum, { inbox }) => sum + inbox.counts.settled, 0),
    }
  }

  /** Resolves when so many more things were answered. */
  acknowledged(count: number): Promise<void> {
    return new Promise(resolve => this.#waiting.push({ count: this.#acknowledgements + count, resolve }))
  }

  /** Resolves when nothing is under way any more. */
  async stop(): Promise<void> {
    this.#isOver = true
    await Promise.all(this.#work)
  }

  /** Puts one more message into each queue, where it stays. */
  async leaveMessages(): Promise<void> {
    for (const mailbox of this.#mailboxes) {
      const peer = await this.#connect(mailbox)
      await this.#sendNext(mailbox, peer)
      peer.destroy()
    }
  }

  /** Whatever was answered and is not so at this node. */
  async lostAt({ server }: TestNode): Promise<string[]> {
    const faults: string[] = []
    const entries = await this.#entriesAt(server)
    for (const { index, publicKey } of this.#registered) {
      const entry = entries[index]
      if (entry === undefined || parseEntry(entry).publicKey !== publicKey)
        faults.push(`entry ${index} is not what was answered`)
    }
    for (let from = 0; from < this.#registered.length; from += LOOKUPS_MAX) {
      const wanted = this.#registered.slice(from, from + LOOKUPS_MAX)
      const hashes = wanted.map(({ vrfHash }) => vrfHash)
      const found = await lookUp(server.http, hashes).catch(({ message }) => {
        faults.push(message)
        return []
      })
      for (const [at, { index, publicKey }] of wanted.entries())
        if (found[at]?.publicKey !== publicKey) faults.push(`a lookup does not find entry ${index}`)
    }
    for (const { caller, callId, isEnded } of this.#calls) {
      caller.app.http = server.http
      const outcome = await caller.app.outcome(`GET /app/api/call/${callId}`)
      const fault = faultOfCall(callId, outcome, isEnded)
      if (fault !== undefined) faults.push(fault)
    }
    faults.push(...forksOf(entries, [...this.#checkpoints.values()]))
    return faults
  }

  /** Messages that were stored and do not come, or came after they were settled. Takes all that wait. */
  async messageFaults(): Promise<string[]> {
    const faults = this.#mailboxes.map(async mailbox => {
      await eventually(() => this.#receive(mailbox, true))
      const { person, inbox } = mailbox
      return [
        ...inbox.missing.map(number => `message ${number} of ${person.userId} does not come`),
        ...inbox.again.map(number => `message ${number} of ${person.userId} came again`),
      ]
    })
    return (await Promise.all(faults)).flat()
  }

  #acknowledge(): void {
    this.#acknowledgements += 1
    for (const { count, resolve } of this.#waiting) if (count <= this.#acknowledgements) resolve()
    this.#waiting = this.#waiting.filter(({ count }) => count > this.#acknowledgements)
  }

  /** Until the load is stopped, also after failures: that is what nodes are killed for. */
  async #repeat(act: () => Promise<void>): Promise<void> {
    while (!this.#isOver) {
      await eventually(async () => {
        if (!this.#isOver) await act()
      })
    }
  }

  #anyServer(): RunningServer {
    return this.#nodes[Math.floor(this.#random() * this.#nodes.length)]!.server
  }

  async #registerAt({ grpc }: RunningServer): Promise<void> {
    const client = new RegisterClient(grpc)
    try {
      for (let count = 0; count < REGISTRATIONS && !this.#isOver; count++) {
        const publicKey = freshPublicKey()
        const { index, vrfHash } = await client.register(BigInt(this.#nextUser++), 1n, publicKey)
        this.#registered.push({ index: Number(index), vrfHash, publicKey })
        this.#acknowledge()
      }
    } finally {
      client.close()
    }
  }

  async #call(caller: Person, callee: Person): Promise<void> {
    caller.app.http = this.#anyServer().http
    callee.app.http = this.#anyServer().http
    await hangUp(caller)
    const { status, body } = await startCall(caller, [callee])
    if (status !== 201) throw new Error(`call/start answers ${status}`)
    const call = { caller, callId: body.callId as string, isEnded: false }
    this.#calls.push(call)
    this.#acknowledge()
    await callee.app.get(200, `POST /app/api/call/${call.callId}/join`, {})
    await caller.app.get(200, 'POST /app/api/call/end', { callId: call.callId })
    call.isEnded = true
    this.#acknowledge()
  }

  async #send(mailbox: Mailbox): Promise<void> {
    // An inbox has a bound.
    await this.#taken(mailbox)
    const peer = await this.#connect(mailbox)
    try {
      for (let count = 0; count < SENDS && !this.#isOver; count++) await this.#sendNext(mailbox, peer)
    } finally {
      peer.destroy()
    }
  }

  async #sendNext(mailbox: Mailbox, peer: SocketClient): Promise<void> {
    const number = ++mailbox.sent
    peer.write(sendFrame(QUEUE, `${number}`, `receipt:${number}\n`))
    await Promise.race([peer.receipt(`${number}`), failed(peer)])
    mailbox.inbox.promise(`${number}`)
    this.#acknowledge()
  }

  async #taken({ inbox }: Mailbox): Promise<void> {
    const waiting = () => inbox.counts.promised - inbox.counts.settled
    while (waiting() > WAITING_MAX && !this.#isOver) await this.acknowledged(1)
  }

  /** Receives for some messages, or until all that wait have come. */
  async #receive(mailbox: Mailbox, untilEnd = false): Promise<void> {
    const peer = await this.#connect(mailbox)
    try {
      let hasEnded = false
      peer.onFrame = frame => {
        if (frame.command === 'MESSAGE') {
          if (String(frame.body) === END) hasEnded = true
          this.#onMessage(mailbox, peer, frame)
        }
        if (frame.command === 'RECEIPT') this.#onReceipt(mailbox, frame)
      }
      await peer.subscribe(QUEUE, 'all', 'ack:client-individual\n')
      if (untilEnd) {
        await peer.send(QUEUE, END)
        await peer.until(() => hasEnded)
        await peer.disconnect()
        return
      }
      const before = mailbox.inbox.counts.settled
      await Promise.race([this.#settles(mailbox, before + SENDS), failed(peer)])
    } finally {
      peer.destroy()
    }
  }

  async #settles({ inbox }: Mailbox, count: number): Promise<void> {
    while (inbox.counts.settled < count && !this.#isOver) await this.acknowledged(1)
  }

  #onMessage({ inbox }: Mailbox, peer: SocketClient, frame: ClientFrame): void {
    const text = String(frame.body)
    const receipt = text === END ? '' : `receipt:ack-${text}\n`
    if (text !== END) inbox.receive(text)
    peer.write(`ACK\nid:${headerOf(frame, 'ack')}\n${receipt}\n\0`)
  }

  #onReceipt({ inbox }: Mailbox, frame: ClientFrame): void {
    const [, number] = /^ack-(\d+)$/.exec(headerOf(frame, 'receipt-id') ?? '') ?? []
    if (number === undefined) return
    inbox.settle(number)
    this.#acknowledge()
  }

  #connect({ person }: Mailbox): Promise<SocketClient> {
    return SocketClient.connect('websocket', this.#anyServer().http, person.app.accessToken!)
  }

  async #readCheckpoint(server: RunningServer): Promise<void> {
    const shown = await checkpointAt(server)
    this.#checkpoints.set(`${shown.treeSize} ${Buffer.from(shown.rootHash).toString('hex')}`, shown)
    // As often as something has happened.
    await this.acknowledged(1)
  }

  /** All entries, once the node shows every registration, and has had time for what other nodes have shown. */
  async #entriesAt(server: RunningServer): Promise<Uint8Array[]> {
    const sizeMin = Math.max(0, ...this.#registered.map(({ index }) => index + 1))
    const shownMax = Math.max(0, ...[...this.#checkpoints.values()].map(({ treeSize }) => treeSize))
    let looks = 0
    const { treeSize } = await eventually(async () => {
      const shown = await checkpointAt(server)
      const lags = shown.treeSize < sizeMin || (shown.treeSize < shownMax && ++looks < LOOKS_MAX)
      if (lags) throw new Error('the copy lags')
      this.#checkpoints.set(`${shown.treeSize} ${Buffer.from(shown.rootHash).toString('hex')}`, shown)
      return shown
    })
    const entries: Uint8Array[] = []
    for (let index = 0; index * TILE_WIDTH < treeSize; index++) {
      const path = formatTilePath({ level: 'entries', index, width: tileWidth('entries', index, treeSize) })
      const answer = await fetch(`${server.http}/${path}`)
      entries.push(...parseBundle(new Uint8Array(await answer.arrayBuffer())))
    }
    return entries
  }
}

/** After these a checkpoint that the node does not reach is lost. */
const LOOKS_MAX = 500

/** Checkpoints that the tree of these entries never had. */
function forksOf(entries: readonly Uint8Array[], checkpoints: readonly Checkpoint[]): string[] {
  const faults: string[] = []
  const edge = new RightEdge(0, [])
  for (let size = 0; size <= entries.length; size++) {
    const shown = checkpoints.filter(({ treeSize }) => treeSize === size)
    if (shown.some(({ rootHash }) => !equalHashes(rootHash, edge.rootHash())))
      faults.push(`another checkpoint of size ${size} was shown`)
    if (size < entries.length) edge.append(hashLeaf(entries[size]!))
  }
  const larger = checkpoints.filter(({ treeSize }) => treeSize > entries.length)
  return [...faults, ...larger.map(({ treeSize }) => `a checkpoint of size ${treeSize} was shown`)]
}

export async function checkpointAt({ http, vkey }: RunningServer): Promise<Checkpoint> {
  const answer = await fetch(`${http}/checkpoint`)
  return openCheckpoint(await answer.text(), parseVerifierKey(vkey))
}

/** Ends the call that an earlier failure has left. */
async function hangUp({ app }: Person): Promise<void> {
  const { items } = await app.get(200, 'GET /app/api/call/history')
  for (const { callId, status } of items)
    if (status === 'active') await app.get(200, 'POST /app/api/call/end', { callId })
}

async function failed(peer: SocketClient): Promise<never> {
  throw new Error(`closed with ${await peer.closed()}`)
}

const PEOPLE = 4
const REGISTRARS = 2
const REGISTRATIONS = 20
const SENDS = 20
const WAITING_MAX = 100
const LOOKUPS_MAX = 64
const QUEUE = '/user/queue/dev.numbers'
const END = 'end'
