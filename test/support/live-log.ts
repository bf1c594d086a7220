/** A running server's log for flow tests: devices register with it and are looked up as their contacts would. */

import type { Test } from 'tap'
import { RegisterClient } from '../../scripts/support/register-client.ts'
import { type ExpectedKey, type LogKeys, type LookupResult, readLogKeys } from '../strangers/verifier.ts'
import { openServer } from './open-server.ts'
import { freshPublicKey, type OpenOptions, type OpenServer, postJson } from './server.ts'

export interface LiveLog extends OpenServer {
  readonly client: RegisterClient
  readonly keys: LogKeys
}

/** Starts a development server, by `startServer` in a process of its own, and ends it with the test. */
export async function startLog(
  t: Test,
  dataFolder: string,
  environment: Readonly<Record<string, string>> = {},
  start: (options: OpenOptions) => Promise<OpenServer> = openServer,
): Promise<LiveLog> {
  const server = await start({ dataFolder, environment })
  const client = new RegisterClient(server.grpc)
  t.teardown(async () => {
    client.close()
    await server.end()
  })
  return { ...server, client, keys: readLogKeys(server.vkey, server.vrfPublicKey) }
}

/** A key that Register answered for. */
export interface RegisteredKey extends ExpectedKey {
  readonly index: number
  readonly vrfHash: string
}

export async function registerKey(
  client: RegisterClient,
  userId: bigint,
  deviceId: bigint,
  publicKey = freshPublicKey(),
): Promise<RegisteredKey> {
  const { index, vrfHash } = await client.register(userId, deviceId, publicKey)
  return { userId, deviceId, publicKey, index: Number(index), vrfHash }
}

/** Registers device 1 of `count` users from `firstUser` on, all at once. */
export function registerUsers(
  client: RegisterClient,
  firstUser: number,
  count: number,
): Promise<RegisteredKey[]> {
  const users = Array.from({ length: count }, (_, offset) => BigInt(firstUser + offset))
  return Promise.all(users.map(userId => registerKey(client, userId, 1n)))
}

/** `POST /api/get-public-keys` for these hashes in one request. Throws for anything but 200. */
export async function lookUp(http: string, vrfHashes: readonly string[]): Promise<LookupResult[]> {
  const targets = vrfHashes.map(publicKeyHash => ({ publicKeyHash }))
  const answer = await postJson<{ results: LookupResult[] }>(`${http}/api/get-public-keys`, { targets })
  if (answer.status !== 200) throw new Error(`get-public-keys answers ${answer.status}`)
  return answer.body.results
}

export interface KeyHistory {
  readonly entries: readonly {
    readonly index: string
    readonly publicKey: string
    readonly proof: string
  }[]
  readonly treeSize: string
}

/** `POST /api/get-key-history`. Throws for anything but 200. */
export async function lookUpHistory(http: string, publicKeyHash: string): Promise<KeyHistory> {
  const answer = await postJson<KeyHistory>(`${http}/api/get-key-history`, { publicKeyHash })
  if (answer.status !== 200) throw new Error(`get-key-history answers ${answer.status}`)
  return answer.body
}
