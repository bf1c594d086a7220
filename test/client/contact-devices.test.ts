/** A person's devices as their contacts come to know them, against a server that lies. */

import t from 'tap'
import {
  ContactDevices,
  type DeviceEvent,
  type Fetch,
  type KnownUser,
  LogClient,
  MemoryStore,
  type NamedUser,
  type ReadDeviceLists,
  signDeviceList,
} from '../../src/client/client.ts'
import { deviceListHash, parseDeviceList } from '../../src/log/device-list.ts'
import { fromUtf8, toBase64 } from '../support/bytes.ts'
import { type ListSigner, listedDevice, listSigner, servedLists, signWith } from '../support/device-lists.ts'
import { LyingLog } from '../support/lying-log.ts'

const ANN = 7n
const [PHONE, TABLET, LAPTOP, GHOST] = [1n, 2n, 3n, 7777n].map(number => 2n ** 32n + number) as [
  bigint,
  bigint,
  bigint,
  bigint,
]

function signerOf(deviceId: bigint): ListSigner {
  return listSigner(`device ${deviceId}`)
}

function keyOf(deviceId: bigint): string {
  return toBase64(fromUtf8(`public key ${deviceId}`))
}

/** Ann, her log and her server; and a contact of hers. */
class House {
  readonly log = new LyingLog()
  readonly kept = new Map<string, KnownUser>()
  /** Puts itself in the place of the server's answer. */
  lie: (path: string, body: unknown) => unknown = () => undefined
  readonly contact: ContactDevices
  readonly client: LogClient
  /** Changes the server's reply with missed lists. */
  chain: (lists: string[]) => string[] = lists => lists
  readonly readLists: ReadDeviceLists = async (_userId, after) => this.chain(servedLists(this.#lists, after))
  #lists: Uint8Array[] = []
  #nowMs = 1_790_000_000_000

  constructor() {
    this.log.grow(3)
    const fetch = this.log.fetch((path, body) => this.lie(path, body)) as Fetch
    const url = 'https://log.example'
    this.client = new LogClient({ ...this.log.published, url, store: new MemoryStore(), fetch })
    const store = {
      get: (userId: string) => this.kept.get(userId),
      put: (known: KnownUser) => void this.kept.set(known.userId, JSON.parse(JSON.stringify(known))),
    }
    this.contact = new ContactDevices(this.client, store, this.readLists)
  }

  register(...deviceIds: bigint[]): this {
    for (const deviceId of deviceIds) this.log.register(ANN, deviceId, keyOf(deviceId))
    return this
  }

  /** Logs the next list of these devices. It starts over where `follows` says so. Each is a minute younger. */
  async list(deviceIds: bigint[], signerDeviceId = deviceIds[0]!, follows = true): Promise<Uint8Array> {
    this.#nowMs += 60_000
    const list = await this.sign(deviceIds, signerDeviceId, follows ? this.#lists.at(-1) : undefined)
    this.#lists.push(list)
    this.log.register(ANN, 0n, toBase64(deviceListHash(list)))
    this.log.grow(this.log.size + 2)
    return list
  }

  sign(deviceIds: bigint[], signerDeviceId: bigint, previous: Uint8Array | undefined): Promise<Uint8Array> {
    const devices = deviceIds.map(deviceId =>
      listedDevice(deviceId, Buffer.from(keyOf(deviceId), 'base64'), signerOf(deviceId)),
    )
    return signDeviceList(
      {
        userId: ANN,
        devices,
        signerDeviceId,
        createdAtMs: this.#nowMs,
        ...(previous && { previous }),
      },
      async bytes => signWith(signerOf(signerDeviceId), bytes),
    )
  }

  /** Ann as her server names her. */
  named(deviceIds: bigint[], list = this.#lists.at(-1)): NamedUser {
    return {
      userId: `${ANN}`,
      devices: deviceIds.map(deviceId => ({
        deviceId: `${deviceId}`,
        keyAlgorithm: 'P-256',
        publicKey: keyOf(deviceId),
        publicKeyHash: this.log.identity(ANN, deviceId).vrfHash,
      })),
      ...(list && {
        deviceList: toBase64(list),
        deviceListHash: this.log.identity(ANN, 0n).vrfHash,
      }),
    }
  }

  /** The contact's app after a restart. */
  restarted(): ContactDevices {
    const store = {
      get: async (userId: string) => this.kept.get(userId) ?? null,
      put: async (known: KnownUser) => void this.kept.set(known.userId, known),
    }
    return new ContactDevices(this.client, store, this.readLists)
  }

  /** The kind of question about Ann's keys, if there is any. */
  async asks(user: NamedUser) {
    const verdict = await this.contact.verify(user)
    return verdict.kind === 'verified' ? verdict.question?.kind : verdict.kind
  }

  /** As the contact sees it: the devices to encrypt for, and the events, which are shown then. */
  async see(user: NamedUser) {
    const verdict = await this.contact.verify(user)
    if (verdict.kind !== 'verified') return verdict
    const { basis, devices, events } = verdict
    await this.contact.shown(`${ANN}`, events)
    return { basis, devices: devices.map(({ deviceId }) => BigInt(deviceId)), events }
  }
}

const event = (kind: DeviceEvent['kind'], deviceId?: bigint) => ({
  kind,
  ...(deviceId && { deviceId: `${deviceId}` }),
})

t.test('a list says for which devices one encrypts, and each change of it is an event', async t => {
  const house = new House().register(PHONE, TABLET, LAPTOP)
  await house.list([PHONE])
  t.same(await house.see(house.named([PHONE])), { basis: 'list', devices: [PHONE], events: [] })
  await house.list([PHONE, TABLET])
  const added = event('added-by-list', TABLET)
  t.same(await house.see(house.named([PHONE, TABLET])), {
    basis: 'list',
    devices: [PHONE, TABLET],
    events: [added],
  })
  t.match(await house.see(house.named([PHONE, TABLET])), { events: [] }, 'it was shown')
  await house.list([TABLET], TABLET)
  t.same(await house.see(house.named([TABLET])), {
    basis: 'list',
    devices: [TABLET],
    events: [event('removed', PHONE)],
  })
  await house.list([LAPTOP], LAPTOP, false)
  t.same(await house.see(house.named([LAPTOP])), {
    basis: 'list',
    devices: [LAPTOP],
    events: [event('reset')],
  })
})

t.test('events come until they were shown, also through a restart', async t => {
  const house = new House().register(PHONE, TABLET)
  await house.list([PHONE])
  await house.see(house.named([PHONE]))
  await house.list([PHONE, TABLET])
  const named = house.named([PHONE, TABLET])
  t.match(await house.contact.verify(named), { events: [event('added-by-list', TABLET)] })
  const restarted = house.restarted()
  t.match(await restarted.verify(named), { events: [event('added-by-list', TABLET)] })
  await restarted.shown(`${ANN}`, [event('added-by-list', TABLET)])
  t.match(await restarted.verify(named), { events: [] })
})

t.test('an app that was away follows the lists that it missed, signed one by one', async t => {
  const house = new House().register(PHONE, TABLET, LAPTOP)
  await house.list([PHONE])
  await house.see(house.named([PHONE]))
  await house.list([PHONE, TABLET])
  await house.list([PHONE, TABLET, LAPTOP])
  t.match(await house.see(house.named([PHONE, TABLET, LAPTOP])), {
    events: [event('added-by-list', TABLET), event('added-by-list', LAPTOP)],
  })
  await house.list([TABLET, LAPTOP], TABLET)
  await house.list([LAPTOP], LAPTOP)
  t.match(await house.see(house.named([LAPTOP])), {
    events: [event('removed', PHONE), event('removed', TABLET)],
  })
  t.equal(await house.asks(house.named([LAPTOP])), undefined, 'no device is in doubt')
  for (let lists = 0; lists < 70; lists++) await house.list([LAPTOP])
  t.match(await house.see(house.named([LAPTOP])), { events: [] }, 'more than a reply has')
})

t.test('a jump whose lists can not be had is unanswered, and is not remembered', async t => {
  const others = new House().register(PHONE, TABLET)
  const foreign = servedLists([await others.list([TABLET]), await others.list([PHONE, TABLET], TABLET)], 0)
  const chains: Record<string, (lists: string[]) => string[]> = {
    'nothing comes': () => [],
    'a gap': lists => lists.filter((_, at) => at !== 1),
    'out of order': lists => [lists[1]!, lists[0]!, ...lists.slice(2)],
    'a forged list': lists => [...foreign, ...lists.slice(1)],
    'no list at all': lists => ['AAAA', ...lists.slice(1)],
    'no base64': lists => ['!', ...lists.slice(1)],
    'an error': () => {
      throw new Error('no network')
    },
  }
  for (const [name, chain] of Object.entries(chains)) {
    const house = new House().register(PHONE, TABLET, LAPTOP)
    await house.list([PHONE])
    await house.see(house.named([PHONE]))
    await house.list([PHONE, TABLET])
    await house.list([PHONE, TABLET, LAPTOP])
    await house.list([PHONE, LAPTOP])
    house.chain = chain
    const named = house.named([PHONE, LAPTOP])
    t.match(await house.see(named), { kind: 'unanswered' }, name)
    house.chain = lists => lists
    t.match(await house.see(named), { events: [event('added-by-list', LAPTOP)] }, `${name}: goes on later`)
  }
})

t.test('a list that the log holds within a chain is followed or refused, never left out', async t => {
  const house = new House().register(PHONE, TABLET)
  const first = await house.list([PHONE])
  await house.see(house.named([PHONE]))
  const ghosts = await house.sign([PHONE, GHOST], GHOST, first)
  house.log.register(ANN, 0n, toBase64(deviceListHash(ghosts)))
  await house.list([PHONE, TABLET])
  await house.list([PHONE])
  const named = house.named([PHONE])
  t.match(await house.see(named), { kind: 'unanswered' }, 'its list is not served')
  house.chain = lists => [toBase64(ghosts), ...lists]
  t.match(await house.see(named), { kind: 'unanswered' }, 'nor is it one of the line')
})

t.test('a list that no device of the one before it has signed is refused within a chain', async t => {
  const house = new House().register(PHONE, TABLET, GHOST)
  await house.list([PHONE])
  await house.see(house.named([PHONE]))
  await house.list([PHONE, TABLET])
  await house.list([GHOST], GHOST)
  t.match(await house.see(house.named([GHOST])), {
    kind: 'refused',
    check: 'deviceList',
    detail: /no device of the list before/,
  })
})

t.test('new keys that nothing known vouches for are asked about, until those keys are accepted', async t => {
  const house = new House().register(PHONE, TABLET, LAPTOP)
  await house.list([PHONE])
  t.equal(await house.asks(house.named([PHONE])), undefined, 'first met')
  const second = await house.list([PHONE, TABLET])
  t.equal(await house.asks(house.named([PHONE, TABLET])), undefined, 'signed by a device of hers')
  const reset = toBase64(deviceListHash(await house.list([LAPTOP], LAPTOP, false)))
  const named = house.named([LAPTOP])
  t.match(await house.contact.verify(named), { question: { kind: 'reset', listHash: reset } })
  await house.see(named)
  t.equal(await house.asks(named), 'reset', 'showing the event answers nothing')
  t.match(await house.contact.accept(`${ANN}`, toBase64(deviceListHash(second))), { kind: 'reset' })
  t.match(await house.restarted().verify(named), { question: { kind: 'reset' } })
  t.equal(await house.restarted().accept(`${ANN}`, reset), undefined)
  t.match(await house.restarted().verify(named), { question: undefined })

  await house.list(
    [LAPTOP, TABLET].toSorted((a, b) => Number(a - b)),
    LAPTOP,
  )
  t.equal(await house.asks(house.named([LAPTOP, TABLET])), undefined, 'what an accepted device signs')
  await house.list([PHONE], PHONE, false)
  t.equal(await house.asks(house.named([PHONE])), 'reset', 'the next one is asked about again')
  const third = toBase64(deviceListHash(await house.list([PHONE, GHOST])))
  t.match(await house.contact.verify(house.named([PHONE])), { question: { kind: 'reset', listHash: third } })
})

t.test('a person without a list is asked about once they add or replace a key, or make a list', async t => {
  const house = new House().register(PHONE, TABLET)
  t.equal(await house.asks(house.named([])), undefined)
  t.equal(await house.asks(house.named([PHONE])), undefined, 'first met with a device')
  const both = house.named([PHONE, TABLET])
  const verdict = await house.contact.verify(both)
  t.match(verdict, { question: { kind: 'added', listHash: String } })
  const { listHash } = (verdict as { question: { listHash: string } }).question
  const crossed = { ...both, devices: both.devices.toReversed() }
  t.match(await house.contact.verify(crossed), { question: { listHash } }, 'in any order')
  await house.contact.accept(`${ANN}`, listHash)
  t.equal(await house.asks(both), undefined)
  t.equal(await house.asks(house.named([])), undefined)
  t.equal(await house.asks(house.named([PHONE])), 'added', 'she is no stranger without devices')

  const other = new House().register(PHONE)
  await other.asks(other.named([PHONE]))
  other.log.register(ANN, PHONE, keyOf(GHOST))
  const { devices, ...named } = other.named([PHONE])
  t.equal(await other.asks({ ...named, devices: [{ ...devices[0]!, publicKey: keyOf(GHOST) }] }), 'replaced')

  const third = new House().register(PHONE)
  await third.asks(third.named([PHONE]))
  await third.list([PHONE])
  t.equal(await third.asks(third.named([PHONE])), 'first-list', 'nobody knows its signing key')
})

t.test('a person who started over since a link was made is asked about at first', async t => {
  const house = new House().register(PHONE, TABLET)
  const listHash = toBase64(deviceListHash(await house.list([PHONE])))
  await house.list([PHONE, TABLET])
  const linked = { userId: ANN, listHash }
  const grown = await house.contact.verifyShared(house.named([PHONE, TABLET]), linked)
  t.match(grown, { kind: 'verified', question: undefined })
  await house.list([TABLET], TABLET, false)
  for (const isMet of [true, false]) {
    if (!isMet) house.kept.clear()
    const verdict = await house.contact.verifyShared(house.named([TABLET]), linked)
    t.match(verdict, { question: { kind: 'reset' }, events: [event('reset')] })
  }
})

t.test('an app that was away as its contact started over takes the lists since, and says so', async t => {
  for (const before of [1, 2, 3]) {
    const house = new House().register(PHONE, TABLET, LAPTOP)
    for (let lists = 0; lists < before; lists++) await house.list(lists % 2 === 0 ? [PHONE] : [PHONE, GHOST])
    await house.see(house.named([PHONE]))
    const known = house.named([PHONE])
    await house.list([TABLET], TABLET, false)
    await house.list([TABLET, LAPTOP])
    const named = house.named([TABLET, LAPTOP])
    t.match(
      await house.see(named),
      { devices: [TABLET, LAPTOP], events: [event('reset')] },
      `from list ${before}`,
    )
    t.match(await house.contact.checkOwnList(`${ANN}`), { kind: 'clean' })
    t.match(await house.see(known), { kind: 'refused' }, 'and not the one before')
  }
})

t.test('a list that the log holds again is refused, since it is no younger', async t => {
  const house = new House().register(PHONE, TABLET)
  await house.list([PHONE])
  const both = await house.list([PHONE, TABLET], PHONE)
  await house.list([PHONE])
  await house.see(house.named([PHONE]))
  house.log.register(ANN, 0n, toBase64(deviceListHash(both)))
  t.match(await house.see(house.named([PHONE, TABLET], both)), { kind: 'refused', check: 'deviceList' })
})

t.test('a ghost device is not encrypted for, whatever the server says of it', async t => {
  const house = new House().register(PHONE, GHOST)
  const list = await house.list([PHONE])
  await house.see(house.named([PHONE]))
  t.same(await house.see(house.named([PHONE, GHOST])), {
    basis: 'list',
    devices: [PHONE],
    events: [event('unlisted', GHOST)],
  })
  const { deviceList: _, deviceListHash: __, ...unlisted } = house.named([PHONE, GHOST])
  t.match(await house.see(unlisted), { kind: 'refused', check: 'deviceList', detail: /left out/ })
  const forged = await house.sign([PHONE, GHOST], GHOST, list)
  t.match(await house.see(house.named([PHONE, GHOST], forged)), {
    check: 'deviceList',
    detail: /no device of the list before/,
  })
  const unlogged = await house.sign([PHONE, GHOST], PHONE, list)
  t.match(await house.see(house.named([PHONE, GHOST], unlogged)), { kind: 'refused', check: 'publicKey' })
  const started = await house.list([GHOST], GHOST, false)
  t.match(await house.see(house.named([GHOST], started)), { events: [event('reset')] }, 'never in silence')
})

t.test('a crowd of ghost devices does not hide that the person has started over', async t => {
  const house = new House().register(PHONE, TABLET)
  await house.list([PHONE])
  await house.see(house.named([PHONE]))
  await house.list([TABLET], TABLET, false)
  const named = house.named([TABLET])
  const ghosts = Array.from({ length: 1_000 }, (_, at) => ({
    ...named.devices[0]!,
    deviceId: `${GHOST + BigInt(at)}`,
  }))
  const crowd = { ...named, devices: [...named.devices, ...ghosts] }
  await house.contact.verify(crowd)
  const { events } = (await house.see(crowd)) as { events: readonly DeviceEvent[] }
  t.same(events[0], event('reset'))
  t.ok(events.length <= 65, 'and the memory has a bound')
})

t.test('a false key under a listed device is refused, in the list and in the log', async t => {
  const house = new House().register(PHONE)
  await house.list([PHONE])
  const named = house.named([PHONE])
  const falseKey = keyOf(GHOST)
  for (const lie of [{ publicKey: falseKey }, { keyAlgorithm: 'RSA-2048' }]) {
    t.match(await house.see({ ...named, devices: [{ ...named.devices[0]!, ...lie }] }), {
      check: 'deviceList',
      detail: /not the one in the list/,
    })
  }
  house.log.register(ANN, PHONE, falseKey)
  t.match(await house.see(named), { kind: 'refused', check: 'publicKey' })
})

t.test('an older list is refused, also one that is of seq 0', async t => {
  const house = new House().register(PHONE, TABLET)
  const first = await house.list([PHONE, TABLET])
  await house.list([PHONE])
  await house.see(house.named([PHONE]))
  const index = house.log.indexesOf(house.log.identity(ANN, 0n).vrfHash)[0]!
  house.lie = path =>
    path === 'api/get-public-keys' && {
      results: [house.log.result(index), ...[PHONE, TABLET].map(id => house.log.result(indexOf(id)))],
    }
  const indexOf = (deviceId: bigint) => house.log.indexesOf(house.log.identity(ANN, deviceId).vrfHash)[0]!
  t.match(await house.see(house.named([PHONE, TABLET], first)), {
    check: 'deviceList',
    detail: /known before at leaf/,
  })
})

t.test(
  'without lists the devices of the first time are remembered, and nothing changes in silence',
  async t => {
    const house = new House().register(PHONE, TABLET)
    t.same(await house.see(house.named([PHONE])), { basis: 'first-use', devices: [PHONE], events: [] })
    t.same(await house.see(house.named([PHONE, TABLET])), {
      basis: 'first-use',
      devices: [PHONE, TABLET],
      events: [event('added', TABLET)],
    })
    t.match(await house.see(house.named([TABLET])), { events: [event('removed', PHONE)] })
    const falseKey = keyOf(GHOST)
    house.log.register(ANN, TABLET, falseKey)
    const { devices, ...named } = house.named([TABLET])
    const replaced = { ...named, devices: [{ ...devices[0]!, publicKey: falseKey }] }
    t.match(await house.see(replaced), { events: [event('replaced', TABLET)] })
    house.register(LAPTOP)
    await house.list(
      [LAPTOP, GHOST].toSorted((one, other) => Number(one - other)),
      LAPTOP,
    )
    t.match(await house.see(house.named([LAPTOP])), {
      basis: 'list',
      events: [event('added', LAPTOP), event('added', GHOST), event('removed', TABLET)],
    })
  },
)

t.test('broken lists are refused and change nothing', async t => {
  const house = new House().register(PHONE)
  const list = await house.list([PHONE])
  const named = house.named([PHONE])
  for (const deviceList of ['', '!', toBase64(list.subarray(1)), toBase64(new Uint8Array(40_000))])
    t.match(await house.see({ ...named, deviceList }), { kind: 'refused', check: 'deviceList' })
  const { deviceListHash: _, ...half } = named
  t.match(await house.see(half), { kind: 'refused', check: 'deviceList' })
  t.match(await house.see({ ...named, userId: '8' }), { kind: 'refused', check: 'deviceList' })
  t.equal(house.kept.size, 0)
  t.equal(parseDeviceList(list).seq, 0)
})

t.test('one’s own lists in the log are those that were followed, or it is an alert', async t => {
  const house = new House().register(PHONE, TABLET)
  const own = `${ANN}`
  t.match(await house.contact.checkOwnList(own), { kind: 'clean', entries: [] })
  await house.list([PHONE])
  await house.see(house.named([PHONE]))
  t.match(await house.contact.checkOwnList(own), { kind: 'clean' })
  await house.list([PHONE, TABLET])
  await house.list([PHONE])
  await house.see(house.named([PHONE]))
  t.match(
    await house.contact.checkOwnList(own),
    { kind: 'clean' },
    'the list between was followed by its signer',
  )
  const ghosts = await house.sign([GHOST], GHOST, undefined)
  house.log.register(ANN, 0n, toBase64(deviceListHash(ghosts)))
  t.match(await house.contact.checkOwnList(own), {
    kind: 'alert',
    foreign: [{ publicKey: toBase64(deviceListHash(ghosts)) }],
  })
})

t.test('a list between two of one’s own that no device followed is an alert', async t => {
  const house = new House().register(PHONE, TABLET)
  await house.list([PHONE])
  await house.see(house.named([PHONE]))
  const ghosts = await house.sign([GHOST], GHOST, undefined)
  house.log.register(ANN, 0n, toBase64(deviceListHash(ghosts)))
  await house.list([PHONE, TABLET])
  await house.see(house.named([PHONE, TABLET]))
  const foreign = toBase64(deviceListHash(ghosts))
  const report = await house.contact.checkOwnList(`${ANN}`)
  t.ok(report.kind === 'alert' && report.foreign.some(({ publicKey }) => publicKey === foreign))
})

t.test('a link names a person by their list, and no other person passes for them', async t => {
  const house = new House().register(PHONE, TABLET)
  const first = toBase64(deviceListHash(await house.list([PHONE])))
  const linked = { userId: ANN, listHash: first }
  t.match(await house.contact.verifyShared(house.named([PHONE]), linked), { kind: 'verified', events: [] })
  await house.list([PHONE, TABLET])
  const named = house.named([PHONE, TABLET])
  t.match(await house.contact.verifyShared(named, linked), { kind: 'verified' }, 'the list has grown since')

  const stranger = new House().register(PHONE)
  await stranger.list([PHONE])
  const { deviceList: _, deviceListHash: __, ...unlisted } = house.named([PHONE])
  const cases: [object, object][] = [
    [named, { ...linked, userId: 8n }],
    [unlisted, linked],
    [named, { ...linked, listHash: toBase64(new Uint8Array(32)) }],
  ]
  const forgetful = { get: () => undefined, put: () => t.fail('nothing is remembered') }
  const fresh = new ContactDevices(house.client, forgetful, house.readLists)
  for (const [user, person] of cases)
    t.match(await fresh.verifyShared(user as NamedUser, person as typeof linked), { check: 'deviceList' })
})
