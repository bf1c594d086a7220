/** Two actor systems in fake worlds with a link between them, whose octets pass when the test lets them. */

import { Duplex } from 'node:stream'
import { Link, type LinkLost, type LinkOptions } from '../../src/fronts/link/link.ts'
import { makeStage, type Stage } from './actors.ts'

/** One end of a connection: bytes written to it come out of the other end. */
class End extends Duplex {
  other: End | undefined
  isHeld = false
  #held: (() => void)[] = []

  override _read(): void {}

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    const pass = () => {
      this.other?.push(Buffer.from(chunk))
      done()
    }
    if (this.isHeld) this.#held.push(pass)
    else pass()
  }

  override _final(done: () => void): void {
    this.other?.push(null)
    done()
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.other?.destroy()
    done(error)
  }

  /** Lets the held bytes pass. */
  release(): void {
    this.isHeld = false
    for (const pass of this.#held.splice(0)) pass()
  }
}

export interface Node extends Stage {
  readonly link: Link
  readonly end: End
  readonly lost: LinkLost[]
  readonly peers: string[]
}

type NodeOptions = Pick<
  Partial<LinkOptions>,
  'macs' | 'serves' | 'waitingBytesMax' | 'onMessage' | 'beforeAnswer'
>

const ANY: LinkOptions['serves'] = new Map([['probe', () => true]])

export function ends(): [End, End] {
  const [one, other] = [new End(), new End()]
  one.other = other
  other.other = one
  return [one, other]
}

export function nodeAt(end: End, name: string, options: NodeOptions = {}): Node {
  const stage = makeStage()
  const lost: LinkLost[] = []
  const peers: string[] = []
  const link = new Link({
    socket: end,
    self: { name, version: '1.2.3' },
    system: stage.system,
    serves: ANY,
    world: stage.world,
    onOpen: peer => peers.push(peer.name),
    onLost: reason => lost.push(reason),
    ...options,
  })
  return { ...stage, link, end, lost, peers }
}

export function linkedNodes(front: NodeOptions = {}, writer: NodeOptions = {}) {
  const [one, other] = ends()
  return new LinkedNodes(nodeAt(one, 'front', front), nodeAt(other, 'writer', writer))
}

export class LinkedNodes {
  readonly front: Node
  readonly writer: Node

  constructor(front: Node, writer: Node) {
    this.front = front
    this.writer = writer
  }

  /** Runs both until neither has anything to do. */
  async settle(): Promise<void> {
    for (let quiet = 0; quiet < 3; ) {
      const isIdle = this.front.world.isIdle && this.writer.world.isIdle
      quiet = isIdle ? quiet + 1 : 0
      await this.front.world.settle()
      await this.writer.world.settle()
    }
  }

  /** Moves both clocks by steps short enough that each hears the other's beats. */
  async advance(ms: number): Promise<void> {
    for (let rest = ms; rest > 0; rest -= 100) {
      for (const { world } of [this.front, this.writer]) world.advance(Math.min(100, rest))
      await this.settle()
    }
  }
}
