/** Which operations every process answers, and that the compiler keeps the rest from those that only read. */

import t from 'tap'
import type { ApiDeps } from '../../src/api/deps.ts'
import {
  COMMANDS,
  type CommandDeps,
  OPERATIONS,
  READS,
  type ReadDeps,
  WRITES,
  type WriteDeps,
} from '../../src/api/operations.ts'
import {
  type Command,
  command,
  type Operation,
  operation,
  type Read,
  read,
} from '../../src/api/table/operation.ts'
import type { CallId, DeviceId, UserId } from '../../src/domain/ids.ts'
import { openReadStores, type ReadStores } from '../../src/server/application-stores.ts'
import { FollowedStore } from '../../src/store/engine/followed-store.ts'
import type { View } from '../../src/store/engine/store.ts'

const RULES = {
  id: 'probe',
  method: 'GET',
  path: '/app/api/probe',
  tag: 'user',
  summary: 'Probe',
  access: 'session',
  replies: { 204: null },
  codes: [],
} as const
const DONE = { status: 204 } as const

t.test('each operation is a read, a command or a write, and is there once', async t => {
  const all = [...READS, ...COMMANDS, ...WRITES].map(({ id }) => id)
  t.same(all.toSorted(), OPERATIONS.map(({ id }) => id).toSorted())
  t.equal(new Set(all).size, OPERATIONS.length)
})

t.test('reads are all GETs but those with rates or rooms in one place', async t => {
  const gets = OPERATIONS.filter(({ method }) => method === 'GET')
  const others = ['getPendingCalls', 'exportUser']
  const elsewhere = gets.filter(({ rates = [], id }) => rates.length > 0 || others.includes(id))
  t.same(
    elsewhere.map(({ id }) => id),
    ['exportUser', 'readPublicKeys', 'readDeviceLists', 'getCredentials', 'getPendingCalls'],
  )
  t.same(
    READS.map(({ id }) => id).toSorted(),
    gets
      .filter(get => !elsewhere.includes(get))
      .map(({ id }) => id)
      .toSorted(),
  )
})

t.test('what needs the writer is no read by its type', async t => {
  const looking = read({
    ...RULES,
    handle: ({ database }: Pick<ReadDeps, 'database'>) => database.view(() => DONE),
  })
  const changing = read({
    ...RULES,
    handle: ({ database }: Pick<ApiDeps, 'database'>) => database.change(() => DONE),
  })
  const ofLiveCalls = read({
    ...RULES,
    handle: ({ callIndex }: Pick<ApiDeps, 'callIndex'>, { requester }) => {
      callIndex.callsOf(requester.userId)
      return DONE
    },
  })
  const writing = operation({
    ...RULES,
    method: 'POST',
    handle: (_: unknown, { commit }) => commit(() => DONE),
  })
  // @ts-expect-error: the request of a read has no commit
  const committing = read({ ...RULES, handle: (_: unknown, { commit }) => commit(() => DONE) })
  const reads: readonly Read<ReadDeps>[] = [
    looking,
    // @ts-expect-error: a read is given a store that it can only look at
    changing,
    // @ts-expect-error: live calls are the writer's
    ofLiveCalls,
    // @ts-expect-error: a POST
    writing,
  ]
  const writes: readonly Operation<WriteDeps>[] = [looking, changing, ofLiveCalls, writing, committing]
  t.equal(writes.length, reads.length + 1)
})

t.test('a command has the writer do it, and changes nothing itself', async t => {
  const posted = { ...RULES, method: 'POST' } as const
  const asking = command({
    ...posted,
    handle: async ({ askRoom }: Pick<CommandDeps, 'askRoom'>, { idempotent }) => {
      await askRoom(
        1n as CallId,
        { kind: 'leave', by: { userId: 1n as UserId, deviceId: 1n as DeviceId } },
        idempotent,
      )
      return DONE
    },
  })
  const changing = command({
    ...posted,
    handle: async ({ database }: Pick<ApiDeps, 'database'>) => database.change(() => DONE),
  })
  // @ts-expect-error: the writer counts it
  const counting = command({ ...posted, rates: [], handle: async () => DONE })
  // @ts-expect-error: the request of a command has no commit
  const committing = command({ ...posted, handle: async (_: unknown, { commit }) => commit(() => DONE) })
  const commands: readonly Command<CommandDeps>[] = [
    asking,
    // @ts-expect-error: it is given a store that it can only look at
    changing,
  ]
  const writes: readonly Operation<WriteDeps>[] = [asking, changing, counting, committing]
  t.equal(writes.length, commands.length + 2)
})

t.test('the stores of a front have nothing to write with', async t => {
  const writing = (stores: ReadStores) => [
    // @ts-expect-error: a read store has no change
    stores.database.change,
    // @ts-expect-error: live calls are decided by the writer
    stores.calls.apply,
    // @ts-expect-error: and so are friend requests
    stores.contacts.accept,
    // @ts-expect-error: the writer sends mail and pushes
    stores.outbox,
    // @ts-expect-error: it fills the inboxes
    stores.notices,
    // @ts-expect-error: and it keeps replies
    stores.idempotency,
  ]
  const database = new FollowedStore({ view: read => read({} as View), refresh() {}, openTables() {} }, 0)
  const stores = openReadStores(database, () => ({ settle: async () => {}, markDelivered: async () => {} }), {
    secret: Buffer.alloc(32, 7),
    lifetimes: { accessS: 3_600, refreshS: 86_400, sessionS: 86_400 },
    historyDays: 90,
    nowMs: () => 0,
    randomBytes: length => new Uint8Array(length),
    onFault: error => t.fail(`a fault: ${error}`),
  })
  t.same(new Set(writing(stores)), new Set([undefined]))
})
