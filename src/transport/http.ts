/**
 * HTTP over uWebSockets.js: the listener. It holds no rule: what a route does, who is
 * admitted and which files the log shows are handed in. One request is served by an `Exchange`.
 */

import uWS from 'uWebSockets.js'
import { connect } from 'node:net'
import { setImmediate, setTimeout } from 'node:timers/promises'
import { AnswerHeads } from './answer-head.ts'
import { readBodyHeaders } from './body-headers.ts'
import { CorsPolicy } from './cors.ts'
import { Exchange, type ExchangeShared } from './exchange.ts'
import type { HttpServerDeps, TlsFiles } from './http-deps.ts'
import { type FileSite, namesFile, serveFile } from './log-files.ts'
import { RemoteAddresses } from './remote-address.ts'
import { Router } from './router.ts'
import { serveWebSockets, webSocketRoute } from './websocket.ts'

interface Listening {
  readonly host: string
  readonly port: number
  readonly socket: uWS.us_listen_socket
}

export class HttpServer {
  readonly #deps: HttpServerDeps
  /** The newest listens; each older one serves the connections that it has, with the certificate of its time. */
  readonly #apps: uWS.TemplatedApp[]
  readonly #shared: ExchangeShared
  readonly #files: FileSite | undefined
  /** One for each address. */
  #listening: Listening[] = []

  constructor(deps: HttpServerDeps) {
    const { routes, findFile, mayReadFiles, trustedProxies = [], webSocket, tls } = deps
    const { corsOrigins = [], isLoopbackAllowed = false } = deps
    this.#deps = deps
    this.#files = findFile && { find: findFile, mayRead: mayReadFiles, isTls: tls !== undefined }
    this.#shared = {
      server: deps,
      router: new Router(webSocket === undefined ? routes : [...routes, webSocketRoute]),
      addresses: new RemoteAddresses(trustedProxies),
      heads: new AnswerHeads(tls !== undefined),
      cors:
        corsOrigins.length > 0 || isLoopbackAllowed
          ? new CorsPolicy(corsOrigins, isLoopbackAllowed)
          : undefined,
      requestsOpen: 0,
      streamsOpen: 0,
    }
    this.#apps = [this.#newApp(tls)]
  }

  /** Resolves with the port that is listened on; rejects when it is taken. Each call adds an address. */
  async listen(host: string, port: number): Promise<number> {
    if (port !== 0 && !this.#deps.sharesPort) await assertFree(host, port)
    const listening = await listenOn(this.#apps.at(-1)!, host, port)
    this.#listening.push(listening)
    return listening.port
  }

  /**
   * New connections get the certificate of these files, which have been tried; open ones go on. Two
   * apps listen on a port at once for a moment: uWebSockets.js can't exchange the certificate of one. Rejects where the port was
   * chosen by the kernel: uWebSockets.js shares only those that it was told.
   */
  async renewCertificate(tls: TlsFiles): Promise<void> {
    const app = this.#newApp(tls)
    const before = this.#listening
    try {
      this.#listening = await Promise.all(before.map(({ host, port }) => listenOn(app, host, port)))
    } catch (error) {
      app.close()
      throw error
    }
    this.#apps.push(app)
    // Let pending connections in; closing the socket would reset them.
    await setImmediate()
    for (const { socket } of before) uWS.us_listen_socket_close(socket)
  }

  /** Resolves when no request waits for its answer, or after `deadlineMs`. */
  async answered(deadlineMs: number): Promise<void> {
    const untilMs = performance.now() + deadlineMs
    while (this.#shared.requestsOpen > 0 && performance.now() < untilMs) await setTimeout(LOOK_AGAIN_MS)
  }

  stopListening(): void {
    for (const { socket } of this.#listening) uWS.us_listen_socket_close(socket)
    this.#listening = []
  }

  /** Ends every connection. */
  close(): void {
    this.stopListening()
    for (const app of this.#apps) app.close()
  }

  #newApp(tls: TlsFiles | undefined): uWS.TemplatedApp {
    const app =
      tls === undefined
        ? uWS.App()
        : uWS.SSLApp({
            cert_file_name: tls.certificateFile,
            key_file_name: tls.keyFile,
            ssl_ciphers: TLS_12_CIPHERS,
          })
    const { newcomers } = this.#deps
    if (newcomers !== undefined) {
      app.filter((connection, count) =>
        count === 1 ? newcomers.admit(connection, this.#networkOf) : undefined,
      )
    }
    app.any('/*', (res, req) => this.#onRequest(res, req))
    const { webSocket } = this.#deps
    if (webSocket !== undefined) {
      serveWebSockets(app, webSocket, this.#shared, (res, req) => this.#exchange(res, req))
    }
    return app
  }

  readonly #networkOf = (connection: uWS.HttpResponse): string => this.#shared.addresses.ofPeer(connection)

  #onRequest(res: uWS.HttpResponse, req: uWS.HttpRequest): void {
    const method = req.getCaseSensitiveMethod()
    const path = req.getUrl()
    const bodyHeaders = readBodyHeaders(req, method)
    if (bodyHeaders.fault !== undefined) {
      return this.#exchange(res, req).refuseFraming(bodyHeaders.fault, req)
    }
    const files = this.#files
    if (files === undefined || !namesFile(path)) {
      return new Exchange(res, req, method, path, this.#shared).start(req, bodyHeaders)
    }
    try {
      this.#deps.admission?.admit(this.#shared.addresses.of(res, req), 'log-files', '')
    } catch (error) {
      return this.#exchange(res, req).refuseFile(error)
    }
    serveFile(res, req, files)
  }

  /** For a request that no route gets to see. */
  #exchange(res: uWS.HttpResponse, req: uWS.HttpRequest): Exchange {
    return new Exchange(res, req, req.getCaseSensitiveMethod(), req.getUrl(), this.#shared)
  }
}

function listenOn(app: uWS.TemplatedApp, host: string, port: number): Promise<Listening> {
  return new Promise((resolve, reject) => {
    app.listen(host, port, socket => {
      if (socket) resolve({ host, port: uWS.us_socket_local_port(socket), socket })
      else reject(new Error(`can't listen on ${host}:${port}`))
    })
  })
}

/**
 * Rejects when the port answers: another process with uWebSockets would share it. `Choice:` not uWebSockets' own
 * option against sharing, which also refuses a port whose old connections the kernel remembers: a restart failed for
 * a minute.
 */
async function assertFree(host: string, port: number): Promise<void> {
  const answers = await new Promise<boolean>(resolve => {
    const probe = connect({ host: ANY_ADDRESSES.has(host) ? 'localhost' : host, port })
    probe.once('connect', () => resolve(true)).once('error', () => resolve(false))
    probe.once('connect', () => probe.destroy())
  })
  if (answers) throw new Error(`somebody listens on ${host}:${port}`)
}

const LOOK_AGAIN_MS = 10
/** No CBC, and forward secrecy (RFC 9325, 4.2). TLS 1.3 has ciphers of its own; older versions than 1.2 are not spoken. */
const TLS_12_CIPHERS = 'ECDHE+AESGCM:ECDHE+CHACHA20'
const ANY_ADDRESSES = new Set(['0.0.0.0', '::'])
