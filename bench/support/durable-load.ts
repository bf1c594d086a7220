/**
 * Program: gives a message to each of ten receivers, durable before they get it, at so many tens of them at once, and waits until all
 * have acknowledged it.
 */

import { type BrokerClient, SENDERS } from './brokers/broker.ts'
import { NatsClient } from './brokers/nats-client.ts'
import { PostgresClient } from './brokers/postgres-client.ts'
import { RabbitMqClient } from './brokers/rabbitmq-client.ts'
import { RedisClient } from './brokers/redis-client.ts'
import { serveParent } from './program.ts'
import { latencyFigures } from './statistics.ts'
import type { Login } from './stomp-socket.ts'

export interface DurableLoadProtocol {
  readonly setup: BrokerAddress
  readonly request: { readonly inFlight: number; readonly seconds: number }
  readonly answer: DurableLoadFigures
}

export type BrokerAddress =
  | { readonly kind: 'redis' | 'nats'; readonly port: number }
  | { readonly kind: 'postgres'; readonly url: string }
  | { readonly kind: 'rabbitmq'; readonly port: number; readonly login: Login }

export interface DurableLoadFigures {
  /** As many as receivers have got. */
  readonly messages: number
  /** Milliseconds until all ten have it. */
  readonly latency: ReturnType<typeof latencyFigures>
}

serveParent<DurableLoadProtocol>(async address => {
  const client = clientOf(address)
  const groups = Array.from({ length: SENDERS }, (_, sender) => new Group(client, sender))
  await client.open(SENDERS * EACH, receiver => groups[Math.floor(receiver / EACH)]!.onReceived())
  return async ({ inFlight, seconds }) => {
    const endMs = performance.now() + seconds * 1000
    const latencies: number[] = []
    const sendUntilEnd = async (group: Group) => {
      for (let startMs = performance.now(); startMs < endMs; startMs = performance.now()) {
        await group.send()
        latencies.push(performance.now() - startMs)
      }
    }
    await Promise.all(groups.slice(0, inFlight).map(sendUntilEnd))
    return { messages: latencies.length * EACH, latency: latencyFigures(latencies) }
  }
})

function clientOf(address: BrokerAddress): BrokerClient {
  switch (address.kind) {
    case 'redis':
      return new RedisClient(address.port)
    case 'nats':
      return new NatsClient(address.port)
    case 'postgres':
      return new PostgresClient(address.url)
    case 'rabbitmq':
      return new RabbitMqClient(address.port, address.login)
  }
}

/** Ten receivers, and who sends to them. */
class Group {
  readonly #client: BrokerClient
  readonly #sender: number
  readonly #receivers: readonly number[]
  #received = 0
  #onAll = () => {}

  constructor(client: BrokerClient, sender: number) {
    this.#client = client
    this.#sender = sender
    this.#receivers = Array.from({ length: EACH }, (_, at) => sender * EACH + at)
  }

  /** Resolves when all have it, and the server has said that it keeps it. */
  async send(): Promise<void> {
    this.#received = 0
    const all = new Promise<void>(resolve => {
      this.#onAll = resolve
    })
    await this.#client.send(this.#receivers, this.#sender)
    await all
  }

  onReceived(): void {
    this.#received++
    if (this.#received === EACH) this.#onAll()
  }
}

const EACH = 10
