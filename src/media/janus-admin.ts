/**
 * The Admin API of Janus over HTTP: requests with a time limit, a bound on those under way and those that wait, and
 * checks of each answer's members that we read. Neither secrets nor answers get into an error.
 */

import { randomUUID } from 'node:crypto'
import { GatewayError } from './gateway.ts'
import type { JanusSettings } from './janus-settings.ts'
import { VIDEO_ROOM } from './room-tokens.ts'

type AdminSettings = Pick<JanusSettings, 'adminUrl' | 'adminSecret'>

/** Hears of each request, for the metrics; `outcome` is `ok` or a `GatewayFailure`. */
export type OnRequest = (outcome: string, ms: number) => void

export type Members = Readonly<Record<string, unknown>>

export class JanusAdmin {
  readonly #settings: AdminSettings
  readonly #onRequest: OnRequest | undefined
  readonly #waiting: (() => void)[] = []
  #underWay = 0

  constructor(settings: AdminSettings, onRequest?: OnRequest) {
    this.#settings = settings
    this.#onRequest = onRequest
  }

  /** The answer's members. */
  async request(body: Members): Promise<Members> {
    const answer = await this.#timed(body)
    if (answer.janus !== 'success' && answer.janus !== 'pong' && answer.janus !== 'server_info') {
      const code = membersOf(answer.error)?.code
      throw new GatewayError('refused', `janus refused ${body.janus}: error ${numberText(code)}`)
    }
    return answer
  }

  /** A request to the plugin of the rooms. */
  async videoRoom(request: Members): Promise<Members> {
    const answer = await this.request({ janus: 'message_plugin', plugin: VIDEO_ROOM, request })
    const response = membersOf(answer.response)
    if (response === undefined) throw new GatewayError('malformed', 'janus answered without a response')
    const code = response.error_code
    if (code === undefined) return response
    throw new GatewayError(
      FAILURES.get(code) ?? 'refused',
      `janus refused ${request.request}: error ${numberText(code)}`,
    )
  }

  async #timed(body: Members): Promise<Members> {
    await this.#turn()
    const startedAtMs = performance.now()
    const note = (outcome: string) => this.#onRequest?.(outcome, performance.now() - startedAtMs)
    try {
      const answer = await this.#post(body)
      note('ok')
      return answer
    } catch (error) {
      note(error instanceof GatewayError ? error.failure : 'network')
      throw error
    } finally {
      this.#underWay--
      this.#waiting.shift()?.()
    }
  }

  async #turn(): Promise<void> {
    if (this.#underWay >= UNDER_WAY_MAX) {
      if (this.#waiting.length >= WAITING_MAX) throw new GatewayError('busy', 'too much waits for janus')
      await new Promise<void>(resolve => this.#waiting.push(resolve))
    }
    this.#underWay++
  }

  async #post(body: Members): Promise<Members> {
    const { adminUrl, adminSecret } = this.#settings
    const signal = AbortSignal.timeout(TIMEOUT_MS)
    let text: string
    try {
      const answer = await fetch(adminUrl, {
        method: 'POST',
        redirect: 'error',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ ...body, admin_secret: adminSecret, transaction: randomUUID() }),
        signal,
      })
      text = await readAnswer(answer)
    } catch (error) {
      if (error instanceof GatewayError) throw error
      // The cause may quote the address.
      if (signal.aborted) throw new GatewayError('timeout', 'janus does not answer')
      throw new GatewayError('network', 'janus can not be reached')
    }
    const members = parsed(text)
    if (members === undefined) throw new GatewayError('malformed', 'janus answered no JSON object')
    return members
  }
}

async function readAnswer({ body }: Response): Promise<string> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of body ?? []) {
    bytes += chunk.length
    if (bytes > ANSWER_BYTES_MAX) throw new GatewayError('malformed', 'janus answers without end')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

function parsed(text: string): Members | undefined {
  try {
    return membersOf(JSON.parse(text))
  } catch {
    return undefined
  }
}

export function membersOf(value: unknown): Members | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Members) : undefined
}

/** A list from outside; any other value counts as an empty one. */
export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

function numberText(value: unknown): string {
  return typeof value === 'number' ? String(value) : 'of no number'
}

const FAILURES = new Map<unknown, 'no-such-room' | 'room-in-use'>([
  [426, 'no-such-room'],
  [427, 'room-in-use'],
])
const TIMEOUT_MS = 1_500
const UNDER_WAY_MAX = 32
const WAITING_MAX = 10_000
/** A list of 10,000 rooms has about 5 MB. */
const ANSWER_BYTES_MAX = 16 * 1024 * 1024
