/** The parts that `Callsign` holds while a user is signed in. */

import type { Calls } from './calls/calls.ts'
import type { Connection } from './connection/connection.ts'
import type { Contacts } from './contacts.ts'
import type { RegisteredDevice } from './devices/device-registration.ts'
import type { Devices } from './devices/devices.ts'
import type { Names } from './names.ts'
import type { Account } from './session/account.ts'
import type { Sessions } from './session/sessions.ts'
import type { UserTokens } from './session/user-tokens.ts'
import type { QueueEvent } from './wire.ts'

export interface Active {
  readonly device: RegisteredDevice
  readonly account: Account
  readonly connection: Connection
  readonly calls: Calls
  readonly contacts: Contacts
  readonly names: Names
  readonly devices: Devices
  readonly sessions: Sessions
  readonly userTokens: UserTokens
}

/** How calls end here with the session: suspended people are to know why. */
export function endingBy(reason: unknown): 'left' | 'suspended' {
  return reason === 'account_suspended' ? 'suspended' : 'left'
}

/** A session that ends for another reason may be another device's. */
export function saysSuspended(event: QueueEvent): boolean {
  return event.type === 'session_revoked' && endingBy(event.reason) === 'suspended'
}
