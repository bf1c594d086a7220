/**
 * Blocks (contract 3.4), and that the blocked side can't observe one: a story is played twice, once with a block and
 * once with the plain acts that look like it, and every answer and event that the blocked side gets is compared.
 */

import t, { type Test } from 'tap'
import type { DeviceId } from '../../../src/domain/ids.ts'
import { newDevice, newSession, type TestAnswer, type TestUser } from '../../support/application.ts'
import { askById, befriend, people, shareTokenOf, takeKindsTold } from '../../support/contact-requests.ts'
import { randomFrom, seedOf } from '../../support/seed.ts'
import { openTestApi, type TestApi } from '../../support/test-api.ts'

const DAY_MS = 86_400_000

function block(api: TestApi, by: TestUser, other: TestUser): Promise<TestAnswer> {
  return api.send('POST /app/api/block', { token: by.token, body: { userId: other.userId } })
}

function unblock(api: TestApi, by: TestUser, other: TestUser): Promise<TestAnswer> {
  return api.send('DELETE /app/api/block', { token: by.token, body: { userId: other.userId } })
}

async function listOf(api: TestApi, { token }: TestUser, path: string): Promise<string[]> {
  const { body } = await api.send(`GET /app/api/${path}`, { token })
  return body.items.map((item: { displayName?: string; user?: { displayName: string } }) => {
    return item.displayName ?? item.user?.displayName
  })
}

t.test('a block ends the contact, as a removal does, and whom one has blocked one does not ask', async t => {
  const api = await openTestApi(t)
  const [ann, bob] = (await people(api, 'Ann', 'Bob')) as [TestUser, TestUser]
  await befriend(api, ann, bob)
  api.told.length = 0
  t.equal((await block(api, bob, ann)).status, 204)
  t.same([takeKindsTold(api, ann), takeKindsTold(api, bob)], [['contact_removed'], ['contact_removed']])
  t.same([await listOf(api, ann, 'friend'), await listOf(api, bob, 'friend')], [[], []])
  t.same(await listOf(api, bob, 'block'), ['Ann'])
  t.match(await askById(api, bob, ann), { status: 409, body: { code: 'USER_BLOCKED' } })
  t.equal((await block(api, bob, ann)).status, 204, 'twice is once')
  t.equal((await unblock(api, bob, ann)).status, 204)
  t.equal((await unblock(api, bob, ann)).status, 204)
  t.same(await listOf(api, bob, 'block'), [])
  t.equal((await askById(api, bob, ann)).status, 201)
})

t.test('what a block kept away is not delivered when it ends, but it crosses a request back', async t => {
  const api = await openTestApi(t)
  const [ann, bob] = (await people(api, 'Ann', 'Bob')) as [TestUser, TestUser]
  await block(api, bob, ann)
  const { requestId } = (await askById(api, ann, bob)).body
  await unblock(api, bob, ann)
  t.same(await listOf(api, bob, 'friend-request?direction=incoming'), [])
  const accepting = await api.send('POST /app/api/friend-request/accept', {
    token: bob.token,
    body: { requestId },
  })
  t.match(accepting, { status: 404, body: { code: 'REQUEST_NOT_FOUND' } })
  t.match(await askById(api, bob, ann), { status: 200, body: { status: 'accepted' } })
})

t.test('asking and cancelling write the same rows whether there is a block, until the sweep', async t => {
  const api = await openTestApi(t)
  const { database } = api.world
  const [ann, bob, cy] = (await people(api, 'Ann', 'Bob', 'Cy')) as [TestUser, TestUser, TestUser]
  for (const other of [bob, cy]) for (let at = 0; at < 3; at++) await newDevice(api.world, other.userId)
  await block(api, cy, ann)
  const rows = () => database.tableNames().map(name => database.rowCount(database.storedRows(name)))
  const growthFor = async (other: TestUser): Promise<number[]> => {
    const before = rows()
    const { requestId } = (await askById(api, ann, other)).body
    const between = rows()
    const body = { requestId }
    await api.send('POST /app/api/friend-request/cancel', { token: ann.token, body })
    return rows().map((count, at) => (between[at]! - before[at]!) * 10 + count - between[at]!)
  }
  t.same(await growthFor(bob), await growthFor(cy))
  await askById(api, ann, bob)
  await api.world.advance(0)
  t.same([takeKindsTold(api, bob).includes('friend_request'), takeKindsTold(api, cy)], [true, []])
})

