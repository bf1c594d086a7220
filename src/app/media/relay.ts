/** How media reaches the operator's relay: its credentials, kept for when a newer answer does not come. */

import { CallsignError } from '../callsign-error.ts'

/** The answer to `me.relay()`. */
export interface Relay {
  readonly turnUsername: string
  readonly turnPassword: string
  /** Seconds for which it lets this device in. */
  readonly ttl: number
  readonly uris: readonly string[]
  readonly stunUrl?: string
}

/**
 * Asks anew each time. Where that fails it gives the last answer, as long as the relay takes it; else no server, and `onError` hears
 * why, unless the operator has no relay.
 */
export function keepRelay(
  ask: () => Promise<Relay>,
  onError: (error: CallsignError) => void,
): () => Promise<RTCIceServer[]> {
  let servers: RTCIceServer[] = []
  let untilMs = 0
  return async () => {
    try {
      const { turnUsername: username, turnPassword: credential, ttl, uris, stunUrl } = await ask()
      servers = [{ urls: [...uris], username, credential }]
      if (stunUrl !== undefined) servers.push({ urls: stunUrl })
      untilMs = performance.now() + 1000 * ttl
      return servers
    } catch (error) {
      if (performance.now() < untilMs) return servers
      const told = error instanceof CallsignError ? error : new CallsignError('INTERNAL', String(error))
      if (told.code !== 'TURN_NOT_CONFIGURED') onError(told)
      return []
    }
  }
}
