/** Serves the page, and the SDK in files of its own. */

import { fileURLToPath } from 'node:url'
import express from 'express'
import { server } from './public/pins.js'

const PORT = Number(process.env.PORT ?? 3000)
/** Where calls have their sound and picture: the gateway of the server, such as wss://media.example.org. */
const MEDIA = process.env.MEDIA ?? 'ws://127.0.0.1:*'
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data: blob:",
  "media-src 'self' blob:",
  "worker-src 'self'",
  `connect-src 'self' ${server} ${server.replace(/^http/, 'ws')} ${MEDIA}`,
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')
const SDK = {
  '/callsign.js': '@callsign/sdk/browser',
  '/callsign-media-worker.js': '@callsign/sdk/app/media-worker',
  '/callsign-service-worker.js': '@callsign/sdk/browser/service-worker',
}

const app = express()
app.disable('x-powered-by')
app.use((_request, response, next) => {
  response.set({
    'Content-Security-Policy': POLICY,
    'Referrer-Policy': 'no-referrer',
    'X-Content-Type-Options': 'nosniff',
    'Permissions-Policy': 'camera=(self), microphone=(self), display-capture=(self)',
  })
  next()
})
for (const [path, name] of Object.entries(SDK)) {
  const file = fileURLToPath(import.meta.resolve(name))
  // Some package managers put packages below a folder whose name begins with a dot.
  app.get(path, (_request, response) => response.sendFile(file, { dotfiles: 'allow' }))
}
app.use(express.static(`${import.meta.dirname}/public`))
app.listen(PORT, '127.0.0.1', () => console.log(`http://localhost:${PORT}`))
