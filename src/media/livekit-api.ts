/**
 * A client of LiveKit's RoomService (Twirp, JSON over HTTP). It sends the same requests as LiveKit's server SDK, which sets no
 * limit on the size of an answer. Only members whose names have no underscore are read: LiveKit may write such names in two ways.
 */

import { GatewayError, type GatewayFailure } from './gateway.ts'
import { GatewayRequests, listOf, type Members, membersOf, type OnRequest } from './gateway-requests.ts'
import type { LiveKitSettings } from './livekit-settings.ts'
import { LiveKitSigner } from './livekit-tokens.ts'

/** A room as LiveKit lists it. */
export interface LiveKitRoom {
  readonly name: string
  readonly metadata: string
}

export class LiveKitApi {
  readonly #apiUrl: string
  readonly #signer: LiveKitSigner
  readonly #requests: GatewayRequests
  readonly #nowMs: () => number

  constructor(
    settings: Pick<LiveKitSettings, 'apiUrl' | 'apiKey' | 'apiSecret'>,
    onRequest?: OnRequest,
    nowMs = () => Date.now(),
  ) {
    this.#apiUrl = settings.apiUrl
    this.#signer = new LiveKitSigner(settings)
    this.#requests = new GatewayRequests('livekit', onRequest)
    this.#nowMs = nowMs
  }

  /** Makes the room, or finds the one that is there. */
  async createRoom(room: { readonly name: string; readonly metadata: string }, form: Members): Promise<void> {
    await this.#ask('CreateRoom', { ...form, ...room }, { roomCreate: true })
  }

  /** Rejects with `no-such-room`. */
  async deleteRoom(room: string): Promise<void> {
    await this.#ask('DeleteRoom', { room }, { roomCreate: true })
  }

  /** All rooms, or those of these names that are there. */
  async listRooms(names: readonly string[] = []): Promise<readonly LiveKitRoom[]> {
    const { rooms } = await this.#ask('ListRooms', { names }, { roomList: true })
    if (rooms !== undefined && !Array.isArray(rooms))
      throw new GatewayError('malformed', 'livekit listed no rooms')
    return listOf(rooms).flatMap(each => {
      const { name, metadata } = membersOf(each) ?? {}
      if (typeof name !== 'string') return []
      return [{ name, metadata: typeof metadata === 'string' ? metadata : '' }]
    })
  }

  /** The identities of connected participants; none for a missing room. */
  async listParticipants(room: string): Promise<readonly string[]> {
    const { participants } = await this.#ask('ListParticipants', { room }, { roomAdmin: true, room })
    return listOf(participants).flatMap(each => {
      const { identity, state } = membersOf(each) ?? {}
      return typeof identity === 'string' && CONNECTED.has(state) ? [identity] : []
    })
  }

  /** Ends their connection. Rejects with `no-such-room` if they have none. */
  async removeParticipant(room: string, identity: string): Promise<void> {
    await this.#ask('RemoveParticipant', { room, identity }, { roomAdmin: true, room })
  }

  async #ask(method: string, body: Members, video: Members): Promise<Members> {
    const nowS = Math.floor(this.#nowMs() / 1000)
    const token = this.#signer.token({ exp: nowS + TOKEN_S, video })
    const { status, members } = await this.#requests.post({
      url: `${this.#apiUrl}/twirp/livekit.RoomService/${method}`,
      authorization: `Bearer ${token}`,
      body,
    })
    if (status === 200) return members
    const { code } = members
    const isName = typeof code === 'string' && /^[a-z_]{1,32}$/.test(code)
    throw new GatewayError(
      FAILURES.get(code) ?? 'refused',
      `livekit refused ${method}: ${isName ? code : `status ${status}`}`,
    )
  }
}

const FAILURES = new Map<unknown, GatewayFailure>([
  ['not_found', 'no-such-room'],
  ['deadline_exceeded', 'timeout'],
  ['unavailable', 'network'],
])
const CONNECTED: ReadonlySet<unknown> = new Set(['JOINED', 'ACTIVE'])
/** Lifetime of a request's token: LiveKit's clock may be late. */
const TOKEN_S = 600
