/**
 * WebSocket (RFC 6455) over uWebSockets.js, on the paths that STOMP clients expect and on the listener of HTTP: whose
 * upgrade is accepted, which sub-protocol it gets, and one connection. The session gives the bytes their meaning.
 *
 * Upgrades are synchronous; authentication is a matter of STOMP. Pings are answered and sent by uWebSockets and are
 * no sign of life of a STOMP client. A message that is not UTF-8 though it is text, or longer than
 * `WEBSOCKET_MESSAGE_BYTES_MAX`, ends the connection there, without a close frame.
 */

import uWS from 'uWebSockets.js'
import { SignalError } from '../errors.ts'
import { BACKPRESSURE_BYTES_MAX, WEBSOCKET_IDLE_SECONDS, WEBSOCKET_MESSAGE_BYTES_MAX } from '../limits.ts'
import { upgradeFault } from './body-headers.ts'
import { isOwnOrigin } from './cors.ts'
import type { Exchange, ExchangeShared } from './exchange.ts'
import type { WebSocketDeps } from './http-deps.ts'
import { type ConnectionHost, DROPPED, QueuedConnection } from './queued-connection.ts'
import type { HttpRoute } from './route.ts'

/** Begins the answer to an upgrade that is not accepted. */
export type BeginRefusal = (res: uWS.HttpResponse, req: uWS.HttpRequest) => Exchange

/** Serves WebSockets on the app. `shared` is what the HTTP routes of the app share. */
export function serveWebSockets(
  app: uWS.TemplatedApp,
  deps: WebSocketDeps,
  shared: ExchangeShared,
  beginRefusal: BeginRefusal,
): void {
  const { accept, connections } = deps
  const host: ConnectionHost = { accept, connections, onFault: shared.server.onFault }
  const behavior: uWS.WebSocketBehavior<Upgraded> = {
    ...OPTIONS,
    upgrade(res, req, context) {
      const fault = upgradeFault(req)
      if (fault !== undefined) return beginRefusal(res, req).refuseFraming(fault, req)
      const network = shared.addresses.of(res, req)
      const refusal = refusalOf(req, network, deps, shared)
      if (refusal !== undefined) return beginRefusal(res, req).refuseUpgrade(refusal)
      const connection = new WebSocketConnection(host, network, req.getHeader('authorization'))
      const key = req.getHeader('sec-websocket-key')
      // An empty protocol is not sent, and no extension is taken: bodies are ciphertext, which does not shrink.
      res.upgrade<Upgraded>({ connection }, key, chooseProtocol(req), '', context)
    },
    open: ws => ws.getUserData().connection.attach(ws),
    message: (ws, message, isBinary) => ws.getUserData().connection.onMessage(Buffer.from(message), isBinary),
    drain: ws => ws.getUserData().connection.onWritten(ws.getBufferedAmount()),
    close: (ws, code) => ws.getUserData().connection.onOver(code),
  }
  for (const path of PATHS) {
    app.ws<Upgraded>(path, behavior)
    app.ws<Upgraded>(`${path}/`, behavior)
  }
}

/** The reply to a plain request on these paths. */
export const webSocketRoute: HttpRoute = {
  method: 'GET',
  path: '/ws',
  aliases: ['/app/ws', '/stomp', '/ws/websocket'],
  handle() {
    throw upgradeRequired()
  },
}

class WebSocketConnection extends QueuedConnection {
  /** Not touched once the connection has ended: uWebSockets throws then. */
  #ws!: uWS.WebSocket<Upgraded>
  /** Whether the client speaks in binary messages; undefined until it has said more than a beat. */
  #isBinary: boolean | undefined = undefined

  attach(ws: uWS.WebSocket<Upgraded>): void {
    this.#ws = ws
    this.open()
  }

