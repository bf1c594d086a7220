/**
 * Permissions: each operation with every kind of invalid token, against the table's access; and each operation that
 * names a user's object, requested by another user.
 */

import t from 'tap'
import { OPERATIONS } from '../../../src/api/operations.ts'
import type { Access, OperationForm } from '../../../src/api/table/operation.ts'
import { sessionIdText } from '../../../src/store/accounts/session-store.ts'
import {
  newDevice,
  newDeviceList,
  newSession,
  newUser,
  type TestAnswer,
  type TestUser,
  type TestWorld,
} from '../../support/application.ts'
import { enterCode, fetchWaiting } from '../../support/sign-in-people.ts'
import { openTestApi, type TestApi, tableDigests } from '../../support/test-api.ts'

/** The intended access; opening or closing an operation changes this table too. */
const ACCESS: Readonly<Record<string, Access>> = {
  login: 'public',
  resendOtp: 'public',
  verifyLogin: 'public',
  platformLogin: 'public',
  fetchWaitingLogin: 'public',
  refreshToken: 'public',
  verify: 'optional',
  logout: 'ended',
  getUser: 'restricted',
  putUser: 'session',
  stepUp: 'restricted',
  exportUser: 'session',
  deleteUser: 'session',
  listLoginMethods: 'session',
  listWaitingSignIns: 'device',
  answerWaitingSignIn: 'device',
  addLoginMethod: 'session',
  setPrimaryLoginMethod: 'session',
  removeLoginMethod: 'session',
  passkeyOptions: 'optional',
  loginPasskey: 'public',
  newPasskeyOptions: 'session',
  addPasskey: 'session',
  listSessions: 'restricted',
  endSession: 'restricted',
  endOtherSessions: 'session',
  createUserToken: 'session',
  registerDevice: 'restricted',
  putDeviceList: 'restricted-device',
  putPushTokens: 'restricted-device',
  listDevices: 'restricted',
  removeDevice: 'restricted',
  readPublicKeys: 'restricted',
  readDeviceLists: 'restricted',
  createShareToken: 'session',
  listShareTokens: 'session',
  revokeShareToken: 'session',
  drawShareToken: 'session',
  resolveShareToken: 'session',
  requestById: 'session',
  requestByToken: 'session',
  requestBySearch: 'session',
  acceptRequest: 'session',
  declineRequest: 'session',
  cancelRequest: 'session',
  cancelRequestAt: 'session',
  listRequests: 'session',
  listContacts: 'session',
  removeContact: 'session',
  renameContact: 'session',
  blockUser: 'session',
  unblockUser: 'session',
  unblockUserAt: 'session',
  listBlocks: 'session',
  listReportReasons: 'session',
  reportUser: 'session',
  getCredentials: 'session',
  startCall: 'device',
  inviteToCall: 'device',
  joinCall: 'device',
  declineCall: 'device',
  leaveCall: 'device',
  endCall: 'device',
  endCallAt: 'device',
  removeFromCall: 'device',
  requestRejoin: 'device',
  acceptRejoin: 'device',
  rejoinCall: 'device',
  sendKeys: 'device',
  getCall: 'device',
  getParticipants: 'device',
  getKeyMembers: 'device',
  getPendingCalls: 'device',
  listCallHistory: 'session',
  markCallHistorySeen: 'session',
  forgetCall: 'session',
  forgetCallHistory: 'session',
}

/** The codes by which the access token of a request is refused. */
const TOKEN_CODES = ['TOKEN_MISSING', 'TOKEN_INVALID', 'TOKEN_EXPIRED', 'SESSION_REVOKED']

type Token = string | undefined

