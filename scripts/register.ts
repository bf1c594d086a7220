#!/usr/bin/env node
/** Registers one device key over gRPC: for trying a server out, and for scripts. */

import { randomBytes } from 'node:crypto'
import { parseArgs } from 'node:util'
import { messageOf } from '../src/errors.ts'
import { metadataWith, RegisterClient } from './support/register-client.ts'

const USAGE = `usage: node dist/scripts/register.js --user ID --device ID [--public-key BASE64] [--address HOST:PORT]

Logs a device's public key and prints its index and VRF hash as JSON.
Without --public-key 32 random bytes stand in for one. --address is 127.0.0.1:50051 unless given.
CALLSIGN_GRPC_TOKEN is sent as the bearer token when it is set.
`

function main(): void {
  const { values } = parseArgs({
    options: {
      user: { type: 'string' },
      device: { type: 'string' },
      'public-key': { type: 'string', default: randomBytes(32).toString('base64') },
      address: { type: 'string', default: '127.0.0.1:50051' },
      help: { type: 'boolean' },
    },
  })
  const { user, device, address } = values
  if (values.help || user === undefined || device === undefined) {
    process.stderr.write(USAGE)
    process.exitCode = values.help ? 0 : 2
    return
  }
  const publicKey = values['public-key']
  const [userId, deviceId] = [uint64(user), uint64(device)]
  const metadata = metadataWith(process.env.CALLSIGN_GRPC_TOKEN)
  const client = new RegisterClient(address)
  client
    .register(userId, deviceId, publicKey, metadata, TIMEOUT_MS)
    .then(({ index, vrfHash }) => {
      process.stdout.write(`${JSON.stringify({ index: String(index), vrfHash, publicKey })}\n`)
    })
    .catch(error => {
      process.stderr.write(`register: ${messageOf(error)}\n`)
      process.exitCode = 1
    })
    .finally(() => client.close())
}

function uint64(text: string): bigint {
  if (/^\d{1,20}$/.test(text) && BigInt(text) < 2n ** 64n) return BigInt(text)
  throw new Error(`${text} is not a number from 0 to 2^64 - 1`)
}

const TIMEOUT_MS = 10_000

try {
  main()
} catch (error) {
  process.stderr.write(`register: ${messageOf(error)}\n\n${USAGE}`)
  process.exitCode = 2
}