t.test('a block can be lifted by a path, too', async t => {
  const api = await openTestApi(t)
  const [ann, bob] = (await people(api, 'Ann', 'Bob')) as [TestUser, TestUser]
  await block(api, bob, ann)
  t.equal((await api.send(`DELETE /app/api/block/${ann.userId}`, { token: bob.token })).status, 204)
  t.equal((await api.send('DELETE /app/api/block/nobody', { token: bob.token })).status, 204)
  t.same(await listOf(api, bob, 'block'), [])
})

t.test(
  'keys of who takes calls from strangers are shown to all, as of the block to whom they blocked',
  async t => {
    const api = await openTestApi(t)
    const [ann, bob] = (await people(api, 'Ann', 'Bob')) as [TestUser, TestUser]
    const { accounts, nowMs } = api.world
    const user = api.world.database.view(view => accounts.read(view, bob.userId))!
    const shown = (callsFromContactsOnly: boolean, more: object = {}) =>
      api.world.database.view(view =>
        api.world.contacts.keysShown(view, ann.userId, bob.userId, nowMs(), {
          ...user,
          ...more,
          settings: { ...user.settings, callsFromContactsOnly },
        }),
      )
    t.equal(shown(true), undefined)
    t.same(shown(false), { kind: 'present' })
    t.equal(shown(false, { erasesAtMs: nowMs() + DAY_MS }), undefined, 'not of who is leaving')
    const blockedAtMs = nowMs()
    await block(api, bob, ann)
    api.world.tick(1_000)
    t.same(shown(false), { kind: 'as-of', atMs: blockedAtMs })
    t.equal(shown(true), undefined)
  },
)

t.test('users can’t block themselves or an unknown user', async t => {
  const api = await openTestApi(t)
  const [ann] = (await people(api, 'Ann')) as [TestUser]
  t.match(await block(api, ann, ann), { status: 422, body: { code: 'SELF_REQUEST' } })
  const nobody = { userId: 7n } as TestUser
  t.match(await block(api, ann, nobody), { status: 404, body: { code: 'USER_NOT_FOUND' } })
})

t.test('who is leaving can be blocked by those who have to do with them', async t => {
  const api = await openTestApi(t)
  const [ann, bob, cy] = (await people(api, 'Ann', 'Bob', 'Cy')) as [TestUser, TestUser, TestUser]
  await befriend(api, ann, bob)
  const { accounts, database } = api.world
  const user = api.world.database.view(view => accounts.read(view, ann.userId))!
  await database.change(change =>
    accounts.put(change, ann.userId, { ...user, erasesAtMs: change.nowMs + DAY_MS }),
  )
  t.equal((await block(api, cy, ann)).status, 404)
  t.equal((await block(api, bob, ann)).status, 204)
})

/** One playing of a story: who is in it, and what the blocked side has seen so far. */
class Stage {
  readonly api: TestApi
  readonly users: TestUser[]
  readonly deviceIds: readonly DeviceId[]
  readonly tokens: readonly string[]
  readonly hashes: readonly string[]
  readonly seen: string[] = []
  readonly #names = new Map<string, string>()

  private constructor(
    api: TestApi,
    users: TestUser[],
    deviceIds: readonly DeviceId[],
    tokens: readonly string[],
    hashes: readonly string[],
  ) {
    this.api = api
    this.users = users
    this.deviceIds = deviceIds
    this.tokens = tokens
    this.hashes = hashes
  }

