/**
 * gRPC over grpc-js: KTService.Register, who may call it (LOG 5, contract 9), and the status codes it answers with.
 * The caller hands in the registration itself.
 */

// Before grpc-js, which reads its ciphers when it is loaded.
import './grpc-ciphers.ts'

import { createHash, timingSafeEqual, X509Certificate } from 'node:crypto'
import type { SecureContextOptions } from 'node:tls'
import grpc from '@grpc/grpc-js'
import { type CoreErrorCode, type ErrorCode, SignalError } from '../errors.ts'
import {
  APPEND_DEADLINE_MS,
  GRPC_CONNECTION_IDLE_MS,
  GRPC_CONNECTION_MS_MAX,
  GRPC_MESSAGE_BYTES_MAX,
  GRPC_REQUEST_DEADLINE_MS,
  GRPC_STREAMS_MAX,
} from '../limits.ts'
import { GRPC_CIPHERS } from './grpc-ciphers.ts'

/** Logs a key and resolves with its leaf index and VRF hash, when both are durable and provable. */
export type Register = (
  userId: bigint,
  deviceId: bigint,
  publicKey: string,
) => Promise<{ readonly index: number; readonly vrfHash: Uint8Array }>

export interface GrpcTls {
  readonly certificate: Buffer
  readonly key: Buffer
  /** When set, callers must present a certificate that this authority signed. */
  readonly clientAuthority?: Buffer
  /** When not empty, the SHA-256 (base64) of the caller's public key (SPKI) must be among these. */
  readonly clientPins: readonly string[]
}

export interface GrpcServerOptions {
  readonly register: Register
  /** When set, every call must bring it as `authorization: Bearer <token>`. */
  readonly token?: string
  readonly tls?: GrpcTls
  /** Told the status code of every call. */
  readonly onCall: (status: string, seconds: number) => void
  /** Told of a call that was refused. */
  readonly onRefused: (code: ErrorCode, call: { readonly method: string; readonly route: string }) => void
  readonly onFault: (error: unknown) => void
  /** Those of `limits.ts` where it is left out. */
  readonly waits?: GrpcWaits
}

export interface GrpcWaits {
  /** From the head of a call to the end of its request. */
  readonly requestMs: number
  /** From connecting until the client is asked to connect anew. */
  readonly connectionMs: number
  /** From there until the rest of the connection is cut. */
  readonly graceMs: number
}

type Call = grpc.ServerUnaryCall<Uint8Array, Uint8Array>

export class GrpcServer {
  readonly #options: GrpcServerOptions
  readonly #server: grpc.Server
  readonly #credentials: grpc.ServerCredentials

