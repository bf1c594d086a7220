/**
 * All operations. A process that serves clients answers the reads from the store by itself, and commands once the writer has
 * carried them out; a front has the writer answer the writes. The compiler holds reads and commands to what every process has,
 * and to a store that it can only look at.
 */

import { deleteUser } from './accounts/account-erasure.ts'
import { exportUser } from './accounts/account-export.ts'
import { stepUp } from './accounts/fresh-proofs.ts'
import { LOGIN_METHODS, listLoginMethods } from './accounts/login-methods.ts'
import { PASSKEYS } from './accounts/passkeys.ts'
import { putUser } from './accounts/profile.ts'
import { SESSIONS } from './accounts/session.ts'
import { SIGN_IN } from './accounts/sign-in.ts'
import type { SignIns } from './accounts/sign-ins.ts'
import { platformLogin, type SocialSignIn } from './accounts/social-sign-in.ts'
import { listSessions, USER_SESSIONS } from './accounts/user-sessions.ts'
import { createUserToken } from './accounts/user-tokens.ts'
import { getUser } from './accounts/user-view.ts'
import { verifyChallenge } from './accounts/verify.ts'
import { listWaitingSignIns, WAITING_SIGN_INS } from './accounts/waiting-sign-ins.ts'
import { CALL_HISTORY } from './calls/call-history.ts'
import { CALL_VIEWS, getCall, getKeyMembers, getParticipants } from './calls/call-views.ts'
import { CALLS } from './calls/calls.ts'
import { getCredentials } from './calls/credentials.ts'
import { CONTACTS, listBlocks, listContacts } from './contacts/contacts.ts'
import { FRIEND_REQUESTS, listRequests } from './contacts/friend-requests.ts'
import { listReportReasons, REPORTS } from './contacts/reports.ts'
import { drawShareToken, listShareTokens, SHARE_TOKENS } from './contacts/share-tokens.ts'
import type { ApiDeps, Reading } from './deps.ts'
import type { DeviceLists } from './devices/device-lists.ts'
import type { DeviceRegistration } from './devices/device-registration.ts'
import { DEVICES, listDevices } from './devices/devices.ts'
import type { Command, Operation, Read } from './table/operation.ts'

/** The parts of every process that serves clients. */
export type ReadDeps = Reading &
  Pick<
    ApiDeps,
    | 'accounts'
    | 'admit'
    | 'badgeOf'
    | 'devices'
    | 'idsAs'
    | 'lifetimes'
    | 'publicUrl'
    | 'restrictions'
    | 'sessionNetworks'
    | 'sessions'
    | 'shareTokens'
    | 'userViews'
  >

/** The parts of every process that serves clients, which asks the writer to carry a command out. */
export type CommandDeps = ReadDeps & Pick<ApiDeps, 'askRoom' | 'keptReplies' | 'randomBytes'>

/** The parts of the writer. */
export interface WriteDeps extends ApiDeps {
  readonly signIns: SignIns
  readonly social: SocialSignIn
  readonly lists: DeviceLists
  readonly registration: DeviceRegistration
}

/** Answered by each process. None has a rate of its own, since that is counted in one place. */
export const READS: readonly Read<ReadDeps>[] = [
  getUser,
  listLoginMethods,
  listWaitingSignIns,
  listSessions,
  listDevices,
  listShareTokens,
  drawShareToken,
  listRequests,
  listContacts,
  listBlocks,
  listReportReasons,
  getCall,
  getParticipants,
  getKeyMembers,
]

/** Checked and answered by each process, and carried out by the writer, which counts their rates. */
export const COMMANDS: readonly Command<CommandDeps>[] = CALLS

/** All of them, in the order of the document. */
export const OPERATIONS: readonly Operation<WriteDeps>[] = [
  ...SIGN_IN,
  ...WAITING_SIGN_INS,
  ...SESSIONS,
  getUser,
  platformLogin,
  verifyChallenge,
  putUser,
  stepUp,
  ...LOGIN_METHODS,
  ...PASSKEYS,
  ...USER_SESSIONS,
  createUserToken,
  exportUser,
  deleteUser,
  ...DEVICES,
  ...SHARE_TOKENS,
  ...FRIEND_REQUESTS,
  ...CONTACTS,
  ...REPORTS,
  getCredentials,
  ...CALLS,
  ...CALL_VIEWS,
  ...CALL_HISTORY,
]

const ANSWERED_BY_ALL: ReadonlySet<Operation<WriteDeps>> = new Set([...READS, ...COMMANDS])

/** All the rest: answered by the writer alone. */
export const WRITES: readonly Operation<WriteDeps>[] = OPERATIONS.filter(each => !ANSWERED_BY_ALL.has(each))
