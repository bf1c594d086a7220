/** The drills: one failure each, and the checks that follow it. */

import { type CheckedCluster, Checks } from './checks.ts'
import type { WatchedNode } from './cluster-watch.ts'
import { type Finding, fails, judgeTime } from './finding.ts'
import type { Acknowledgement } from './load.ts'
import { askForEnter, HAND_MS_MAX, NotDone, runCommandOf } from './operator.ts'
import type { Commands, DrillName, Settings } from './settings.ts'

export interface DrillContext extends CheckedCluster {
  readonly settings: Settings
  /** For the operator. */
  readonly say: (sentence: string) => void
}

/** A process that ends, or does not run. */
type ProcessDrill = 'writer' | 'other' | 'stop' | 'pause'
/** A network that is slow, or loses all packets of one direction. */
type NetworkDrill = 'slow' | 'cut-in' | 'cut-out'
type DatabaseDrill = 'postgres' | 'promote'

/** A node's failure by the drill's clock. */
interface Failure {
  readonly drill: ProcessDrill
  readonly node: WatchedNode
  readonly startedAt: number
  /** When it last did what it was there for. */
  readonly lastMs: number
  /** When it was seen to be gone. */
  readonly goneMs: number
}

export class Drills {
  readonly #context: DrillContext
  readonly #checks: Checks

  constructor(context: DrillContext) {
    this.#context = context
    this.#checks = new Checks(context)
  }

  /** Finds in order. A finding that fails may be the last one. */
  async *run(drill: DrillName): AsyncGenerator<Finding> {
    const { watch } = this.#context
    if (!(await watch.until(() => watch.isWholeSince(0), WHOLE_MS_MAX))) {
      yield fails('begin', `all nodes have to be ready, and one the writer: ${watch.describe()}`)
      return
    }
    const fault = await this.#checks.begin()
    if (fault !== undefined) {
      yield fails('begin', fault)
      return
    }
    try {
      yield* this.#carryOut(drill)
    } catch (error) {
      if (!(error instanceof NotDone)) throw error
      yield fails('failure', error.message)
    }
    yield* this.#checks.lookForAll()
  }

