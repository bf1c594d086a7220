/** Wire shapes of user tokens, by which users show the operator's own API who they are, and of the keys that check them. */

import Type from 'typebox'

export const UserTokenRequest = Type.Object(
  {
    audience: Type.String({
      minLength: 1,
      maxLength: 256,
      description: 'The service that the token is for: one that the operator has listed',
    }),
  },
  { examples: [{ audience: 'https://api.example.org' }] },
)

export const UserTokenReply = Type.Object({
  token: Type.String({
    description:
      'A JWT of type `callsign-user+jwt`: `iss`, `sub` (user id), `ext`, `aud`, `sid`, `iat`, `exp`, `jti`',
  }),
  expiresIn: Type.Integer({ description: 'Seconds that it is good for' }),
})

export const UserTokenKeys = Type.Object({
  keys: Type.Array(
    Type.Object({
      kty: Type.Literal('OKP'),
      crv: Type.Literal('Ed25519'),
      x: Type.String({ description: 'The public key, base64url of 32 octets' }),
      kid: Type.String({ description: 'Its thumbprint (RFC 7638)' }),
      alg: Type.Literal('EdDSA'),
      use: Type.Literal('sig'),
    }),
  ),
})
