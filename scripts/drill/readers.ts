/**
 * Reads at every node all the time, as clients do: who they are, the newest call, and the newest key with its proof. A
 * read is stale where it lacks a change that was acknowledged before, at any node.
 */

import { setTimeout as sleep } from 'node:timers/promises'
import { LogClient, MemoryStore, type PublishedKeys } from '../../src/client/client.ts'
import type { Load } from './load.ts'
import { faultOfCall, faultOfLookup, type LogAtNode } from './lost.ts'
import type { NodeAddresses } from './settings.ts'

export interface Read {
  readonly node: string
  /** When it was sent and took so long, by `performance.now()`. */
  readonly atMs: number
  readonly tookMs: number
  readonly fault: ReadFault | undefined
}

interface ReadFault {
  readonly detail: string
  /** A wrong answer, such as a stale one; else none came, or a refusal for now. */
  readonly isAnswer: boolean
}

export class Readers {
  #reads: Read[] = []
  readonly #load: Load
  readonly #stop: AbortSignal
  readonly #logs: ReadonlyMap<string, LogClient>

  constructor(
    nodes: readonly NodeAddresses[],
    { load, logKeys, stop }: { load: Load; logKeys: PublishedKeys; stop: AbortSignal },
  ) {
    this.#load = load
    this.#stop = stop
    this.#logs = new Map(nodes.map(node => [node.name, logClientOf(node, logKeys)]))
    for (const node of nodes) void this.#keepReading(node)
  }

  /** Reads at the node that were sent since. */
  since(node: string, atMs: number): readonly Read[] {
    return this.#reads.filter(read => read.node === node && read.atMs >= atMs)
  }

  /** The largest checkpoint that each node has shown to its readers. */
  async shown(): Promise<readonly LogAtNode[]> {
    const shown: LogAtNode[] = []
    for (const [node, log] of this.#logs) {
      const checkpoint = await log.highestCheckpoint()
      if (checkpoint !== undefined) shown.push({ node, checkpoint })
    }
    return shown
  }

  /** Reads of an earlier drill are of no more use. */
  forget(): void {
    this.#reads = []
  }

  async #keepReading(node: NodeAddresses): Promise<void> {
    for (let count = 0; !this.#stop.aborted; count++) {
      const atMs = performance.now()
      const fault = await this.#read(node, count)
      this.#reads.push({ node: node.name, atMs, tookMs: performance.now() - atMs, fault })
      await sleep(PAUSE_MS)
    }
  }

  /** Lookups are limited to 120 a minute. */
  async #read(node: NodeAddresses, count: number): Promise<ReadFault | undefined> {
    const { calls, phones } = this.#load
    const call = calls.at(-1)
    if (count % LOOKUP_EVERY === 0) return await this.#lookUp(node)
    if (count % 2 === 0 && call !== undefined) {
      const { callId, caller, isEnded } = call
      const outcome = await caller.outcomeAt(node, 'GET call/{callId}', { callId })
      return faultOf(outcome, faultOfCall(callId, outcome, isEnded))
    }
    const outcome = await phones[0]!.outcomeAt(node, 'GET user')
    return faultOf(outcome, outcome === '200' ? undefined : outcome)
  }

  async #lookUp({ name }: NodeAddresses): Promise<ReadFault | undefined> {
    const key = this.#load.keys.at(-1)!
    const outcome = await this.#logs.get(name)!.lookUp(key)
    const detail = faultOfLookup(outcome, key)
    if (detail === undefined) return undefined
    const isAnswer = outcome.kind !== 'unanswered' || (outcome.status ?? 503) < 429
    return { detail, isAnswer }
  }
}

/** A refusal for now is no wrong answer. */
function faultOf(outcome: string, detail: string | undefined): ReadFault | undefined {
  return detail === undefined ? undefined : { detail, isAnswer: /^(?:2|40)/.test(outcome) }
}

/** One node's log, checked by itself: what another node has shown is compared explicitly. */
export function logClientOf({ url }: NodeAddresses, logKeys: PublishedKeys): LogClient {
  return new LogClient({ ...logKeys, url, store: new MemoryStore(), timeoutMs: ANSWER_MS_MAX })
}

const PAUSE_MS = 250
const LOOKUP_EVERY = 8
const ANSWER_MS_MAX = 5_000