  constructor(options: GrpcServerOptions) {
    this.#options = options
    const { tls } = options
    this.#credentials =
      tls === undefined
        ? grpc.ServerCredentials.createInsecure()
        : grpc.ServerCredentials.createSsl(
            tls.clientAuthority ?? null,
            [{ cert_chain: tls.certificate, private_key: tls.key }],
            tls.clientAuthority !== undefined,
          )
    const { requestMs, connectionMs, graceMs } = options.waits ?? WAITS
    this.#server = new grpc.Server({
      // Traces of each stream cost memory and time, and nothing here serves them.
      'grpc.enable_channelz': 0,
      'grpc.max_receive_message_length': GRPC_MESSAGE_BYTES_MAX,
      'grpc.max_concurrent_streams': GRPC_STREAMS_MAX,
      'grpc.max_connection_idle_ms': GRPC_CONNECTION_IDLE_MS,
      // Ends streams that were answered and that the client never closes: grpc-js resets none.
      'grpc.max_connection_age_ms': connectionMs,
      'grpc.max_connection_age_grace_ms': graceMs,
      interceptors: [(_method, call) => this.#awaitRequest(call, requestMs)],
    })
    this.#server.addService(KT_SERVICE, {
      register: (call: Call, callback: grpc.sendUnaryData<Uint8Array>) =>
        void this.#onRegister(call, callback),
    })
  }

  /** Resolves with the port that is listened on; rejects when it is taken. */
  listen(host: string, port: number): Promise<number> {
    const address = host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
    return new Promise((resolve, reject) => {
      this.#server.bindAsync(address, this.#credentials, (error, bound) => {
        if (error !== null) reject(new Error(`can't listen on ${address}: ${error.message}`))
        else resolve(bound)
      })
    })
  }

  /** New connections get this certificate, and this authority judges their clients; open ones go on. */
  renewCertificate({ certificate, key, clientAuthority }: Omit<GrpcTls, 'clientPins'>): void {
    // Choice: the method that grpc-js keeps for its own credentials. Those with a provider, which are public and
    // experimental, forget the ciphers at each renewal.
    const renewable = this.#credentials as unknown as {
      updateSecureContextOptions(options: SecureContextOptions): void
    }
    renewable.updateSecureContextOptions({
      cert: certificate,
      key,
      ciphers: GRPC_CIPHERS,
      ...(clientAuthority === undefined ? {} : { ca: clientAuthority }),
    })
  }

  /** Refuses new calls and resolves when the running ones are answered, or after `deadlineMs` with them cut. */
  async close(deadlineMs: number): Promise<void> {
    await new Promise<void>(resolve => {
      const timer = setTimeout(() => {
        this.#server.forceShutdown()
        resolve()
      }, deadlineMs)
      this.#server.tryShutdown(() => {
        clearTimeout(timer)
        resolve()
      })
    })
  }

  /** Answers a call whose request is not whole in time; messages that come later reach no handler. */
  #awaitRequest(call: grpc.ServerInterceptingCallInterface, deadlineMs: number): grpc.ServerInterceptingCall {
    const startedAtMs = performance.now()
    let isLate = false
    const onLate = () => {
      isLate = true
      call.sendStatus({ code: grpc.status.DEADLINE_EXCEEDED, details: 'the request is not whole in time' })
      this.#options.onRefused('DEADLINE_EXCEEDED', REGISTER)
      this.#options.onCall('DEADLINE_EXCEEDED', (performance.now() - startedAtMs) / 1000)
    }
    return new grpc.ServerInterceptingCall(call, {
      start: next => {
        const timer = setTimeout(onLate, deadlineMs)
        next({
          onReceiveMessage: (message, pass) => void (isLate || pass(message)),
          onReceiveHalfClose: pass => {
            clearTimeout(timer)
            if (!isLate) pass()
          },
          onCancel: () => clearTimeout(timer),
        })
      },
    })
  }

  async #onRegister(call: Call, callback: grpc.sendUnaryData<Uint8Array>): Promise<void> {
    const startedAtMs = performance.now()
    let status = grpc.status.OK
    try {
      this.#authenticate(call)
      const { formatRegisterResponse, parseRegisterRequest } = messages ?? (await loadMessages())
      const { userID, deviceID, publicKey } = parseRegisterRequest(call.request)
      callback(null, formatRegisterResponse(await this.#options.register(userID, deviceID, publicKey)))
    } catch (error) {
      const refusal =
        error instanceof SignalError ? error : new SignalError('INTERNAL', 'a fault of the server')
      status = STATUS[refusal.code] ?? grpc.status.INTERNAL
      const isOurs = status === grpc.status.INTERNAL
      if (isOurs) this.#options.onFault(error)
      else this.#options.onRefused(refusal.code, REGISTER)
      callback({ code: status, details: isOurs ? 'a fault of the server' : refusal.message })
    }
    this.#options.onCall(grpc.status[status], (performance.now() - startedAtMs) / 1000)
  }

  #authenticate(call: Call): void {
    const { token, tls } = this.#options
    if (token !== undefined) {
      const [given] = call.metadata.get('authorization')
      if (given === undefined) throw new SignalError('TOKEN_MISSING', 'metadata authorization is missing')
      if (!isSameSecret(String(given), `Bearer ${token}`)) {
        throw new SignalError('TOKEN_INVALID', 'the token in metadata authorization is not accepted')
      }
    }
    if (tls === undefined || tls.clientPins.length === 0) return
    const certificate = call.getAuthContext().sslPeerCertificate
    if (certificate === undefined || !tls.clientPins.includes(pinOf(certificate.raw))) {
      throw new SignalError('TOKEN_INVALID', 'the client key is not pinned')
    }
  }
}

