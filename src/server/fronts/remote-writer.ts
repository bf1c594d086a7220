/** The writer as a front sees it, wherever it is: its actors, and the writes that the front asks of it. */

import type {
  CallRoomMessage,
  DevTopicMessage,
  FrontDeskMessage,
  PresenceMessage,
} from '../../../actors/messages.ts'
import type { DeviceId, UserId } from '../../domain/ids.ts'
import { WriterPort } from '../../fronts/writer-port.ts'
import type { RequestLog } from '../../operations/console/requests.ts'
import type { Ref } from '../../runtime/actor.ts'
import type { World } from '../../runtime/clock.ts'
import type { ActorSystem } from '../../runtime/system.ts'
import { BoundedCache } from '../../store/engine/bounded-cache.ts'
import type { InboxWrites } from '../../store/messages/inbox-writes.ts'
import type { ServedRequest } from '../../transport/http-deps.ts'
import type { SpokenTo } from '../signalling.ts'
import { REQUEST_DEADLINE_MS } from './front-routes.ts'
import { sentCommand } from './sent-command.ts'

export class RemoteWriter {
  readonly port = new WriterPort()
  readonly actors: SpokenTo
  /** Answers for the writer. */
  readonly desk: Ref<FrontDeskMessage>
  readonly inboxWrites: InboxWrites
  readonly #world: Pick<World, 'monotonicMs' | 'immediate'>
  /** No two users have a device of one id. A text of both ids would cost a tenth of a request. */
  readonly #seenAtMs = new BoundedCache<DeviceId, number>(SEEN_KEPT_MAX)

  /** `front` is this front's name, unique in the cluster. */
  constructor(
    system: Pick<ActorSystem, 'remoteRef'>,
    world: Pick<World, 'monotonicMs' | 'immediate'>,
    front: string,
  ) {
    const actor =
      <Message>(kind: string) =>
      (id: string) =>
        system.remoteRef<Message>(this.port, kind, id)
    const rooms = actor<CallRoomMessage>('call-room')
    this.actors = {
      users: actor<PresenceMessage>('presence'),
      topics: actor<DevTopicMessage>('dev-topic'),
      rooms: {
        of: rooms,
        ask: (callId, command, idempotent) =>
          this.desk.ask(
            reply => ({ kind: 'command', callId, command: sentCommand(command), idempotent, reply }),
            REQUEST_DEADLINE_MS,
          ),
      },
    }
    this.desk = actor<FrontDeskMessage>('front-desk')(front)
    this.inboxWrites = writesAt(this.desk)
    this.#world = world
  }

  /** Resolves when this front shows every change that a client was answered for, or the writer could not be asked. */
  async caughtUp(): Promise<void> {
    await this.desk.ask(reply => ({ kind: 'catch-up', reply }), CATCH_UP_MS_MAX).catch(() => undefined)
  }

  /** Reports a device as present; once in a while is enough. */
  readonly onSeen = (userId: UserId, deviceId: DeviceId): void => {
    const nowMs = this.#world.monotonicMs()
    if (nowMs - (this.#seenAtMs.get(deviceId) ?? Number.NEGATIVE_INFINITY) < SEEN_EVERY_MS) return
    this.#seenAtMs.set(deviceId, nowMs)
    this.port.sendSoon({ kind: 'seen', userId, deviceId })
  }

  readonly markPairUsed = async (sessionId: Uint8Array, generation: number): Promise<void> => {
    this.port.sendSoon({ kind: 'pair-used', sessionId, generation })
  }

  /** For the console of the writer, once a turn. */
  show(requests: RequestLog, served: ServedRequest): void {
    if (!requests.add(served)) return
    this.#world.immediate(() => {
      const taken = requests.take()
      if (taken.length > 0) this.desk.tell({ kind: 'served', requests: taken })
    })
  }
}

function writesAt(desk: Ref<FrontDeskMessage>): InboxWrites {
  return {
    settle: (settled, sent) =>
      desk.ask(reply => ({ kind: 'settle', settled, sent, reply }), REQUEST_DEADLINE_MS),
    markDelivered: (userId, deviceId, delivered) =>
      desk.ask(
        reply => ({ kind: 'mark-delivered', userId, deviceId, delivered, reply }),
        REQUEST_DEADLINE_MS,
      ),
  }
}

/** A front that hangs keeps a client from other fronts no longer. */
const CATCH_UP_MS_MAX = 1_000
const SEEN_EVERY_MS = 1_000
const SEEN_KEPT_MAX = 65_536
