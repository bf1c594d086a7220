/** The drills: one failure each, and the checks that follow it. */

import type { LogClient, PublishedKeys } from '../../src/client/client.ts'
import type { ClusterWatch, WatchedNode } from './cluster-watch.ts'
import { type Finding, fails, holds, judge, judgeTime } from './finding.ts'
import type { DrillCall, Load } from './load.ts'
import { forks, type LogAtNode, lostCalls, lostKeys, lostMessages, readLogs } from './lost.ts'
import { askForEnter, HAND_MS_MAX, NotDone, runCommandOf } from './operator.ts'
import { logClientOf, type Readers } from './readers.ts'
import type { Commands, DrillName, Settings } from './settings.ts'

export interface DrillContext {
  readonly settings: Settings
  readonly watch: ClusterWatch
  readonly load: Load
  readonly readers: Readers
  readonly logKeys: PublishedKeys
  /** For the operator. */
  readonly say: (sentence: string) => void
}

/** A node's failure by the drill's clock. */
interface Failure {
  readonly node: WatchedNode
  readonly startedAt: number
  /** When it last did what it was there for. */
  readonly lastMs: number
  /** When it was seen to be gone. */
  readonly goneMs: number
}

export class Drills {
  readonly #context: DrillContext
  readonly #logs: ReadonlyMap<string, LogClient>

  constructor(context: DrillContext) {
    this.#context = context
    const { settings, logKeys } = context
    this.#logs = new Map(settings.nodes.map(node => [node.name, logClientOf(node, logKeys)]))
  }

  /** Finds in order. A finding that fails may be the last one. */
  async *run(drill: DrillName): AsyncGenerator<Finding> {
    const { watch, load, readers } = this.#context
    const isWhole = () => watch.areAllReady && watch.writer !== undefined
    if (!(await watch.until(isWhole, WHOLE_MS_MAX))) {
      yield fails('begin', `all nodes have to be ready, and one the writer: ${watch.describe()}`)
      return
    }
    readers.forget()
    const before = await readLogs(this.#logs)
    const beginMs = performance.now()
    load.start()
    if (!(await load.until(() => load.countSince(beginMs) >= CHANGES_MIN, BUSY_MS_MAX))) {
      yield fails('begin', `no load: ${load.faults[0] ?? 'nothing was acknowledged'}`)
      return
    }
    const underWay = load.callsUnderWay
    try {
      if (drill === 'postgres') yield* this.#restartPostgres()
      else yield* this.#endNode(drill)
    } catch (error) {
      if (!(error instanceof NotDone)) throw error
      yield fails('failure', error.message)
    }
    yield* this.#lookForAll(before, underWay)
  }

  async *#endNode(drill: 'writer' | 'other' | 'stop'): AsyncGenerator<Finding> {
    const { watch, load, settings } = this.#context
    const node = drill === 'other' ? watch.nodes.find(each => each !== watch.writer)! : watch.writer!
    const { goneMs, lastMs, startedAt } = await this.#carryOut(drill, node)
    if (drill !== 'other') yield await this.#takeOver({ node, startedAt, lastMs, goneMs })
    // A killed writer answers nothing once it is gone; a stopped one hands over before.
    const sinceMs = drill === 'stop' ? lastMs : goneMs
    const isAccepted = () => load.firstSince(sinceMs) !== undefined
    await load.until(isAccepted, Math.max(settings.writerWithinMs, TAKE_OVER_MS_MAX))
    const first = load.firstSince(sinceMs)
    yield first === undefined
      ? fails('first change', `none was accepted: ${watch.describe()}`)
      : judgeTime('first change', first.answeredAtMs - lastMs, settings.writerWithinMs, 'accepted')
    yield* this.#return({ node, startedAt, lastMs, goneMs })
    yield this.#judgeReads(node, lastMs)
  }

