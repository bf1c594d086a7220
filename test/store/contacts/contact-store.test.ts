/** Contacts and requests on a real store: against a model on paper, expiry, limits, erasure. */

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import {
  CONTACTS_MAX,
  INCOMING_MAX,
  OUTGOING_MAX,
  type RequestRoute,
} from '../../../src/domain/contacts/friend-request.ts'
import { newId, type RequestId, type UserId } from '../../../src/domain/ids.ts'
import type { Change, View } from '../../../src/store/engine/store.ts'
import type { TestWorld } from '../../support/application.ts'
import { ContactModel } from '../../support/contact-model.ts'
import { people, takeKindsTold } from '../../support/contact-requests.ts'
import { randomFrom, seedOf } from '../../support/seed.ts'
import { openTestApi } from '../../support/test-api.ts'

const DAY_MS = 86_400_000
const ALL = { limit: 1_000 }

type Contacts = Pick<TestWorld, 'contacts'> & { readonly world: TestWorld }

/** Contacts, with short words for what the tests write and read at the moment of the clock. */
async function openStage(t: Test, folder = t.testdir()) {
  // The paper is written within the changes.
  const { world, send, told } = await openTestApi(t, { folder, rehearses: false })
  const { contacts, database } = world
  return {
    world,
    contacts,
    send,
    told,
    change: <Result>(write: (change: Change) => Result) => database.change(write, world.nowMs()),
    incoming: (userId: UserId) => database.view(view => incomingOf(view, { contacts, world }, userId)),
    outgoing: (userId: UserId) => database.view(view => outgoingOf(view, { contacts, world }, userId)),
    isContact: (one: UserId, other: UserId) => database.view(view => contacts.isContact(view, one, other)),
    badge: (userId: UserId) => database.view(view => contacts.badgeOf(view, userId, world.nowMs()).total),
    rowCounts: (tables: readonly string[]) =>
      tables.map(name => database.rowCount(database.storedRows(name))),
  }
}

/** Has one user ask another; returns the decision as a word. */
function ask(
  change: Change,
  { contacts, world }: Contacts,
  senderId: UserId,
  receiverId: UserId,
  route: RequestRoute,
): string {
  const requestId = newId(world.randomBytes) as RequestId
  const command = { requestId, senderId, receiverId, route, message: undefined }
  const decision = contacts.decideRequest(change, command, world.nowMs())
  if (decision.kind === 'refused') return decision.code
  contacts.request(change, command, decision)
  return decision.kind
}

function incomingOf(view: View, { contacts, world }: Contacts, userId: UserId): UserId[] {
  return contacts
    .readRequests(view, userId, 'incoming', { ...ALL, nowMs: world.nowMs() })
    .map(({ senderId }) => senderId)
}

function outgoingOf(view: View, { contacts, world }: Contacts, userId: UserId): UserId[] {
  return contacts
    .readRequests(view, userId, 'outgoing', { ...ALL, nowMs: world.nowMs() })
    .map(({ receiverId }) => receiverId)
}

function userIds(count: number): UserId[] {
  return Array.from({ length: count }, (_, at) => BigInt(at + 1_000_000) as UserId)
}

type Six = readonly [UserId, UserId, UserId, UserId, UserId, UserId]

/** The relations between all users, as text: in the store and on paper. */
function stateOfStore(view: View, stage: Contacts, ids: readonly UserId[]): string {
  const { contacts, world } = stage
  const inOrder = (found: readonly bigint[]) => found.map(id => ids.indexOf(id as UserId)).join()
  const numbers = (found: readonly bigint[]) => ids.flatMap((id, at) => (found.includes(id) ? at : [])).join()
  const lines = ids.map((id, at) => {
    const friends = ids.filter(other => contacts.isContact(view, id, other))
    const listed = contacts.readContacts(view, id, ALL).map(entry => entry.id)
    const blocked = contacts.readBlocks(view, id, ALL).map(entry => entry.id)
    const readable = ids.filter(other => contacts.keysShown(view, id, other, world.nowMs()) !== undefined)
    return [
      `${at} friends ${numbers(friends)} listed ${numbers(listed)}`,
      `incoming ${inOrder(incomingOf(view, stage, id))} outgoing ${inOrder(outgoingOf(view, stage, id))}`,
      `blocked ${numbers(blocked)} keys ${numbers(readable)}`,
      `badge ${contacts.badgeOf(view, id, world.nowMs()).total}`,
    ].join(' ')
  })
  return lines.join('\n')
}