/** How to get a token that opens nothing, and its refusal where a session is needed. */
const BAD_TOKENS: Readonly<Record<string, { make(whole: TestApi): Promise<Token>; code: string }>> = {
  'no token': { make: async () => undefined, code: 'TOKEN_MISSING' },
  garbage: { make: async () => 'kat_garbage', code: 'TOKEN_INVALID' },
  'an expired token': {
    async make(whole) {
      const { token } = await newUser(whole.world)
      await whole.advance(3_600_000)
      return token
    },
    code: 'TOKEN_EXPIRED',
  },
  'a token of a revoked session': {
    async make({ world }) {
      const { token, sessionId } = await newUser(world)
      await world.database.change(
        change => world.sessions.revoke(change, sessionId, 'device_removed'),
        world.nowMs(),
      )
      return token
    },
    code: 'SESSION_REVOKED',
  },
  'a token of an ended session': {
    async make({ world }) {
      const { token, sessionId } = await newUser(world)
      await world.database.change(change => world.sessions.remove(change, sessionId))
      return token
    },
    code: 'TOKEN_INVALID',
  },
  'a token of a session whose device was removed': {
    async make({ world, send }) {
      const { token, userId, deviceId } = await newUserWithDevice(world)
      const { token: otherToken } = await newSession(world, userId, (await newDevice(world, userId)).deviceId)
      await send(`DELETE /app/api/devices/${deviceId}`, { token: otherToken })
      return token
    },
    code: 'SESSION_REVOKED',
  },
  'a token of an account that is to be erased': {
    async make({ world, send }) {
      const { token } = await newUserWithDevice(world)
      await send('DELETE /app/api/user', { token, body: { confirm: true } })
      return token
    },
    code: 'SESSION_REVOKED',
  },
  'the secret of a sign-in that waits': {
    async make(whole) {
      const { userId, email, deviceId } = await newUserWithDevice(whole.world)
      await newDeviceList(whole.world, userId, [deviceId])
      const { body } = await enterCode(whole, email)
      t.equal(body.code, 'SIGN_IN_WAITING')
      return body.waitingId
    },
    code: 'TOKEN_INVALID',
  },
  'a refresh token in its place': {
    async make({ world }) {
      const { sessionId } = await newUser(world)
      return world.authentication.tokensOf(
        sessionId,
        world.database.view(view => world.sessions.read(view, sessionId))!,
      ).refreshToken
    },
    code: 'TOKEN_INVALID',
  },
}

function isRefused(access: Access, tokenName: string): boolean {
  if (access === 'ended') return !TOKENS_OF_OVER_SESSIONS.includes(tokenName)
  return access !== 'public' && !(access === 'optional' && tokenName === 'no token')
}

const TOKENS_OF_OVER_SESSIONS = [
  'a token of a revoked session',
  'a token of an ended session',
  'a token of a session whose device was removed',
  'a token of an account that is to be erased',
]

/** Good tokens, and what their session is refused with where it may do little. */
const GOOD_TOKENS: Readonly<Record<string, GoodToken>> = {
  'a session that waited and was let in': {
    async make(whole) {
      const { world } = whole
      const { userId, email, deviceId } = await newUserWithDevice(world)
      await newDeviceList(world, userId, [deviceId])
      const { body } = await enterCode(whole, email)
      await whole.advance(72 * 3_600_000)
      return (await fetchWaiting(whole, body.waitingId)).body.accessToken
    },
    hasDevice: false,
    restriction: 'DEVICE_NOT_LISTED',
  },
  'a session without a device, as the user is': {
    make: async ({ world }) => (await newUser(world)).token,
    hasDevice: false,
  },
  'a session without a device, of a user who has one': {
    async make({ world }) {
      const { userId } = await newUserWithDevice(world)
      return (await newSession(world, userId)).token
    },
    hasDevice: false,
    restriction: 'DEVICE_REQUIRED',
  },
  'a session without a device, of a user with a device list': {
    async make({ world }) {
      const { userId, deviceId } = await newUserWithDevice(world)
      await newDeviceList(world, userId, [deviceId])
      return (await newSession(world, userId)).token
    },
    hasDevice: false,
    restriction: 'DEVICE_NOT_LISTED',
  },
  'a device that is on no list': {
    async make({ world }) {
      const { userId, deviceId } = await newUserWithDevice(world)
      await newDeviceList(world, userId, [deviceId])
      const { deviceId: unlisted } = await newDevice(world, userId)
      return (await newSession(world, userId, unlisted)).token
    },
    hasDevice: true,
    restriction: 'DEVICE_NOT_LISTED',
  },
  'a device that the list names no more': {
    async make(whole) {
      const { world } = whole
      const { userId, deviceId, token } = await newUserWithDevice(world)
      const { deviceId: other } = await newDevice(world, userId)
      await newDeviceList(world, userId, [deviceId, other])
      // Allowed so far, so that an answer remembered from before would be the wrong one.
      t.equal((await whole.send('GET /app/api/friend', { token })).status, 200)
      await newDeviceList(world, userId, [other], 1)
      return token
    },
    hasDevice: true,
    restriction: 'DEVICE_NOT_LISTED',
  },
  'a device of the list': {
    async make({ world }) {
      const { userId, deviceId, token } = await newUserWithDevice(world)
      await newDeviceList(world, userId, [deviceId])
      return token
    },
    hasDevice: true,
  },
  'a device of a user without a list': {
    make: async ({ world }) => (await newUserWithDevice(world)).token,
    hasDevice: true,
  },
}