  /** Lets the node fail; resolves once its process has ended. */
  async #carryOut(drill: 'writer' | 'other' | 'stop', node: WatchedNode): Promise<Failure> {
    const { watch, say, settings } = this.#context
    const { startedAt } = node.state!
    const command = drill === 'stop' ? settings.commands.stop : settings.commands.kill
    const beginMs = performance.now()
    let lastMs = beginMs
    const isGone = () => {
      if (node.state?.startedAt !== startedAt) return true
      lastMs = Math.max(beginMs, drill === 'other' ? node.servedAtMs : node.wroteAtMs)
      return false
    }
    const act = drill === 'stop' ? 'stop it in order (SIGTERM)' : 'kill all its processes (SIGKILL)'
    if (command === undefined) say(`node ${node.name}: ${act} now, within ${HAND_MS_MAX / 60_000} minutes`)
    const gone = watch.until(isGone, command === undefined ? HAND_MS_MAX : GONE_MS_MAX)
    if (command !== undefined) await runCommandOf(command, node.name)
    if (!(await gone)) throw new NotDone(`node ${node.name} goes on running`)
    return { node, startedAt, lastMs, goneMs: performance.now() }
  }

  async #takeOver({ node, startedAt, lastMs }: Failure): Promise<Finding> {
    const { watch, settings } = this.#context
    const next = () =>
      watch.nodes.find(each => each.state?.isWriter && (each !== node || each.state.startedAt !== startedAt))
    await watch.until(() => next() !== undefined, Math.max(settings.writerWithinMs, TAKE_OVER_MS_MAX))
    const writer = next()
    if (writer === undefined) return fails('writer', `no node writes: ${watch.describe()}`)
    const ms = writer.becameWriterAtMs - lastMs
    const who = writer === node ? `${node.name} again` : `${writer.name} instead of ${node.name}`
    return judgeTime('writer', ms, settings.writerWithinMs, who)
  }

  async *#return({ node, startedAt }: Failure): AsyncGenerator<Finding> {
    const { watch, say, settings } = this.#context
    const { backWithinMs, commands } = settings
    const askedAtMs = performance.now()
    if (commands.start !== undefined) await runCommandOf(commands.start, node.name)
    else if (node.state === undefined) say(`node ${node.name}: start it again, unless a supervisor does`)
    const isBack = () => node.state?.isReady === true && node.state.startedAt !== startedAt
    const inTime = await watch.until(isBack, backWithinMs)
    yield inTime
      ? judgeTime('return', performance.now() - askedAtMs, backWithinMs, `${node.name} is ready`)
      : fails('return', `${node.name} is not back after ${backWithinMs / 1_000} s: ${watch.describe()}`)
  }

  /** Nodes that lose their lease in this end, and have to be started again. */
  async *#restartPostgres(): AsyncGenerator<Finding> {
    const { watch, load, settings } = this.#context
    const { commands, backWithinMs } = settings
    if (commands.restartPostgres === undefined) await askForEnter('restart PostgreSQL')
    else await runCommandOf(commands.restartPostgres, '')
    const doneMs = performance.now()
    const isBack = () => watch.areAllReady && watch.writer !== undefined
    if (!(await watch.until(isBack, WHOLE_MS_MAX))) await this.#startAgain(commands)
    const inTime = await watch.until(isBack, backWithinMs)
    yield inTime
      ? judgeTime('return', performance.now() - doneMs, backWithinMs, 'all nodes are ready')
      : fails('return', `after ${backWithinMs / 1_000} s ${watch.describe()}`)
    await load.until(() => load.firstSince(doneMs) !== undefined, backWithinMs)
    const first = load.firstSince(doneMs)
    yield first === undefined
      ? fails('first change', `none was accepted: ${watch.describe()}`)
      : judgeTime('first change', first.answeredAtMs - doneMs, backWithinMs, 'accepted')
  }

  async #startAgain({ start }: Commands): Promise<void> {
    const { watch, say } = this.#context
    for (const { name, state } of watch.nodes) {
      if (state !== undefined) continue
      if (start === undefined) say(`node ${name}: start it again, unless a supervisor does`)
      else await runCommandOf(start, name)
    }
  }

  #judgeReads(failed: WatchedNode, sinceMs: number): Finding {
    const { watch, readers } = this.#context
    const names = watch.nodes.filter(node => node !== failed).map(({ name }) => name)
    const reads = names.flatMap(name => readers.since(name, sinceMs))
    const faults = reads.filter(({ fault }) => fault !== undefined)
    const slowestMs = Math.max(0, ...reads.map(({ tookMs }) => tookMs))
    const where = names.join(', ')
    if (reads.length === 0) return fails('reads', `none at ${where}`)
    return judge(
      'reads',
      faults.map(({ node, atMs, fault }) => `${node} after ${seconds(atMs - sinceMs)}: ${fault}`),
      `${reads.length} at ${where}, all answered, the slowest in ${Math.round(slowestMs)} ms`,
    )
  }

  /** Everything that was acknowledged until now, at every node that is there. */
  async *#lookForAll(
    before: readonly (LogAtNode | string)[],
    underWay: readonly DrillCall[],
  ): AsyncGenerator<Finding> {
    const { watch, load, settings } = this.#context
    const nowMs = performance.now()
    await load.until(() => load.countSince(nowMs) >= CHANGES_MIN, BUSY_MS_MAX)
    const restFault = (await load.rest()) ? [] : ['calls do not come to their end']
    await this.#callOnceMore()
    const isSame = await watch.until(() => watch.commonChange !== undefined, SAME_MS_MAX)
    yield isSame
      ? holds('copies', `all nodes are at change ${watch.commonChange}`)
      : fails(
          'copies',
          `nodes are at changes ${watch.nodes.map(({ state }) => state?.change ?? 'none').join(', ')}`,
        )
    const stuck = underWay
      .filter(({ isEnded }) => !isEnded)
      .map(({ callId }) => `call ${callId} did not go on`)
    const calls = await lostCalls(settings.nodes, load.calls)
    yield judge(
      'calls',
      [...stuck, ...calls, ...restFault, ...load.faults.splice(0)],
      `${load.calls.length} as acknowledged at every node; ${underWay.length} went on through the failure`,
    )
    const keys = load.keys.slice()
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
    yield await this.#judgeLog(before)
  }

  /** Whatever a device is owed comes before the messages of a new call. */
  async #callOnceMore(): Promise<void> {
    const { load } = this.#context
    for (const phone of load.phones) phone.reconnectAtHome()
    const count = load.calls.length
    load.start()
    const isDone = () => load.faults.length > 0 || load.calls.length >= count + load.phones.length / 2
    await load.until(isDone, BUSY_MS_MAX)
    await load.rest()
  }

  async #judgeLog(before: readonly (LogAtNode | string)[]): Promise<Finding> {
    const after = await readLogs(this.#logs)
    const all = [...before, ...after]
    const shown = all.filter(each => typeof each !== 'string')
    const faults = [...all.filter(each => typeof each === 'string'), ...(await forks(this.#logs, shown))]
    const sizes = shown.map(({ checkpoint }) => checkpoint.treeSize)
    return judge(
      'log',
      faults,
      `from size ${Math.min(...sizes)} to ${Math.max(...sizes)}, the same at every node`,
    )
  }
}

function seconds(ms: number): string {
  return `${Math.round(ms / 100) / 10} s`
}

/** Nodes that were started together, or that have lost PostgreSQL for a moment. */
const WHOLE_MS_MAX = 15_000
const BUSY_MS_MAX = 30_000
const GONE_MS_MAX = 30_000
/** Longer than the bound, so that a late one is measured. */
const TAKE_OVER_MS_MAX = 30_000
const SAME_MS_MAX = 15_000
const CHANGES_MIN = 10
