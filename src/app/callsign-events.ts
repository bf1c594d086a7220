/** The events that an app listens to. */

import type { Call } from './calls/call.ts'
import type { CallsignError } from './callsign-error.ts'
import type { ConnectionState } from './connection/phase.ts'
import type { KeyEvent } from './devices/key-log.ts'
import type { ProofNeeded } from './session/step-up.ts'
import type { QueueEvent } from './wire.ts'

/** Messages of the server come by their `type`, such as `friend_request`, after the SDK has done its part. */
export type CallsignEvents = {
  readonly [Type in QueueEvent['type']]: Extract<QueueEvent, { readonly type: Type }>
} & {
  /** An incoming call. */
  readonly ringing: Call
  /** A call of before a restart goes on. */
  readonly resumed: Call
  /** Calls, the user, the connection or names of contacts have changed: draw them again. */
  readonly changed: undefined
  readonly connection: ConnectionState
  /** After each connection: the user, calls and devices are as the server has them now. */
  readonly ready: undefined
  /** Show it: a contact has new devices, keys were refused, or a call goes on without someone. */
  readonly keys: KeyEvent
  /** The server refuses what the app has asked for until the user proves who they are: ask them. */
  readonly 'proof-needed': ProofNeeded
  /** The server has ended the session. */
  readonly 'signed-out': CallsignError
  /** Something that goes on by itself has failed. */
  readonly error: CallsignError
}
