/**
 * Inboxes of devices that are there: what they get is the same as where everything is kept, whatever fails, leaves, comes
 * back or starts anew, in the process that writes and in one that follows it.
 */

import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { CallId, DeviceId, UserId } from '../../../src/domain/ids.ts'
import type { InboxItem } from '../../../src/domain/messages/inbox.ts'
import { deriveSecrets } from '../../../src/domain/secrets.ts'
import { Expiries } from '../../../src/store/engine/expiries.ts'
import { FollowedStore } from '../../../src/store/engine/followed-store.ts'
import type { LmdbStore } from '../../../src/store/engine/lmdb-store.ts'
import type { Change, FollowedCommit, ReadStore } from '../../../src/store/engine/store.ts'
import { type InboxMessage, InboxStore, inboxNewsOf } from '../../../src/store/messages/inbox-store.ts'
import { LIVE_GROUPS } from '../../../src/store/messages/message-tables.ts'
import { openRehearsed } from '../../support/memory-disk.ts'
import { itemOf } from '../../support/notice-item.ts'
import { randomFrom, runsOf, seedOf } from '../../support/seed.ts'

const ANN = 5_000_000_001n as UserId
const BOB = 5_000_000_002n as UserId
const PHONE = 6_000_000_001n as DeviceId
const TABLET = 6_000_000_002n as DeviceId
const DESK = 6_000_000_003n as DeviceId
const RING_MS = 60_000
const DAY_MS = 86_400_000

type Address = readonly [userId: UserId, deviceId: DeviceId]
const DEVICES: readonly Address[] = [
  [ANN, PHONE],
  [ANN, TABLET],
  [BOB, DESK],
]

interface Letter {
  readonly to: Address
  readonly item: InboxItem
  readonly expiresAtMs?: number | undefined
  readonly replaces?: bigint | undefined
}

/** A store and its inboxes, in the process that writes and in one that follows it. */
class House {
  readonly folder: string
  readonly #isThere: (address: Address) => boolean
  database!: LmdbStore
  inbox!: InboxStore
  followed!: FollowedStore
  follower!: InboxStore
  /** Devices that have news, as the follower has heard. */
  readonly news = new Set<DeviceId>()
  #expiries!: Expiries
  #isOpen = false
  /** Durable changes that the follower has not heard of. */
  readonly #ahead: FollowedCommit[] = []

  constructor(t: Test, folder: string, isThere: (address: Address) => boolean = () => false) {
    this.folder = folder
    this.#isThere = isThere
    t.teardown(() => this.close())
  }

  open({ rehearses = true } = {}): this {
    const { database, rehearsals } = openRehearsed(this.folder, () => 0, rehearses)
    this.database = database
    this.#expiries = new Expiries()
    this.inbox = this.#inboxOf(database, rehearsals.randomBytes, this.#expiries)
    this.followed = new FollowedStore(database, database.lastChange, inboxNewsOf)
    this.follower = this.#inboxOf(this.followed, randomBytes)
    this.followed.subscribe('inbox-news', ({ deviceId }) => void this.news.add(deviceId))
    this.#ahead.length = 0
    database.follow(change => void this.#ahead.push(change))
    this.#isOpen = true
    return this
  }

  #inboxOf(
    database: ReadStore,
    random: (length: number) => Uint8Array,
    expiries = new Expiries(),
  ): InboxStore {
    return new InboxStore({
      database,
      expiries,
      secrets: deriveSecrets(Buffer.alloc(32, 7)),
      randomBytes: random,
      isConnected: (...address) => this.#isThere(address),
    })
  }

