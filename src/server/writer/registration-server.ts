/** The server for registrations by gRPC. It is apart from `listeners.ts`, so that a front need not load gRPC. */

import { GrpcServer, type Register } from '../../transport/grpc.ts'
import type { Process } from '../process/process.ts'

export function registrationServer(
  { config, metrics, onRefused, onFault }: Process,
  register: Register,
): GrpcServer {
  const { token, tls } = config.grpc
  return new GrpcServer({
    register,
    ...(token === undefined ? {} : { token }),
    ...(tls === undefined ? {} : { tls }),
    onCall: (status, seconds) => metrics.grpcCalls.observe({ status }, seconds),
    onRefused,
    onFault,
  })
}
