/** Wire shape of the credentials for the relay (contract 5.2). */

import Type from 'typebox'
import { Time } from './time.ts'

export const RelayCredentials = Type.Object({
  turnUsername: Type.String({ description: '`<expiry>:<userId>`, the expiry in seconds since 1970' }),
  turnPassword: Type.String({ description: 'Base64 of the HMAC-SHA1 of turnUsername' }),
  tlsUrl: Type.String({ description: 'The relay by TLS, a URI of RFC 7065' }),
  noneTlsUrl: Type.String({ description: 'The relay without TLS' }),
  ttl: Type.Integer({ description: 'Seconds for which they are good; ask again on an ICE restart' }),
  expiresAt: Time,
  uris: Type.Array(Type.String(), { description: 'Every way to the relay, the one to try first first' }),
  stunUrl: Type.Optional(Type.String({ description: 'A URI of RFC 7064' })),
})
