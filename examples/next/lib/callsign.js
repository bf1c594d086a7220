import { CallsignServer } from '@callsign/sdk/server'

export const callsignUrl = process.env.SERVER_URL ?? 'http://127.0.0.1:8080'

let server

/** Made at its first use: a build has no key. */
export function callsign() {
  server ??= new CallsignServer({
    url: process.env.SERVER_API_URL ?? 'http://127.0.0.1:9070',
    key: process.env.SERVER_KEY,
  })
  return server
}