/** Loaded by the first call: many servers register by HTTP alone. Each `import()` resolves the path anew. */
let messages: typeof import('./register-messages.ts') | undefined

async function loadMessages(): Promise<typeof import('./register-messages.ts')> {
  messages = await import('./register-messages.ts')
  return messages
}

/** SHA-256 of the certificate's public key as SPKI, in base64 (RFC 7469, 2.4). */
function pinOf(certificate: Buffer): string {
  const publicKey = new X509Certificate(certificate).publicKey.export({ type: 'spki', format: 'der' })
  return createHash('sha256').update(publicKey).digest('base64')
}

/** Constant in time for any two texts: their hashes are compared. */
function isSameSecret(given: string, wanted: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest()
  return timingSafeEqual(digest(given), digest(wanted))
}

/** How a log line names the only call. */
const REGISTER = { method: 'gRPC', route: '/kt.v1.KTService/Register' } as const
const KT_SERVICE = {
  register: {
    path: '/kt.v1.KTService/Register',
    requestStream: false,
    responseStream: false,
    requestSerialize: (bytes: Uint8Array) => Buffer.from(bytes),
    // Bytes that can't be parsed are the caller's fault; grpc-js would answer INTERNAL.
    requestDeserialize: (bytes: Buffer) => bytes,
    responseSerialize: (bytes: Uint8Array) => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length),
    responseDeserialize: (bytes: Buffer) => bytes,
  },
} as const

const WAITS: GrpcWaits = {
  requestMs: GRPC_REQUEST_DEADLINE_MS,
  connectionMs: GRPC_CONNECTION_MS_MAX,
  // A call that began just before is answered.
  graceMs: GRPC_REQUEST_DEADLINE_MS + APPEND_DEADLINE_MS,
}

// grpc-js writes lines of its own to stderr; what went wrong is in the errors it returns.
grpc.setLogVerbosity(grpc.logVerbosity.NONE)

const { status } = grpc
const STATUS: Record<CoreErrorCode, grpc.status> & Partial<Record<ErrorCode, grpc.status>> = {
  MALFORMED: status.INVALID_ARGUMENT,
  KEY_INVALID: status.INTERNAL,
  SIGNATURE_INVALID: status.INTERNAL,
  PROOF_INVALID: status.INTERNAL,
  MALFORMED_REQUEST: status.INVALID_ARGUMENT,
  MALFORMED_JSON: status.INVALID_ARGUMENT,
  VALIDATION_FAILED: status.INVALID_ARGUMENT,
  BODY_TOO_LARGE: status.INVALID_ARGUMENT,
  UNSUPPORTED_MEDIA_TYPE: status.INVALID_ARGUMENT,
  METHOD_NOT_ALLOWED: status.UNIMPLEMENTED,
  NOT_FOUND: status.NOT_FOUND,
  RATE_LIMITED: status.RESOURCE_EXHAUSTED,
  TOKEN_MISSING: status.UNAUTHENTICATED,
  TOKEN_INVALID: status.UNAUTHENTICATED,
  UNKNOWN_PUBLIC_KEY_HASH: status.NOT_FOUND,
  IDENTITY_MISMATCH: status.INTERNAL,
  CHECKPOINT_INVALID: status.UNAVAILABLE,
  LOG_UNAVAILABLE: status.UNAVAILABLE,
  INDEX_UNAVAILABLE: status.UNAVAILABLE,
  TOO_MANY_KEYS: status.RESOURCE_EXHAUSTED,
  OVERLOADED: status.RESOURCE_EXHAUSTED,
  DEADLINE_EXCEEDED: status.DEADLINE_EXCEEDED,
  STORE_UNAVAILABLE: status.UNAVAILABLE,
  OUTCOME_UNKNOWN: status.UNAVAILABLE,
  INTERNAL: status.INTERNAL,
}