  /** Choice: its first message decides. Some clients beat in text though they send their frames in binary. */
  onMessage(bytes: Uint8Array, isBinary: boolean): void {
    if (this.#isBinary === undefined && !isBeat(bytes)) this.#isBinary = isBinary
    this.onInput(bytes)
  }

  protected write(frames: readonly Uint8Array[], areText: readonly boolean[]): number {
    const ws = this.#ws
    const isBinary = this.#isBinary === true
    if (frames.length === 1) {
      const outcome = ws.send(frames[0]!, isBinary || !areText[0]!)
      return outcome === SENT ? 0 : outcome === DROPPED_BY_UWS ? DROPPED : ws.getBufferedAmount()
    }
    corked = ws
    corkedFrames = frames
    areCorkedText = areText
    isCorkedBinary = isBinary
    isAnyDropped = false
    ws.cork(sendCorked)
    return isAnyDropped ? DROPPED : ws.getBufferedAmount()
  }

  protected finish(code: number, reason: string): void {
    this.#ws.end(code, reason)
  }

  protected abort(): void {
    this.#ws.close()
  }
}

/** The user data of a socket; uWebSockets copies its members to an object of its own. */
interface Upgraded {
  readonly connection: WebSocketConnection
}

// Sent by `sendCorked`: a closure for each connection and turn would cost more.
let corked: uWS.WebSocket<Upgraded>
let corkedFrames: readonly Uint8Array[]
let areCorkedText: readonly boolean[]
let isCorkedBinary: boolean
let isAnyDropped = false

function sendCorked(): void {
  for (let at = 0; at < corkedFrames.length; at++) {
    const isBinary = isCorkedBinary || !areCorkedText[at]!
    if (corked.send(corkedFrames[at]!, isBinary) === DROPPED_BY_UWS) isAnyDropped = true
  }
}

/** An end of line, as STOMP's heart-beats are; also no octets at all. */
function isBeat(bytes: Uint8Array): boolean {
  return bytes.length <= 2 && bytes.every(byte => byte === LF || byte === CR)
}

function refusalOf(
  req: uWS.HttpRequest,
  network: string,
  { connections, publicUrl }: WebSocketDeps,
  { server, cors }: ExchangeShared,
): SignalError | undefined {
  const limited = server.admission?.admitSocket(network)
  if (limited !== undefined) return limited
  // uWebSockets looks at nothing but the key.
  if (req.getHeader('sec-websocket-version') !== '13') return upgradeRequired()
  const origin = req.getHeader('origin')
  const isAllowed =
    origin === '' || cors?.isAllowed(origin) || isOwnOrigin(origin, req.getHeader('host'), publicUrl?.())
  if (!isAllowed) {
    server.onOriginRefused?.(origin)
    return new SignalError('ORIGIN_NOT_ALLOWED', 'pages of this origin may not connect')
  }
  if (connections.isFull) return new SignalError('OVERLOADED', 'no room for another connection')
  return undefined
}

function upgradeRequired(): SignalError {
  return new SignalError('UPGRADE_REQUIRED', 'this path speaks WebSocket, version 13')
}

/**
 * The newest of our sub-protocols among those that are offered. Else none, whatever is offered: the client decides
 * whether it goes on, and a token that was put among them is not sent back.
 */
function chooseProtocol(req: uWS.HttpRequest): string {
  const first = req.getHeader('sec-websocket-protocol').trim()
  // Most clients offer nothing better; reading all headers, since several may have that name, costs more.
  if (first === '' || first === PROTOCOLS[0]) return first
  const offered: string[] = []
  req.forEach((name, value) => {
    if (name === 'sec-websocket-protocol') for (const item of value.split(',')) offered.push(item.trim())
  })
  return PROTOCOLS.find(protocol => offered.includes(protocol)) ?? ''
}

const LF = 0x0a
const CR = 0x0d
const PATHS = [webSocketRoute.path, ...(webSocketRoute.aliases ?? [])]
const PROTOCOLS = ['v12.stomp', 'v11.stomp', 'v10.stomp']
/** Our own limits come before those of uWebSockets, which says nothing when it closes. */
const OPTIONS = {
  maxPayloadLength: WEBSOCKET_MESSAGE_BYTES_MAX,
  maxBackpressure: BACKPRESSURE_BYTES_MAX,
  idleTimeout: WEBSOCKET_IDLE_SECONDS,
  sendPingsAutomatically: true,
  maxLifetime: 0,
  compression: uWS.DISABLED,
} satisfies uWS.WebSocketBehavior<Upgraded>

/** Results of uWebSockets' `send`. */
const SENT = 1
const DROPPED_BY_UWS = 2
