/** A small backend with users of its own, who call one another (docs/start/your-users.md). */

import { randomUUID } from 'node:crypto'
import { verifyToken, verifyWebhook } from '@callsign/sdk/server'
import express from 'express'
import { callsign } from './callsign.mjs'
import { people } from './people.mjs'

const PORT = Number(process.env.PORT ?? 3000)
const SERVER_URL = process.env.SERVER_URL ?? 'http://127.0.0.1:8080'
const app = express()

// Your own login, as you have it.
const sessions = new Map()

app.post('/login', express.json(), (request, response) => {
  const { id, password } = request.body ?? {}
  const person = people.find(one => one.id === id && one.password === password)
  if (person === undefined) return response.sendStatus(401)
  const session = randomUUID()
  sessions.set(session, person)
  response.cookie('session', session, { httpOnly: true, sameSite: 'strict' }).sendStatus(204)
})

function signedIn(request, response, next) {
  const [, session] = /(?:^|; )session=([^;]+)/.exec(request.get('cookie') ?? '') ?? []
  request.person = sessions.get(session)
  if (request.person === undefined) return response.sendStatus(401)
  next()
}

app.get('/me', signedIn, ({ person: { id, name } }, response) => {
  response.json({ id, name, callsignUrl: SERVER_URL })
})

// Trades it for a sign-in to Callsign.
app.post('/callsign-token', signedIn, async (request, response) => {
  const { token } = await callsign.users.signInToken({ ext: request.person.id })
  response.json({ token })
})

// Says who may call whom.
app.post('/bookings', signedIn, express.json(), async (request, response) => {
  await callsign.contacts.put({ ext: request.person.id }, { ext: request.body.with })
  response.sendStatus(201)
})

// Takes events.
const seen = new Set()

app.post('/webhooks/callsign', express.raw({ type: '*/*' }), async (request, response) => {
  const event = await verifyWebhook(request.headers, request.body, process.env.WEBHOOK_SECRET)
  response.sendStatus(204)
  // One may come twice.
  if (seen.has(event.id)) return
  seen.add(event.id)
  console.log(event.type, event.data.subject)
})

// Knows who asks: your API, apart from your web site and its cookie.
app.get('/orders', async (request, response) => {
  const [, token = ''] = /^Bearer (.+)$/.exec(request.get('authorization') ?? '') ?? []
  const user = await verifyToken(token, {
    jwksUrl: `${SERVER_URL}/.well-known/jwks.json`,
    audience: 'https://api.acme.example',
  })
  response.json({ ordersOf: user.externalId })
})

app.use((error, _request, response, next) => {
  if (error.code === 'TOKEN_INVALID' || error.code === 'WEBHOOK_INVALID') return response.sendStatus(401)
  next(error)
})

app.get('/', (_request, response) => response.sendFile('index.html', { root: import.meta.dirname }))
app.use(express.static('data/your-users'))
app.listen(PORT, '127.0.0.1', () => console.log(`http://localhost:${PORT}`))