function stateOnPaper(model: ContactModel, users: number): string {
  const all = Array.from({ length: users }, (_, at) => at)
  const lines = all.map(at => {
    const friends = all.filter(other => model.areFriends(at, other)).join()
    return [
      `${at} friends ${friends} listed ${friends}`,
      `incoming ${model.incoming(at).join()} outgoing ${model.outgoing(at).join()}`,
      `blocked ${model.blocked(at).sort().join()} keys ${all.filter(other => model.mayReadKeys(at, other)).join()}`,
      `badge ${model.incoming(at).length}`,
    ].join(' ')
  })
  return lines.join('\n')
}

type Step = (
  change: Change,
  stage: Contacts,
  model: ContactModel,
  one: number,
  other: number,
) => readonly [unknown, unknown]

/** Each command, done in the store and on paper: both outcomes. */
function commandsOf(ids: readonly UserId[]): Record<string, Step> {
  const asking =
    (route: RequestRoute): Step =>
    (change, stage, model, one, other) => [
      ask(change, stage, ids[one]!, ids[other]!, route),
      model.ask(one, other, route),
    ]
  const answering =
    (answer: 'accept' | 'decline'): Step =>
    (change, { contacts, world }, model, one, other) => {
      const request = contacts.incomingFrom(change, ids[other]!, ids[one]!, world.nowMs())
      const isDone =
        request !== undefined && contacts[answer](change, request.requestId, ids[one]!).kind === 'closed'
      return [isDone, model[answer](one, other)]
    }
  return {
    askById: asking('id'),
    askByToken: asking('token'),
    search: asking('address'),
    accept: answering('accept'),
    decline: answering('decline'),
    cancel: (change, { contacts, world }, model, one, other) => {
      const outgoing = contacts.readRequests(change, ids[one]!, 'outgoing', { ...ALL, nowMs: world.nowMs() })
      const request = outgoing.find(({ receiverId }) => receiverId === ids[other])
      const isDone =
        request !== undefined && contacts.cancel(change, request.requestId, ids[one]!).kind === 'closed'
      return [isDone, model.cancel(one, other)]
    },
    remove: (change, { contacts }, model, one, other) => [
      contacts.unlink(change, ids[one]!, ids[other]!),
      model.remove(one, other),
    ],
    block: (change, { contacts }, model, one, other) => {
      contacts.block(change, ids[one]!, ids[other]!)
      return [undefined, model.block(one, other)]
    },
    unblock: (change, { contacts }, model, one, other) => {
      contacts.unblock(change, ids[one]!, ids[other]!)
      return [undefined, model.unblock(one, other)]
    },
  }
}

/** Shares of each kind among a hundred commands: requests are made more often than ended. */
const WEIGHTS: Readonly<Record<string, number>> = {
  askById: 22,
  askByToken: 12,
  search: 12,
  accept: 18,
  decline: 9,
  cancel: 8,
  remove: 6,
  block: 3,
  unblock: 12,
}

