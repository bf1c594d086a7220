/**
 * A disk without room: registrations are refused aloud, everything answered stays, nothing half-written is served,
 * and the log goes on after a restart with room. The limit is the shell's `ulimit -f`, which fails writes like a
 * full disk does.
 */

import grpc from '@grpc/grpc-js'
import t from 'tap'
import { RegisterClient } from '../../scripts/support/register-client.ts'
import { openServer } from '../support/open-server.ts'
import { freshPublicKey, postJson, startServer } from '../support/server.ts'

interface Answered {
  readonly vrfHash: string
  readonly publicKey: string
}

/** Long keys fill the disk sooner. */
const LONG_KEY_SUFFIX = 'A'.repeat(980)
const FILE_KILOBYTES_MAX = 2_500

async function registerUntilRefused(client: RegisterClient, answered: Answered[]): Promise<number> {
  let refusal = 0
  let nextUser = 0n
  const worker = async () => {
    while (refusal === 0) {
      const publicKey = LONG_KEY_SUFFIX + freshPublicKey()
      try {
        const { vrfHash } = await client.register(nextUser++, 1n, publicKey)
        answered.push({ vrfHash, publicKey })
      } catch (error) {
        refusal ||= (error as { code: number }).code
      }
    }
  }
  await Promise.all(Array.from({ length: 16 }, worker))
  return refusal
}

async function countMissing(http: string, answered: readonly Answered[]): Promise<number> {
  let missing = 0
  for (let from = 0; from < answered.length; from += 64) {
    const wanted = answered.slice(from, from + 64)
    const targets = wanted.map(({ vrfHash }) => ({ publicKeyHash: vrfHash }))
    const { status, body } = await postJson<{ results?: { publicKey: string }[] }>(
      `${http}/api/get-public-keys`,
      { targets },
    )
    if (status !== 200) return wanted.length
    missing += wanted.filter(({ publicKey }, at) => body.results?.[at]?.publicKey !== publicKey).length
  }
  return missing
}

t.test('a full disk refuses registrations, loses none that was answered, and passes', async t => {
  const dataFolder = t.testdir()
  const answered: Answered[] = []
  const environment = { CALLSIGN_LOG_LEVEL: 'fatal' }

  const full = await startServer({
    dataFolder,
    wrapper: ['bash', '-c', `ulimit -f ${FILE_KILOBYTES_MAX}; exec "$@"`, '-'],
    environment,
  })
  const client = new RegisterClient(full.grpc)
  t.equal(await registerUntilRefused(client, answered), grpc.status.UNAVAILABLE, 'refused as UNAVAILABLE')
  t.ok(answered.length > 100, `${answered.length} were answered before`)
  t.equal((await fetch(`${full.admin}/readyz`)).status, 503, 'not ready while there is no room')
  t.equal((await fetch(`${full.http}/checkpoint`)).status, 200, 'the log is served')
  t.equal(await countMissing(full.http, answered), 0, 'every answered key is found')
  client.close()
  t.equal(await full.end(), 0, 'stops cleanly')

  const roomy = await openServer({ dataFolder, environment })
  t.teardown(() => roomy.end())
  t.equal(await countMissing(roomy.http, answered), 0, 'every answered key is found after a restart')
  const again = new RegisterClient(roomy.grpc)
  const { index } = await again.register(1n << 60n, 1n, freshPublicKey())
  again.close()
  t.ok(index >= BigInt(answered.length), 'the log goes on')
})
