/** The exports of `callsign/app`. */

export type { Call, CallEnding, CallEvents, CallGateway, CallPerson, CallState, KeyAsk } from './call.ts'
export type { StartOptions } from './calls.ts'
export { Callsign, type CallsignEvents, type CallsignOptions } from './callsign.ts'
export {
  CallsignError,
  type CallsignErrorCode,
  hasCode,
  type LocalErrorCode,
} from './callsign-error.ts'
export type { ConnectionState } from './connection.ts'
export type { Contacts, LinkOwner, Wanted } from './contacts.ts'
export { type DeviceKeys, type DeviceKeysOf, webCryptoKeys } from './device-keys.ts'
export type { DeviceDetails } from './device-registration.ts'
export type { Devices } from './devices.ts'
export { indexedDbStorage } from './indexed-db-storage.ts'
export type { KeyEvent } from './key-log.ts'
export type { OwnListState, WaitingDevice } from './own-device-list.ts'
export { callUuid, type PushAction } from './push.ts'
export type { Confirm, Question } from './sign-in.ts'
export { type AppStorage, memoryStorage } from './storage.ts'
export type * from './wire.ts'