t.test('random commands of three users leave the store as they leave the paper', async t => {
  const seed = seedOf()
  const random = randomFrom(seed)
  const stage = await openStage(t)
  const { world } = stage
  const { database } = world
  const ids = (await people(stage, 'Ann', 'Bob', 'Cy')).map(({ userId }) => userId)
  const model = new ContactModel(world.nowMs())
  const commands = commandsOf(ids)
  const kinds = Object.entries(WEIGHTS).flatMap(([kind, weight]) => Array<string>(weight).fill(kind))
  const done = new Map<string, number>()
  const history: string[] = []
  const faults: string[] = []
  for (let step = 0; step < 3_000 && faults.length === 0; step++) {
    // Now and then time passes, with or without a sweep behind it; mostly a millisecond.
    const passesMs = random() < 0.03 ? Math.floor(random() * 12 * DAY_MS) : 1
    model.nowMs += passesMs
    if (random() < 0.5) await world.advance(passesMs)
    else world.tick(passesMs)
    const kind = kinds[Math.floor(random() * kinds.length)]!
    const one = Math.floor(random() * 3)
    const other = (one + 1 + Math.floor(random() * 2)) % 3
    history.push(`${kind} ${one} ${other}`)
    const [outcome, expected] = await stage.change(change =>
      commands[kind]!(change, stage, model, one, other),
    )
    done.set(`${kind} ${outcome}`, (done.get(`${kind} ${outcome}`) ?? 0) + 1)
    const [found, onPaper] = [database.view(view => stateOfStore(view, stage, ids)), stateOnPaper(model, 3)]
    if (outcome !== expected || found !== onPaper) {
      faults.push(
        `step ${step}: ${outcome}, on paper ${expected}\n${found}\n\n${onPaper}`,
        ...history.slice(-40),
      )
    }
  }
  t.same(faults, [], `seed ${seed}`)
  for (const outcome of [
    'askById created',
    'askById crossed',
    'askByToken repeated',
    'accept true',
    'cancel true',
  ]) {
    t.ok((done.get(outcome) ?? 0) > 3, `${outcome} was met`)
  }
})

t.test('a request ends after 30 days for both, and is forgotten after 30 more', async t => {
  const stage = await openStage(t)
  const { world, contacts } = stage
  const [ann, bob] = await people(stage, 'Ann', 'Bob')
  await stage.change(change => ask(change, stage, ann!.userId, bob!.userId, 'id'))
  const { requestId } = world.database.view(view =>
    contacts.incomingFrom(view, ann!.userId, bob!.userId, world.nowMs()),
  )!
  const accept = () => stage.change(change => contacts.accept(change, requestId, bob!.userId))
  world.tick(30 * DAY_MS - 1)
  t.equal(stage.badge(bob!.userId), 1)
  world.tick(1)
  t.same([stage.incoming(bob!.userId), stage.outgoing(ann!.userId)], [[], []], 'before any sweep')
  t.equal(stage.badge(bob!.userId), 0)
  t.match(await accept(), { code: 'REQUEST_CLOSED' })
  takeKindsTold(stage, bob!)
  await world.advance(0)
  t.same(takeKindsTold(stage, bob!), ['friend_request_cancelled', 'badge'])
  t.same(takeKindsTold(stage, ann!), [])
  await world.advance(30 * DAY_MS - 1)
  t.match(await accept(), { code: 'REQUEST_CLOSED' })
  await world.advance(1)
  t.match(await accept(), { code: 'REQUEST_NOT_FOUND' })
})

t.test('nothing is left in the tables when all is forgotten', async t => {
  const stage = await openStage(t)
  const { world, contacts } = stage
  const [ann, bob] = await people(stage, 'Ann', 'Bob')
  const [a, b] = [ann!.userId, bob!.userId]
  await stage.change(change => {
    ask(change, stage, a, b, 'address')
    ask(change, stage, a, b, 'id')
    contacts.decline(change, contacts.incomingFrom(change, a, b, world.nowMs())!.requestId, b)
    ask(change, stage, b, a, 'id')
    contacts.unlink(change, a, b)
    ask(change, stage, b, a, 'token')
    contacts.block(change, a, b)
    contacts.unblock(change, a, b)
  })
  await world.advance(61 * DAY_MS)
  await world.advance(61 * DAY_MS)
  const tables = [
    'friend-requests',
    'friend-request-directions',
    'id-lists',
    'contacts',
    'blocks',
    'expiries',
  ]
  const rows = stage.rowCounts(tables)
  t.same(rows, [0, 0, 0, 0, 0, 0])
})

