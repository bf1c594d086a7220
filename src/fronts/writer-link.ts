/** A front's way to the writer: its parent's link while the parent is the writer, else a link of its own to the writing node. */

import { backOffMs } from '../back-off.ts'
import { messageOf, SignalError } from '../errors.ts'
import type { World } from '../runtime/clock.ts'
import { Acknowledgements } from './acknowledgements.ts'
import { Link, type LinkLost, type LinkOptions } from './link/link.ts'
import type { NodeProof } from './link/link-proof.ts'
import { connectToNode, type NodePlace, type NodeSocket, type NodeTls } from './link/node-sockets.ts'
import { isSamePlace, type MessageToFront, type WriterPlace } from './messages.ts'
import type { WriterPort } from './writer-port.ts'

export interface WriterLinkDeps {
  /** Actors send over it, whichever link is in use. */
  readonly port: WriterPort
  /** In a front: to the process that has started it. */
  readonly parent?: Link
  /** The front's name for the writer, unique in the cluster. */
  readonly self: LinkOptions['self']
  readonly system: LinkOptions['system']
  readonly serves: LinkOptions['serves']
  readonly tls: NodeTls | undefined
  /** See `linkKeyOf`. */
  readonly linkKey: NodeProof['key']
  readonly world: World
  readonly logger: { info(line: object): void; warn(line: object): void }
  /** Called with each message of a writer on another node; the next one waits for the promise. */
  readonly onMessage: (message: MessageToFront) => Promise<void> | undefined
  /** Asks under way have been refused, and the writer's topics are silent. */
  readonly onLost: () => void
  /** The writer runs another version, and this one can't read its messages. */
  readonly onOtherForm?: (reason: LinkLost) => void
}

export class WriterLink {
  readonly port: WriterPort
  readonly #deps: WriterLinkDeps
  /** The link in use. */
  #link: Link | undefined
  /** The link to another node, which may not be open yet. */
  #far: Link | undefined
  #place: WriterPlace | undefined
  /** Counts changes of place: work for an earlier place stops. */
  #turn = 0

  constructor(deps: WriterLinkDeps) {
    this.port = deps.port
    this.#deps = deps
  }

  /** The writer has moved; undefined while there is no writer. */
  goTo(place: WriterPlace | undefined): void {
    if (isSamePlace(place, this.#place)) return
    this.#place = place
    this.#turn += 1
    this.#far?.close()
    this.#far = undefined
    this.#use(place === 'here' ? this.#deps.parent : undefined)
    if (place !== 'here' && place !== undefined) void this.#connect(place, this.#turn)
  }

  /** Whether there is a link to a writer on another node. */
  get isFar(): boolean {
    return this.#link !== undefined && this.#link === this.#far
  }

  async #connect(place: NodePlace, turn: number, failures = 0): Promise<void> {
    const { tls, self, linkKey, logger } = this.#deps
    let node: NodeSocket
    try {
      node = await connectToNode(place, tls, { name: self.name, key: linkKey })
    } catch (error) {
      if (turn !== this.#turn) return
      logger.warn({ event: 'writer-not-reached', ...place, reason: messageOf(error) })
      return this.#connectLater(place, turn, failures + 1)
    }
    if (turn === this.#turn) this.#open(node, place, turn)
    else node.socket.destroy()
  }

  #connectLater(place: NodePlace, turn: number, failures: number): void {
    const { world } = this.#deps
    const cancel = world.every(backOffMs(BACK_OFF, failures, world.random()), () => {
      cancel()
      if (turn === this.#turn) void this.#connect(place, turn, failures)
    })
  }

  #open(node: NodeSocket, place: NodePlace, turn: number): void {
    const { self, system, serves, world, logger, onMessage, onOtherForm } = this.#deps
    const acknowledgements = new Acknowledgements()
    const link: Link = new Link({
      ...node,
      self,
      system,
      serves,
      world,
      onOpen: () => {
        logger.info({ event: 'writer-reached', ...place })
        this.#use(link)
      },
      onMessage: (message, writer) => acknowledgements.of(message as MessageToFront, writer, onMessage),
      onLost: reason => {
        logger.warn({ event: 'writer-lost', ...place, reason: reason.message })
        const isOther = reason.by === 'other form'
        if (isOther) onOtherForm?.(reason)
        if (turn !== this.#turn) return
        this.#use(undefined)
        this.#connectLater(place, turn, isOther ? Number.POSITIVE_INFINITY : 1)
      },
    })
    this.#far = link
  }

  #use(link: Link | undefined): void {
    const before = this.#link
    this.#link = link
    this.port.use(link)
    if (before === undefined || before === link) return
    before.refuseAsks(
      new SignalError('OUTCOME_UNKNOWN', 'the node that took the request is no longer the writer'),
    )
    this.#deps.onLost()
  }
}

const BACK_OFF = { firstMs: 250, maxMs: 2_000 }
