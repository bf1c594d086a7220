/** gRPC as a back end speaks it to the log. By itself, since what it loads takes longer than most tests. */

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
  ): Promise<RegisterResponse> {
    return this.send(registerRequest(userId, deviceId, publicKey), metadata)
  }

  /** Sends any bytes as the request message. */
  send(bytes: Uint8Array, metadata = new grpc.Metadata()): Promise<RegisterResponse> {
    return new Promise((resolve, reject) => {
      this.#client.makeUnaryRequest(
        '/kt.v1.KTService/Register',
        (message: Uint8Array) => Buffer.from(message),
        (answer: Buffer) => fromBinary(RegisterResponseSchema, answer),
        bytes,
        metadata,
        { deadline: Date.now() + 30_000 },
        (error, answer) => (error === null ? resolve(answer!) : reject(error)),
      )
    })
  }

  close(): void {
    this.#client.close()
  }
}
