import { CallsignServer } from '@callsign/sdk/server'

export const callsign = new CallsignServer({
  url: process.env.SERVER_API_URL ?? 'http://127.0.0.1:9070',
  key: process.env.SERVER_KEY,
})
