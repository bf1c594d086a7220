/**
 * Program, the limit of calls: bare uWebSockets.js that answers a POST and sends each device of the group the recorded
 * frame, with the call's id in its place. It knows no rule and keeps nothing.
 */

import uWS from 'uWebSockets.js'
import { serveParent } from './program.ts'

export interface CallLimitProtocol {
  readonly setup: {
    readonly atStart: readonly string[]
    readonly atEnd: readonly string[]
    /** Devices of each group. */
    readonly devices: number
  }
  readonly request: 'port'
  readonly answer: number
}

serveParent<CallLimitProtocol>(async ({ atStart, atEnd, devices }) => {
  const started = atStart.map(text => new Recorded(text))
  const ended = atEnd.map(text => new Recorded(text))
  const sockets: uWS.WebSocket<unknown>[] = []
  const app = uWS.App()
  app.ws('/ws', { idleTimeout: 60, maxBackpressure: 1024 * 1024, open: ws => void sockets.push(ws) })
  app.post('/*', (res, req) => {
    const [group, callId] = [Number(req.getHeader('x-group')), req.getHeader('x-call')]
    const isStart = req.getUrl().endsWith('/start')
    let isAborted = false
    res.onAborted(() => {
      isAborted = true
    })
    res.onData((_chunk, isLast) => {
      if (!isLast || isAborted) return
      for (const ws of sockets.slice(group * devices, (group + 1) * devices)) {
        for (const recorded of isStart ? started : ended) ws.send(recorded.of(callId), false)
      }
      res.cork(() => res.writeStatus(isStart ? '201 Created' : '200 OK').end(`{"callId":"${callId}"}`))
    })
  })
  const port = await new Promise<number>((resolve, reject) => {
    app.listen('127.0.0.1', 0, token =>
      token ? resolve(uWS.us_socket_local_port(token)) : reject(new Error('no port to listen on')),
    )
  })
  return () => port
})

/** A message in which the call's id is to be put. */
class Recorded {
  readonly #octets: Buffer
  readonly #at: number

  constructor(text: string) {
    this.#at = text.indexOf('"callId":"') + '"callId":"'.length
    const end = text.indexOf('"', this.#at)
    this.#octets = Buffer.from(text.slice(0, this.#at) + '0'.repeat(16) + text.slice(end), 'latin1')
  }

  of(callId: string): Buffer {
    const octets = Buffer.from(this.#octets)
    octets.write(callId, this.#at, 'latin1')
    return octets
  }
}