interface GoodToken {
  make(whole: TestApi): Promise<string>
  readonly hasDevice: boolean
  readonly restriction?: 'DEVICE_REQUIRED' | 'DEVICE_NOT_LISTED'
}

/** The code by which the access of an operation refuses a good token. */
function refusalOf({ access }: OperationForm, { hasDevice, restriction }: GoodToken): string | undefined {
  if (access === 'session' || access === 'device') {
    if (restriction !== undefined) return restriction
  }
  const needsDevice = access === 'device' || access === 'restricted-device'
  return needsDevice && !hasDevice ? 'DEVICE_NOT_REGISTERED' : undefined
}

const ACCESS_CODES = [...TOKEN_CODES, 'DEVICE_NOT_REGISTERED', 'DEVICE_REQUIRED', 'DEVICE_NOT_LISTED']

/** Its path, with `{name}` segments filled with an unused id. */
function placeOf({ method, path }: OperationForm, id: bigint | string = NOBODY): string {
  return `${method} ${path.replaceAll(/\{\w+\}/g, String(id))}`
}

/** A request to the operation without a body; after authentication it is refused, or taken. */
function call({ send }: TestApi, operation: OperationForm, token: Token): Promise<TestAnswer> {
  return send(placeOf(operation), token === undefined ? {} : { token })
}

t.test('the access of each operation is the one that is meant', async t => {
  t.same(Object.fromEntries(OPERATIONS.map(({ id, access }) => [id, access])), ACCESS)
})

for (const [name, { make, code }] of Object.entries(BAD_TOKENS)) {
  t.test(`${name} opens nothing, and hurts nothing that is open`, async t => {
    const whole = await openTestApi(t)
    for (const operation of OPERATIONS) {
      const token = await make(whole)
      const before = tableDigests(whole.world.database)
      const answer = await call(whole, operation, token)
      const { access, id } = operation
      if (isRefused(access, name)) {
        t.match(answer, { status: 401, body: { code } }, `${id} refuses it`)
        t.equal(answer.headers['www-authenticate'], 'Bearer realm="callsign"')
        t.same(tableDigests(whole.world.database), before, `${id} stores nothing`)
      } else {
        t.notOk(TOKEN_CODES.includes(answer.body?.code), `${id} does not look at it`)
      }
    }
  })
}

for (const [name, good] of Object.entries(GOOD_TOKENS)) {
  t.test(`${name} opens what its access says`, async t => {
    const whole = await openTestApi(t)
    for (const operation of OPERATIONS) {
      const token = await good.make(whole)
      const before = tableDigests(whole.world.database)
      const { status, body } = await call(whole, operation, token)
      const code = refusalOf(operation, good)
      if (code === undefined) t.notOk(ACCESS_CODES.includes(body?.code), `${operation.id} is open`)
      else {
        t.same([status, body.code], [403, code], operation.id)
        t.same(
          withoutUse(tableDigests(whole.world.database)),
          withoutUse(before),
          `${operation.id} stores nothing`,
        )
      }
    }
  })
}

