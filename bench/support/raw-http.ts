/**
 * Program, the limit of HTTP answers: bare uWebSockets.js that sends recorded bytes, by path where there are
 * several. A POST is answered when its body has been read.
 */

import uWS from 'uWebSockets.js'
import { type RecordedAnswer, sendRecorded } from './http-answer.ts'
import { serveParent } from './program.ts'

export interface RawHttpProtocol {
  /** By path; a single one is sent whatever the path is. */
  readonly setup: { readonly answers: ReadonlyMap<string, RecordedAnswer> }
  readonly request: 'address'
  readonly answer: string
}

serveParent<RawHttpProtocol>(async ({ answers }) => {
  const app = uWS.App()
  const [answer] = answers.values()
  if (answer === undefined) throw new Error('nothing to answer')
  if (answers.size === 1) app.get('/*', res => sendRecorded(res, answer))
  else app.get('/*', (res, req) => sendRecorded(res, answers.get(req.getUrl())!))
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
