/** The exports of `@callsign/sdk/app`. */

export type {
  Call,
  CallEnding,
  CallEvents,
  CallGateway,
  CallMember,
  CallPerson,
  CallState,
  InviteOptions,
  KeyAsk,
  KeyDevice,
} from './calls/call.ts'
export type { StartOptions } from './calls/calls.ts'
export { callUuid, type PushAction } from './calls/push.ts'
export { Callsign } from './callsign.ts'
export {
  CallsignError,
  type CallsignErrorCode,
  hasCode,
  type LocalErrorCode,
} from './callsign-error.ts'
export type { CallsignEvents } from './callsign-events.ts'
export type { CallsignOptions } from './callsign-options.ts'
export type { ConnectionState } from './connection/phase.ts'
export type { Contacts, Opened, Wanted } from './contacts.ts'
export { type DeviceKeys, type DeviceKeysOf, webCryptoKeys } from './devices/device-keys.ts'
export type { DeviceDetails } from './devices/device-registration.ts'
export type { Devices } from './devices/devices.ts'
export type { KeyEvent } from './devices/key-log.ts'
export type { OwnListState, WaitingDevice } from './devices/own-device-list.ts'
export type { WaitingSignIn } from './session/code-sign-in.ts'
export type { PasskeyAuthenticator } from './session/passkeys.ts'
export type { Sessions } from './session/sessions.ts'
export type { Confirm, Question } from './session/sign-in.ts'
export type { ProofNeeded, ProofWay } from './session/step-up.ts'
export { indexedDbStorage } from './storage/indexed-db-storage.ts'
export { type AppStorage, memoryStorage } from './storage/storage.ts'
export type * from './wire.ts'
