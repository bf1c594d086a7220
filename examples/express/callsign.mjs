import { CallsignServer } from 'callsign/server'

export const callsign = new CallsignServer({
  url: process.env.CALLSIGN_SERVER_URL ?? 'http://127.0.0.1:9070',
  key: process.env.CALLSIGN_SERVER_KEY,
})
