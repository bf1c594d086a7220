/**
 * Devices against the built server: their keys are found and proven in the log by a stranger, and a server that is
 * killed while devices are being registered has, after the next start, one device with one entry for each key.
 * `CALLSIGN_DEVICE_KILLS` sets the number of kills (3), `CALLSIGN_SEED` replays their moments.
 */

import { once } from 'node:events'
import t, { type Test } from 'tap'
import { type LogKeys, readLogKeys, verifyLookup } from '../strangers/verifier.ts'
import { newKey } from '../support/device-requests.ts'
import { lookUp } from '../support/live-log.ts'
import { openServer } from '../support/open-server.ts'
import { randomFrom, seedOf } from '../support/seed.ts'
import {
  type OpenOptions,
  type OpenServer,
  postJson,
  type RunningServer,
  startServer,
} from '../support/server.ts'

interface SignedIn {
  readonly userId: bigint
  readonly headers: Readonly<Record<string, string>>
}

interface RegisteredDevice {
  readonly deviceId: string
  readonly publicKeyIndex: string
  readonly publicKeyHash: string
}

interface Attempt {
  readonly user: SignedIn
  readonly publicKey: string
  /** The server's answer before it was killed. */
  answered?: RegisteredDevice
}

const OTP = '424242'
const KILLS = Number(process.env.CALLSIGN_DEVICE_KILLS ?? 3)
const USERS = 8
const KEYS_PER_USER = 4
const KILLED_WITHIN_MS = 60

const emailOf = (number: number) => `person${number}@example.com`

function optionsFor(dataFolder: string, people: number): OpenOptions {
  const codes = Array.from({ length: people }, (_, number) => [emailOf(number), OTP])
  const environment = { CALLSIGN_TEST_IDENTIFIERS: JSON.stringify(Object.fromEntries(codes)) }
  return { dataFolder, environment: { ...environment, CALLSIGN_LOG_LEVEL: 'error' } }
}

async function openUntilEnd(t: Test, dataFolder: string, people: number): Promise<OpenServer> {
  const server = await openServer(optionsFor(dataFolder, people))
  t.teardown(() => server.end())
  return server
}

async function signIn({ http }: OpenServer, number: number): Promise<SignedIn> {
  const login = { verified: false, email: emailOf(number) }
  const challenge = await postJson<{ challengeId: string }>(`${http}/app/api/login`, login)
  const { challengeId } = challenge.body
  const answer = await postJson<{ accessToken: string; user: { userId: string } }>(
    `${http}/app/api/verify-login`,
    { challengeId, otp: OTP },
  )
  const { accessToken, user } = answer.body
  const headers = { authorization: `Bearer ${accessToken}`, 'content-type': 'application/json' }
  return { userId: BigInt(user.userId), headers }
}

function register({ http }: OpenServer, { user, publicKey }: Attempt) {
  return postJson<RegisteredDevice>(`${http}/app/api/register_device`, { publicKey }, user.headers)
}

/** The user's devices, as they are listed. */
async function devicesOf({ http }: OpenServer, { headers }: SignedIn): Promise<RegisteredDevice[]> {
  const answer = await fetch(`${http}/app/api/devices`, { headers })
  const { items } = (await answer.json()) as { items: RegisteredDevice[] }
  return items
}

/** Whether the log proves to a stranger that the device has this key at this index. */
async function isProven(
  { http }: OpenServer,
  keys: LogKeys,
  { user, publicKey }: Attempt,
  device: RegisteredDevice,
): Promise<boolean> {
  const [result] = await lookUp(http, [device.publicKeyHash])
  const expected = { userId: user.userId, deviceId: BigInt(device.deviceId), publicKey }
  return verifyLookup(keys, expected, result!).index === Number(device.publicKeyIndex)
}