t.test('a quiet period lasts seven days, also when the declined request is cancelled', async t => {
  const stage = await openStage(t)
  const { world, contacts } = stage
  const [ann, bob] = await people(stage, 'Ann', 'Bob')
  const [a, b] = [ann!.userId, bob!.userId]
  await stage.change(change => {
    ask(change, stage, a, b, 'id')
    contacts.decline(change, contacts.incomingFrom(change, a, b, world.nowMs())!.requestId, b)
  })
  /** Whether a request that is made now, and taken back, is heard of. */
  const arrives = () =>
    stage.change(change => {
      for (const { requestId } of contacts.readRequests(change, a, 'outgoing', {
        ...ALL,
        nowMs: world.nowMs(),
      })) {
        contacts.cancel(change, requestId, a)
      }
      ask(change, stage, a, b, 'id')
      return incomingOf(change, stage, b).length
    })
  await world.advance(7 * DAY_MS - 1)
  t.equal(await arrives(), 0)
  await world.advance(1)
  t.equal(stage.incoming(b).length, 0, 'what was kept away stays away')
  t.equal(await arrives(), 1)
})

t.test('a quiet period outlasts the end of an earlier request', async t => {
  const stage = await openStage(t)
  const { world, contacts } = stage
  const [a, b] = userIds(2) as [UserId, UserId]
  const cancelAll = (change: Change) => {
    for (const { requestId } of contacts.readRequests(change, a, 'outgoing', {
      ...ALL,
      nowMs: world.nowMs(),
    })) {
      contacts.cancel(change, requestId, a)
    }
  }
  await stage.change(change => {
    ask(change, stage, a, b, 'id')
    cancelAll(change)
  })
  await world.advance(29 * DAY_MS)
  await stage.change(change => {
    ask(change, stage, a, b, 'id')
    contacts.decline(change, contacts.incomingFrom(change, a, b, world.nowMs())!.requestId, b)
    cancelAll(change)
  })
  await world.advance(2 * DAY_MS)
  await stage.change(change => ask(change, stage, a, b, 'id'))
  t.same(stage.incoming(b), [])
})

t.test('a user has at most 100 open requests that they know of', async t => {
  const stage = await openStage(t)
  const [ann, ...others] = userIds(OUTGOING_MAX + 3)
  const words = await stage.change(change => others.map(other => ask(change, stage, ann!, other, 'id')))
  t.same(words.slice(-3), ['created', 'PENDING_LIMIT', 'PENDING_LIMIT'])
  t.equal(words.filter(word => word === 'created').length, OUTGOING_MAX)
})

t.test('requests beyond the 500 that a user gets are withheld', async t => {
  const stage = await openStage(t)
  const { contacts, world } = stage
  const [ann, ...others] = userIds(INCOMING_MAX + 3)
  const words = await stage.change(change => others.map(other => ask(change, stage, other, ann!, 'id')))
  t.ok(words.every(word => word === 'created'))
  t.equal(stage.badge(ann!), INCOMING_MAX)
  t.same(stage.outgoing(others.at(-1)!), [ann])
  await stage.change(change => {
    const request = contacts.incomingFrom(change, others[0]!, ann!, world.nowMs())!
    contacts.decline(change, request.requestId, ann!)
  })
  t.notOk(stage.incoming(ann!).includes(others.at(-1)!), 'room that is made later does not deliver it')
})

t.test('who has 1000 contacts makes no more, but stays open to those asked before', async t => {
  const stage = await openStage(t)
  const { contacts, world } = stage
  const [ann, early, ...others] = userIds(CONTACTS_MAX + 4)
  await stage.change(change => {
    ask(change, stage, ann!, early!, 'id')
    for (const other of others.slice(0, CONTACTS_MAX)) {
      ask(change, stage, ann!, other, 'id')
      ask(change, stage, other, ann!, 'id')
    }
  })
  const [stranger, caller] = others.slice(CONTACTS_MAX)
  const words = await stage.change(change => [
    ask(change, stage, ann!, stranger!, 'id'),
    ask(change, stage, caller!, ann!, 'id'),
    contacts.accept(change, contacts.incomingFrom(change, caller!, ann!, world.nowMs())!.requestId, ann!),
    ask(change, stage, early!, ann!, 'id'),
  ])
  t.match(words, ['CONTACT_LIMIT', 'created', { code: 'CONTACT_LIMIT' }, 'crossed'])
  t.ok(stage.isContact(ann!, early!))
})