  #carryOut(drill: DrillName): AsyncGenerator<Finding> {
    switch (drill) {
      case 'postgres':
      case 'promote':
        return this.#failDatabase(drill)
      case 'slow':
        return this.#slowLink()
      case 'cut-in':
      case 'cut-out':
        return this.#cutOneWay(drill)
      default:
        return this.#endNode(drill)
    }
  }

  async *#endNode(drill: ProcessDrill): AsyncGenerator<Finding> {
    const { watch } = this.#context
    const node = drill === 'other' ? this.#otherNode() : watch.writer!
    const failure = await this.#end(drill, node)
    const { goneMs, lastMs } = failure
    if (drill !== 'other') yield await this.#takeOver(failure)
    // A killed writer answers nothing once it is gone; a stopped one hands over before.
    yield await this.#firstChange(drill === 'stop' ? lastMs : goneMs, lastMs)
    yield await this.#return(failure)
    yield this.#checks.judgeReads(node, lastMs)
  }

  /** Lets the node fail; resolves once its process has ended, or does not answer. */
  async #end(drill: ProcessDrill, node: WatchedNode): Promise<Failure> {
    const { watch, say, settings } = this.#context
    const { startedAt } = node.state!
    const { command, act } = endingBy(drill, settings.commands)
    const beginMs = performance.now()
    let lastMs = beginMs
    const isGone = () => {
      if (node.state?.startedAt !== startedAt) return true
      lastMs = Math.max(beginMs, drill === 'other' ? node.servedAtMs : node.wroteAtMs)
      return false
    }
    if (command === undefined) say(`node ${node.name}: ${act} now, within ${HAND_MS_MAX / 60_000} minutes`)
    const gone = watch.until(isGone, command === undefined ? HAND_MS_MAX : GONE_MS_MAX)
    if (command !== undefined) await runCommandOf(command, node.name)
    if (!(await gone)) throw new NotDone(`node ${node.name} goes on running`)
    return { drill, node, startedAt, lastMs, goneMs: performance.now() }
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

  /** The first that was sent after one moment, timed from another. */
  async #firstChange(sentMs: number, fromMs: number): Promise<Finding> {
    const { watch, load, settings } = this.#context
    const { writerWithinMs } = settings
    await load.until(() => load.firstSince(sentMs) !== undefined, Math.max(writerWithinMs, TAKE_OVER_MS_MAX))
    const first = load.firstSince(sentMs)
    if (first === undefined) return fails('first change', `none was accepted: ${watch.describe()}`)
    return judgeTime('first change', first.answeredAtMs - fromMs, writerWithinMs, 'accepted')
  }

  async #return({ drill, node, startedAt }: Failure): Promise<Finding> {
    const { watch, say, settings } = this.#context
    const { backWithinMs, commands } = settings
    const askedAtMs = performance.now()
    const isPaused = drill === 'pause'
    const command = isPaused ? commands.resume : commands.start
    if (command !== undefined) await runCommandOf(command, node.name)
    else if (isPaused) say(`node ${node.name}: let its processes run again (SIGCONT)`)
    else if (node.state === undefined) say(`node ${node.name}: start it again, unless a supervisor does`)
    const isBack = () => node.state?.isReady === true && (isPaused || node.state.startedAt !== startedAt)
    const inTime = await watch.until(isBack, backWithinMs)
    return inTime
      ? judgeTime('return', performance.now() - askedAtMs, backWithinMs, `${node.name} is ready`)
      : fails('return', `${node.name} is not back after ${backWithinMs / 1_000} s: ${watch.describe()}`)
  }

  /** Clients of the other nodes are not to wait for one that is slow. */
  async *#slowLink(): AsyncGenerator<Finding> {
    const { watch, load } = this.#context
    const node = this.#otherNode()
    const atOthers = (changes: readonly Acknowledgement[]) => changes.filter(each => each.node !== node.name)
    const usual = atOthers(load.since(0))
    const beginMs = await this.#disturb('slow', node)
    try {
      await watch.until(() => false, FIRST_WAIT_MS)
      const fromMs = performance.now()
      await watch.until(() => false, DISTURBED_MS)
      yield this.#judgePace(usual, atOthers(load.since(fromMs)))
    } finally {
      await this.#mend(node)
    }
    yield await this.#whole(performance.now())
    yield this.#checks.judgeReads(node, beginMs)
  }

  #judgePace(usual: readonly Acknowledgement[], slow: readonly Acknowledgement[]): Finding {
    const { paceWithinMs } = this.#context.settings
    if (slow.length === 0) return fails('pace', 'no change was accepted at the other nodes')
    const [before, now] = [medianMs(usual), medianMs(slow)]
    const what = `half of ${slow.length} changes at the other nodes, before ${Math.round(before)} ms,`
    return judgeTime('pace', now, paceWithinMs, what)
  }

  /** The writer sends or hears nothing for longer than its lease lasts. */
  async *#cutOneWay(drill: 'cut-in' | 'cut-out'): AsyncGenerator<Finding> {
    const { watch } = this.#context
    const node = watch.writer!
    const beginMs = await this.#disturb(drill, node)
    try {
      yield await this.#firstChange(beginMs, beginMs)
      await watch.until(() => false, DISTURBED_MS)
    } finally {
      await this.#mend(node)
    }
    yield await this.#whole(performance.now())
    yield this.#checks.judgeReads(node, beginMs)
  }

  /** Resolves with when it was done. */
  async #disturb(drill: NetworkDrill, { name }: WatchedNode): Promise<number> {
    const { slow, cut } = this.#context.settings.commands
    const command =
      drill === 'slow' ? slow : cut?.replaceAll('{direction}', drill === 'cut-in' ? 'in' : 'out')
    if (command === undefined) await askForEnter(`node ${name}: ${DISTURBANCES[drill]}`)
    else await runCommandOf(command, name)
    return performance.now()
  }

  async #mend({ name }: WatchedNode): Promise<void> {
    const { mend } = this.#context.settings.commands
    if (mend === undefined) await askForEnter(`node ${name}: mend its network`)
    else await runCommandOf(mend, name)
  }

  async *#failDatabase(drill: DatabaseDrill): AsyncGenerator<Finding> {
    const { watch, load, settings } = this.#context
    const { commands, backWithinMs } = settings
    const command = drill === 'postgres' ? commands.restartPostgres : commands.promote
    if (command !== undefined) await runCommandOf(command, '')
    else await askForEnter(drill === 'postgres' ? 'restart PostgreSQL' : 'promote the standby of PostgreSQL')
    const doneMs = performance.now()
    if (!(await watch.until(() => watch.isWholeSince(doneMs), WHOLE_MS_MAX))) await this.#startAgain(commands)
    await load.until(() => load.firstSince(doneMs) !== undefined, backWithinMs)
    const first = load.firstSince(doneMs)
    yield first === undefined
      ? fails('first change', `none was accepted: ${watch.describe()}`)
      : judgeTime('first change', first.answeredAtMs - doneMs, backWithinMs, 'accepted')
    yield await this.#whole(doneMs)
  }

  /** All nodes serve, and one writes. */
  async #whole(sinceMs: number): Promise<Finding> {
    const { watch, settings } = this.#context
    const { backWithinMs } = settings
    const nowMs = performance.now()
    const inTime = await watch.until(() => watch.isWholeSince(nowMs), backWithinMs)
    return inTime
      ? judgeTime('return', performance.now() - sinceMs, backWithinMs, 'all nodes are ready')
      : fails('return', `after ${backWithinMs / 1_000} s ${watch.describe()}`)
  }

  async #startAgain({ start }: Commands): Promise<void> {
    const { watch, say } = this.#context
    for (const { name, state } of watch.nodes) {
      if (state !== undefined) continue
      if (start === undefined) say(`node ${name}: start it again, unless a supervisor does`)
      else await runCommandOf(start, name)
    }
  }

  #otherNode(): WatchedNode {
    const { watch } = this.#context
    return watch.nodes.find(each => each !== watch.writer)!
  }
}

