/**
 * What left a development server: the last codes and messages, and the last pushes, for `GET /dev/inbox` and
 * `GET /dev/pushes` (contract 14). Codes also go to the terminal. Development mode on loopback only.
 */

import type { HttpAnswer, HttpRequest, HttpRoute } from '../../transport/route.ts'
import { jsonAnswer } from '../page-route.ts'
import { type Delivered, type DeliveredLetter, type DeliveredPush, payloadBytes } from './facts.ts'

export class Deliveries {
  readonly #nowMs: () => number
  readonly #print: (line: string) => void
  /** The second of the last code on the terminal, and how many codes came in it. */
  #second = 0
  #printed = 0
  readonly #letters: (DeliveredLetter & { readonly at: string })[] = []
  readonly #pushes: (DeliveredPush & { readonly at: string })[] = []

  constructor(nowMs: () => number, print: (line: string) => void) {
    this.#nowMs = nowMs
    this.#print = print
  }

  readonly record = (delivered: Delivered): void => {
    const at = new Date(this.#nowMs()).toISOString()
    if (delivered.channel === 'push') {
      keep(this.#pushes, { ...delivered, at })
      return
    }
    keep(this.#letters, { ...delivered, at })
    if (delivered.otp !== undefined) this.#printCode(delivered.to, delivered.otp)
  }

  routes(): readonly HttpRoute[] {
    return [
      { method: 'GET', path: '/dev/inbox', handle: request => this.#inbox(request) },
      { method: 'GET', path: '/dev/pushes', handle: request => this.#pushList(request) },
    ]
  }

  /** Codes of many people at once would bury what the terminal said before; they are all in the inbox. */
  #printCode(to: string, otp: string): void {
    const second = Math.floor(this.#nowMs() / 1_000)
    if (second !== this.#second) {
      this.#second = second
      this.#printed = 0
    }
    this.#printed += 1
    if (this.#printed <= PRINTED_A_SECOND_MAX) this.#print(`  code for ${to}: ${otp}\n`)
    else if (this.#printed === PRINTED_A_SECOND_MAX + 1) this.#print('  and more codes: GET /dev/inbox\n')
  }

  #inbox({ query }: HttpRequest): HttpAnswer {
    const to = new URLSearchParams(query.replaceAll('+', '%2B')).get('to')
    return json(this.#letters.filter(letter => to === null || letter.to.toLowerCase() === to.toLowerCase()))
  }

  #pushList({ query }: HttpRequest): HttpAnswer {
    const asked = new URLSearchParams(query).get('userId')
    const pushes = this.#pushes.filter(({ userId }) => asked === null || String(userId) === asked)
    const items = pushes.map(({ channel: _, userId, deviceId, payload, ...rest }) => ({
      ...rest,
      userId: String(userId),
      deviceId: String(deviceId),
      payload,
      bytes: payloadBytes(payload),
    }))
    return json(items)
  }
}

function keep<Item>(list: Item[], item: Item): void {
  list.unshift(item)
  if (list.length > KEPT_MAX) list.pop()
}

function json(items: readonly object[]): HttpAnswer {
  return jsonAnswer(200, JSON.stringify({ items }))
}

const KEPT_MAX = 1_000
const PRINTED_A_SECOND_MAX = 5
