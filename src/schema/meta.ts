/** Wire shape of `GET /app/api/meta` (contract 1.8, 14). */

import Type from 'typebox'
import { Time } from './time.ts'

export const MetaReply = Type.Object({
  apiVersion: Type.Integer(),
  serverTime: Time,
  limits: Type.Record(Type.String(), Type.Integer(), { description: 'Bounds by name; names are added' }),
  historyDays: Type.Integer({
    description: 'For how many days the server keeps a call in the history of its people; 0: it keeps none',
  }),
  features: Type.Record(Type.String(), Type.Unknown(), { description: 'What this server can do, by name' }),
  webPush: Type.Optional(
    Type.Object({
      publicKey: Type.String({
        description: 'The `applicationServerKey` that browsers subscribe with: base64url of 65 octets',
      }),
    }),
  ),
  loginMethods: Type.Array(Type.String(), {
    description: '`email`, `phone`, and names of identity providers',
  }),
  minClientVersion: Type.Optional(
    Type.String({ description: 'Older clients are refused with CLIENT_TOO_OLD' }),
  ),
  ws: Type.Optional(Type.String({ description: 'Path of the WebSocket' })),
  log: Type.Object({
    origin: Type.String({ description: 'Name of the log, as its checkpoints have it' }),
    vkey: Type.String({ description: 'Verifier key of the checkpoints (c2sp.org/signed-note)' }),
    vrfPublicKey: Type.String({ description: 'Public key of the VRF, base64 of 32 bytes' }),
    url: Type.String({ description: 'Prefix of the public files of the log' }),
    index: Type.Optional(
      Type.Object(
        {
          vkey: Type.String({ description: 'Verifier key of its checkpoints, by the name `<origin>/index`' }),
        },
        {
          description:
            'The index, by which lookups prove that they are complete. For people: an app has the key built in, since this answer comes from the server that it checks',
        },
      ),
    ),
    witnessPolicy: Type.Optional(
      Type.String({
        description:
          'Policy of the witnesses that cosign each checkpoint (c2sp.org/tlog-policy). For operators of other logs and people: an app has the policy built in, since this answer comes from the server that it checks',
      }),
    ),
  }),
})
