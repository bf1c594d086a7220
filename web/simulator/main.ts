/**
 * The page of the simulator's people, in a browser without a window: each person in a call sends silence and, where it is a
 * video call, a mark that moves. Encryption and gateway are those of `@callsign/sdk/app/media`; calls and keys come from the simulator.
 */

import type { CallEvents } from '../../src/app/app.ts'
import { Emitter } from '../../src/app/emitter.ts'
import { type CallMedia, joinMedia, type MediaCall } from '../../src/app/media/media.ts'
import type { MediaReport, MediaRequest, SeenCall } from './messages.ts'
import { Portrait } from './portrait.ts'

/** A call of the simulator, as it said last. */
class FollowedCall extends Emitter<CallEvents> implements MediaCall {
  readonly #person: string
  #seen: SeenCall

  constructor(person: string, seen: SeenCall) {
    super()
    this.#person = person
    this.#seen = seen
  }

  get callId() {
    return this.#seen.callId
  }

  get isVideo() {
    return this.#seen.isVideo
  }

  get state() {
    return this.#seen.state
  }

  get roomId() {
    return this.#seen.roomId
  }

  get media() {
    return this.#seen.media
  }

  get participants() {
    return this.#seen.participants
  }

  get keys() {
    return this.#seen.keys.map(held => ({ ...held, key: Uint8Array.from(held.key) }))
  }

  get sendingKey() {
    return this.keys.find(({ epoch }) => epoch === this.#seen.sendingEpoch)
  }

  async askForKey(): Promise<void> {
    report({ kind: 'key-wanted', person: this.#person })
  }

  follow(seen: SeenCall): void {
    const before = this.#seen
    this.#seen = seen
    if (before.state !== seen.state) this.emit('state', seen.state)
    this.emit('changed', undefined)
  }

  onAdmitted(): void {
    if (this.media !== undefined) this.emit('media', this.media)
  }
}

/** One person's part in a call. */
interface Part {
  readonly call: FollowedCall
  readonly media: CallMedia
  readonly portrait: Portrait | undefined
}

const parts = new Map<string, Part>()
const silence = new AudioContext().createMediaStreamDestination().stream.getAudioTracks()[0]!
const socket = new WebSocket(location.href.replace(/^http/, 'ws'))
socket.onmessage = ({ data }) => onRequest(JSON.parse(data))

function onRequest(request: MediaRequest): void {
  const { person } = request
  const part = parts.get(person)
  switch (request.kind) {
    case 'call':
      if (part?.call.callId === request.call.callId) return part.call.follow(request.call)
      leave(person)
      return join(person, request.name, request.call)
    case 'admitted':
      return part?.call.onAdmitted()
    case 'gone':
      return leave(person)
  }
}

function join(person: string, name: string, seen: SeenCall): void {
  const call = new FollowedCall(person, seen)
  const media = joinMedia(call, { microphone: false, camera: false })
  const portrait = seen.isVideo ? new Portrait(name) : undefined
  parts.set(person, { call, media, portrait })
  media.on('state', state => report({ kind: 'state', person, state }))
  media.on('error', ({ code, message }) => report({ kind: 'error', person, code, message }))
  void media.send('microphone', silence.clone())
  if (portrait !== undefined) void media.send('camera', portrait.track)
}

function leave(person: string): void {
  const part = parts.get(person)
  parts.delete(person)
  part?.media.leave()
  part?.portrait?.close()
}

function report(said: MediaReport): void {
  socket.send(JSON.stringify(said))
}
