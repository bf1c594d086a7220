/**
 * Rounds of a drill: in each a kind of fault strikes nodes that clients use, and afterwards everything that was acknowledged is
 * looked for. The clients and checks are those of `callsign drill`.
 */

import { setTimeout } from 'node:timers/promises'
import type { Test } from 'tap'
import { Checks } from '../../scripts/drill/checks.ts'
import { ClusterWatch } from '../../scripts/drill/cluster-watch.ts'
import { Load } from '../../scripts/drill/load.ts'
import { DrillPhone } from '../../scripts/drill/phone.ts'
import { Readers } from '../../scripts/drill/readers.ts'
import { Registrar } from '../../scripts/drill/registrar.ts'
import type { NodeAddresses } from '../../scripts/drill/settings.ts'
import { readLogOf } from '../../scripts/drill/target.ts'
import { CODE, emailOf } from './call-people.ts'
import { FAULT_KINDS } from './fault-kinds.ts'
import { FaultyCluster } from './faulty-cluster.ts'
import type { TestNode } from './nodes.ts'
import { TokenLedger } from './token-ledger.ts'

export interface Round {
  readonly kind: string
  /** From the fault to the answer of the first change that was sent after it. */
  readonly firstChangeMs: number
  /** The longest that a client waited for the answer to a change. */
  readonly longestMs: number
  /** Anything lost, doubled, stale or forked, in words. */
  readonly faults: readonly string[]
}

interface Clients {
  readonly addresses: readonly NodeAddresses[]
  readonly watch: ClusterWatch
  readonly load: Load
  readonly readers: Readers
  readonly checks: Checks
  readonly tokens: TokenLedger
}

export class FaultRounds {
  readonly #cluster: FaultyCluster
  readonly #random: () => number
  readonly #clients: Clients

  private constructor(cluster: FaultyCluster, random: () => number, clients: Clients) {
    this.#cluster = cluster
    this.#random = random
    this.#clients = clients
  }

  /** Clients and servers end with the test. */
  static async start(t: Test, nodes: number, random: () => number): Promise<FaultRounds> {
    const stop = new AbortController()
    t.teardown(() => stop.abort())
    const cluster = await FaultyCluster.start(t, { nodes, environment: { CALLSIGN_RATE_LIMITS: 'off' } })
    const addresses = cluster.nodes.map(({ name, server }) => ({
      name,
      url: server.http,
      operatorsUrl: server.admin,
      grpc: { address: server.grpc, isTls: false },
    }))
    const { signal } = stop
    const watch = new ClusterWatch(addresses, signal)
    const logKeys = await readLogOf(addresses)
    const phones: DrillPhone[] = []
    for (let place = 0; place < PHONES; place++) {
      const login = { identifier: emailOf(place), code: CODE }
      phones.push(await DrillPhone.signIn({ nodes: addresses, place, login, stop: signal }))
    }
    for (let at = 0; at + 1 < PHONES; at += 2) await phones[at]!.befriend(phones[at + 1]!)
    for (const phone of phones) phone.connect()
    const registrar = await Registrar.open(addresses, undefined, t.comment.bind(t))
    const load = new Load(phones, registrar, signal)
    const readers = new Readers(addresses, { load, logKeys, stop: signal })
    const checks = new Checks({ nodes: addresses, watch, load, readers, logKeys })
    const urls = addresses.map(({ url }) => url)
    const tokens = new TokenLedger(urls, PHONES, random)
    return new FaultRounds(cluster, random, { addresses, watch, load, readers, checks, tokens })
  }

  /** How much was acknowledged so far. */
  get counts() {
    const { load, tokens } = this.#clients
    return { calls: load.calls.length, keys: load.keys.length, tokens: tokens.count }
  }

  async round(kind: string): Promise<Round> {
    const { watch, load, checks, tokens } = this.#clients
    const from = { calls: load.calls.length, keys: load.keys.length }
    if (!(await watch.until(() => watch.isWholeSince(0), WHOLE_MS_MAX))) return failed(kind, watch.describe())
    await tokens.start()
    const fault = await checks.begin()
    if (fault !== undefined) return failed(kind, fault)
    const writer = this.#nodeOf(watch.writer!.name)
    const others = this.#cluster.nodes.filter(node => node !== writer)
    const other = others[Math.floor(this.#random() * others.length)]!
    const atMs = performance.now()
    const act = FAULT_KINDS[kind]!({ cluster: this.#cluster, writer, other, random: this.#random })
    const undone = await Promise.race([act.then(() => true), setTimeout(ACT_MS_MAX, false, { ref: false })])
    if (!undone) return failed(kind, `the fault is not undone: ${watch.describe()}`)
    const undoneMs = performance.now()
    if (!(await watch.until(() => watch.isWholeSince(undoneMs), WHOLE_MS_MAX)))
      return failed(kind, watch.describe())
    await load.until(() => load.firstSince(atMs) !== undefined, WHOLE_MS_MAX)
    const first = load.firstSince(atMs)?.answeredAtMs ?? Number.NaN
    const times = load.since(atMs).map(({ sentAtMs, answeredAtMs }) => answeredAtMs - sentAtMs)
    const faults = await this.#faultsSince(atMs, from)
    const longestMs = Math.max(tokens.longestSince(atMs), ...times)
    return { kind, firstChangeMs: first - atMs, longestMs, faults }
  }

  async #faultsSince(atMs: number, from: { calls: number; keys: number }): Promise<string[]> {
    const { addresses, readers, checks, tokens } = this.#clients
    const faults: string[] = []
    for await (const { check, isOk, detail } of checks.lookForAll(from)) {
      if (!isOk) faults.push(`${check}: ${detail}`)
    }
    const rested = tokens.rest().then(() => true)
    if (!(await Promise.race([rested, setTimeout(REST_MS_MAX, false, { ref: false })]))) {
      faults.push('a share token is not answered for')
    }
    faults.push(...tokens.faults.splice(0))
    for (const { name } of addresses) {
      for (const { fault, atMs: readAtMs } of readers.since(name, atMs)) {
        if (fault?.isAnswer) faults.push(`read at ${name} after ${readAtMs - atMs} ms: ${fault.detail}`)
      }
    }
    return faults
  }

  /** All that the nodes have logged. */
  logs(): ReadonlyMap<string, string> {
    return new Map(this.#cluster.nodes.map(({ name, log }) => [name, log]))
  }

  #nodeOf(name: string): TestNode {
    return this.#cluster.nodes.find(node => node.name === name)!
  }
}

function failed(kind: string, fault: string): Round {
  return { kind, firstChangeMs: Number.NaN, longestMs: Number.NaN, faults: [fault] }
}

const PHONES = 2
/** How long a busy machine takes is not the question. */
const WHOLE_MS_MAX = 180_000
const ACT_MS_MAX = 180_000
const REST_MS_MAX = 60_000
