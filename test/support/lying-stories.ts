/**
 * Lies of a log's server and how `@callsign/sdk/client` finds each out, as stories that other implementations are held to
 * (`ToldStory`): those of test/client/forgeries.test.ts and contact-devices.test.ts that an app can meet. JSON lines:
 *
 *     node dist/test/support/lying-stories.js > test/vectors/client-lies.jsonl
 *
 * Each outcome that matters is written beside its step; any other is an error.
 */
import { pathToFileURL } from 'node:url'
import { type Fetch, type NamedUser, signDeviceList } from '../../src/client/client.ts'
import { deviceListHash } from '../../src/log/device-list.ts'
import { fromBase64, fromUtf8, toBase64 } from './bytes.ts'
import { type ListSigner, listedDevice, listSigner, servedLists, signWith } from './device-lists.ts'
import { type Lies, type LyingFetch, LyingLog, numberedKey } from './lying-log.ts'
import { ToldStory } from './told-story.ts'

export async function* lyingLines(): AsyncGenerator<string> {
  yield JSON.stringify({ seed: 'lies', keys: new LyingLog().published })
  for (const [story, tell] of Object.entries(STORIES)) {
    const app = new App(story)
    await tell(app)
    yield JSON.stringify({ story, steps: app.told.steps })
  }
}

const ANN = 7n
const [PHONE, TABLET, GHOST] = [1n, 2n, 7777n].map(number => 2n ** 32n + number) as [bigint, bigint, bigint]
/** The leaf of the device to look up. */
const ALICE = 3

const signerOf = (deviceId: bigint): ListSigner => listSigner(`device ${deviceId}`)
const keyOf = (deviceId: bigint): string => toBase64(fromUtf8(`public key ${deviceId}`))

/** Alice is leaf 3, and 40 leaves are there. */
function honestLog(): LyingLog {
  const log = new LyingLog()
  log.grow(ALICE)
  log.register(1n, 1n)
  log.grow(40)
  return log
}

/** Other entries from leaf 20 on, signed with the same keys. */
function forkOf(log: LyingLog, size: number): LyingLog {
  const fork = log.fork(20)
  fork.register(66n, 6n)
  fork.grow(size)
  return fork
}

function grown(log: LyingLog, size: number): LyingLog {
  const larger = log.fork()
  larger.grow(size)
  return larger
}

/** An app, its log, and Ann, whom it knows as a contact. */
class App {
  readonly log = honestLog()
  readonly told: ToldStory
  readonly #name: string
  /** Changes the server's reply with missed lists. */
  chain: (lists: string[]) => string[] = lists => lists
  #lists: Uint8Array[] = []
  #nowMs = 1_790_000_000_000

