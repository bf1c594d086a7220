/**
 * One person who makes share tokens at any node and revokes them, each request repeated with its Idempotency-Key until it is
 * answered: every node then has each token once, and none that was revoked.
 */

import { randomUUID } from 'node:crypto'
import { setTimeout } from 'node:timers/promises'
import { type Answer, App } from './app.ts'
import { signInAgain } from './call-people.ts'

interface Written {
  readonly askedAtMs: number
  readonly waitedMs: number
}

export class TokenLedger {
  /** Stale, lost or doubled, in words. */
  readonly faults: string[] = []
  readonly #urls: readonly string[]
  readonly #random: () => number
  readonly #person: number
  #accessToken: string | undefined
  readonly #written: Written[] = []
  #made = 0
  #isOn = false
  #work: Promise<void> | undefined

  constructor(urls: readonly string[], person: number, random: () => number) {
    this.#urls = urls
    this.#person = person
    this.#random = random
  }

  get count(): number {
    return this.#written.length
  }

  /** From the first attempt to the answer. */
  longestSince(atMs: number): number {
    const since = this.#written.filter(({ askedAtMs, waitedMs }) => askedAtMs + waitedMs > atMs)
    return Math.max(0, ...since.map(({ waitedMs }) => waitedMs))
  }

  /** Signs in, with a token that outlasts the round. */
  async start(): Promise<void> {
    this.#accessToken = (await signInAgain(this.#urls[0]!, this.#person)).accessToken
    this.#isOn = true
    this.#work = this.#keepWriting()
  }

  /** Resolves when the last request was answered. */
  async rest(): Promise<void> {
    this.#isOn = false
    await this.#work
  }

  async #keepWriting(): Promise<void> {
    while (this.#isOn) {
      const label = `token ${++this.#made}`
      const { status, body, text } = await this.#write('POST /app/api/share-token', { label })
      if (status !== 201) {
        this.faults.push(`${label}: ${status} ${text}`)
        return
      }
      await this.#readEverywhere(label, 1)
      const revoked = await this.#write(`DELETE /app/api/share-token/${body.id}`)
      // An attempt may have revoked it, and its answer was lost.
      if (revoked.status !== 204 && revoked.status !== 404)
        this.faults.push(`${label}: ${revoked.status} ${revoked.text}`)
      await this.#readEverywhere(label, 0)
      await setTimeout(PAUSE_MS * this.#random())
    }
  }

  /** At one node after another until it is answered. */
  async #write(request: string, body?: object): Promise<Answer> {
    const key = { 'idempotency-key': randomUUID() }
    const askedAtMs = performance.now()
    let at = Math.floor(this.#random() * this.#urls.length)
    for (;;) {
      const answer = await this.#ask(this.#urls[at++ % this.#urls.length]!, request, body, key)
      if (answer !== undefined && answer.status !== 503) {
        this.#written.push({ askedAtMs, waitedMs: performance.now() - askedAtMs })
        return answer
      }
      await setTimeout(RETRY_MS * this.#random())
    }
  }

  /** Each node that answers has so many of it. */
  async #readEverywhere(label: string, count: number): Promise<void> {
    const reads = this.#urls.map(async (url, at) => {
      const answer = await this.#ask(url, 'GET /app/api/share-token')
      if (answer === undefined || answer.status === 503) return
      const found = answer.body?.items?.filter((item: { label?: string }) => item.label === label).length
      if (found !== count)
        this.faults.push(`node ${at} has ${label} ${found} times, not ${count}: ${answer.text}`)
    })
    await Promise.all(reads)
  }

  /** Undefined without an answer. */
  async #ask(
    url: string,
    request: string,
    body?: object,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<Answer | undefined> {
    const app = new App(url)
    app.accessToken = this.#accessToken
    return await Promise.race([
      app.send(request, body, headers).catch(() => undefined),
      setTimeout(ANSWER_MS_MAX, undefined, { ref: false }),
    ])
  }
}

const PAUSE_MS = 800
const RETRY_MS = 200
const ANSWER_MS_MAX = 3_000
