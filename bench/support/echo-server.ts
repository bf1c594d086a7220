/**
 * Program, the limit of Register: a grpc-js server that parses the same request and answers the same response at
 * once. It also answers `GET /checkpoint` on the same event loop through bare uWebSockets.js.
 */

import uWS from 'uWebSockets.js'
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import grpc from '@grpc/grpc-js'
import {
  type RegisterRequest,
  RegisterRequestSchema,
  RegisterResponseSchema,
} from '../../src/transport/kt_service_pb.ts'
import { type RecordedAnswer, sendRecorded } from './http-answer.ts'
import { serveParent } from './program.ts'

export interface EchoServerProtocol {
  /** The answer to GET. */
  readonly setup: { readonly answer: RecordedAnswer | undefined }
  readonly request: 'addresses'
  readonly answer: { readonly grpc: string; readonly http: string }
}

serveParent<EchoServerProtocol>(async ({ answer }) => {
  const addresses = {
    grpc: `127.0.0.1:${await listenGrpc()}`,
    http: `http://127.0.0.1:${await listenHttp(answer)}`,
  }
  return () => addresses
})

function listenGrpc(): Promise<number> {
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

function listenHttp(answer: RecordedAnswer | undefined): Promise<number> {
  return new Promise((resolve, reject) => {
    uWS
      .App()
      .get('/*', res => {
        if (answer === undefined) res.writeStatus('404 Not Found').end()
        else sendRecorded(res, answer)
      })
      .listen('127.0.0.1', 0, token =>
        token ? resolve(uWS.us_socket_local_port(token)) : reject(new Error('no port to listen on')),
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
