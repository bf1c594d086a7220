/** Watches the nodes' operators' ports: which one serves, which one writes, and how far each has come. */

import { setTimeout as sleep } from 'node:timers/promises'
import type { NodeAddresses } from './settings.ts'

/** A node as its operators' port describes it. */
export interface NodeState {
  readonly isReady: boolean
  readonly isWriter: boolean
  /** The last change that it has. */
  readonly change: number
  /** Start of its process in seconds since 1970: a later one after a restart. */
  readonly startedAt: number
  readonly connections: number
  /** When it was asked (`performance.now()`). */
  readonly atMs: number
}

export class WatchedNode {
  readonly name: string
  readonly addresses: NodeAddresses
  /** Undefined while it gives no answer. */
  state: NodeState | undefined = undefined
  /** When it last said that it served, and that it was the writer. */
  servedAtMs = Number.NEGATIVE_INFINITY
  wroteAtMs = Number.NEGATIVE_INFINITY
  /** When it first said that it was the writer, after it had not been. */
  becameWriterAtMs = Number.NEGATIVE_INFINITY

  constructor(addresses: NodeAddresses) {
    this.name = addresses.name
    this.addresses = addresses
  }

  take(state: NodeState | undefined): void {
    if (state?.isWriter && !this.state?.isWriter) this.becameWriterAtMs = state.atMs
    this.state = state
    if (state?.isReady) this.servedAtMs = state.atMs
    if (state?.isWriter) this.wroteAtMs = state.atMs
  }
}

export class ClusterWatch {
  readonly nodes: readonly WatchedNode[]
  readonly #stop: AbortSignal
  #waiting: (() => void)[] = []

  constructor(nodes: readonly NodeAddresses[], stop: AbortSignal) {
    this.nodes = nodes.map(addresses => new WatchedNode(addresses))
    this.#stop = stop
    for (const node of this.nodes) void this.#keepAsking(node)
  }

  /** Undefined while there is none, or more than one. */
  get writer(): WatchedNode | undefined {
    const writers = this.nodes.filter(({ state }) => state?.isWriter)
    return writers.length === 1 ? writers[0] : undefined
  }

  /** Whether all nodes are ready, and one is the writer, by what they were asked after this moment. */
  isWholeSince(atMs: number): boolean {
    const areReady = this.nodes.every(({ state }) => state?.isReady && state.atMs > atMs)
    return areReady && this.writer !== undefined
  }

  /** The number of the last change that all nodes have, or undefined while they differ. */
  get commonChange(): number | undefined {
    const changes = new Set(this.nodes.map(({ state }) => state?.change))
    return changes.size === 1 ? this.nodes[0]!.state?.change : undefined
  }

  /** Resolves when this is so, with true; with false when the time has run out. */
  async until(isSo: () => boolean, ms: number): Promise<boolean> {
    const endMs = performance.now() + ms
    while (!isSo()) {
      if (performance.now() > endMs || this.#stop.aborted) return false
      await new Promise<void>(resolve => this.#waiting.push(resolve))
    }
    return true
  }

  /** A line about each node, for the operator. */
  describe(): string {
    return this.nodes
      .map(({ name, state }) => {
        if (state === undefined) return `${name} does not answer`
        return `${name} is ${state.isReady ? 'ready' : 'not ready'}${state.isWriter ? ' and the writer' : ''}`
      })
      .join(', ')
  }

  async #keepAsking(node: WatchedNode): Promise<void> {
    while (!this.#stop.aborted) {
      node.take(await askNode(node.addresses))
      for (const resolve of this.#waiting.splice(0)) resolve()
      await sleep(PAUSE_MS)
    }
    for (const resolve of this.#waiting.splice(0)) resolve()
  }
}

/** Undefined without an answer in time, or for one that is not a node's. */
async function askNode({ operatorsUrl }: NodeAddresses): Promise<NodeState | undefined> {
  const atMs = performance.now()
  const signal = AbortSignal.timeout(ANSWER_MS_MAX)
  try {
    const [ready, metrics] = await Promise.all(
      ['readyz', 'metrics'].map(path => fetch(`${operatorsUrl}/${path}`, { signal, redirect: 'error' })),
    )
    const [text] = await Promise.all([metrics!.text(), ready!.arrayBuffer()])
    const writer = sumOf(text, 'callsign_node_writer')
    if (metrics!.status !== 200 || writer === undefined) return undefined
    return {
      isReady: ready!.status === 200,
      isWriter: writer === 1,
      change: sumOf(text, 'callsign_node_change') ?? 0,
      startedAt: sumOf(text, 'process_start_time_seconds', isOfNode) ?? 0,
      connections: sumOf(text, 'callsign_connections') ?? 0,
      atMs,
    }
  } catch {
    return undefined
  }
}

/** The sum of a metric's samples in Prometheus' text form. */
function sumOf(
  text: string,
  name: string,
  isWanted: (labels: string) => boolean = () => true,
): number | undefined {
  let sum: number | undefined
  for (const line of text.split('\n')) {
    const [, labels = '', value] = new RegExp(`^${name}(\\{.*\\})? (\\S+)$`).exec(line) ?? []
    if (value !== undefined && isWanted(labels)) sum = (sum ?? 0) + Number(value)
  }
  return sum
}

/** Fronts have start times of their own. */
function isOfNode(labels: string): boolean {
  return !labels.includes('process="front')
}

const PAUSE_MS = 250
const ANSWER_MS_MAX = 2_000
