/**
 * One witness as the log's server asks it (c2sp.org/tlog-witness): a checkpoint and the proof from the size that it cosigned last.
 * One question is under way at a time, and of those that wait only the last one is asked.
 */

import { messageOf, SignalError } from '../errors.ts'
import { formatAddCheckpoint } from '../log/add-checkpoint.ts'
import type { LogHead } from '../log/checkpoint.ts'
import { proveConsistency } from '../log/consistency.ts'
import { cosignedAtSeconds } from '../log/cosignature.ts'
import { parseDecimal } from '../log/decimal.ts'
import { formatSignature, readNote } from '../log/note.ts'
import type { Witness } from '../log/policy.ts'
import type { ReadHashes } from '../log/tree.ts'

export type WitnessOutcome =
  /** Its line for the note, and its time. */
  | { readonly kind: 'cosigned'; readonly line: string; readonly seconds: number }
  | { readonly kind: 'failed'; readonly reason: string }
  /** It has cosigned what this log is no extension of: another server signs with the same key, or the store went back. */
  | { readonly kind: 'conflict'; readonly reason: string }

/** An answer over HTTP, or why there is none. `isWhole` is false for one that was cut. */
export type WitnessPost = (
  url: string,
  body: string,
  timeoutMs: number,
) => Promise<
  | { readonly kind: 'answered'; readonly status: number; readonly body: string; readonly isWhole: boolean }
  | { readonly kind: 'failed'; readonly reason: string }
>

export class WitnessLink {
  readonly #witness: Witness & { readonly url: string }
  readonly #post: WitnessPost
  readonly #readHashes: ReadHashes
  readonly #monotonicMs: () => number
  /** The size it cosigned last, as far as is known; it says so where that is wrong. */
  #size = 0
  #newest: LogHead | undefined
  #last: Promise<unknown> = Promise.resolve()

  constructor(
    witness: Witness & { readonly url: string },
    post: WitnessPost,
    readHashes: ReadHashes,
    monotonicMs: () => number,
  ) {
    this.#witness = witness
    this.#post = post
    this.#readHashes = readHashes
    this.#monotonicMs = monotonicMs
  }

  get witness(): Witness {
    return this.#witness
  }

  /** Asks for a cosignature of a head that the log's key alone has signed. Never rejects. */
  cosign(head: LogHead, timeoutMs: number): Promise<WitnessOutcome> {
    this.#newest = head
    const outcome = this.#last.then(() =>
      this.#newest === head ? this.#ask(head, timeoutMs) : failed('a later checkpoint came'),
    )
    this.#last = outcome
    return outcome
  }

  async #ask(head: LogHead, timeoutMs: number): Promise<WitnessOutcome> {
    const endsAtMs = this.#monotonicMs() + timeoutMs
    try {
      const sizeBefore = this.#size
      const outcome = await this.#send(head, timeoutMs)
      // It said another size, from which the proof is sent once.
      if (outcome !== undefined) return outcome
      const leftMs = Math.ceil(Math.max(1, endsAtMs - this.#monotonicMs()))
      return (
        (await this.#send(head, leftMs)) ??
        failed(`size ${this.#size} after ${sizeBefore}: it says another each time`)
      )
    } catch (error) {
      return failed(messageOf(error))
    }
  }

  /** Undefined where it cosigned another size last, which is known by then. */
  async #send(head: LogHead, timeoutMs: number): Promise<WitnessOutcome | undefined> {
    const oldSize = Math.min(this.#size, head.treeSize)
    const proof = proveConsistency(oldSize, head.treeSize, this.#readHashes)
    const body = formatAddCheckpoint({ oldSize, proof, note: head.checkpoint })
    const answer = await this.#post(`${this.#witness.url}/add-checkpoint`, body, timeoutMs)
    if (answer.kind === 'failed') return failed(answer.reason)
    if (!answer.isWhole) return failed('its answer is too long, or broke off')
    if (answer.status === 200) return this.#accept(head, answer.body)
    if (answer.status === 409) return this.#onOtherSize(head, oldSize, answer.body)
    if (answer.status === 422)
      return conflict(
        `it refuses the proof from size ${oldSize} to ${head.treeSize}: ${JSON.stringify(answer.body.slice(0, REASON_CHARS_MAX))}. It has cosigned another tree, or rebuilt another index`,
      )
    return failed(`status ${answer.status}`)
  }

  #accept({ treeSize, checkpoint }: LogHead, lines: string): WitnessOutcome {
    const { name, key } = this.#witness
    const { text, signatures } = readNote(checkpoint + lines)
    let newest: Extract<WitnessOutcome, { kind: 'cosigned' }> | undefined
    for (const signature of signatures) {
      if (signature.name !== key.name || signature.keyId !== key.keyId) continue
      const seconds = cosignedAtSeconds(text, key, signature.signature)
      if (seconds === undefined) return failed(`the cosignature of ${name} does not verify`)
      if (newest === undefined || seconds > newest.seconds)
        newest = { kind: 'cosigned', line: formatSignature(signature), seconds }
    }
    if (newest === undefined) return failed(`there is no cosignature of ${name} in its answer`)
    this.#size = treeSize
    return newest
  }

  #onOtherSize({ treeSize }: LogHead, oldSize: number, body: string): WitnessOutcome | undefined {
    const size = parseSize(body)
    if (size !== undefined && size > treeSize)
      return conflict(`it has cosigned size ${size}, and this log has ${treeSize}`)
    // So an earlier version of the specification has it.
    if (oldSize === treeSize && (size === undefined || size === oldSize))
      return conflict(`it has cosigned another tree of size ${treeSize}`)
    if (size === undefined || size === oldSize) return failed('status 409 without another size')
    this.#size = size
    return undefined
  }
}

function parseSize(body: string): number | undefined {
  try {
    return body.endsWith('\n') ? parseDecimal(body.slice(0, -1)) : undefined
  } catch (error) {
    if (error instanceof SignalError) return undefined
    throw error
  }
}

function failed(reason: string): WitnessOutcome {
  return { kind: 'failed', reason }
}

function conflict(reason: string): WitnessOutcome {
  return { kind: 'conflict', reason }
}

/** As much of a witness's own words as goes into a report. */
const REASON_CHARS_MAX = 200