/** Without the sessions: the first request of each notes that its pair of tokens is in use. */
function withoutUse({ sessions: _, ...others }: Readonly<Record<string, string>>) {
  return others
}

t.test('only sessions are answered with 401', async t => {
  const withRefresh = OPERATIONS.filter(({ codes }) => codes.some(code => code.startsWith('REFRESH_TOKEN')))
  t.same(
    withRefresh.map(({ id }) => id),
    ['refreshToken'],
  )
  const alone = OPERATIONS.filter(({ codes }) => codes.some(code => TOKEN_CODES.includes(code)))
  t.same(alone, [], 'no operation has such a code of its own')
})

/** An object named by an operation, made for its owner: in the path, or in the body. */
interface Owned {
  make(whole: TestApi, owner: TestUser): Promise<bigint | string>
  body?(id: bigint | string): object
  readonly query?: string
  /** Where it is no refusal: deleting a missing thing succeeds. */
  readonly status?: 204
}

const DEVICE: Owned = {
  make: async ({ world }, { userId }) => (await newDevice(world, userId)).deviceId,
}
const LOGIN_METHOD: Owned = {
  make: async ({ world }, { userId }) =>
    world.database.view(view => world.accounts.methodsOf(view, userId))[0]!.id,
}
const WAITING_SIGN_IN: Owned = {
  async make(whole, { userId, email }) {
    const { deviceId } = await newDevice(whole.world, userId)
    await newDeviceList(whole.world, userId, [deviceId])
    await enterCode(whole, email)
    const { token } = await newSession(whole.world, userId, deviceId)
    return (await whole.send('GET /app/api/user/waiting-sign-ins', { token })).body.items[0].id
  },
}
const SESSION: Owned = {
  make: async (_, { sessionId }) => sessionIdText(sessionId),
}
const SHARE_TOKEN: Owned = {
  make: async ({ send }, { token }) => (await send('POST /app/api/share-token', { token, body: {} })).body.id,
}
/** From its owner to another user. */
const FRIEND_REQUEST: Owned = {
  async make({ send, world }, { token }) {
    const { userId: targetUserId } = await newUser(world)
    const answer = await send('POST /app/api/friend-request/by-id', { token, body: { targetUserId } })
    return answer.body.requestId
  },
}
const CONTACT: Owned = {
  async make(whole, owner) {
    const { token, userId } = await newUser(whole.world)
    const ask = (token: string, targetUserId: bigint) =>
      whole.send('POST /app/api/friend-request/by-id', { token, body: { targetUserId } })
    await ask(owner.token, userId)
    await ask(token, owner.userId)
    return userId
  },
}
const BLOCK: Owned = {
  async make({ send, world }, { token }) {
    const { userId } = await newUser(world)
    await send('POST /app/api/block', { token, body: { userId } })
    return userId
  },
  status: 204,
}

/** Between its owner and a contact of theirs. */
const CALL: Owned = {
  async make(whole, owner) {
    const [caller, callee] = await Promise.all(
      [owner, await newUser(whole.world)].map(async ({ userId, token }) => {
        const { deviceId } = await newDevice(whole.world, userId)
        const session = await newSession(whole.world, userId, deviceId)
        return { userId, deviceId, token, deviceToken: session.token }
      }),
    )
    const ask = (token: string, targetUserId: bigint) =>
      whole.send('POST /app/api/friend-request/by-id', { token, body: { targetUserId } })
    await ask(caller!.token, callee!.userId)
    await ask(callee!.token, caller!.userId)
    const encryptedAESKeys = { [`${callee!.userId}_${callee!.deviceId}`]: ENCRYPTED_KEY }
    const body = { calleeIds: [callee!.userId], isVideo: false, encryptedAESKeys }
    return (await whole.send('POST /app/api/call/start', { token: caller!.deviceToken, body })).body.callId
  },
}
const ENCRYPTED_KEY = Buffer.alloc(113, 5).toString('base64')