t.test('a registered device is listed, proven by the log, read by its user, and removed', async t => {
  const server = await openUntilEnd(t, t.testdir(), 1)
  const user = await signIn(server, 0)
  const attempt = { user, publicKey: newKey() }
  const { status, body: device } = await register(server, attempt)
  t.equal(status, 201)
  t.ok(await isProven(server, readLogKeys(server.vkey, server.vrfPublicKey), attempt, device))
  t.match(await devicesOf(server, user), [{ ...device, vrfHash: undefined, current: true }])

  const { publicKey } = attempt
  const alias = await postJson(`${server.http}/api/register_device`, { publicKey }, user.headers)
  t.same([alias.status, alias.body], [200, device], 'by the other path too')
  const answer = await fetch(`${server.http}/api/user/publicKeys`, { headers: user.headers })
  const { users } = (await answer.json()) as { users: { devices: object[] }[] }
  t.match(users[0]?.devices, [{ deviceId: device.deviceId, publicKey }])

  const path = `${server.http}/app/api/devices/${device.deviceId}`
  t.equal((await fetch(path, { method: 'DELETE', headers: user.headers })).status, 204)
  t.equal((await fetch(path, { method: 'DELETE', headers: user.headers })).status, 401, 'a logout as well')
  t.ok(await isProven(server, readLogKeys(server.vkey, server.vrfPublicKey), attempt, device), 'still logged')
})

/** Registers all keys at once and kills the server so many milliseconds later; most are under way for about thirty. */
async function registerUntilKilled(server: RunningServer, attempts: readonly Attempt[], killAfterMs: number) {
  const exit = once(server.process, 'close')
  const registering = attempts.map(async attempt => {
    const { body } = await register(server, attempt)
    attempt.answered = body
  })
  setTimeout(() => server.process.kill('SIGKILL'), killAfterMs)
  await Promise.allSettled([...registering, exit])
}

/** The faults left after all keys were sent again to the restarted server. */
async function faultsAfter(server: RunningServer, attempts: readonly Attempt[]): Promise<string[]> {
  const keys = readLogKeys(server.vkey, server.vrfPublicKey)
  const faults: string[] = []
  for (const attempt of attempts) {
    const { status, body } = await register(server, attempt)
    const { answered, publicKey } = attempt
    if (status !== 200 && status !== 201) faults.push(`${publicKey} answers ${status}`)
    else if (answered !== undefined && answered.deviceId !== body.deviceId) {
      faults.push(`${publicKey} was ${answered.deviceId} and is ${body.deviceId}`)
    } else if (!(await isProven(server, keys, attempt, body))) faults.push(`${publicKey} is at another index`)
  }
  for (const user of new Set(attempts.map(({ user }) => user))) {
    const { length } = await devicesOf(server, user)
    if (length !== KEYS_PER_USER) faults.push(`${user.userId} has ${length} devices`)
  }
  return faults
}

t.test(`after each of ${KILLS} kills, every key is one device with one proven entry`, async t => {
  const seed = seedOf()
  const random = randomFrom(seed)
  const dataFolder = t.testdir()
  const people = KILLS * USERS
  let interrupted = 0
  let server = await startServer(optionsFor(dataFolder, people))
  for (let kill = 0; kill < KILLS; kill++) {
    const numbers = Array.from({ length: USERS }, (_, at) => kill * USERS + at)
    const users = await Promise.all(numbers.map(number => signIn(server, number)))
    const attempts: Attempt[] = users.flatMap(user =>
      Array.from({ length: KEYS_PER_USER }, () => ({ user, publicKey: newKey() })),
    )
    await registerUntilKilled(server, attempts, random() * KILLED_WITHIN_MS)
    interrupted += attempts.filter(({ answered }) => answered === undefined).length

    server = await startServer(optionsFor(dataFolder, people))
    t.same(await faultsAfter(server, attempts), [], `seed ${seed}: kill ${kill}`)
  }
  t.equal(await server.end(), 0)
  t.ok(interrupted > KILLS, `${interrupted} registrations were cut short`)
})
