/**
 * PostgreSQL: a table of messages and NOTIFY. One process between it and the receivers listens, and reads and deletes their
 * messages, several at once where more have come: a connection for each receiver would be a process for each.
 */

import pg from 'pg'
import { BODY, type BrokerClient, SENDERS } from './broker.ts'

export class PostgresClient implements BrokerClient {
  readonly #url: string
  readonly #senders: pg.Client[] = []

  constructor(url: string) {
    this.#url = url
  }

  async open(_receivers: number, onReceived: (receiver: number) => void): Promise<void> {
    for (let sender = 0; sender < SENDERS; sender++) this.#senders.push(await this.#connect())
    const gateway = await this.#connect()
    await gateway.query(
      'create table messages (id bigserial primary key, receiver int not null, body text not null)',
    )
    await gateway.query('listen messages')
    const work = new Work(gateway, onReceived)
    gateway.on('notification', ({ payload }) => work.add(payload!))
  }

  async send(receivers: readonly number[], sender: number): Promise<void> {
    await this.#senders[sender]!.query({ name: 'send', text: SEND, values: [receivers, BODY] })
  }

  async #connect(): Promise<pg.Client> {
    const client = new pg.Client(this.#url)
    client.on('error', () => {})
    await client.connect()
    return client
  }
}

/** Reads and deletes all that has come since, at once. */
class Work {
  readonly #gateway: pg.Client
  readonly #onReceived: (receiver: number) => void
  #waiting: string[] = []
  #acknowledged: string[] = []
  #isBusy = false

  constructor(gateway: pg.Client, onReceived: (receiver: number) => void) {
    this.#gateway = gateway
    this.#onReceived = onReceived
  }

  add(ids: string): void {
    this.#waiting.push(...ids.split(','))
    if (!this.#isBusy) void this.#run()
  }

  async #run(): Promise<void> {
    this.#isBusy = true
    while (this.#waiting.length > 0) {
      const { rows } = await this.#gateway.query({
        name: 'read',
        text: READ,
        values: [this.#waiting.splice(0)],
      })
      for (const { id, receiver } of rows) {
        this.#acknowledged.push(id)
        this.#onReceived(receiver)
      }
      const ids = this.#acknowledged.splice(0)
      await this.#gateway.query({ name: 'delete', text: DELETE, values: [ids] })
    }
    this.#isBusy = false
  }
}

const SEND = `with sent as (insert into messages (receiver, body) select unnest($1::int[]), $2 returning id)
  select pg_notify('messages', string_agg(id::text, ',')) from sent`
const READ = 'select id, receiver, body from messages where id = any ($1::bigint[])'
const DELETE = 'delete from messages where id = any ($1::bigint[])'
