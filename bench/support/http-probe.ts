/**
 * Program: asks one path at a fixed pace over one connection, whether or not earlier requests have been answered, so
 * that a server that stalls is charged for every request it keeps waiting.
 */

import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { serveParent } from './program.ts'
import { latencyFigures } from './statistics.ts'

export interface HttpProbeProtocol {
  readonly setup: Record<string, never>
  readonly request: {
    readonly url: string
    readonly path: string
    readonly intervalMs: number
    readonly seconds: number
  }
  /** Milliseconds. */
  readonly answer: ReturnType<typeof latencyFigures> & { readonly requests: number }
}

serveParent<HttpProbeProtocol>(async () => async ({ url, path, intervalMs, seconds }) => {
  const { hostname, port, host } = new URL(url)
  const socket = connect(Number(port), hostname)
  socket.setNoDelay(true)
  await once(socket, 'connect')
  const latencies = await probe(socket, `GET ${path} HTTP/1.1\r\nHost: ${host}\r\n\r\n`, intervalMs, seconds)
  socket.destroy()
  return { ...latencyFigures(latencies), requests: latencies.length }
})

function probe(socket: Socket, request: string, intervalMs: number, seconds: number): Promise<number[]> {
  const requests = Math.floor((seconds * 1000) / intervalMs)
  const latencies: number[] = []
  const sentAt: number[] = []
  const startedAt = performance.now()
  let unread = ''
  return new Promise((resolve, reject) => {
    // Timers are a millisecond coarse and late under load: each tick sends whatever is due by then.
    const timer = setInterval(() => {
      while (sentAt.length < requests && performance.now() >= startedAt + sentAt.length * intervalMs) {
        sentAt.push(performance.now())
        socket.write(request)
      }
    }, 1)
    socket.on('data', chunk => {
      unread += chunk.toString('latin1')
      for (let end = endOfAnswer(unread); end > 0; end = endOfAnswer(unread)) {
        if (!unread.startsWith('HTTP/1.1 200'))
          reject(new Error(`${path(request)} answered ${unread.slice(0, 40)}`))
        unread = unread.slice(end)
        latencies.push(performance.now() - sentAt[latencies.length]!)
      }
      if (latencies.length < requests) return
      clearInterval(timer)
      resolve(latencies)
    })
    socket.on('error', reject)
  })
}

function path(request: string): string {
  return request.split(' ', 2)[1]!
}

/** Where the first answer in the text ends, 0 while it is not there whole. */
function endOfAnswer(text: string): number {
  const headEnd = text.indexOf('\r\n\r\n')
  if (headEnd < 0) return 0
  const length = /^content-length: (\d+)$/im.exec(text.slice(0, headEnd))
  const end = headEnd + 4 + Number(length?.[1] ?? 0)
  return end <= text.length ? end : 0
}
