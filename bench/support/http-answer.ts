/** An answer of the server, recorded so that bare uWebSockets.js can send the same bytes. */

export interface RecordedAnswer {
  readonly status: string
  readonly headers: readonly (readonly [string, string])[]
  readonly body: Uint8Array
}

/**
 * Asks once and keeps the parts that uWebSockets.js doesn't make anew for each answer. Throws unless the status is 200.
 */
export async function recordAnswer(url: string, body?: string, token?: string): Promise<RecordedAnswer> {
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` }
  const answer =
    body === undefined
      ? await fetch(url, { headers })
      : await fetch(url, {
          method: 'POST',
          body,
          headers: { ...headers, 'content-type': 'application/json' },
        })
  const bytes = new Uint8Array(await answer.arrayBuffer())
  if (answer.status !== 200) throw new Error(`${url} answered ${answer.status}: ${Buffer.from(bytes)}`)
  return {
    status: `${answer.status} OK`,
    headers: [...answer.headers].filter(([name]) => !MADE_BY_UWS.has(name)),
    body: bytes,
  }
}

const MADE_BY_UWS = new Set(['date', 'uwebsockets', 'content-length', 'connection', 'keep-alive'])
