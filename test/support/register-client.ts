/** gRPC as a back end speaks it to the log. By itself, since what it loads takes longer than most tests. */

import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import grpc from '@grpc/grpc-js'
import {
  RegisterRequestSchema,
  type RegisterResponse,
  RegisterResponseSchema,
} from '../../src/transport/kt_service_pb.ts'

/** A gRPC client of `KTService.Register`. */
export class RegisterClient {
  readonly #client: grpc.Client

  constructor(address: string, credentials = grpc.credentials.createInsecure()) {
    this.#client = new grpc.Client(address, credentials)
  }

  register(
    userId: bigint,
    deviceId: bigint,
    publicKey: string,
    metadata = new grpc.Metadata(),
  ): Promise<RegisterResponse> {
    const message = { userID: userId, deviceID: deviceId, publicKey }
    return this.send(toBinary(RegisterRequestSchema, create(RegisterRequestSchema, message)), metadata)
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