  static async open(t: Test): Promise<Stage> {
    const api = await openTestApi(t, { rates: true })
    const users = await people(api, 'Ann', 'Bob', 'Cy')
    const tokens: string[] = []
    const hashes: string[] = []
    const deviceIds: DeviceId[] = []
    for (const user of users) {
      const { publicKeyHash, deviceId } = await newDevice(api.world, user.userId)
      deviceIds.push(deviceId)
      api.keysLogged.set(publicKeyHash, { userId: user.userId, deviceId })
      hashes.push(publicKeyHash)
      tokens.push((await shareTokenOf(api, user, { expiresIn: 300 * 86_400, maxUses: 7 })).text)
    }
    return new Stage(api, users, deviceIds, tokens, hashes)
  }

  async act(actor: number, methodAndPath: string, body?: object): Promise<TestAnswer> {
    const { token } = this.users[actor]!
    const answer = await this.api.send(methodAndPath, { token, ...(body && { body }) })
    if (actor === ANN) this.#note(`${methodAndPath} ${answer.status} ${answer.text}`)
    return answer
  }

  /** Everything that the blocked side can look at. */
  async lookAround(): Promise<void> {
    const { world } = this.api
    const { contacts } = world
    for (const path of [
      'friend',
      'block',
      'friend-request?direction=incoming',
      'friend-request?direction=outgoing',
    ]) {
      await this.act(ANN, `GET /app/api/${path}`)
    }
    const [ann, bob] = this.users as [TestUser, TestUser]
    world.database.view(view => {
      this.#note(`keys ${contacts.keysShown(view, ann.userId, bob.userId, world.nowMs())?.kind}`)
      this.#note(`badge ${contacts.badgeOf(view, ann.userId, world.nowMs()).total}`)
    })
    for (const { userId, body } of this.api.told.splice(0)) {
      if (userId !== ann.userId) continue
      this.#note(
        `told ${JSON.stringify(body, (_, value) => (typeof value === 'bigint' ? String(value) : value))}`,
      )
    }
  }

  async pass(ms: number): Promise<void> {
    await this.api.world.advance(ms)
    // Sessions would not live as long as the story.
    for (const [at, user] of this.users.entries()) {
      this.users[at] = { ...user, ...(await newSession(this.api.world, user.userId, this.deviceIds[at])) }
    }
  }

  /** Notes a line with its ids, tokens and hashes named in the order in which they came up. */
  #note(line: string): void {
    const named = line.replace(/[A-Za-z0-9+/]{86}==|c_[\w-]{22}|\b\d{10,20}\b/g, value => {
      if (!this.#names.has(value)) this.#names.set(value, `#${this.#names.size}`)
      return this.#names.get(value)!
    })
    this.seen.push(named)
  }
}

const ANN = 0
const BOB = 1
const COMMANDS = ['byId', 'byToken', 'byHash', 'search', 'resolve', 'accept', 'decline', 'cancel', 'remove']
const OWN_COMMANDS = [...COMMANDS, 'byId', 'byToken', 'cancel', 'resolve', 'block', 'unblock']

/** Has one user do something to another; `pick` chooses among requests. */
async function perform(stage: Stage, command: string, actor: number, other: number): Promise<void> {
  const { users, tokens, hashes } = stage
  const { userId, email } = users[other]!
  const asking = '/app/api/friend-request'
  const requestId = async (direction: string): Promise<string> => {
    const { token } = users[actor]!
    const { body } = await stage.api.send(`GET ${asking}?direction=${direction}`, { token })
    const found = body.items.find((item: { user: { userId: string } }) => item.user.userId === String(userId))
    return found?.requestId ?? '1'
  }
  switch (command) {
    case 'byId':
      return void (await stage.act(actor, `POST ${asking}/by-id`, { targetUserId: userId }))
    case 'byToken':
      return void (await stage.act(actor, `POST ${asking}/by-token`, { token: tokens[other] }))
    case 'byHash':
      return void (await stage.act(actor, `POST ${asking}`, { publicKeyHash: hashes[other] }))
    case 'search':
      return void (await stage.act(actor, `POST ${asking}`, { email }))
    case 'resolve':
      return void (await stage.act(actor, 'POST /app/api/share-token/resolve', { token: tokens[other] }))
    case 'accept':
    case 'decline':
      return void (await stage.act(actor, `POST ${asking}/${command}`, {
        requestId: await requestId('incoming'),
      }))
    case 'cancel':
      return void (await stage.act(actor, `POST ${asking}/cancel`, {
        requestId: await requestId('outgoing'),
      }))
    case 'remove':
      return void (await stage.act(actor, `DELETE /app/api/friend/${userId}`))
    case 'block':
      return void (await stage.act(actor, 'POST /app/api/block', { userId }))
    case 'unblock':
      return void (await stage.act(actor, 'DELETE /app/api/block', { userId }))
  }
}

