/**
 * Keeps the page's state as the server's: a long poll for events, and every second the whole state. When the
 * server goes away, the page says so and asks until it is back.
 */

import type { ConsoleEvent, ConsoleState, RequestRow } from '../../src/operations/console/events.ts'
import { type Page, takeEvents, takeRequests, takeServer } from './state.ts'

/** Runs for as long as the page. */
export function follow(page: Page): void {
  void followEvents(page)
  void followState(page)
}

/** How things are right now: after something that the reader did. */
export async function refresh(page: Page): Promise<void> {
  const server = await get<ConsoleState>('/dev/state')
  page.change(state => {
    takeServer(state, server)
    state.link = 'live'
    state.nowMs = Date.now()
  })
}

/** Sends what the reader decided. Resolves with what went wrong, as a sentence. */
export async function tellServer(path: string, body: object): Promise<string | undefined> {
  const headers = { 'content-type': 'application/json' }
  try {
    const answer = await fetch(path, { method: 'POST', headers, body: JSON.stringify(body) })
    if (answer.ok) return undefined
    const problem: { detail?: string; title?: string } = await answer.json().catch(() => ({}))
    return problem.detail ?? problem.title ?? `${path} answers ${answer.status}`
  } catch (error) {
    return `the server does not answer: ${error}`
  }
}

async function followEvents(page: Page): Promise<never> {
  const { state } = page
  for (;;) {
    try {
      // Whether it is still the same server has to be known before events are asked for by their number.
      if (state.link !== 'live') await refresh(page)
      const query = `after=${state.sequence}&requestsAfter=${state.requests.sequence}`
      const { events, next, requests, nextRequest, startedAtMs } = await get<Answer>(`/dev/feed?${query}`)
      while (state.isHeld) await pause(HELD_MS)
      if (startedAtMs !== state.server?.startedAtMs) await refresh(page)
      else {
        page.change(state => {
          takeEvents(state, events, next)
          takeRequests(state, requests, nextRequest)
        })
      }
    } catch {
      page.change(lose)
      await pause(LOST_MS)
    }
  }
}

async function followState(page: Page): Promise<never> {
  for (;;) {
    await pause(STATE_MS)
    if (page.state.link !== 'live' || page.state.isHeld || document.hidden) continue
    await refresh(page).catch(() => page.change(lose))
  }
}

function lose(state: Page['state']): void {
  if (state.link === 'live') state.announcement = 'The server does not answer.'
  state.link = 'lost'
}

interface Answer {
  readonly events: readonly ConsoleEvent[]
  readonly next: number
  readonly requests: readonly RequestRow[]
  readonly nextRequest: number
  readonly startedAtMs: number
}

/** Rejects for no answer in time, and for one that is no success. */
async function get<Body>(path: string): Promise<Body> {
  const answer = await fetch(path, { cache: 'no-store', signal: AbortSignal.timeout(ANSWER_MS) })
  if (!answer.ok) throw new Error(`${path} answers ${answer.status}`)
  return (await answer.json()) as Body
}

function pause(ms: number): Promise<void> {
  return new Promise(resolve => setTimeout(resolve, ms))
}

const STATE_MS = 1_000
const LOST_MS = 1_000
const HELD_MS = 200
/** A long poll is answered within 20 s, with or without events. */
const ANSWER_MS = 30_000
