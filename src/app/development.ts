/**
 * `@callsign/sdk/app/development`: for programs that try a development server without a person. An app has its pins built in,
 * and its user types the code.
 */

import type { PublishedKeys } from '../client/client.ts'
import { CallsignError, errorOf } from './callsign-error.ts'
import { Server } from './session/server.ts'

interface Inbox {
  readonly items: readonly { readonly otp?: string; readonly at: string }[]
}

/** The keys of the log as the server itself says them: nothing is proved by them, since it could say any. */
export async function developmentPins(url: string): Promise<PublishedKeys> {
  const { log } = await new Server({ url }).request('GET meta', undefined)
  const { vkey, vrfPublicKey, index } = log
  return { vkey, vrfPublicKey, ...(index && { indexVkey: index.vkey }) }
}

/**
 * The code that was just sent to the address, from `/dev/inbox`. It leaves a moment after the answer to the login. Rejects with
 * `ORIGIN_NOT_ALLOWED` in a page that the server does not show codes to, and `NOT_FOUND` where no code comes.
 */
export async function sentCode(url: string, address: string): Promise<string> {
  for (let left = TRIES; left > 0; left--) {
    const answer = await inboxAnswer(url, address)
    const inbox: Partial<Inbox> = await answer.json().catch(() => ({}))
    if (answer.status === 403) throw errorOf(inbox, 'NOT_FOUND', `The server at ${url} shows no codes.`, 403)
    if (!answer.ok || !Array.isArray(inbox?.items)) break
    const { items }: Partial<Inbox> = inbox
    const sinceMs = Date.parse(answer.headers.get('date') ?? '') - RECENT_MS
    const newest = items.find(({ otp, at }) => otp !== undefined && Date.parse(at) > sinceMs)
    if (newest?.otp !== undefined) return newest.otp
    await new Promise(resolve => setTimeout(resolve, PAUSE_MS))
  }
  throw new CallsignError('NOT_FOUND', `No code for ${address} is in the inbox of a development server.`)
}

/** A browser does not say why a page may not read an answer. A request without reading tells whether the server is there. */
async function inboxAnswer(url: string, address: string): Promise<Response> {
  try {
    return await fetch(`${url}/dev/inbox?to=${encodeURIComponent(address)}`)
  } catch (cause) {
    const isThere = await fetch(`${url}/app/api/meta`, { mode: 'no-cors' }).then(
      () => true,
      () => false,
    )
    const origin = globalThis.location?.origin
    const browser = origin === undefined ? '' : `, or the browser keeps pages of ${origin} from it`
    if (!isThere) throw new CallsignError('NO_ANSWER', `No server answers at ${url}${browser}.`, { cause })
    const sentence = `Pages of ${origin} may not read codes at ${url}. Start the server with CALLSIGN_CORS_ORIGINS=${origin}, or have the page's own server pass /dev/inbox on.`
    throw new CallsignError('ORIGIN_NOT_ALLOWED', sentence, { cause })
  }
}

const [TRIES, PAUSE_MS] = [100, 50]
/** Another code can be asked for after a minute. */
const RECENT_MS = 5_000
