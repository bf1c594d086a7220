/**
 * Program, the limit of HTTP answers: bare uWebSockets.js that sends recorded bytes, by path where there are
 * several. A POST is answered when its body has been read.
 */

import uWS from 'uWebSockets.js'
import type { RecordedAnswer } from './http-answer.ts'
import { serveParent } from './program.ts'

export interface RawHttpProtocol {
  readonly setup: {
    /** By path; a single one is sent whatever the path is. */
    readonly answers: ReadonlyMap<string, RecordedAnswer>
    /** A client that pipelines may be gone before its later requests are answered; uWebSockets.js would end the process then. */
    readonly isPipelined?: boolean
  }
  readonly request: 'address'
  readonly answer: string
}

serveParent<RawHttpProtocol>(async ({ answers, isPipelined = false }) => {
  const app = uWS.App()
  const [answer] = answers.values()
  if (answer === undefined) throw new Error('nothing to answer')
  const send = isPipelined ? sendUnlessGone : sendRecorded
  if (answers.size === 1) app.get('/*', res => send(res, answer))
  else app.get('/*', (res, req) => send(res, answers.get(req.getUrl())!))
  app.post('/*', res => {
    let isAborted = false
    res.onAborted(() => {
      isAborted = true
    })
    res.onData((_chunk, isLast) => {
      if (isLast && !isAborted) res.cork(() => sendRecorded(res, answer))
    })
  })
  const port = await new Promise<number>((resolve, reject) => {
    app.listen('127.0.0.1', 0, token =>
      token ? resolve(uWS.us_socket_local_port(token)) : reject(new Error('no port to listen on')),
    )
  })
  return () => `http://127.0.0.1:${port}`
})

/** Must be called inside a callback of uWebSockets.js, where the socket is corked. */
function sendRecorded(res: uWS.HttpResponse, { status, headers, body }: RecordedAnswer): void {
  res.writeStatus(status)
  for (const [name, value] of headers) res.writeHeader(name, value)
  res.end(body)
}

function sendUnlessGone(res: uWS.HttpResponse, answer: RecordedAnswer): void {
  res.onAborted(() => undefined)
  sendRecorded(res, answer)
}
