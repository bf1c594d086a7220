/** Dependencies of an HTTP server, and its reports of requests. */

import type { ErrorCode } from '../errors.ts'
import type { Accept } from './connection.ts'
import type { Newcomers } from './newcomers.ts'
import type { OpenConnections } from './open-connections.ts'
import type { TitleLanguage } from './problem-titles.ts'
import type { HttpRoute, PublicFile, RequestAdmission } from './route.ts'

/** A refused request, for its log line. */
export interface RefusedRequest {
  readonly requestId: string
  readonly method: string
  /** The route's path, not the sender's; `none` where there is no route. */
  readonly route: string
  /** The first element at fault, as a JSON pointer; undefined where none is named. */
  readonly pointer: string | undefined
}

/** A request and its answer, for the development console. */
export interface ServedRequest {
  readonly requestId: string
  readonly method: string
  readonly path: string
  /** The text after the question mark. */
  readonly query: string
  /** The route's path; `none` where there is no route. */
  readonly route: string
  readonly contentType: string
  readonly body: Uint8Array
  readonly status: number
  /** A refusal's code; also set for a preflight whose origin may not call. */
  readonly code: ErrorCode | undefined
  readonly pointer: string | undefined
  readonly seconds: number
  readonly answerType: string
  /** Undefined for one that was made part by part. */
  readonly answer: string | Uint8Array | undefined
  readonly answerBytes: number
}

/** A `ServedRequest` with its sender, and with its bodies where they are short. */
export interface ShownRequest extends Omit<ServedRequest, 'body' | 'answer'> {
  readonly requester: { readonly userId: bigint; readonly deviceId?: bigint } | undefined
  readonly bodyBytes: number
  readonly body: Uint8Array | undefined
  readonly answer: string | Uint8Array | undefined
}

/** Paths of PEM files. */
export interface TlsFiles {
  readonly certificateFile: string
  readonly keyFile: string
}

export interface HttpServerDeps {
  readonly routes: readonly HttpRoute[]
  /** The public file at a path, undefined for none; absent where no files are served. */
  readonly findFile?: (path: string) => PublicFile | undefined
  /** Undefined where files may be read now; else resolves when they may. A file that may not be read is refused as busy. */
  readonly mayReadFiles?: () => Promise<void> | undefined
  /** Absent where no rate counts. */
  readonly admission?: RequestAdmission | undefined
  /** The language for a peer whose Accept-Language this is; English where it is left out. */
  readonly languageOf?: (acceptLanguage: string) => TitleLanguage
  /** Addresses and ranges of proxies whose X-Forwarded-For is believed; none where it is left out. */
  readonly trustedProxies?: readonly string[]
  /** Origins of web pages that may call the routes; none where it is left out. */
  readonly corsOrigins?: readonly string[]
  /** Whether pages of every loopback origin may, too. */
  readonly isLoopbackAllowed?: boolean
  /** `BODY_DEADLINE_MS` where it is left out. */
  readonly bodyDeadlineMs?: number
  /** `ANSWER_STREAM_MS_MAX` where it is left out. */
  readonly streamDeadlineMs?: number
  /** WebSockets on the paths of STOMP; none where it is left out. */
  readonly webSocket?: WebSocketDeps
  /** Decides when a new connection is read; at once where it is left out. */
  readonly newcomers?: Newcomers
  /** Whether other processes listen on the same port, each for a share of the connections. */
  readonly sharesPort?: boolean
  /** Ends TLS with these files (PEM). */
  readonly tls?: TlsFiles
  /** The oldest version that is still served when an `X-Client-Version` is below it, undefined when it is not. */
  readonly requiredClient?: (clientVersion: string) => string | undefined
  /** Told of every answer but those of files: the route's path, not the sender's. */
  readonly onAnswer?: (route: string, status: number, seconds: number) => void
  /** Told of every answer but those of files, with all of it. It costs copies: for development. */
  readonly onServed?: ((served: ServedRequest) => void) | undefined
  /** Told of a request that was refused, with the code that the peer got. */
  readonly onRefused: (code: ErrorCode, request: RefusedRequest) => void
  /** Told of the origin of a web page that asked and may not call, as the page's browser sent it. */
  readonly onOriginRefused?: (origin: string) => void
  /** Told of a fault of ours, likewise. */
  readonly onFault: (error: unknown, requestId: string) => void
}

export interface WebSocketDeps {
  readonly accept: Accept
  readonly connections: OpenConnections
  /** The server's public address, such as `https://call.example`; pages from there may connect. */
  readonly publicUrl?: () => string
}