/** The relation between the two before the block: the stories begin with each of these in turn. */
const OPENINGS: readonly (readonly (readonly [command: string, actor: number, other: number])[])[] = [
  [
    ['byId', ANN, BOB],
    ['byId', BOB, ANN],
  ],
  [['byToken', ANN, BOB]],
  [['byId', BOB, ANN]],
  [
    ['byId', ANN, BOB],
    ['decline', BOB, ANN],
  ],
  [['search', ANN, BOB]],
  [],
]

/** Bob's acts to be rid of Ann without blocking her. */
async function part(stage: Stage): Promise<void> {
  await perform(stage, 'remove', BOB, ANN)
  await perform(stage, 'decline', BOB, ANN)
  await perform(stage, 'cancel', BOB, ANN)
}

/** Plays the story of a seed; returns what Ann has seen. */
async function play(t: Test, seed: number, opening: number, isBlocked: boolean): Promise<readonly string[]> {
  const random = randomFrom(seed)
  const below = (bound: number) => Math.floor(random() * bound)
  const stage = await Stage.open(t)
  const step = async (commands: readonly string[], actor: number) => {
    const other = actor === ANN ? 1 + below(2) : ANN
    const command = commands[below(commands.length)]!
    // Bob's own searches are left out: no plain act takes a request back that its sender does not know of.
    await perform(stage, actor !== ANN && command === 'search' ? 'resolve' : command, actor, other)
    await stage.pass(random() < 0.2 ? below(8 * DAY_MS) : below(600_000))
    await stage.lookAround()
  }
  if (opening === OPENINGS.length - 1) {
    for (let steps = below(12); steps > 0; steps--) await step(COMMANDS, below(3))
  }
  for (const [command, actor, other] of OPENINGS[opening]!) {
    await perform(stage, command, actor, other)
    // Contacts of one moment are listed by their ids, which are other ones in each play.
    await stage.pass(1)
  }
  // A search sends its request a moment later.
  await stage.pass(1_000)
  await stage.lookAround()
  await (isBlocked ? perform(stage, 'block', BOB, ANN) : part(stage))
  await stage.lookAround()
  const unblocksAt = random() < 0.5 ? below(14) : -1
  for (let at = 0; at < 14; at++) {
    if (at === unblocksAt && isBlocked) await perform(stage, 'unblock', BOB, ANN)
    await step(OWN_COMMANDS, random() < 0.85 ? ANN : 2)
  }
  return stage.seen
}

t.test(
  'nothing that the blocked side does, sees or is told depends on the block',
  { timeout: 120_000 },
  async t => {
    const first = seedOf()
    for (let round = 0; round < OPENINGS.length + 2; round++) {
      const seed = first + round
      const opening = Math.min(round, OPENINGS.length - 1)
      await t.test(`story ${round}`, async t => {
        const [blocked, parted] = [
          await playApart(t, seed, opening, true),
          await playApart(t, seed, opening, false),
        ]
        const at = blocked.findIndex((line, index) => line !== parted[index])
        const faults = at === -1 ? [] : [...blocked.slice(Math.max(0, at - 3), at), blocked[at], parted[at]]
        t.same(faults, [], `seed ${seed}`)
        t.equal(blocked.length, parted.length)
      })
    }
  },
)

/** Each playing has a test, and so a folder, of its own. */
async function playApart(
  t: Test,
  seed: number,
  opening: number,
  isBlocked: boolean,
): Promise<readonly string[]> {
  let seen: readonly string[] = []
  await t.test(isBlocked ? 'with the block' : 'without it', async t => {
    seen = await play(t, seed, opening, isBlocked)
  })
  return seen
}
