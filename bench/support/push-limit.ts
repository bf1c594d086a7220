/** Program, the limit of pushes: bare node:http2 that sends pushes as they were recorded, so many at a time, over one session. */

import { type ClientHttp2Session, connect } from 'node:http2'
import { tlsFile } from '../../test/support/tls.ts'
import { serveParent } from './program.ts'
import type { SamplePush } from './push-sink.ts'

export interface PushLimitProtocol {
  readonly setup: { readonly origin: string; readonly inFlight: number }
  readonly request: { readonly count: number; readonly samples: readonly SamplePush[] }
  readonly answer: undefined
}

serveParent<PushLimitProtocol>(async ({ origin, inFlight }) => {
  const session = connect(origin, { ca: tlsFile('ca.crt'), settings: { enablePush: false } })
  await new Promise((resolve, reject) => session.once('connect', resolve).once('error', reject))
  return async ({ count, samples }) => {
    let next = 0
    const sendUntilAll = async () => {
      while (next < count) await send(session, samples[next++ % samples.length]!)
    }
    await Promise.all(Array.from({ length: inFlight }, sendUntilAll))
    return undefined
  }
})

function send(session: ClientHttp2Session, { headers, body }: SamplePush): Promise<void> {
  return new Promise((resolve, reject) => {
    const stream = session.request(headers)
    stream.once('error', reject)
    stream.once('close', resolve)
    stream.resume()
    stream.end(body)
  })
}