  constructor(name: string) {
    this.#name = name
    this.told = new ToldStory(this.log.published, this.log.signer.name, ANN)
    this.told.serveLists = async (_userId, after) => this.chain(servedLists(this.#lists, after))
  }

  get alice() {
    return { userId: '1', deviceId: '1', vrfHash: this.log.leaf(ALICE).vrfHash }
  }

  get aliceKey(): string {
    return this.log.leaf(ALICE).publicKey
  }

  /** The outcome of a step that is answered by `fetch`. */
  async expect(
    outcome: string,
    act: (told: ToldStory) => Promise<string>,
    fetch: LyingFetch = this.log.fetch(),
  ) {
    this.told.serve = fetch as Fetch
    const found = await act(this.told)
    if (!found.startsWith(outcome)) throw new Error(`${this.#name}: ${found}, not ${outcome}`)
  }

  /** Shows Ann to her contact as her server names her. */
  see(outcome: string, user: NamedUser, fetch?: LyingFetch): Promise<void> {
    return this.expect(outcome, told => told.verify(user, () => true), fetch)
  }

  register(...deviceIds: bigint[]): void {
    for (const deviceId of deviceIds) this.log.register(ANN, deviceId, keyOf(deviceId))
  }

  /** Logs the next list, which starts over unless it follows. */
  async list(deviceIds: bigint[], signer = deviceIds[0]!, follows = true): Promise<Uint8Array> {
    this.#nowMs += 60_000
    const list = await this.sign(deviceIds, signer, follows ? this.#lists.at(-1) : undefined)
    this.#lists.push(list)
    this.logList(list)
    return list
  }

  logList(list: Uint8Array): void {
    this.log.register(ANN, 0n, toBase64(deviceListHash(list)))
  }

  sign(deviceIds: bigint[], signer: bigint, previous: Uint8Array | undefined): Promise<Uint8Array> {
    const devices = deviceIds.map(id => listedDevice(id, fromBase64(keyOf(id)), signerOf(id)))
    const next = { userId: ANN, devices, signerDeviceId: signer, createdAtMs: this.#nowMs }
    return signDeviceList({ ...next, ...(previous && { previous }) }, async bytes =>
      signWith(signerOf(signer), bytes),
    )
  }

  /** Ann as her server names her. */
  named(deviceIds: bigint[], list = this.#lists.at(-1)): NamedUser {
    const devices = deviceIds.map(deviceId => ({
      deviceId: `${deviceId}`,
      keyAlgorithm: 'P-256',
      publicKey: keyOf(deviceId),
      publicKeyHash: this.log.identity(ANN, deviceId).vrfHash,
    }))
    if (list === undefined) return { userId: `${ANN}`, devices }
    const deviceListHash = this.log.identity(ANN, 0n).vrfHash
    return { userId: `${ANN}`, devices, deviceList: toBase64(list), deviceListHash }
  }

  /** A server that gives these leaves for lookups. */
  lookups(...leaves: readonly (readonly [number, Lies?])[]): LyingFetch {
    const results = leaves.map(([index, lies]) => this.log.result(index, lies))
    return this.log.fetch(path => (path === 'api/get-public-keys' ? { results } : undefined))
  }

  /** A server that answers for key histories so. */
  histories(answer: () => unknown): LyingFetch {
    return this.log.fetch(path => (path === 'api/get-key-history' ? answer() : undefined))
  }
}

function denial(): Response {
  return new Response(JSON.stringify({ code: 'UNKNOWN_PUBLIC_KEY_HASH', status: 404 }), { status: 404 })
}

function tilesFrom(log: LyingLog, answer: (path: string) => unknown): LyingFetch {
  return log.fetch(path => (path.startsWith('tile/') ? answer(path) : undefined))
}

const STORIES: Readonly<Record<string, (app: App) => Promise<void>>> = {
  async 'an answer from the beginning of a tree seen before is not used'(app) {
    await app.expect('verified 40', told => told.refresh())
    const earlier = tilesFrom(app.log.fork(30), path => app.log.fetch()(`https://log.example/${path}`))
    await app.expect('unanswered - - at stale | 40', told => told.lookUp(app.alice), earlier)
    await app.expect('', told => told.restart())
    await app.expect('unanswered - - at stale | 40', told => told.refresh(), earlier)
  },

  async 'a history rewritten since the last visit is a split view'(app) {
    await app.expect('verified 40', told => told.refresh())
    const rewritten = forkOf(app.log, 60).fetch()
    await app.expect('refused at consistency by 40 and 60 | 40', told => told.lookUp(app.alice), rewritten)
    const honest = grown(app.log, 60).fetch()
    await app.expect('verified 3 of 60', told => told.lookUp(app.alice), honest)
  },

  async 'another tree of the same size is a split view'(app) {
    await app.expect('verified 3 of 40', told => told.lookUp(app.alice))
    const other = forkOf(app.log, 40).fetch()
    await app.expect('refused at fork by 40 and 40 | 40', told => told.refresh(), other)
  },

  async 'two apps that are shown two trees find out by comparing notes'(app) {
    await app.expect('verified 40', told => told.refresh())
    const other = forkOf(app.log, 40).note()
    await app.expect('refused at fork by 40 and 40', told => told.compareWith(other))
    await app.expect('verified 25 | 40', told => told.compareWith(app.log.note(25)))
    const stranger = new LyingLog({ number: 2 })
    stranger.grow(40)
    await app.expect('refused at', told => told.compareWith(stranger.note()))
  },

  async 'tiles that are not served, or are made up, hide no split view'(app) {
    await app.expect('verified 40', told => told.refresh())
    const rewritten = forkOf(app.log, 60)
    const notThere = tilesFrom(rewritten, () => new Response('not there', { status: 404 }))
    await app.expect('unanswered - - at tiles | 40, pending 60', told => told.refresh(), notThere)
    const honest = grown(app.log, 60).fetch()
    const madeUp = tilesFrom(rewritten, path => honest(`https://log.example/${path}`))
    await app.expect('unanswered - - at tiles | 40, pending 60', told => told.refresh(), madeUp)
    await app.expect('refused at consistency by 40 and 60', told => told.refresh(), rewritten.fetch())
  },

  async 'a fork that is never answered for is proven once the log has grown past it'(app) {
    await app.expect('verified 40', told => told.refresh())
    const rewritten = forkOf(app.log, 50)
    const busy = tilesFrom(rewritten, () => new Response('busy', { status: 503 }))
    await app.expect('unanswered - - at tiles | 40, pending 50', told => told.refresh(), busy)
    await app.expect('', told => told.restart())
    const honest = grown(app.log, 70).fetch()
    await app.expect('refused at consistency by 50 and 70', told => told.lookUp(app.alice), honest)
    await app.expect('refused at consistency', told => told.lookUp(app.alice), honest)
  },

  async 'a false key, path, proof or log in the answer to a lookup'(app) {
    const { log, alice } = app
    const lookUp = (told: ToldStory) => told.lookUp(alice)
    await app.expect('refused at inclusion', lookUp, app.lookups([ALICE, { publicKey: numberedKey(999) }]))
    const { vrfHash, vrfProof } = log.leaf(7)
    await app.expect('refused at', lookUp, app.lookups([ALICE, { vrfHash, vrfProof }]))
    await app.expect('refused at', lookUp, app.lookups([7]))
    await app.expect('refused at', lookUp, app.lookups([ALICE], [ALICE]))
    await app.expect('refused at', lookUp, app.lookups())
    const stranger = new LyingLog({ number: 2 })
    stranger.grow(ALICE)
    stranger.register(1n, 1n, app.aliceKey)
    await app.expect(
      'refused at',
      lookUp,
      stranger.fetch(() => ({ results: [stranger.result(ALICE)] })),
    )
    await app.expect('verified 3 of 40', lookUp)
  },

  async 'a false own key shows, also where lookups give the right one'(app) {
    const { log, alice, aliceKey } = app
    const check = (told: ToldStory) => told.checkOwnKeys({ ...alice, publicKeys: [aliceKey] })
    await app.expect('clean', check)
    log.register(1n, 1n, numberedKey(666))
    await app.expect('alert, foreign 40, missing ,', check)
    await app.expect('alert, foreign 40, missing ,', check, app.lookups([ALICE]))
  },

  async 'a withheld history is no clean one'(app) {
    const { log, alice, aliceKey } = app
    log.register(1n, 1n, numberedKey(666))
    const check = (told: ToldStory) => told.checkOwnKeys({ ...alice, publicKeys: [aliceKey] })
    await app.expect(
      'refused at history',
      check,
      app.histories(() => log.history([ALICE])),
    )
    await app.expect('refused at history', check, app.histories(denial))
    await app.expect(
      'unanswered 503',
      check,
      app.histories(() => new Response('busy', { status: 503 })),
    )
  },

  async 'an own key that the server denies is missing'(app) {
    const { alice, aliceKey } = app
    const neverLogged = numberedKey(777)
    const both = { ...alice, publicKeys: [aliceKey, neverLogged] }
    await app.expect(`alert, foreign , missing ${neverLogged}, outdated 3`, told => told.checkOwnKeys(both))
    const denied = app.log.fetch(denial)
    await app.expect('alert, foreign , missing', told => told.checkOwnKeys(both), denied)
  },

  async 'an old own key that others get again is outdated'(app) {
    const { log, alice, aliceKey } = app
    const renewed = log.register(1n, 1n).publicKey
    const check = (told: ToldStory) => told.checkOwnKeys({ ...alice, publicKeys: [aliceKey, renewed] })
    await app.expect('clean', check)
    await app.expect('alert, foreign , missing , outdated 3', check, app.lookups([ALICE]))
    log.register(1n, 1n, aliceKey)
    await app.expect('alert, foreign , missing , outdated 41', check)
  },

  async 'a device that the server adds is not encrypted for'(app) {
    app.register(PHONE, GHOST)
    const list = await app.list([PHONE])
    await app.see(`verified by list: ${PHONE}+; events  |`, app.named([PHONE]))
    const ghost = app.named([PHONE, GHOST])
    await app.see(`verified by list: ${PHONE}+; events unlisted:${GHOST}`, ghost)
    const { deviceList: _, deviceListHash: __, ...unlisted } = ghost
    await app.see('refused at deviceList', unlisted)
    await app.see(
      'refused at deviceList',
      app.named([PHONE, GHOST], await app.sign([PHONE, GHOST], GHOST, list)),
    )
    const unlogged = await app.sign([PHONE, GHOST], PHONE, list)
    await app.see('refused at publicKey', app.named([PHONE, GHOST], unlogged))
  },

  async 'a device that signs itself in, or removes another, is an event'(app) {
    app.register(PHONE, TABLET)
    await app.list([PHONE])
    await app.see('verified by list', app.named([PHONE]))
    await app.list([PHONE, TABLET])
    const both = app.named([PHONE, TABLET])
    await app.see(`verified by list: ${PHONE}+ ${TABLET}+; events added-by-list:${TABLET}`, both)
    await app.see(`verified by list: ${PHONE}+ ${TABLET}+; events  |`, both)
    await app.list([TABLET], TABLET)
    await app.see(`verified by list: ${TABLET}+; events removed:${PHONE}`, app.named([TABLET]))
    const unlisted = app.named([PHONE, TABLET])
    await app.see(`verified by list: ${TABLET}+; events unlisted:${PHONE}`, unlisted)
  },

  async 'a listed device that the server leaves out, or has other keys for'(app) {
    app.register(PHONE, TABLET)
    await app.list([PHONE, TABLET])
    const both = app.named([PHONE, TABLET])
    await app.see('verified by list', both)
    await app.see(`verified by list: ${PHONE}+; events  |`, app.named([PHONE]))
    const [phone, tablet] = both.devices as [NamedUser['devices'][0], NamedUser['devices'][0]]
    for (const lie of [{ publicKey: keyOf(GHOST) }, { keyAlgorithm: 'RSA-2048' }])
      await app.see('refused at deviceList', { ...both, devices: [{ ...phone, ...lie }, tablet] })
    app.log.register(ANN, PHONE, keyOf(GHOST))
    await app.see('refused at publicKey', both)
  },

  async 'a user who starts over is an event, also where the app was away'(app) {
    app.register(PHONE, TABLET, GHOST)
    await app.list([PHONE])
    const before = app.named([PHONE])
    await app.see('verified by list', before)
    await app.list([GHOST], GHOST, false)
    await app.see(`verified by list: ${GHOST}+; events reset:all`, app.named([GHOST]))
    await app.list([PHONE], PHONE, false)
    await app.list([PHONE, TABLET])
    await app.see(`verified by list: ${PHONE}+ ${TABLET}+; events reset:all`, app.named([PHONE, TABLET]))
    await app.see('refused at publicKey', before)
  },

  async 'a crowd of added devices does not hide that a user has started over'(app) {
    app.register(PHONE, TABLET)
    await app.list([PHONE])
    await app.see('verified by list', app.named([PHONE]))
    await app.list([TABLET], TABLET, false)
    const named = app.named([TABLET])
    const ghosts = Array.from({ length: 80 }, (_, at) => ({
      ...named.devices[0]!,
      deviceId: `${GHOST + BigInt(at)}`,
    }))
    const crowd = { ...named, devices: [...named.devices, ...ghosts] }
    await app.see(`verified by list: ${TABLET}+; events reset:all unlisted:`, crowd)
  },

  async 'an older list is refused, also where the log holds it again'(app) {
    app.register(PHONE, TABLET)
    const first = await app.list([PHONE, TABLET])
    await app.list([PHONE])
    await app.see('verified by list', app.named([PHONE]))
    const indexOf = (deviceId: bigint) => app.log.indexesOf(app.log.identity(ANN, deviceId).vrfHash)[0]!
    const older = app.lookups([indexOf(0n)], [indexOf(PHONE)], [indexOf(TABLET)])
    await app.see('refused at deviceList', app.named([PHONE, TABLET], first), older)
    const again = await app.list([PHONE, TABLET])
    await app.list([PHONE])
    await app.see('verified by list', app.named([PHONE]))
    app.logList(again)
    await app.see('refused at deviceList', app.named([PHONE, TABLET], again))
  },

  async 'broken lists are refused, and change nothing'(app) {
    app.register(PHONE)
    const list = await app.list([PHONE])
    const named = app.named([PHONE])
    for (const deviceList of ['', '!', toBase64(list.subarray(1)), toBase64(list.with(-1, list.at(-1)! ^ 1))])
      await app.see('refused at deviceList | none', { ...named, deviceList })
    const { deviceListHash: _, ...half } = named
    await app.see('refused at deviceList | none', half)
    await app.see('refused at deviceList | none', { ...named, userId: '8' })
  },

  async 'without lists nothing changes in silence'(app) {
    app.register(PHONE, TABLET)
    await app.see(`verified by first-use: ${PHONE}; events  |`, app.named([PHONE]))
    await app.see(
      `verified by first-use: ${PHONE} ${TABLET}; events added:${TABLET}`,
      app.named([PHONE, TABLET]),
    )
    await app.see(`verified by first-use: ${TABLET}; events removed:${PHONE}`, app.named([TABLET]))
    app.log.register(ANN, TABLET, keyOf(GHOST))
    const { devices, ...named } = app.named([TABLET])
    const replaced = { ...named, devices: [{ ...devices[0]!, publicKey: keyOf(GHOST) }] }
    await app.see(`verified by first-use: ${TABLET}; events replaced:${TABLET}`, replaced)
  },

  async 'a list in the own name that no device followed is an alert'(app) {
    app.register(PHONE, TABLET)
    await app.list([PHONE])
    await app.see('verified by list', app.named([PHONE]))
    await app.expect('clean', told => told.checkOwnList())
    app.logList(await app.sign([GHOST], GHOST, undefined))
    await app.expect('alert, foreign 43', told => told.checkOwnList())
    await app.list([PHONE, TABLET])
    await app.see('verified by list', app.named([PHONE, TABLET]))
    await app.expect('alert, foreign 42 43', told => told.checkOwnList())
  },

  async 'a withheld history of the own lists is no clean one'(app) {
    app.register(PHONE)
    await app.list([PHONE])
    await app.see('verified by list', app.named([PHONE]))
    app.logList(await app.sign([GHOST], GHOST, undefined))
    await app.expect(
      'refused at history',
      told => told.checkOwnList(),
      app.histories(() => app.log.history([41])),
    )
    await app.expect('refused at history', told => told.checkOwnList(), app.histories(denial))
    const { deviceList: _, deviceListHash: __, ...unlisted } = app.named([PHONE])
    await app.see('refused at deviceList', unlisted)
  },

  async 'missed lists that are withheld, forged or out of order settle nothing'(app) {
    app.register(PHONE, TABLET)
    await app.list([PHONE])
    await app.see('verified by list', app.named([PHONE]))
    for (let lists = 0; lists < 3; lists++) await app.list(lists % 2 === 0 ? [PHONE, TABLET] : [PHONE])
    const named = app.named([PHONE, TABLET])
    const forged = toBase64(await app.sign([PHONE, GHOST], GHOST, undefined))
    for (const chain of [
      () => [],
      (lists: string[]) => lists.slice(1),
      (lists: string[]) => lists.toReversed(),
      (lists: string[]) => [forged, ...lists.slice(1)],
      () => ['!'],
    ]) {
      app.chain = chain
      await app.see('unanswered', named)
    }
    app.chain = lists => lists
    await app.see('verified by list: 4294967297+ 4294967298+; events added-by-list:4294967298 |', named)
    for (let lists = 0; lists < 66; lists++) await app.list([PHONE])
    await app.see('verified by list: 4294967297+; events removed:4294967298 |', app.named([PHONE]))
  },

  async 'a list in the log that its server does not show settles nothing'(app) {
    app.register(PHONE, TABLET)
    const first = await app.list([PHONE])
    await app.see('verified by list', app.named([PHONE]))
    const ghosts = await app.sign([PHONE, GHOST], GHOST, first)
    app.logList(ghosts)
    await app.list([PHONE, TABLET])
    await app.list([PHONE])
    await app.see('unanswered', app.named([PHONE]))
    app.chain = lists => [toBase64(ghosts), ...lists]
    await app.see('unanswered', app.named([PHONE]))
  },

  async 'a missed list that no device before it has signed is refused'(app) {
    app.register(PHONE, TABLET, GHOST)
    await app.list([PHONE])
    await app.see('verified by list', app.named([PHONE]))
    await app.list([PHONE, TABLET])
    await app.list([GHOST], GHOST)
    await app.see('refused at deviceList', app.named([GHOST]))
  },

  async 'new keys are asked about until those keys are accepted'(app) {
    app.register(PHONE, TABLET, GHOST)
    const first = toBase64(deviceListHash(await app.list([PHONE])))
    await app.see('verified by list: 4294967297+; events  |', app.named([PHONE]))
    const reset = toBase64(deviceListHash(await app.list([TABLET], TABLET, false)))
    const asks = (kind: string, hash: string) => `, asks ${kind} ${hash} |`
    const named = app.named([TABLET])
    await app.see(`verified by list: 4294967298+; events reset:all${asks('reset', reset)}`, named)
    await app.expect(`, asks reset ${reset}`, told => told.accept(first))
    await app.expect('', told => told.restart())
    await app.see(`verified by list: 4294967298+; events ${asks('reset', reset)}`, named)
    await app.expect('accepted', told => told.accept(reset))
    await app.expect('accepted', told => told.accept(first))
    await app.see('verified by list: 4294967298+; events  |', named)
    await app.list([PHONE, TABLET], TABLET)
    await app.see(
      'verified by list: 4294967297+ 4294967298+; events added-by-list',
      app.named([PHONE, TABLET]),
    )
    await app.list([GHOST], GHOST, false)
    const next = toBase64(deviceListHash(await app.list([PHONE, GHOST], GHOST)))
    await app.see(
      `verified by list: 4294967297+ 4294975073+; events reset:all${asks('reset', next)}`,
      app.named([PHONE, GHOST]),
    )
  },

  async 'a person without a list is asked about at each new key, and at a first list'(app) {
    app.register(PHONE, TABLET)
    const unlisted = (deviceIds: bigint[]) => app.named(deviceIds, undefined)
    await app.see('verified by first-use: ; events  |', unlisted([]))
    await app.see('verified by first-use: 4294967297; events  |', unlisted([PHONE]))
    await app.see(
      'verified by first-use: 4294967298 4294967297; events added:4294967298, asks added ',
      unlisted([TABLET, PHONE]),
    )
    const hash = 'm/0b5nFW6hdHxB/J31mMs8Kc0nXSecBXsPOCT53i43w='
    await app.expect('accepted', told => told.accept(hash))
    await app.see('verified by first-use: 4294967297 4294967298; events  |', unlisted([PHONE, TABLET]))
    app.log.register(ANN, TABLET, keyOf(GHOST))
    const { devices, ...named } = unlisted([PHONE, TABLET])
    const replaced = { ...named, devices: [devices[0]!, { ...devices[1]!, publicKey: keyOf(GHOST) }] }
    await app.see(
      'verified by first-use: 4294967297 4294967298; events replaced:4294967298, asks replaced ',
      replaced,
    )
    await app.list([PHONE])
    await app.see(
      'verified by list: 4294967297+; events removed:4294967298, asks first-list ',
      app.named([PHONE]),
    )
  },

  async 'a person who started over since a link was made is asked about'(app) {
    app.register(PHONE, TABLET)
    const listHash = toBase64(deviceListHash(await app.list([PHONE])))
    const linked = { userId: ANN, listHash }
    await app.list([PHONE, TABLET])
    await app.list([TABLET], TABLET, false)
    const reset = toBase64(deviceListHash(await app.list([TABLET])))
    await app.expect(`verified by list: 4294967298+; events reset:all, asks reset ${reset}`, told =>
      told.verifyShared(app.named([TABLET]), linked),
    )
  },

  async 'no other person passes for the one of a link'(app) {
    app.register(PHONE, TABLET)
    const listHash = toBase64(deviceListHash(await app.list([PHONE])))
    const linked = { userId: ANN, listHash }
    await app.expect('verified by list', told => told.verifyShared(app.named([PHONE]), linked))
    await app.list([PHONE, TABLET])
    const named = app.named([PHONE, TABLET])
    await app.expect('verified by list', told => told.verifyShared(named, linked))
    const stranger = { userId: ANN, listHash: toBase64(deviceListHash(fromUtf8('another list'))) }
    await app.expect('refused at', told => told.verifyShared(named, stranger))
    const { deviceList: _, deviceListHash: __, ...unlisted } = named
    await app.expect('refused at', told => told.verifyShared(unlisted, linked))
  },
}

if (import.meta.url === pathToFileURL(process.argv[1]!).href)
  for await (const line of lyingLines()) console.log(line)