function endingBy(
  drill: ProcessDrill,
  { kill, stop, pause }: Commands,
): { readonly command: string | undefined; readonly act: string } {
  if (drill === 'stop') return { command: stop, act: 'stop it in order (SIGTERM)' }
  if (drill === 'pause') return { command: pause, act: 'stop all its processes from running (SIGSTOP)' }
  return { command: kill, act: 'kill all its processes (SIGKILL)' }
}

function medianMs(changes: readonly Acknowledgement[]): number {
  const times = changes.map(({ sentAtMs, answeredAtMs }) => answeredAtMs - sentAtMs)
  return times.toSorted((a, b) => a - b)[times.length >> 1] ?? 0
}

const DISTURBANCES: Readonly<Record<NetworkDrill, string>> = {
  slow: 'delay all that it sends and gets, by 400 ms or so',
  'cut-in': 'drop all that comes to it from the other nodes and from PostgreSQL',
  'cut-out': 'drop all that it sends to the other nodes and to PostgreSQL',
}
/** Nodes that were started together, or that have lost PostgreSQL for a moment. */
const WHOLE_MS_MAX = 15_000
const GONE_MS_MAX = 30_000
/** Longer than the bound, so that a late one is measured. */
const TAKE_OVER_MS_MAX = 30_000
/** Changes may wait for a node while the writer finds out that its link is slow. */
const FIRST_WAIT_MS = 5_000
/** Longer than a lease lasts. */
const DISTURBED_MS = 10_000
