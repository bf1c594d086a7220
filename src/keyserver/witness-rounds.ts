/**
 * Witness rounds: a second group commit behind the store's. A round asks all witnesses of the policy at once for the
 * newest durable head, and ends with the first quorum. One is under way at a time; heads that arrive during it share
 * the next.
 *
 * A cosigned checkpoint becomes durable before it is shown, so that a start after a crash never shows less. Without a
 * quorum nothing is shown beyond the last one, and rounds go on. One witness that has cosigned what this log is no extension of
 * ends them: a log that may have been signed twice signs nothing more.
 *
 * Choice: a witness's time is taken as it says. It counts in the age of the quorum, as clients count it, and one that is far
 * from this machine's is reported.
 */

import { type BackOff, backOffMs } from '../back-off.ts'
import { messageOf, SignalError } from '../errors.ts'
import type { LogHead } from '../log/checkpoint.ts'
import { type QuorumMember, quorumSeconds, type Witness } from '../log/policy.ts'
import type { KeptLog } from './kept-log.ts'
import type { WitnessLink, WitnessOutcome } from './witness-link.ts'

export interface WitnessRoundsDeps {
  /** The log that is cosigned. */
  readonly of: KeptLog
  readonly quorum: QuorumMember
  readonly links: readonly WitnessLink[]
  /** Resolves when the head is durable as the one to be shown. */
  readonly keep: (head: LogHead) => Promise<void>
  readonly nowMs: () => number
  readonly monotonicMs: () => number
  readonly random: () => number
  /** Called with what an operator should know, at most once for each change of it. */
  readonly report: (event: WitnessEvent) => void
  /** For tests. */
  readonly times?: Partial<WitnessTimes>
}

export interface WitnessTimes {
  /** For each witness, in a round. */
  readonly answerMs: number
  /** The same at a start, which waits for all of them. */
  readonly startMs: number
  /** From the first round without a quorum until callers are refused. */
  readonly patienceMs: number
  /** After such a round. */
  readonly backOff: BackOff
  readonly heartbeatMs: number
}

export type WitnessEvent =
  | { readonly event: 'witness-failed'; readonly witness: string; readonly reason: string }
  | { readonly event: 'witness-answers'; readonly witness: string }
  | { readonly event: 'witness-clock'; readonly witness: string; readonly aheadSeconds: number }
  | { readonly event: 'witness-quorum-missing' }
  | { readonly event: 'witness-quorum' }
  | { readonly event: 'witness-conflict'; readonly witness: string; readonly reason: string }
  | { readonly event: 'witness-round-failed'; readonly reason: string }

export interface WitnessRoundsListener {
  /** The head is durable with its cosignatures. */
  onCosigned(head: LogHead): void
  onQuorumLost(): void
}

export interface WitnessFigures {
  /** By the witnesses' clocks; infinite before the first quorum. */
  readonly quorumAgeSeconds: number
  readonly isQuorumLost: boolean
  readonly hasConflict: boolean
  /** How many witnesses failed when they were last asked. */
  readonly failing: number
  /** Failures by witness. */
  readonly failures: ReadonlyMap<string, number>
}

interface Round {
  readonly head: LogHead
  readonly seconds: number
}

export class WitnessRounds {
  readonly #deps: WitnessRoundsDeps
  readonly #times: WitnessTimes
  readonly #failures: Map<string, number>
  /** The reason of the last failure of each witness that failed last. */
  readonly #failing = new Map<string, string>()
  readonly #clocksAhead = new Set<string>()
  #listener: WitnessRoundsListener | undefined
  #newest: LogHead | undefined
  /** Cosigned at the start and not shown yet. */
  #atStart: Round | undefined
  #shownSize = -1
  #quorumSeconds: number | undefined
  #lastQuorumAtMs = Number.NEGATIVE_INFINITY
  #missingSinceMs: number | undefined
  #isLost = false
  #hasConflict = false
  #isRunning = false
  #isClosed = false
  #wake: (() => void) | undefined

  constructor(deps: WitnessRoundsDeps) {
    this.#deps = deps
    this.#times = { ...TIMES, ...deps.times }
    this.#failures = new Map(deps.links.map(({ witness }) => [witness.name, 0]))
  }

