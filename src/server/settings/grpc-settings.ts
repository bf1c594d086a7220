/** Access by gRPC: the bearer token, the server's certificate, and the clients' authority and pins. */

import type { EnvironmentReader } from './environment.ts'
import { hasCertificates, isKeyPair, isPin } from './setting-forms.ts'

export interface GrpcAccess {
  readonly token?: string
  readonly tls?: {
    readonly certificate: Buffer
    readonly key: Buffer
    readonly clientAuthority?: Buffer
    readonly clientPins: readonly string[]
  }
}

export function readGrpcAccess(reader: EnvironmentReader): GrpcAccess {
  const token = reader.secret('CALLSIGN_GRPC_TOKEN')
  const certificate = reader.file('CALLSIGN_GRPC_TLS_CERT')
  const key = reader.keyFile('CALLSIGN_GRPC_TLS_KEY')
  const clientAuthority = reader.file('CALLSIGN_GRPC_TLS_CLIENT_CA')
  const clientPins = reader.list(
    'CALLSIGN_GRPC_TLS_CLIENT_PINS',
    isPin,
    'SHA-256 hashes of client keys in base64, as `callsign pin` prints them',
  )
  if ((certificate === undefined) !== (key === undefined)) {
    reader.problems.push('CALLSIGN_GRPC_TLS_CERT and CALLSIGN_GRPC_TLS_KEY are set together or not at all')
  }
  if (certificate !== undefined && key !== undefined && !isKeyPair(certificate, key)) {
    reader.problems.push(
      'CALLSIGN_GRPC_TLS_CERT and CALLSIGN_GRPC_TLS_KEY are not a certificate and its key (PEM)',
    )
  }
  if (clientAuthority !== undefined && !hasCertificates(clientAuthority)) {
    reader.problems.push('CALLSIGN_GRPC_TLS_CLIENT_CA names a file without a certificate (PEM)')
  }
  if (reader.text('CALLSIGN_GRPC_TLS_CLIENT_PINS') !== undefined && clientPins.length === 0) {
    reader.problems.push('CALLSIGN_GRPC_TLS_CLIENT_PINS holds no pin')
  }
  if (clientAuthority !== undefined && certificate === undefined) {
    reader.problems.push('CALLSIGN_GRPC_TLS_CLIENT_CA needs CALLSIGN_GRPC_TLS_CERT and CALLSIGN_GRPC_TLS_KEY')
  }
  if (clientPins.length > 0 && clientAuthority === undefined) {
    reader.problems.push('CALLSIGN_GRPC_TLS_CLIENT_PINS needs CALLSIGN_GRPC_TLS_CLIENT_CA')
  }
  const tls =
    certificate === undefined || key === undefined
      ? undefined
      : { certificate, key, clientPins, ...(clientAuthority === undefined ? {} : { clientAuthority }) }
  return { ...(token === undefined ? {} : { token }), ...(tls === undefined ? {} : { tls }) }
}
