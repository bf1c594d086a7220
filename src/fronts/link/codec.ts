/**
 * Messages between processes as octets: msgpack, in which an address, a reply, a refusal and a broadcast stand for themselves
 * as extensions. Names of members travel once in each direction, so the reader has to read everything, in order.
 */

import { addExtension, Packr, Unpackr } from 'msgpackr'
import { assert, type ErrorCode, SignalError } from '../../errors.ts'
import type { Ref, Reply } from '../../runtime/actor.ts'
import { PendingAsk } from '../../runtime/ask.ts'
import type { Port } from '../../runtime/port.ts'
import { ActorRef } from '../../runtime/ref.ts'
import { RemoteRef } from '../../runtime/remote-ref.ts'
import { Broadcast } from '../../stomp/broadcast.ts'
import type { Headers } from '../../stomp/frame.ts'

/** The two ends as addresses and replies in a message know them. */
export interface Ends {
  readonly port: Port
  /** An actor of the other process. */
  readonly remoteRef: (kind: string, id: string) => Ref<unknown>
  /** An actor of this process, which the other one may speak to. Throws where it may not. */
  readonly localRef: (kind: string, id: string) => Ref<unknown>
}

/** The reply in an ask from the other process, until the ask is put to its actor. */
export class RemoteReply implements Reply<unknown> {
  #reply: Reply<unknown> | undefined

  bind(reply: Reply<unknown>): void {
    this.#reply = reply
  }

  answer(answer: unknown): void {
    this.#reply?.answer(answer)
  }

  refuse(error: SignalError): void {
    this.#reply?.refuse(error)
  }
}

export class Codec {
  readonly #ends: Ends
  readonly #packr = new Packr({ sequential: true })
  readonly #unpackr = new Unpackr({ sequential: true, copyBuffers: true })
  /** Replies in the frame being read. */
  #replies: RemoteReply[] = []

  constructor(ends: Ends) {
    this.#ends = ends
  }

  pack(value: unknown): Buffer {
    const outer = current
    current = this
    try {
      return this.#packr.pack(value)
    } finally {
      current = outer
    }
  }

  /** The values of a frame, one behind another, and the replies in each. Throws `MALFORMED`. */
  unpackAll(frame: Uint8Array, onValue: (value: unknown, replies: readonly RemoteReply[]) => void): void {
    const outer = current
    current = this
    const read: [unknown, readonly RemoteReply[]][] = []
    try {
      this.#replies = []
      this.#unpackr.unpackMultiple(frame, (value: unknown) => {
        read.push([value, this.#replies])
        this.#replies = []
      })
    } catch (cause) {
      throw new SignalError('MALFORMED', 'a frame of another process can not be read', { cause })
    } finally {
      current = outer
    }
    for (const [value, replies] of read) onValue(value, replies)
  }

  written(ref: ActorRef | RemoteRef): unknown {
    const isTheirs = ref instanceof RemoteRef
    assert(!isTheirs || ref.port === this.#ends.port, 'an address of a third process is not passed on')
    return [isTheirs, ref.kind, ref.id]
  }

  ref(data: unknown): Ref<unknown> {
    const [isOurs, kind, id] = data as [unknown, unknown, unknown]
    assert(typeof kind === 'string' && typeof id === 'string', 'an address has kind and id')
    return isOurs === true ? this.#ends.localRef(kind, id) : this.#ends.remoteRef(kind, id)
  }

  reply(): RemoteReply {
    const reply = new RemoteReply()
    this.#replies.push(reply)
    return reply
  }
}

/** Extensions are the same for all packers of a process, so they ask this one. */
let current: Codec | undefined

function currentCodec(): Codec {
  assert(current !== undefined, 'addresses and replies stand in messages between processes only')
  return current
}

const REF_TYPE = 0x41
const REPLY_TYPE = 0x42
const REFUSAL_TYPE = 0x43
const BROADCAST_TYPE = 0x44

for (const Class of [ActorRef, RemoteRef]) {
  addExtension({
    Class: Class as unknown as new () => ActorRef,
    type: REF_TYPE,
    write: ref => currentCodec().written(ref),
    read: data => currentCodec().ref(data),
  })
}
addExtension({
  Class: PendingAsk as unknown as new () => PendingAsk<never>,
  type: REPLY_TYPE,
  write: () => null,
  read: () => currentCodec().reply(),
})
addExtension({
  Class: SignalError as unknown as new () => SignalError,
  type: REFUSAL_TYPE,
  write: ({ code, message, errors, members, quota }) => [code, message, errors, members, quota],
  read(data) {
    const [code, message, errors, members, quota] = data as [
      ErrorCode,
      string,
      SignalError['errors'],
      SignalError['members'],
      SignalError['quota'],
    ]
    return new SignalError(code, message, { errors, members, quota })
  },
})
addExtension({
  Class: Broadcast as unknown as new () => Broadcast,
  type: BROADCAST_TYPE,
  write: ({ messageId, headers, body }) => [messageId, headers, body],
  read(data) {
    const [messageId, headers, body] = data as [string, Headers, Uint8Array]
    return new Broadcast(messageId, headers, body)
  },
})