  async close(): Promise<void> {
    if (this.#isOpen) await this.database.close()
    this.#isOpen = false
  }

  /** The follower hears of all changes so far, or of some. */
  catchUp(count = Number.POSITIVE_INFINITY): void {
    for (const change of this.#ahead.splice(0, count)) this.followed.apply(change)
  }

  async sweep(nowMs: number): Promise<void> {
    await this.inbox.keepLong(this.database, nowMs)
    while ((await this.#expiries.sweep(this.database, nowMs, 100)) > 0);
  }

  shown([userId, deviceId]: Address, nowMs: number, { offset = 0, limit = 1_000 } = {}) {
    const range = { offset, limit, nowMs }
    return this.database.view(view => this.inbox.after(view, userId, deviceId, range))
  }

  labels(address: Address, nowMs = 0): string[] {
    return labelsOf(this.shown(address, nowMs))
  }

  followedLabels([userId, deviceId]: Address, nowMs = 0): string[] {
    const range = { offset: 0, limit: 1_000, nowMs }
    return labelsOf(this.followed.view(view => this.follower.after(view, userId, deviceId, range)))
  }

  head([userId, deviceId]: Address) {
    return this.database.view(view => this.inbox.head(view, userId, deviceId))
  }

  append(change: Change, { to, ...entry }: Letter): number {
    return this.inbox.append(change, ...to, entry)
  }

  send(letters: readonly Letter[], nowMs = 0): Promise<number[]> {
    return this.database.change(change => letters.map(letter => this.append(change, letter)), nowMs)
  }

  settle([userId, deviceId]: Address, labels: readonly string[], nowMs = 0): Promise<void> {
    const offsets = this.shown([userId, deviceId], nowMs)
      .filter(({ item }) => labels.includes(labelOf(item)))
      .map(({ offset }) => offset)
    return this.database.change(change => this.inbox.settle(change, userId, deviceId, offsets), nowMs)
  }

  rows(table: string): number {
    return this.database.rowCount(this.database.storedRows(table))
  }

  assertConsistent(): void {
    this.database.view(view => this.inbox.assertConsistent(view))
    this.catchUp()
    this.followed.view(view => this.follower.assertConsistent(view))
  }
}

function dev(label: string, size = 2): InboxItem {
  return { kind: 'dev', queue: 'dev.t', headers: [['label', label]], body: new Uint8Array(size) }
}

function invitation(callId: number, expiresAtMs: number, key = 'a-key'): InboxItem {
  return itemOf({
    kind: 'call_invitation',
    callId: BigInt(callId) as CallId,
    version: 1,
    callerId: BOB,
    callerName: 'Bobby',
    displayName: 'Bob',
    alias: 'Bobby',
    isContact: true,
    roomId: 3,
    isVideo: false,
    isOnGoing: false,
    expiresAtMs,
    participants: [],
    keyEpoch: 1,
    keyFromUserId: BOB,
    keyFromDeviceId: 5n as DeviceId,
    encryptedAESKey: key,
    eventId: `event-${callId}`,
    sentAtMs: expiresAtMs - RING_MS,
  })
}

/** `event` distinguishes it from the contact's other news. */
function renamed(userId: bigint, event: string): InboxItem {
  const notice = { kind: 'contact_changed', userId: userId as UserId, displayName: event } as const
  return itemOf({ ...notice, eventId: event, sentAtMs: 0 } as Parameters<typeof itemOf>[0])
}

function labelsOf(messages: readonly InboxMessage[]): string[] {
  return messages.map(({ item }) => labelOf(item))
}

function labelOf(item: InboxItem): string {
  if (item.kind === 'dev') return item.headers[0]![1]
  const { body, eventId } = item
  if (body.kind === 'call_missed') return `missed ${body.callId}`
  return 'callId' in body ? `${body.kind} ${body.callId} ${item.encryptedAESKey}` : `${body.kind} ${eventId}`
}

t.test(
  'what a device that is there gets is written once for all, and gone with the last of them',
  async t => {
    const house = new House(t, t.testdir(), () => true).open({ rehearses: false })
    const send = (callId: number) =>
      house.send(DEVICES.map(to => ({ to, item: invitation(callId, RING_MS, `key of ${to[1]}`) })))
    await send(1)
    const { puts } = house.database.figures
    await send(2)
    t.equal(house.database.figures.puts - puts, 1, 'no head, no ending')
    t.same(
      house.labels([BOB, DESK]),
      [1, 2].map(call => `call_invitation ${call} key of ${DESK}`),
    )
    t.same([house.rows('inbox-live'), house.rows('inbox-groups'), house.rows('expiries')], [2, 0, 0])
    house.assertConsistent()
    await house.database.change(change => {
      for (const to of DEVICES) house.inbox.settle(change, ...to, [1])
    })
    t.same([house.rows('inbox-live'), house.rows('inbox-live-settled')], [1, 0])
    await house.database.change(change => house.inbox.settle(change, ANN, PHONE, [2]))
    t.same([house.rows('inbox-live'), house.rows('inbox-live-settled')], [1, 1])
    house.assertConsistent()
    await house.database.change(change => {
      for (const to of DEVICES) house.inbox.settle(change, ...to, [2])
    })
    t.same([house.rows('inbox-live'), house.rows('inbox-live-settled')], [0, 0])
    house.assertConsistent()
  },
)

t.test('messages that have been live for a minute are kept, and their row goes', async t => {
  const house = new House(t, t.testdir(), () => true).open()
  await house.send(DEVICES.map(to => ({ to, item: dev(`a ${to[1]}`) })))
  await house.send(
    DEVICES.map(to => ({ to, item: dev(`b ${to[1]}`) })),
    30_000,
  )
  await house.settle([ANN, PHONE], [`a ${PHONE}`])
  await house.sweep(59_999)
  t.equal(house.rows('inbox-groups'), 0)
  await house.sweep(60_000)
  // Messages of the development surface stand alone.
  t.same([house.rows('inbox-groups'), house.rows('inbox-live'), house.rows('inbox-live-settled')], [2, 3, 0])
  house.assertConsistent()
  for (const to of DEVICES) {
    const all = [`a ${to[1]}`, `b ${to[1]}`].slice(to[1] === PHONE ? 1 : 0)
    t.same([house.labels(to), house.followedLabels(to)], [all, all])
  }
  await house.send([{ to: [ANN, TABLET], item: dev('c') }], 60_000)
  t.same(house.labels([ANN, TABLET]).at(-1), 'c', 'what comes is live again, behind it')
  await house.sweep(120_000)
  t.same([house.rows('inbox-live'), house.rows('expiries')], [0, 3])
  t.same(house.labels([ANN, TABLET]), [`a ${TABLET}`, `b ${TABLET}`, 'c'])
  house.assertConsistent()
})

t.test('the live messages of a device that has left are kept with the next one, in order', async t => {
  let isThere = true
  const house = new House(t, t.testdir(), () => isThere).open()
  const to: Address = [ANN, PHONE]
  for (const label of ['a', 'b', 'c']) await house.send([{ to, item: dev(label) }])
  await house.settle(to, ['b'])
  isThere = false
  await house.send([{ to, item: dev('d') }])
  t.same([house.rows('inbox-live'), house.rows('inbox-groups')], [0, 3])
  isThere = true
  await house.send([{ to, item: dev('e') }])
  house.assertConsistent()
  t.same(
    [house.labels(to), house.followedLabels(to)],
    [
      ['a', 'c', 'd', 'e'],
      ['a', 'c', 'd', 'e'],
    ],
  )
  t.same(
    house.shown(to, 0).map(({ offset }) => offset),
    [1, 3, 4, 5],
  )
  await house.settle(to, ['a', 'e', 'd', 'c'])
  t.same([house.head(to).count, house.rows('inbox-live'), house.rows('inbox-groups')], [0, 0, 0])
})

t.test('a device has 32 live messages and 500 in all', async t => {
  const house = new House(t, t.testdir(), () => true).open({ rehearses: false })
  const to: Address = [ANN, PHONE]
  for (let at = 1; at <= 505; at++) {
    await house.send([{ to, item: dev(`${at}`) }])
    if (house.rows('inbox-live') > 32) t.fail('more than 32')
  }
  const labels = house.labels(to)
  t.same([labels.length, labels[0], labels.at(-1), house.head(to).lostOffset], [500, '6', '505', 5])
  t.equal(house.inbox.dropped.get('full'), 5)
  house.assertConsistent()
})

t.test('no offset is given twice, also by a process that starts anew', async t => {
  const house = new House(t, t.testdir(), () => true).open()
  const to: Address = [ANN, PHONE]
  const given: number[] = []
  for (let start = 0; start < 4; start++) {
    for (const label of ['a', 'b']) given.push(...(await house.send([{ to, item: dev(label) }])))
    t.equal(house.head(to).nextOffset, given.at(-1)! + 1)
    // Nothing in the rows says that they have been given.
    await house.settle(to, ['a', 'b'])
    t.equal(house.rows('inbox-live'), 0)
    await house.close()
    house.open({})
    const { nextOffset, givenBelow } = house.head(to)
    t.ok(nextOffset <= given.at(-1)! + 1 && given.at(-1)! < givenBelow, 'what it knows of them')
  }
  t.same(
    given,
    [...new Set(given)].sort((one, other) => one - other),
  )
  house.assertConsistent()
})

t.test('nothing of an erased device stays, and its next inbox begins anew', async t => {
  const house = new House(t, t.testdir(), () => true).open()
  await house.send(DEVICES.map(to => ({ to, item: invitation(1, RING_MS, `key of ${to[1]}`) })))
  const { epoch } = house.head([ANN, PHONE])
  await house.database.change(change => house.inbox.eraseDevice(change, ANN, PHONE))
  t.same([house.head([ANN, PHONE]).epoch, house.labels([ANN, PHONE])], [0, []])
  t.equal(house.labels([ANN, TABLET]).length, 1)
  house.assertConsistent()
  t.same(await house.send([{ to: [ANN, PHONE], item: dev('a') }], RING_MS), [1])
  t.not(house.head([ANN, PHONE]).epoch, epoch)
  await house.database.change(change => house.inbox.eraseOf(change, ANN))
  await house.sweep(RING_MS)
  house.assertConsistent()
  t.same([house.rows('inbox-heads'), house.rows('inbox-live'), house.rows('inbox-groups')], [1, 0, 1])
})

t.test('what an attempt has put in and taken out is taken back with it', async t => {
  const house = new House(t, t.testdir(), () => true).open()
  const to: Address = [ANN, PHONE]
  await house.send([{ to, item: dev('a') }])
  await house.send([{ to, item: renamed(BOB, 'before') }])
  const offsets = await house.database.change(change => {
    const first = house.append(change, { to, item: invitation(1, RING_MS) })
    house.inbox.settle(change, ...to, [1])
    t.throws(() =>
      change.attempt(() => {
        for (const item of [invitation(1, RING_MS, 'other'), renamed(BOB, 'taken back')])
          house.append(change, { to, item })
        house.inbox.settle(change, ...to, [2])
        throw new Error('changed its mind')
      }),
    )
    return [
      first,
      change.attempt(() => house.append(change, { to, item: dev('b') })),
      house.append(change, { to, item: dev('c') }),
    ]
  })
  t.same(offsets, [3, 4, 5])
  t.same(house.labels(to), ['contact_changed before', 'call_invitation 1 a-key', 'b', 'c'])
  house.assertConsistent()
})

t.test('a change that fails late leaves no trace for the next one of its transaction', async t => {
  const house = new House(t, t.testdir(), () => true).open({ rehearses: false })
  await house.send(DEVICES.map(to => ({ to, item: invitation(1, RING_MS) })))
  const settles = (devices: readonly Address[], fail?: () => never) =>
    house.database.change(change => {
      for (const to of devices) house.inbox.settle(change, ...to, [1])
      if (fail !== undefined) change.atEnd(fail)
    })
  const fail = () => {
    throw new Error('changed its mind')
  }
  for (const failing of [DEVICES.slice(0, 2), DEVICES]) {
    const before = house.rows('inbox-live')
    const failed = settles(failing, fail)
    await settles(DEVICES.slice(0, 1))
    await t.rejects(failed, { message: 'changed its mind' })
    t.same([before, house.rows('inbox-live'), house.rows('inbox-live-settled')], [1, 1, 1])
    t.same(
      DEVICES.map(to => house.labels(to).length),
      [0, 1, 1],
    )
    house.assertConsistent()
  }
})

t.test('a message replaces an invitation and older news of a contact, live or kept', async t => {
  let isThere = true
  const house = new House(t, t.testdir(), () => isThere).open()
  const to: Address = [ANN, PHONE]
  for (const [at, isThereThen] of [false, true, true, false].entries()) {
    isThere = isThereThen
    await house.send([
      { to, item: renamed(BOB, `${at}`) },
      { to, item: invitation(1, RING_MS, `${at}`) },
    ])
    t.same(house.labels(to), [`contact_changed ${at}`, `call_invitation 1 ${at}`])
    house.assertConsistent()
  }
  isThere = true
  await house.send([{ to, item: invitation(2, RING_MS) }])
  const drop = (call: bigint) =>
    house.database.change(change => house.inbox.dropInvitation(change, ...to, call))
  t.same([await drop(1n), await drop(2n), await drop(2n)], [true, true, false])
  t.same([house.labels(to), house.rows('inbox-live')], [['contact_changed 3'], 0])
  house.assertConsistent()
})

t.test('what another secret sealed is not in the way, and counts as lost once it would be kept', async t => {
  const house = new House(t, t.testdir(), () => true).open()
  const to: Address = [ANN, PHONE]
  await house.send([{ to, item: dev('a') }])
  const row = house.database.view(view => [...view.range(LIVE_GROUPS)])[0]!
  const spoilt = Buffer.from(row.value)
  spoilt[spoilt.length - 1]! ^= 1
  await house.close()
  house.open({ rehearses: false })
  await house.database.change(change => change.put(LIVE_GROUPS, row.key, spoilt))
  await house.close()
  house.open()
  await house.send([{ to, item: dev('b') }])
  t.same(house.labels(to), ['b'])
  await house.sweep(RING_MS)
  t.same([house.labels(to), house.head(to).lostOffset, house.rows('inbox-live')], [['b'], 1, 0])
  house.assertConsistent()
})

t.test('a process that follows hears who has news', async t => {
  const house = new House(t, t.testdir(), ([, deviceId]) => deviceId !== DESK).open()
  await house.send(DEVICES.map(to => ({ to, item: invitation(1, RING_MS) })))
  house.catchUp()
  t.same([...house.news], [PHONE, TABLET, DESK].toSorted())
})

t.test('a process that follows and never looks keeps no list of all that has changed', async t => {
  const house = new House(t, t.testdir(), () => true).open({ rehearses: false })
  const to: Address = [ANN, PHONE]
  await house.send([{ to, item: dev('stays') }])
  house.catchUp()
  t.same(house.followedLabels(to), ['stays'])
  for (let turn = 0; turn < 40; turn++) {
    const letters = Array.from({ length: 30 }, (_, at) => ({ to, item: dev(`${turn} ${at}`) }))
    await house.send(letters)
    await house.settle(to, labelsOf(letters.map(({ item }, offset) => ({ item, offset }) as InboxMessage)))
    house.catchUp()
  }
  const { reads } = house.database.figures
  t.same(house.followedLabels(to), ['stays'])
  t.ok(house.database.figures.reads - reads < 1_000, 'it reads what is there, and not each row that was')
  await house.send([{ to, item: dev('news') }])
  house.assertConsistent()
  t.same(house.followedLabels(to), ['stays', 'news'])
})

t.test('random runs are as where everything is kept', async t => {
  const folder = t.testdir()
  for (let run = runsOf('CALLSIGN_INBOX_RUNS', { short: 2, long: 40 }); run > 0; run--) {
    const seed = seedOf()
    const difference = await new RandomRun(t, join(folder, `${run}`), randomFrom(seed)).play(250)
    if (difference !== undefined) t.fail(`${difference}; CALLSIGN_SEED=${seed} runs it again`)
  }
})

/** The same on both houses; in one of them devices come and go. */
class RandomRun {
  readonly #random: () => number
  readonly #there = new Set<DeviceId>()
  readonly #live: House
  readonly #plain: House
  /** Label by device, epoch and offset. */
  readonly #given = new Map<string, string>()
  #nowMs = 1_000
  #labels = 0

  constructor(t: Test, folder: string, random: () => number) {
    this.#random = random
    this.#live = new House(t, join(folder, 'live'), ([, deviceId]) => this.#there.has(deviceId))
    this.#openLive()
    this.#plain = new House(t, join(folder, 'plain')).open({ rehearses: false })
  }

  /** Resolves with the first difference. */
  async play(steps: number): Promise<string | undefined> {
    const actions = [
      () => this.#sendMany(),
      () => this.#sendMany(),
      () => this.#settleSome(),
      () => this.#settleSome(),
      () => this.#together(),
      () => this.#withdraw(),
      () => this.#fail(),
      () => this.#comeAndGo(),
      () => this.#sweep(),
      () => this.#restart(),
      () => this.#erase(),
    ]
    for (let step = 0; step < steps; step++) {
      await actions[this.#pick(actions.length)]!()
      const difference = this.#difference()
      if (difference !== undefined) return `${difference}, after ${step + 1} steps`
    }
    return undefined
  }

  /** Rehearsals also make whole what they find. */
  #openLive(): void {
    this.#live.open({ rehearses: this.#random() < 0.5 })
  }

  #pick(count: number): number {
    return Math.floor(this.#random() * count)
  }

  #anyDevice(): Address {
    return DEVICES[this.#pick(DEVICES.length)]!
  }

  #letter(): Letter {
    const to = this.#anyDevice()
    const label = `${++this.#labels}`
    const call = 1 + this.#pick(4)
    switch (this.#pick(4)) {
      case 0:
        return {
          to,
          item: invitation(call, this.#nowMs + RING_MS, label),
          expiresAtMs: this.#nowMs + RING_MS,
        }
      case 1:
        return { to, item: dev(label), replaces: BigInt(call) }
      case 2:
        return { to, item: dev(label), expiresAtMs: this.#nowMs + this.#pick(2 * RING_MS) }
      default:
        return { to, item: itemOf({ kind: 'profile_changed', eventId: label, sentAtMs: this.#nowMs }) }
    }
  }

  async #sendMany(): Promise<void> {
    const letters = Array.from({ length: this.#random() < 0.1 ? 40 : 1 + this.#pick(5) }, () =>
      this.#letter(),
    )
    await Promise.all([this.#live, this.#plain].map(house => house.send(letters, this.#nowMs)))
    this.#nowMs += this.#pick(1_000)
  }

  async #settleSome(): Promise<void> {
    const to = this.#anyDevice()
    const share = this.#random()
    const labels = this.#plain.labels(to, this.#nowMs).filter(() => this.#random() < share)
    await Promise.all([this.#live, this.#plain].map(house => house.settle(to, labels, this.#nowMs)))
  }

  /** Changes of one transaction; some fail, at once or when they have written everything. */
  async #together(): Promise<void> {
    const changes = Array.from({ length: 2 + this.#pick(3) }, () => ({
      letters: [this.#letter(), this.#letter()],
      fails: this.#random() < 0.3 ? (['at once', 'late'] as const)[this.#pick(2)] : undefined,
      call: BigInt(1 + this.#pick(4)),
      settles: this.#pick(3),
    }))
    const to = this.#anyDevice()
    const play = (house: House) => {
      const offsets = house.shown(to, this.#nowMs).map(({ offset }) => offset)
      const writes = changes.map(({ letters, fails, call, settles }) => (change: Change) => {
        for (const letter of letters) house.append(change, letter)
        house.inbox.dropInvitation(change, ...letters[0]!.to, call)
        house.inbox.settle(change, ...to, offsets.slice(0, settles))
        const fail = () => {
          throw new Error('changed its mind')
        }
        if (fails === 'at once') fail()
        else if (fails === 'late') change.atEnd(fail)
      })
      return Promise.all(
        writes.map(write => house.database.change(write, this.#nowMs).catch(() => undefined)),
      )
    }
    await Promise.all([this.#live, this.#plain].map(play))
  }

  async #withdraw(): Promise<void> {
    const [to, call] = [this.#anyDevice(), BigInt(1 + this.#pick(4))]
    const drop = ({ database, inbox }: House) =>
      database.change(change => inbox.dropInvitation(change, ...to, call))
    const [one, other] = await Promise.all([this.#live, this.#plain].map(drop))
    if (one !== other) throw new Error('one has such an invitation')
  }

  async #fail(): Promise<void> {
    const letters = Array.from({ length: 3 }, () => this.#letter())
    const isAttempt = this.#random() < 0.5
    const play = async (house: House) => {
      const failing = (change: Change) => {
        for (const letter of letters) house.append(change, letter)
        throw new Error('changed its mind')
      }
      await house.database
        .change(change => {
          house.append(change, letters[0]!)
          if (!isAttempt) failing(change)
          try {
            change.attempt(() => failing(change))
          } catch {
            house.append(change, letters[1]!)
          }
        }, this.#nowMs)
        .catch(() => undefined)
    }
    await Promise.all([this.#live, this.#plain].map(play))
  }

  #comeAndGo(): void {
    const [, deviceId] = this.#anyDevice()
    if (!this.#there.delete(deviceId)) this.#there.add(deviceId)
  }

  async #sweep(): Promise<void> {
    this.#nowMs += this.#random() < 0.05 ? this.#pick(4 * DAY_MS) : this.#pick(2 * RING_MS)
    await Promise.all([this.#live, this.#plain].map(house => house.sweep(this.#nowMs)))
  }

  async #restart(): Promise<void> {
    if (this.#random() > 0.3) return
    await this.#live.close()
    this.#openLive()
  }

  async #erase(): Promise<void> {
    if (this.#random() > 0.2) return
    const to = this.#anyDevice()
    const erase = ({ database, inbox }: House) => database.change(change => inbox.eraseDevice(change, ...to))
    await Promise.all([this.#live, this.#plain].map(erase))
  }

  #difference(): string | undefined {
    const [live, plain] = [this.#live, this.#plain]
    // A follower that is behind must be able to read.
    live.catchUp(this.#pick(4))
    for (const to of DEVICES) live.followedLabels(to, this.#nowMs)
    live.assertConsistent()
    plain.assertConsistent()
    for (const to of DEVICES) {
      const labels = live.labels(to, this.#nowMs).join()
      if (labels !== plain.labels(to, this.#nowMs).join()) {
        return `${to[1]} is shown ${labels}, not ${plain.labels(to, this.#nowMs)}`
      }
      if (labels !== live.followedLabels(to, this.#nowMs).join()) return `a follower shows ${to[1]} otherwise`
      const { epoch, nextOffset, givenBelow } = live.head(to)
      for (const { offset, item } of live.shown(to, this.#nowMs)) {
        const place = `${to[1]} ${epoch} ${offset}`
        const label = labelOf(item)
        if ((this.#given.get(place) ?? label) !== label) return `${place} is given twice`
        if (offset >= nextOffset || offset >= givenBelow) return `${place} is ahead`
        this.#given.set(place, label)
      }
    }
    const dropped = [live, plain].map(({ inbox }) => inbox.dropped.get('full'))
    return dropped[0] === 0 || dropped[0] === dropped[1] ? undefined : 'one has dropped more'
  }
}