  /**
   * Shows the head to every witness before anything is signed, and waits for all of them. Resolves also without a quorum.
   * Throws `CHECKPOINT_INVALID` where a witness has cosigned what this head is no extension of.
   */
  async begin(head: LogHead): Promise<void> {
    const outcomes = new Map<string, WitnessOutcome>()
    const { links } = this.#deps
    await Promise.all(links.map(link => this.#ask(link, head, this.#times.startMs, outcomes)))
    for (const [name, outcome] of outcomes) {
      if (outcome.kind === 'conflict')
        throw new SignalError('CHECKPOINT_INVALID', conflictAdvice(this.#deps.of, name, outcome.reason))
    }
    this.#atStart = this.#settled(head, outcomes)
    if (this.#atStart === undefined) this.#lose()
  }

  /** Call this once, before the first head is submitted. */
  listen(listener: WitnessRoundsListener): void {
    this.#listener = listener
  }

  /** Takes a head that is durable, and no smaller than those before. */
  submit(head: LogHead): void {
    this.#newest = head
    this.#run()
  }

  /** Call this every now and then: a round is due also where nothing grew. */
  beat(): void {
    this.#run()
  }

  /** No round begins any more. */
  close(): void {
    this.#isClosed = true
    this.#wake?.()
  }

  /** Whether the quorum has been missing for so long that callers are refused. */
  get isQuorumLost(): boolean {
    return this.#isLost
  }

  get figures(): WitnessFigures {
    const quorumAgeSeconds =
      this.#quorumSeconds === undefined
        ? Number.POSITIVE_INFINITY
        : this.#deps.nowMs() / 1_000 - this.#quorumSeconds
    return {
      quorumAgeSeconds,
      isQuorumLost: this.#isLost,
      hasConflict: this.#hasConflict,
      failing: this.#failing.size,
      failures: this.#failures,
    }
  }

  get #isDue(): boolean {
    if (this.#newest === undefined || this.#isClosed || this.#hasConflict) return false
    if (this.#newest.treeSize > this.#shownSize) return true
    return this.#deps.monotonicMs() - this.#lastQuorumAtMs >= this.#times.heartbeatMs
  }

  #run(): void {
    if (this.#isRunning || !this.#isDue) return
    this.#isRunning = true
    this.#runWhileDue().finally(() => {
      this.#isRunning = false
    })
  }

  async #runWhileDue(): Promise<void> {
    let failures = 0
    while (this.#isDue) {
      failures = (await this.#round()) ? 0 : failures + 1
      if (failures === 0) continue
      if (this.#hasConflict || this.#isClosed) return
      await this.#pause(backOffMs(this.#times.backOff, failures, this.#deps.random()))
    }
  }

  /** Whether the quorum has cosigned, and that is durable. */
  async #round(): Promise<boolean> {
    const head = this.#newest!
    const beganAtMs = this.#deps.monotonicMs()
    const cosigned = this.#takeStart(head) ?? (await this.#askAll(head))
    if (this.#isClosed) return false
    if (cosigned === undefined) {
      this.#onMissing(beganAtMs)
      return false
    }
    try {
      await this.#deps.keep(cosigned.head)
    } catch (error) {
      this.#deps.report({ event: 'witness-round-failed', reason: messageOf(error) })
      return false
    }
    this.#onQuorum(cosigned)
    return true
  }

  /** The head with the cosignatures of the start, where it is still the newest. */
  #takeStart({ treeSize }: LogHead): Round | undefined {
    const atStart = this.#atStart
    this.#atStart = undefined
    return atStart?.head.treeSize === treeSize ? atStart : undefined
  }

  /** Resolves with the first quorum, or undefined once every witness has answered without one. */
  #askAll(head: LogHead): Promise<Round | undefined> {
    const outcomes = new Map<string, WitnessOutcome>()
    const { links } = this.#deps
    return new Promise(resolve => {
      for (const link of links) {
        void this.#ask(link, head, this.#times.answerMs, outcomes).then(outcome => {
          if (outcome.kind === 'conflict') {
            this.#onConflict(link.witness, outcome.reason)
            return resolve(undefined)
          }
          const cosigned = this.#hasConflict ? undefined : this.#settled(head, outcomes)
          if (cosigned !== undefined || outcomes.size === links.length) resolve(cosigned)
        })
      }
    })
  }

  async #ask(
    link: WitnessLink,
    head: LogHead,
    timeoutMs: number,
    outcomes: Map<string, WitnessOutcome>,
  ): Promise<WitnessOutcome> {
    const outcome = await link.cosign(head, timeoutMs)
    outcomes.set(link.witness.name, outcome)
    this.#note(link.witness, outcome)
    return outcome
  }

