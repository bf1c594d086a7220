/**
 * Asks a service of the operator's whether a code may leave (contract 0.1, "2.2 SMS"). All that begin at once are asked at
 * once, as soon as their messages are durable, so that a slow service holds up no other message for longer than one.
 *
 * No answer in time, or one that says neither, is a yes: people sign in while the check is out, and the operator hears
 * of it.
 */

import type { CheckedCode } from '../domain/accounts/code-check.ts'
import { postToOperator } from './operator-url.ts'

export interface LoginCheckSettings {
  readonly url: string
  /** Sent as `Authorization: Bearer`. */
  readonly token?: string
  /** PEM of the authorities to trust in place of the machine's. */
  readonly ca?: string
  readonly timeoutMs?: number
}

export type LoginCheckOutcome =
  | { readonly kind: 'allowed' | 'denied' }
  /** No answer that says either; the code leaves. */
  | { readonly kind: 'failed'; readonly reason: string }

export class LoginCheck {
  readonly #settings: LoginCheckSettings
  readonly #onChecked: (outcome: LoginCheckOutcome) => void
  /** By check; the one begun longest ago first. */
  readonly #outcomes = new Map<string, Promise<LoginCheckOutcome>>()
  #underWay = 0

  constructor(settings: LoginCheckSettings, onChecked: (outcome: LoginCheckOutcome) => void) {
    this.#settings = settings
    this.#onChecked = onChecked
  }

  /** Whether the code may leave. Never rejects, and asks once, however often a message is tried. */
  allows(code: CheckedCode): Promise<boolean> {
    return this.begin(code).then(({ kind }) => kind !== 'denied')
  }

  begin(code: CheckedCode): Promise<LoginCheckOutcome> {
    const { id } = code.check
    const known = this.#outcomes.get(id)
    if (known !== undefined) return known
    const outcome = this.#ask(code)
    this.#outcomes.set(id, outcome)
    if (this.#outcomes.size > OUTCOMES_MAX) this.#outcomes.delete(this.#outcomes.keys().next().value!)
    return outcome
  }

  async #ask(code: CheckedCode): Promise<LoginCheckOutcome> {
    const outcome = this.#underWay < UNDER_WAY_MAX ? await this.#answerTo(code) : failed('crowded')
    this.#onChecked(outcome)
    return outcome
  }

  async #answerTo({ channel, check, attestation }: CheckedCode): Promise<LoginCheckOutcome> {
    const { url, token, ca, timeoutMs = TIMEOUT_MS } = this.#settings
    const { prefix, country, network, purpose } = check
    this.#underWay++
    const answer = await postToOperator({
      url,
      headers: {
        'content-type': 'application/json',
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      },
      body: JSON.stringify({ kind: channel, prefix, country, network, purpose, attestation }),
      timeoutMs,
      answerBytesMax: ANSWER_BYTES_MAX,
      ca,
    })
    this.#underWay--
    if (answer.kind === 'failed') return failed(answer.reason)
    if (answer.status !== 200) return failed(`http-${answer.status}`)
    const allow = answer.isWhole ? allowOf(answer.body) : undefined
    if (allow === undefined) return failed('no-answer')
    return { kind: allow ? 'allowed' : 'denied' }
  }
}

function allowOf(body: string): boolean | undefined {
  try {
    const { allow } = JSON.parse(body) as { readonly allow?: unknown }
    return typeof allow === 'boolean' ? allow : undefined
  } catch {
    return undefined
  }
}

function failed(reason: string): LoginCheckOutcome {
  return { kind: 'failed', reason }
}

const TIMEOUT_MS = 2_000
const ANSWER_BYTES_MAX = 4_096
/** Attestations in memory, and connections to the service; further codes leave unasked. */
const UNDER_WAY_MAX = 512
/** Answers that are kept for messages still to be sent; about an older message it is asked again. */
const OUTCOMES_MAX = 20_000
