import express from 'express'
import { exportJWK, importPKCS8, SignJWT } from 'jose'

const issuer = process.env.ISSUER ?? 'https://id.acme.example'
const key = await importPKCS8(process.env.ISSUER_KEY, 'RS256', { extractable: true })
const { kty, n, e } = await exportJWK(key)
const keys = [{ kty, n, e, kid: '1', alg: 'RS256', use: 'sig' }]

/** What your backend gives your app for a user who is signed in to it. */
export const idTokenOf = person =>
  new SignJWT({ name: person.name })
    .setProtectedHeader({ alg: 'RS256', kid: '1' })
    .setIssuer(issuer)
    .setAudience('calls')
    .setSubject(person.id)
    .setIssuedAt()
    .setExpirationTime('5m')
    .sign(key)

export const app = express()
app.get('/.well-known/openid-configuration', (_request, response) =>
  response.json({ issuer, jwks_uri: `${issuer}/jwks` }),
)
app.get('/jwks', (_request, response) => response.json({ keys }))