const OWNED: Readonly<Record<string, Owned>> = {
  removeDevice: DEVICE,
  registerDevice: { ...DEVICE, body: id => ({ publicKey: PUBLIC_KEY, replacesDeviceId: id }) },
  removeLoginMethod: LOGIN_METHOD,
  endSession: SESSION,
  answerWaitingSignIn: { ...WAITING_SIGN_IN, body: () => ({ approve: true, signature: '' }) },
  setPrimaryLoginMethod: { ...LOGIN_METHOD, body: id => ({ id }) },
  revokeShareToken: SHARE_TOKEN,
  drawShareToken: SHARE_TOKEN,
  acceptRequest: { ...FRIEND_REQUEST, body: requestId => ({ requestId }) },
  declineRequest: { ...FRIEND_REQUEST, body: requestId => ({ requestId }) },
  cancelRequest: { ...FRIEND_REQUEST, body: requestId => ({ requestId }) },
  cancelRequestAt: FRIEND_REQUEST,
  removeContact: CONTACT,
  renameContact: { ...CONTACT, body: () => ({ alias: 'Mum' }) },
  unblockUserAt: BLOCK,
  unblockUser: { ...BLOCK, body: userId => ({ userId }) },
  inviteToCall: {
    ...CALL,
    body: () => ({
      calleeIds: [NOBODY],
      isVideo: true,
      encryptedAESKeys: { [`${NOBODY}_1`]: ENCRYPTED_KEY },
    }),
  },
  joinCall: CALL,
  declineCall: { ...CALL, body: () => ({}) },
  leaveCall: CALL,
  endCall: { ...CALL, body: callId => ({ callId }) },
  endCallAt: CALL,
  removeFromCall: { ...CALL, body: () => ({ userId: NOBODY }) },
  requestRejoin: CALL,
  acceptRejoin: {
    ...CALL,
    body: () => ({ requesterUserId: NOBODY, requesterDeviceId: NOBODY, encryptedAESKey: ENCRYPTED_KEY }),
  },
  rejoinCall: CALL,
  sendKeys: {
    ...CALL,
    body: () => ({ epoch: 2, reason: 'rotation', encryptedAESKeys: { [`${NOBODY}_1`]: ENCRYPTED_KEY } }),
  },
  getCall: CALL,
  getParticipants: CALL,
  getKeyMembers: { ...CALL, query: '?epoch=1' },
  forgetCall: CALL,
}

t.test('every operation with an id in its path is tried on what is another user’s', async t => {
  const withIds = OPERATIONS.filter(({ path }) => path.includes('{')).map(({ id }) => id)
  t.same(
    withIds.filter(id => OWNED[id] === undefined),
    [],
  )
})

for (const [id, owned] of Object.entries(OWNED)) {
  t.test(`${id}: another user’s is as if it were not there`, async t => {
    const whole = await openTestApi(t)
    const operation = OPERATIONS.find(each => each.id === id)!
    const owner = await newUser(whole.world)
    const thing = await owned.make(whole, owner)
    const { token } = await newUserWithDevice(whole.world)
    const ask = (thing: bigint | string) => {
      const body = owned.body?.(thing)
      return whole.send(`${placeOf(operation, thing)}${owned.query ?? ''}`, { token, ...(body && { body }) })
    }
    // Whatever the first request of a session writes is written now.
    await whole.send('GET /app/api/user', { token })
    await whole.world.database.change(() => undefined)

    const before = tableDigests(whole.world.database)
    const [foreign, absent] = [await ask(thing), await ask(NOBODY)]
    t.equal(foreign.status, owned.status ?? 404)
    t.same(foreign.text, absent.text, 'hidden and absent are told alike')
    t.same(tableDigests(whole.world.database), before, 'nothing was touched')
  })
}

async function newUserWithDevice(world: TestWorld) {
  const user = await newUser(world)
  const { deviceId } = await newDevice(world, user.userId)
  return { ...user, deviceId }
}

/** An id in the range of ours. */
const NOBODY = 4_503_599_627_370_497n
/** The generator of P-256, as an X9.63 point. */
const PUBLIC_KEY = 'BGsX0fLhLEJH+Lzm5WOkQPJ3A32BLeszoPShOUXYmMKWT+NC4v4af5uO5+tKfA+eFivOM1drMV7Oy7ZAaDe/UfU='
