/** The Admin API of Janus over HTTP, with checks of each answer's members that we read. */

import { randomUUID } from 'node:crypto'
import { GatewayError } from './gateway.ts'
import { GatewayRequests, type Members, membersOf, type OnRequest } from './gateway-requests.ts'
import type { JanusSettings } from './janus-settings.ts'
import { VIDEO_ROOM } from './room-tokens.ts'

type AdminSettings = Pick<JanusSettings, 'adminUrl' | 'adminSecret'>

export class JanusAdmin {
  readonly #settings: AdminSettings
  readonly #requests: GatewayRequests

  constructor(settings: AdminSettings, onRequest?: OnRequest) {
    this.#settings = settings
    this.#requests = new GatewayRequests('janus', onRequest)
  }

  /** The answer's members. */
  async request(body: Members): Promise<Members> {
    const { adminUrl, adminSecret } = this.#settings
    const { members: answer } = await this.#requests.post({
      url: adminUrl,
      body: { ...body, admin_secret: adminSecret, transaction: randomUUID() },
    })
    if (answer.janus !== 'success' && answer.janus !== 'pong' && answer.janus !== 'server_info') {
      const code = membersOf(answer.error)?.code
      throw new GatewayError('refused', `janus refused ${body.janus}: error ${numberText(code)}`)
    }
    return answer
  }

  /** A request to the plugin of the rooms. */
  async videoRoom(request: Members): Promise<Members> {
    const answer = await this.request({ janus: 'message_plugin', plugin: VIDEO_ROOM, request })
    const response = membersOf(answer.response)
    if (response === undefined) throw new GatewayError('malformed', 'janus answered without a response')
    const code = response.error_code
    if (code === undefined) return response
    throw new GatewayError(
      FAILURES.get(code) ?? 'refused',
      `janus refused ${request.request}: error ${numberText(code)}`,
    )
  }
}

function numberText(value: unknown): string {
  return typeof value === 'number' ? String(value) : 'of no number'
}

const FAILURES = new Map<unknown, 'no-such-room' | 'room-in-use'>([
  [426, 'no-such-room'],
  [427, 'room-in-use'],
])
