/** The messages of `KTService.Register` in protobuf, by the code that is generated from `proto/kt_service.proto`. */

import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { SignalError } from '../errors.ts'
import { type RegisterRequest, RegisterRequestSchema, RegisterResponseSchema } from './kt_service_pb.ts'

/** Throws `MALFORMED` for bytes that are no RegisterRequest. */
export function parseRegisterRequest(bytes: Uint8Array): RegisterRequest {
  try {
    return fromBinary(RegisterRequestSchema, bytes)
  } catch {
    throw new SignalError('MALFORMED', 'the message is not a RegisterRequest')
  }
}

/** `vrfHash` has 64 bytes; it goes out in standard base64. */
export function formatRegisterResponse(answer: {
  readonly index: number
  readonly vrfHash: Uint8Array
}): Uint8Array {
  const { index, vrfHash } = answer
  const hash = Buffer.from(vrfHash.buffer, vrfHash.byteOffset, vrfHash.length).toString('base64')
  return toBinary(
    RegisterResponseSchema,
    create(RegisterResponseSchema, { index: BigInt(index), vrfHash: hash }),
  )
}
