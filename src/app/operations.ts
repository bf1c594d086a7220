/** The server's operations that the SDK uses, with the bodies of the same schemas that the server checks and documents. */

import type { Static, TSchema } from 'typebox'
import type {
  Challenge,
  LoginChallenge,
  LoginRequest,
  LogoutRequest,
  RefreshTokenRequest,
  ResendOtpRequest,
  SignedIn,
  TokenPair,
  UserView,
  VerifyLoginRequest,
} from '../schema/account.ts'
import type { PublicKeysReply, RegisterDeviceReply, RegisterDeviceRequest } from '../schema/device.ts'

/** A body in JSON, where ids are text. */
export type Body<Schema extends TSchema> = Wire<Static<Schema>>

type Wire<Value> = Value extends bigint
  ? string
  : Value extends object
    ? { readonly [Name in keyof Value]: Wire<Value[Name]> }
    : Value

/** By method and path. */
export interface Operations {
  'POST login': {
    readonly body: Body<typeof LoginRequest>
    readonly reply: Body<typeof LoginChallenge> | Body<typeof SignedIn>
  }
  'POST resend-otp': {
    readonly body: Body<typeof ResendOtpRequest>
    readonly reply: Body<typeof Challenge>
  }
  'POST verify-login': {
    readonly body: Body<typeof VerifyLoginRequest>
    readonly reply: Body<typeof SignedIn>
  }
  'POST refresh-token': {
    readonly body: Body<typeof RefreshTokenRequest>
    readonly reply: Body<typeof TokenPair>
  }
  'POST logout': { readonly body: Body<typeof LogoutRequest>; readonly reply: undefined }
  'GET user': { readonly body: undefined; readonly reply: Body<typeof UserView> }
  'GET user/publicKeys': { readonly body: undefined; readonly reply: Body<typeof PublicKeysReply> }
  'POST register_device': {
    readonly body: Body<typeof RegisterDeviceRequest>
    readonly reply: Body<typeof RegisterDeviceReply>
  }
}

export type OperationName = keyof Operations
export type BodyOf<Name extends OperationName> = Operations[Name]['body']
export type ReplyOf<Name extends OperationName> = Operations[Name]['reply']

/**
 * Whether a request may be sent again when its answer was lost: as it is, with its `Idempotency-Key`, or not at all, since
 * it would count twice.
 */
export const REPETITION: Readonly<Record<OperationName, 'as-it-is' | 'with-key' | 'not'>> = {
  'POST login': 'as-it-is',
  'POST resend-otp': 'not',
  'POST verify-login': 'not',
  'POST refresh-token': 'as-it-is',
  'POST logout': 'as-it-is',
  'GET user': 'as-it-is',
  'GET user/publicKeys': 'as-it-is',
  'POST register_device': 'with-key',
}