t.test('a user blocks at most 1000', async t => {
  const stage = await openStage(t)
  const { contacts, world } = stage
  const [ann, ...others] = userIds(1_002)
  const blocked = await stage.change(change => others.map(other => contacts.block(change, ann!, other)))
  t.same(blocked.slice(-2), [true, false])
  t.ok(await stage.change(change => contacts.block(change, ann!, others[0]!)), 'not twice')
  t.notOk(world.database.view(view => contacts.hasBlocked(view, ann!, others.at(-1)!)))
})

t.test('nothing of an erased user is left, and other users see a removal', async t => {
  const stage = await openStage(t)
  const { contacts, world } = stage
  const users = await people(stage, 'Ann', 'Bob', 'Cy', 'Di', 'Eve', 'Fay')
  const [ann, bob, cy, di, eve, fay] = users.map(({ userId }) => userId) as unknown as Six
  await stage.change(change => {
    ask(change, stage, ann, bob, 'id')
    ask(change, stage, bob, ann, 'id')
    ask(change, stage, ann, cy, 'id')
    ask(change, stage, di, ann, 'id')
    ask(change, stage, eve, ann, 'id')
    contacts.decline(change, contacts.incomingFrom(change, eve, ann, world.nowMs())!.requestId, ann)
    contacts.block(change, ann, cy)
    ask(change, stage, cy, ann, 'id')
    ask(change, stage, ann, fay, 'address')
  })
  for (const user of users) takeKindsTold(stage, user)
  await stage.change(change => contacts.eraseOf(change, ann))
  t.same(
    users.map(user => takeKindsTold(stage, user)),
    [[], ['contact_removed'], [], [], [], ['friend_request_cancelled', 'badge']],
  )
  t.same(
    [bob, cy, di, eve, fay].map(id => [stage.isContact(id, ann), stage.outgoing(id), stage.incoming(id)]),
    Array(5).fill([false, [], []]),
  )
  const tables = ['friend-requests', 'friend-request-directions', 'id-lists', 'contacts', 'blocks']
  const rows = stage.rowCounts(tables)
  t.same(rows, [0, 0, 0, 0, 0])
})

t.test('a request that an erased user has sent vanishes from its receiver', async t => {
  const stage = await openStage(t)
  const { contacts } = stage
  const [ann, bob] = await people(stage, 'Ann', 'Bob')
  await stage.change(change => ask(change, stage, ann!.userId, bob!.userId, 'id'))
  takeKindsTold(stage, bob!)
  await stage.change(change => contacts.eraseOf(change, ann!.userId))
  t.same(takeKindsTold(stage, bob!), ['friend_request_cancelled', 'badge'])
  t.equal(stage.badge(bob!.userId), 0)
})

t.test('what there is between people survives a new start', async t => {
  const folder = t.testdir()
  const first = await openStage(t, folder)
  const [ann, bob, cy] = userIds(3)
  await first.change(change => {
    ask(change, first, ann!, bob!, 'id')
    ask(change, first, bob!, ann!, 'id')
    ask(change, first, cy!, ann!, 'token')
    first.contacts.block(change, bob!, cy!)
  })
  const stateOf = (stage: Contacts) =>
    stage.world.database.view(view => stateOfStore(view, stage, [ann!, bob!, cy!]))
  const before = stateOf(first)
  await first.world.database.close()
  t.equal(stateOf(await openStage(t, folder)), before)
})

t.test(
  'what people write with a request can not be read in the file, and is there after a restart',
  async t => {
    const folder = t.testdir()
    const stage = await openStage(t, folder)
    const [ann, bob] = await people(stage, 'Ann', 'Bob')
    const body = { targetUserId: bob!.userId, message: 'It is Ann, of the pharmacy' }
    await stage.send('POST /app/api/friend-request/by-id', { token: ann!.token, body })
    const messages = ({ contacts, world }: Contacts) =>
      world.database
        .view(view => contacts.readRequests(view, bob!.userId, 'incoming', { ...ALL, nowMs: world.nowMs() }))
        .map(({ message }) => message)
    t.same(messages(stage), [body.message])
    await stage.world.database.close()
    t.notOk(readFileSync(join(folder, 'store', 'data.mdb')).includes(body.message))
    t.same(messages(await openStage(t, folder)), [body.message])
  },
)
