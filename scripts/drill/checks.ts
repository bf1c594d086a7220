/** The promises that every drill checks: everything acknowledged is at every node, nothing comes twice, and there is one log. */

import type { LogClient, PublishedKeys } from '../../src/client/client.ts'
import type { ClusterWatch, WatchedNode } from './cluster-watch.ts'
import { type Finding, fails, holds, judge, secondsOf } from './finding.ts'
import type { DrillCall, Load } from './load.ts'
import { forks, type LogAtNode, lostCalls, lostKeys, lostMessages, readLogs } from './lost.ts'
import { logClientOf, type Readers } from './readers.ts'
import type { NodeAddresses } from './settings.ts'

export interface CheckedCluster {
  readonly nodes: readonly NodeAddresses[]
  readonly watch: ClusterWatch
  readonly load: Load
  readonly readers: Readers
  readonly logKeys: PublishedKeys
}

export class Checks {
  readonly #cluster: CheckedCluster
  readonly #logs: ReadonlyMap<string, LogClient>
  /** Each node's checkpoint before the failure. */
  #before: readonly (LogAtNode | string)[] = []
  #underWay: readonly DrillCall[] = []

  constructor(cluster: CheckedCluster) {
    this.#cluster = cluster
    this.#logs = new Map(cluster.nodes.map(node => [node.name, logClientOf(node, cluster.logKeys)]))
  }

  /** Has the load go on. Resolves with why it does not. */
  async begin(): Promise<string | undefined> {
    const { load, readers } = this.#cluster
    readers.forget()
    this.#before = await readLogs(this.#logs)
    const beginMs = performance.now()
    load.start()
    if (!(await load.until(() => load.since(beginMs).length >= CHANGES_MIN, BUSY_MS_MAX))) {
      return `no load: ${load.faults[0] ?? 'nothing was acknowledged'}`
    }
    this.#underWay = load.callsUnderWay
    return undefined
  }

  /**
   * Clients that use the other nodes are answered, and rightly. The node that failed may answer nothing, but nothing
   * wrong.
   */
  judgeReads(failed: WatchedNode | undefined, sinceMs: number): Finding {
    const { watch, readers } = this.#cluster
    const others = watch.nodes.filter(node => node !== failed).map(({ name }) => name)
    const reads = others.flatMap(name => readers.since(name, sinceMs))
    const own = failed === undefined ? [] : readers.since(failed.name, sinceMs)
    const faults = [
      ...reads.filter(({ fault }) => fault !== undefined),
      ...own.filter(({ fault }) => fault?.isAnswer === true),
    ]
    const slowestMs = Math.max(0, ...reads.map(({ tookMs }) => tookMs))
    const where = others.join(', ')
    if (reads.length === 0) return fails('reads', `none at ${where}`)
    return judge(
      'reads',
      faults.map(({ node, atMs, fault }) => `${node} after ${secondsOf(atMs - sinceMs)}: ${fault!.detail}`),
      `${reads.length} at ${where}, all answered, none stale, the slowest in ${Math.round(slowestMs)} ms`,
    )
  }

  /** Everything that was acknowledged until now, at every node; of calls and keys those from these on. */
  async *lookForAll(from = { calls: 0, keys: 0 }): AsyncGenerator<Finding> {
    const { nodes, watch, load } = this.#cluster
    if (!(await watch.until(() => watch.writer !== undefined, BUSY_MS_MAX))) {
      yield fails('copies', `no node writes: ${watch.describe()}`)
      yield await this.#judgeLog()
      return
    }
    const nowMs = performance.now()
    await load.until(() => load.since(nowMs).length >= CHANGES_MIN, BUSY_MS_MAX)
    const restFault = (await load.rest()) ? [] : ['calls do not come to their end']
    await this.#callOnceMore()
    const isSame = await watch.until(() => watch.commonChange !== undefined, SAME_MS_MAX)
    const changes = watch.nodes.map(({ state }) => state?.change ?? 'none')
    yield isSame
      ? holds('copies', `all nodes are at change ${watch.commonChange}`)
      : fails('copies', `nodes are at changes ${changes.join(', ')}`)
    const stuck = this.#underWay
      .filter(({ isEnded }) => !isEnded)
      .map(({ callId }) => `call ${callId} did not go on`)
    const calls = load.calls.slice(from.calls)
    const callFaults = await lostCalls(nodes, calls)
    yield judge(
      'calls',
      [...stuck, ...callFaults, ...restFault, ...load.faults.splice(0)],
      `${calls.length} as acknowledged at every node; ${this.#underWay.length} went on through the failure`,
    )
    const keys = load.keys.slice(from.keys)
    const keyFaults = await lostKeys(this.#logs, keys)
    yield judge('keys', keyFaults, `${keys.length} found and verified at every node`)
    const counts = load.phones.map(({ inbox }) => inbox.counts)
    const promised = counts.reduce((sum, each) => sum + each.promised, 0)
    const settled = counts.reduce((sum, each) => sum + each.settled, 0)
    yield judge(
      'messages',
      lostMessages(load),
      `${promised} came as sent; none of ${settled} came again after its ACK`,
    )
    yield await this.#judgeLog()
  }

  /** Whatever a device is owed comes before the messages of a new call. */
  async #callOnceMore(): Promise<void> {
    const { load } = this.#cluster
    for (const phone of load.phones) phone.reconnectAtHome()
    const count = load.calls.length
    load.start()
    const isDone = () => load.faults.length > 0 || load.calls.length >= count + load.phones.length / 2
    await load.until(isDone, BUSY_MS_MAX)
    await load.rest()
  }

  async #judgeLog(): Promise<Finding> {
    const { readers } = this.#cluster
    const now = await readLogs(this.#logs)
    const all = [...this.#before, ...(await readers.shown()), ...now]
    const shown = all.filter(each => typeof each !== 'string')
    const answered = new Map([...this.#logs].filter((_, at) => typeof now[at] !== 'string'))
    const faults = [...all.filter(each => typeof each === 'string'), ...(await forks(answered, shown))]
    const sizes = shown.map(({ checkpoint }) => checkpoint.treeSize)
    return judge(
      'log',
      faults,
      `from size ${Math.min(...sizes)} to ${Math.max(...sizes)}, the same at every node`,
    )
  }
}

const BUSY_MS_MAX = 30_000
const SAME_MS_MAX = 15_000
const CHANGES_MIN = 10
