/** gRPC as a back end speaks it to the log. By itself, since what it loads takes longer than most commands. */

// Before grpc-js, which reads its ciphers when it is loaded: the server may run in the same process.
import '../../src/transport/grpc-ciphers.ts'

import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import grpc from '@grpc/grpc-js'
import {
  RegisterRequestSchema,
  type RegisterResponse,
  RegisterResponseSchema,
} from '../../src/transport/kt_service_pb.ts'

/** The bytes of a request message. */
export function registerRequest(userID: bigint, deviceID: bigint, publicKey: string): Uint8Array {
  return toBinary(RegisterRequestSchema, create(RegisterRequestSchema, { userID, deviceID, publicKey }))
}

/** The bearer token that the log asks for, or nothing. */
export function metadataWith(token: string | undefined): grpc.Metadata {
  const metadata = new grpc.Metadata()
  if (token) metadata.set('authorization', `Bearer ${token}`)
  return metadata
}

/** A gRPC client of `KTService.Register`. */
export class RegisterClient {
  readonly #client: grpc.Client

  constructor(address: string, credentials = grpc.credentials.createInsecure()) {
    // A connection of its own.
    this.#client = new grpc.Client(address, credentials, { 'grpc.use_local_subchannel_pool': 1 })
  }

  register(
    userId: bigint,
    deviceId: bigint,
    publicKey: string,
    metadata = new grpc.Metadata(),
    timeoutMs = TIMEOUT_MS,
  ): Promise<RegisterResponse> {
    return this.send(registerRequest(userId, deviceId, publicKey), metadata, timeoutMs)
  }

  /** Sends any bytes as the request message. */
  send(bytes: Uint8Array, metadata = new grpc.Metadata(), timeoutMs = TIMEOUT_MS): Promise<RegisterResponse> {
    return new Promise((resolve, reject) => {
      this.#client.makeUnaryRequest(
        '/kt.v1.KTService/Register',
        (message: Uint8Array) => Buffer.from(message),
        (answer: Buffer) => fromBinary(RegisterResponseSchema, answer),
        bytes,
        metadata,
        { deadline: Date.now() + timeoutMs },
        (error, answer) => (error === null ? resolve(answer!) : reject(error)),
      )
    })
  }

  close(): void {
    this.#client.close()
  }
}

const TIMEOUT_MS = 30_000
