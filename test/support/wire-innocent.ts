/** A client that is served while other ones misbehave: its messages to itself come back, and nothing else does. */

import type { Test } from 'tap'
import { type Carrier, sendFrame, type WirePeer } from './wire-peer.ts'
import type { WireServer } from './wire-server.ts'

export class Innocent {
  readonly #peer: WirePeer
  readonly #topic: string
  rounds = 0

  static async join(house: WireServer, carrier: Carrier): Promise<Innocent> {
    const [device] = await house.devices(1)
    const topic = `/topic/dev.innocent-${device!.userId}`
    const peer = await house.connect(carrier, device!)
    await peer.subscribe(topic)
    return new Innocent(peer, topic)
  }

  private constructor(peer: WirePeer, topic: string) {
    this.#peer = peer
    this.#topic = topic
  }

  async round(): Promise<void> {
    const said = `${++this.rounds}`
    this.#peer.write(sendFrame(this.#topic, said))
    const { body } = await this.#peer.message()
    if (String(body) !== said) throw new Error(`${body} instead of ${said}`)
  }

  /** Says goodbye; nothing came that was not meant for them. */
  async leave(t: Test): Promise<void> {
    await this.round()
    t.same(await this.#peer.disconnect(), [], 'who did nothing noticed nothing')
  }
}