  /** The head with the cosignatures that have come, where they make the quorum. */
  #settled(head: LogHead, outcomes: ReadonlyMap<string, WitnessOutcome>): Round | undefined {
    const seconds = quorumSeconds(this.#deps.quorum, ({ name }) => {
      const outcome = outcomes.get(name)
      return outcome?.kind === 'cosigned' ? outcome.seconds : undefined
    })
    if (seconds === undefined) return undefined
    let checkpoint = head.checkpoint
    for (const outcome of outcomes.values()) if (outcome.kind === 'cosigned') checkpoint += outcome.line
    return { head: { treeSize: head.treeSize, checkpoint }, seconds }
  }

  #note({ name }: Witness, outcome: WitnessOutcome): void {
    const { report, nowMs } = this.#deps
    if (outcome.kind !== 'cosigned') {
      this.#failures.set(name, this.#failures.get(name)! + 1)
      if (this.#failing.get(name) === outcome.reason) return
      this.#failing.set(name, outcome.reason)
      report({ event: 'witness-failed', witness: name, reason: outcome.reason })
      return
    }
    if (this.#failing.delete(name)) report({ event: 'witness-answers', witness: name })
    const aheadSeconds = Math.round(outcome.seconds - nowMs() / 1_000)
    const isOff = Math.abs(aheadSeconds) > CLOCK_OFF_SECONDS_MAX
    if (!isOff) this.#clocksAhead.delete(name)
    else if (!this.#clocksAhead.has(name)) {
      this.#clocksAhead.add(name)
      report({ event: 'witness-clock', witness: name, aheadSeconds })
    }
  }

  #onQuorum({ head, seconds }: Round): void {
    const { monotonicMs, report } = this.#deps
    if (this.#missingSinceMs !== undefined) report({ event: 'witness-quorum' })
    this.#missingSinceMs = undefined
    this.#isLost = this.#hasConflict
    this.#quorumSeconds = seconds
    this.#lastQuorumAtMs = monotonicMs()
    this.#shownSize = head.treeSize
    this.#listener?.onCosigned(head)
  }

  #onMissing(sinceMs: number): void {
    if (this.#isLost) return
    this.#missingSinceMs ??= sinceMs
    const missingMs = this.#deps.monotonicMs() - this.#missingSinceMs
    if (missingMs < this.#times.patienceMs) return
    this.#lose()
    this.#listener?.onQuorumLost()
  }

  #lose(): void {
    this.#missingSinceMs ??= this.#deps.monotonicMs()
    this.#isLost = true
    this.#deps.report({ event: 'witness-quorum-missing' })
  }

  #onConflict({ name }: Witness, reason: string): void {
    if (this.#hasConflict) return
    this.#hasConflict = true
    this.#deps.report({
      event: 'witness-conflict',
      witness: name,
      reason: conflictAdvice(this.#deps.of, name, reason),
    })
    this.#lose()
    this.#listener?.onQuorumLost()
  }

  #pause(ms: number): Promise<void> {
    return new Promise(resolve => {
      const timer = setTimeout(resolve, ms)
      timer.unref()
      this.#wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }
}

function conflictAdvice({ keySetting }: KeptLog, name: string, reason: string): string {
  return `witness ${name}: ${reason}. Another server signs with ${keySetting}, or the data directory is an older copy: find the other server, or put the newest copy back; take the witness out of the policy only where it is wrong`
}

const TIMES: WitnessTimes = {
  answerMs: 5_000,
  startMs: 2_500,
  patienceMs: 4_000,
  backOff: { firstMs: 250, maxMs: 5_000 },
  heartbeatMs: 15 * 60_000,
}
const CLOCK_OFF_SECONDS_MAX = 300
