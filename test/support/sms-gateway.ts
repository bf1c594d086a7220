/** An SMS gateway that takes one POST per message, answers on command and keeps what it was given; the login check of an operator, too. */

import { createServer, type IncomingHttpHeaders, type RequestListener } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { bodyOf, type HttpAct, perform } from './fcm-stand-in.ts'
import { tlsFile } from './tls.ts'

export interface ReceivedSms {
  readonly method: string
  readonly path: string
  readonly headers: IncomingHttpHeaders
  /** As it was sent; JSON or a form, as the headers say. */
  readonly body: string
}

/** `endless`: a 200 whose body never stops; `stalled`: one whose body never comes. */
export type SmsAct = HttpAct | 'endless' | 'stalled'

export interface SmsGateway {
  /** Ends in `/send`. */
  readonly url: string
  readonly requests: readonly ReceivedSms[]
  answerNext(...acts: SmsAct[]): void
  /** Resolves once so many requests have come. */
  received(count: number): Promise<void>
  /** Resolves with the body of the first request about the number that no earlier call returned. */
  smsTo(number: string): Promise<string>
  close(): Promise<void>
}

export async function startSmsGateway({ isTls = false } = {}): Promise<SmsGateway> {
  const requests: ReceivedSms[] = []
  const acts: SmsAct[] = []
  const unclaimed: string[] = []
  const waiting: { number: string; resolve: (body: string) => void }[] = []

  const awaited: { count: number; resolve: () => void }[] = []

  const answer: RequestListener = async (request, response) => {
    const body = await bodyOf(request)
    requests.push({ method: request.method!, path: request.url!, headers: request.headers, body })
    for (const { count, resolve } of awaited) if (requests.length >= count) resolve()
    const act = acts.shift() ?? { status: 200, body: {} }
    if (act === 'stalled') {
      response.writeHead(200, { 'content-length': '10' })
      return response.flushHeaders()
    }
    if (act === 'endless') {
      response.writeHead(200)
      const pour = () => {
        while (response.write(CHUNK)) if (response.destroyed) return
      }
      response.on('drain', pour).on('error', () => {})
      return pour()
    }
    perform(act, response)
    const isTaken = typeof act === 'object' && act.status >= 200 && act.status < 300
    if (!isTaken) return
    const at = waiting.findIndex(({ number }) => mentions(body, number))
    if (at === -1) unclaimed.push(body)
    else waiting.splice(at, 1)[0]!.resolve(body)
  }
  const certified = { key: tlsFile('server.key'), cert: tlsFile('server.crt') }
  const server = isTls ? createTlsServer(certified, answer) : createServer(answer)
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `${isTls ? 'https://localhost' : 'http://127.0.0.1'}:${(server.address() as AddressInfo).port}/send`,
    requests,
    answerNext: (...next) => void acts.push(...next),
    received(count) {
      if (requests.length >= count) return Promise.resolve()
      return new Promise(resolve => awaited.push({ count, resolve }))
    },
    smsTo(number) {
      const at = unclaimed.findIndex(body => mentions(body, number))
      if (at !== -1) return Promise.resolve(unclaimed.splice(at, 1)[0]!)
      return new Promise(resolve => waiting.push({ number, resolve }))
    },
    close() {
      server.closeAllConnections()
      return new Promise(resolve => server.close(() => resolve()))
    },
  }
}

function mentions(body: string, number: string): boolean {
  return body.includes(number) || body.includes(encodeURIComponent(number))
}

const CHUNK = Buffer.alloc(16_384, ' ')
