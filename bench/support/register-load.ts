/**
 * Program: a gRPC client that keeps so many Register calls in flight, each for a new device.
 * The same client loads the server and the echo it is held against.
 */

import { randomBytes } from 'node:crypto'
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import grpc from '@grpc/grpc-js'
import { RegisterRequestSchema, RegisterResponseSchema } from '../../src/transport/kt_service_pb.ts'
import { serveParent } from './program.ts'
import { latencyFigures } from './statistics.ts'

export interface RegisterLoadProtocol {
  readonly setup: Record<string, never>
  readonly request: RegisterLoad
  readonly answer: RegisterLoadFigures
}

export interface RegisterLoad {
  readonly address: string
  readonly inFlight: number
  readonly seconds: number
}

export interface RegisterLoadFigures {
  readonly callsPerSecond: number
  readonly calls: number
  /** Milliseconds from call to answer. */
  readonly latency: ReturnType<typeof latencyFigures>
  /** Processor seconds of this client. */
  readonly clientCpuSeconds: number
}

serveParent<RegisterLoadProtocol>(async () => runLoad)

let nextUserId = randomBytes(6).readUIntBE(0, 6)
const publicKeys = Array.from({ length: 1_024 }, () => randomBytes(32).toString('base64'))

async function runLoad({ address, inFlight, seconds }: RegisterLoad): Promise<RegisterLoadFigures> {
  const client = new grpc.Client(address, grpc.credentials.createInsecure())
  // A connection that is not there yet would count as the server's time.
  await register(client)
  const latencies: number[] = []
  const cpuBefore = process.cpuUsage()
  const startedAt = performance.now()
  const endAt = startedAt + seconds * 1000
  const callUntilEnd = async () => {
    for (let now = performance.now(); now < endAt; ) {
      const calledAt = now
      await register(client)
      now = performance.now()
      latencies.push(now - calledAt)
    }
  }
  await Promise.all(Array.from({ length: inFlight }, callUntilEnd))
  const elapsedMs = performance.now() - startedAt
  const cpu = process.cpuUsage(cpuBefore)
  client.close()
  return {
    callsPerSecond: (latencies.length * 1000) / elapsedMs,
    calls: latencies.length,
    latency: latencyFigures(latencies),
    clientCpuSeconds: (cpu.user + cpu.system) / 1e6,
  }
}

function register(client: grpc.Client): Promise<void> {
  const userID = BigInt(nextUserId++)
  const publicKey = publicKeys[nextUserId % publicKeys.length]!
  const request = create(RegisterRequestSchema, { userID, deviceID: 1n, publicKey })
  return new Promise((resolve, reject) => {
    client.makeUnaryRequest(
      '/kt.v1.KTService/Register',
      serialize,
      deserialize,
      request,
      new grpc.Metadata(),
      { deadline: Date.now() + CALL_DEADLINE_MS },
      error => (error === null ? resolve() : reject(error)),
    )
  })
}

function serialize(request: ReturnType<typeof newRequest>): Buffer {
  return Buffer.from(toBinary(RegisterRequestSchema, request))
}

function newRequest() {
  return create(RegisterRequestSchema)
}

function deserialize(bytes: Buffer) {
  return fromBinary(RegisterResponseSchema, bytes)
}

const CALL_DEADLINE_MS = 30_000
