/**
 * The `fetch` that a drill gives to the SDK: it chooses the node. An answer is final: the SDK repeats no refusal, so the drill
 * sees each one.
 */

import { AsyncLocalStorage } from 'node:async_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { Server } from '../../src/app/session/server.ts'
import { messageOf } from '../../src/errors.ts'
import type { NodeAddresses } from './settings.ts'

/** One node, asked once. Rejects with `NO_ANSWER` where it does not answer in time. */
export function serverAt({ url }: NodeAddresses): Server {
  return new Server({ url, fetch: ask, answerWithinMs: READ_MS_MAX })
}

export interface ClusterFetchOptions {
  readonly nodes: readonly NodeAddresses[]
  /** Index of its own node. */
  readonly place: number
  /** Requests without an answer are given up when it is aborted. */
  readonly stop: AbortSignal
}

export interface Timed<Reply> {
  readonly reply: Reply
  /** By `performance.now()`. */
  readonly sentAtMs: number
  /** The name of the node that answered. */
  readonly node: string
}

/** Asks its own node, and the next one after each attempt without an answer or with `503`. */
export class ClusterFetch {
  readonly server: Server
  readonly stop: AbortSignal
  readonly #nodes: readonly NodeAddresses[]
  readonly #place: number
  /** The request whose attempts are timed. */
  readonly #timed = new AsyncLocalStorage<{ sentAtMs: number; node: string }>()
  #at: number

  constructor({ nodes, place, stop }: ClusterFetchOptions) {
    this.#nodes = nodes
    this.#place = place
    this.#at = place
    this.stop = stop
    // Addresses are paths alone: each attempt goes to another node.
    this.server = new Server({ url: '', fetch: this.#fetch, answerWithinMs: PATIENCE_MS })
  }

  get url(): string {
    return this.#node.url
  }

  get #node(): NodeAddresses {
    return this.#nodes[this.#at % this.#nodes.length]!
  }

  moveOn(): void {
    this.#at += 1
  }

  /** `moveOn` leads to its own node. */
  goHome(): void {
    this.#at = this.#place + this.#nodes.length - 1
  }

  /** Resolves with the reply to `request`, the node that answered it, and when that attempt left. */
  async timed<Reply>(request: () => Promise<Reply>): Promise<Timed<Reply>> {
    const timed = { sentAtMs: 0, node: '' }
    const reply = await this.#timed.run(timed, request)
    return { reply, ...timed }
  }

  readonly #fetch: typeof fetch = async (path, init) => {
    const patience = init!.signal!
    const timed = this.#timed.getStore()
    for (;;) {
      if (timed !== undefined) Object.assign(timed, { sentAtMs: performance.now(), node: this.#node.name })
      const signal = AbortSignal.any([patience, AbortSignal.timeout(REQUEST_MS_MAX)])
      const answer = await ask(`${this.url}${path}`, { ...init, signal })
      if (answer.status !== 503) return answer
      // Random: phones that were refused together ask one by one.
      await sleep(PAUSE_MS * Math.random())
      if (patience.aborted) return answer
      if (this.stop.aborted) return final(503, 'NO_ANSWER', 'given up')
      this.moveOn()
    }
  }
}

/** The node's answer with its whole body. A refusal's sentence names the request. */
const ask: typeof fetch = async (url, init) => {
  try {
    const answer = await fetch(url, { ...init, redirect: 'error' })
    const { ok, status } = answer
    const text = await answer.text()
    if (ok) return new Response(text || null, answer)
    const { code = 'UNKNOWN', detail = '' } = problemIn(text)
    const request = `${init?.method} ${new URL(String(url)).pathname}`
    return final(status, code, `${request}: ${status} ${code}, ${detail}`)
  } catch (error) {
    return final(503, 'NO_ANSWER', init?.signal?.aborted ? 'no answer in time' : causeOf(error))
  }
}

/** The SDK repeats nothing that it would have to wait for so long. */
function final(status: number, code: string, detail: string): Response {
  return Response.json({ code, detail }, { status, headers: { 'retry-after': '3600' } })
}

function problemIn(text: string): { readonly code?: string; readonly detail?: string } {
  try {
    return JSON.parse(text)
  } catch {
    return { detail: text.slice(0, 100) }
  }
}

/** `fetch` alone says nothing. */
function causeOf(error: unknown): string {
  const { cause } = error as Error
  if (!(cause instanceof Error)) return messageOf(error)
  return cause.message || String((cause as { code?: unknown }).code)
}

const READ_MS_MAX = 5_000
/** For one attempt: a paused node answers nothing. */
const REQUEST_MS_MAX = 10_000
/** A cluster that has not been back for so long is not coming back. */
const PATIENCE_MS = 120_000
/** Between attempts: the measure is the cluster's pause, not the client's. */
const PAUSE_MS = 250
