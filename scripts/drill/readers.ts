/** Reads at every node all the time, as clients do: who they are, the checkpoint, and a key with its proof. */

import { setTimeout as sleep } from 'node:timers/promises'
import { LogClient, MemoryStore, type PublishedKeys } from '../../src/client/client.ts'
import type { DrillPhone } from './phone.ts'
import type { RegisteredKey } from './registrar.ts'
import type { NodeAddresses } from './settings.ts'

export interface Read {
  readonly node: string
  /** When it was sent and took so long, by `performance.now()`. */
  readonly atMs: number
  readonly tookMs: number
  /** A wrong answer, or none, in words. */
  readonly fault: string | undefined
}

export class Readers {
  #reads: Read[] = []
  readonly #phone: DrillPhone
  readonly #stop: AbortSignal
  readonly #logs: ReadonlyMap<string, LogClient>

  constructor(
    nodes: readonly NodeAddresses[],
    { phone, logKeys, stop }: { phone: DrillPhone; logKeys: PublishedKeys; stop: AbortSignal },
  ) {
    this.#phone = phone
    this.#stop = stop
    this.#logs = new Map(nodes.map(node => [node.name, logClientOf(node, logKeys)]))
    for (const node of nodes) void this.#keepReading(node)
  }

  /** Reads at the node that were sent since. */
  since(node: string, atMs: number): readonly Read[] {
    return this.#reads.filter(read => read.node === node && read.atMs >= atMs)
  }

  /** Reads of an earlier drill are of no more use. */
  forget(): void {
    this.#reads = []
  }

  async #keepReading(node: NodeAddresses): Promise<void> {
    for (let count = 0; !this.#stop.aborted; count++) {
      const atMs = performance.now()
      // Lookups are limited to 120 a minute.
      const fault = count % LOOKUP_EVERY === 0 ? await this.#lookUp(node) : await this.#readUser(node)
      this.#reads.push({ node: node.name, atMs, tookMs: performance.now() - atMs, fault })
      await sleep(PAUSE_MS)
    }
  }

  async #lookUp({ name }: NodeAddresses): Promise<string | undefined> {
    return faultOfLookup(await this.#logs.get(name)!.lookUp(this.#phone.key), this.#phone.key)
  }

  async #readUser(node: NodeAddresses): Promise<string | undefined> {
    const outcome = await this.#phone.outcomeAt(node, 'GET user')
    return outcome === '200' ? undefined : outcome
  }
}

/** One node's log, checked by itself: what another node has shown is compared explicitly. */
export function logClientOf({ url }: NodeAddresses, logKeys: PublishedKeys): LogClient {
  return new LogClient({ ...logKeys, url, store: new MemoryStore(), timeoutMs: ANSWER_MS_MAX })
}

/** Undefined when it proves this key. */
export function faultOfLookup(
  outcome: Awaited<ReturnType<LogClient['lookUp']>>,
  key: RegisteredKey,
): string | undefined {
  if (outcome.kind !== 'verified') return outcome.detail
  return outcome.publicKey === key.publicKey ? undefined : 'another key is in the log'
}

const PAUSE_MS = 250
const LOOKUP_EVERY = 8
const ANSWER_MS_MAX = 5_000
