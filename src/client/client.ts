/**
 * What `@callsign/sdk/client` exports: the one file here that only gathers, because it is the package's public surface. It
 * runs in Node, browsers and React Native.
 */

export type { DeviceList, ListedDevice } from '../log/device-list.ts'
export { isP256Point as isSigningKey } from '../log/p256.ts'
export { possessionMessage, signInAnswerMessage, signInMessage } from '../log/signing-messages.ts'
export { type CallKeyContent, type OpenedCallKey, packCallKey, readCallKey } from './call-key-content.ts'
export { CheckpointPin, type CheckpointStore, type KeptCheckpoint, MemoryStore } from './checkpoint-pin.ts'
export {
  comparisonCode,
  type ListedPerson,
  readShareFragment,
  type SharedPerson,
  shareFragment,
} from './comparison.ts'
export {
  ContactDevices,
  type NamedDevice,
  type NamedUser,
  otherKeyOf,
  type VerifiedDevice,
  type VerifiedDevices,
} from './contact-devices.ts'
export type { Absence, AbsentList, CompletenessDemand } from './index-check.ts'
export {
  type Completeness,
  type IndexProof,
  judgeCompleteness,
  type LeastProved,
  leastOf,
  type ShownEntry,
  type VerifiedIndex,
  verifyIndex,
} from './index-proof.ts'
export {
  compareOwnKeys,
  type HistoryClaim,
  type KeyHistory,
  type KeyHistoryEntry,
  type LoggedKey,
  type OwnKeys,
  type VerifiedHistory,
  verifyKeyHistory,
} from './key-history.ts'
export type {
  DeviceEvent,
  KeyQuestion,
  KnownDevice,
  KnownList,
  KnownUser,
  KnownUserStore,
} from './known-user.ts'
export {
  type DeviceToLookUp,
  LogClient,
  type LogClientOptions,
  type LookupOutcome,
  type OwnDevice,
  type OwnKeysReport,
} from './log-client.ts'
export { type LogKeys, type PublishedKeys, type PublishedPolicy, parseLogKeys } from './log-keys.ts'
export type { Fetch, FetchAnswer, FetchInit } from './log-requests.ts'
export {
  type CheckPassed,
  type Identity,
  type LookupClaim,
  type LookupResult,
  type Uint64,
  type VerifiedKey,
  verifyLookup,
} from './lookup.ts'
export type { ReadDeviceLists } from './missed-lists.ts'
export { type NextDeviceList, signDeviceList } from './own-device-list.ts'
export {
  compareCheckpoints,
  type SignedCheckpoint,
  type SizeComparison,
  treeHeadOf,
  type VerifiedCheckpoint,
  verifyCheckpoint,
} from './signed-checkpoint.ts'
export {
  consistencyFromTiles,
  type FetchTile,
  type TileConsistency,
  type TreeHead,
} from './tile-consistency.ts'
export type { Check, Refusal, Unanswered } from './verdict.ts'
export { type Freshness, verifyWitnesses, type Witnessed } from './witnesses.ts'
