/** Registers keys of made-up devices by gRPC, at each node, and keeps those that were answered for. */

import { randomBytes } from 'node:crypto'
import grpc from '@grpc/grpc-js'
import { metadataWith, RegisterClient } from '../support/register-client.ts'
import type { GrpcAddress, NodeAddresses } from './settings.ts'

/** A key that the log has answered for. */
export interface RegisteredKey {
  readonly userId: string
  readonly deviceId: string
  readonly publicKey: string
  readonly vrfHash: string
}

interface NodeClient {
  readonly node: string
  readonly client: RegisterClient
}

export class Registrar {
  readonly keys: RegisteredKey[] = []
  readonly #clients: readonly NodeClient[]
  readonly #metadata: grpc.Metadata

  private constructor(clients: readonly NodeClient[], metadata: grpc.Metadata) {
    this.#clients = clients
    this.#metadata = metadata
  }

  /** Tries each node's gRPC, and says which one can't be used. Undefined where none can. */
  static async open(
    nodes: readonly NodeAddresses[],
    token: string | undefined,
    say: (sentence: string) => void,
  ): Promise<Registrar | undefined> {
    const metadata = metadataWith(token)
    const clients: NodeClient[] = []
    for (const { name, grpc: address } of nodes) {
      if (address === undefined) continue
      const client = { node: name, client: clientOf(address) }
      const registrar = new Registrar([client], metadata)
      try {
        await registrar.registerAt(name)
        clients.push(client)
      } catch (error) {
        client.client.close()
        say(`gRPC of ${name} can't be used: ${statusOf(error)}`)
      }
    }
    return clients.length === 0 ? undefined : new Registrar(clients, metadata)
  }

  /** Names of the nodes that take registrations. */
  get nodes(): readonly string[] {
    return this.#clients.map(({ node }) => node)
  }

  /** Resolves when it is answered for; rejects when the node refuses or does not answer. */
  async registerAt(name: string): Promise<void> {
    const { client } = this.#clients.find(({ node }) => node === name)!
    const userId = randomBytes(8).readBigUInt64BE()
    const publicKey = randomBytes(32).toString('base64')
    const { vrfHash } = await client.register(userId, 1n, publicKey, this.#metadata, ANSWER_MS_MAX)
    this.keys.push({ userId: `${userId}`, deviceId: '1', publicKey, vrfHash })
  }

  close(): void {
    for (const { client } of this.#clients) client.close()
  }
}

function clientOf({ address, isTls }: GrpcAddress): RegisterClient {
  const { credentials } = grpc
  return new RegisterClient(address, isTls ? credentials.createSsl() : credentials.createInsecure())
}

/** The status' name: a message may quote the request. */
function statusOf(error: unknown): string {
  const { code } = error as { code?: number }
  return code === undefined ? 'no answer' : (grpc.status[code] ?? `status ${code}`)
}

const ANSWER_MS_MAX = 5_000
