/**
 * Program, the limit of Register: a grpc-js server that parses the same request and answers the same response at
 * once.
 */

import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import grpc from '@grpc/grpc-js'
import {
  type RegisterRequest,
  RegisterRequestSchema,
  RegisterResponseSchema,
} from '../../src/transport/kt_service_pb.ts'
import { serveParent } from './program.ts'

export interface EchoServerProtocol {
  readonly setup: Record<string, never>
  readonly request: 'address'
  readonly answer: string
}

serveParent<EchoServerProtocol>(async () => {
  const address = `127.0.0.1:${await listen()}`
  return () => address
})

function listen(): Promise<number> {
  const server = new grpc.Server()
  server.addService(SERVICE, {
    register: (
      call: grpc.ServerUnaryCall<RegisterRequest, Uint8Array>,
      callback: grpc.sendUnaryData<Uint8Array>,
    ) => {
      const response = create(RegisterResponseSchema, { index: call.request.userID, vrfHash: VRF_HASH })
      callback(null, toBinary(RegisterResponseSchema, response))
    },
  })
  return new Promise((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', grpc.ServerCredentials.createInsecure(), (error, port) =>
      error === null ? resolve(port) : reject(error),
    )
  })
}

const VRF_HASH = Buffer.alloc(64, 7).toString('base64')
const SERVICE = {
  register: {
    path: '/kt.v1.KTService/Register',
    requestStream: false,
    responseStream: false,
    requestSerialize: (bytes: Uint8Array) => Buffer.from(bytes),
    requestDeserialize: (bytes: Buffer) => fromBinary(RegisterRequestSchema, bytes),
    responseSerialize: (bytes: Uint8Array) => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length),
    responseDeserialize: (bytes: Buffer) => bytes,
  },
} as const
