/**
 * Stories of an app and its log, with every exchange and what `@callsign/sdk/client` made of it: an implementation that is given
 * the same answers asks the same questions, remembers the same, and comes to the same outcomes. JSON lines, one per story.
 *
 *     node dist/test/support/verdict-stories.js > stories.jsonl
 *
 * `CALLSIGN_CORPUS_CASES` says how many, `CALLSIGN_SEED` from which seed. `FROZEN_STORIES` makes
 * `test/vectors/client-stories.jsonl`; the tests in `kotlin/` read it, and the file that `CALLSIGN_STORIES` names.
 */
import { pathToFileURL } from 'node:url'
import { type Fetch, type NamedUser, signDeviceList } from '../../src/client/client.ts'
import { deviceListHash, parseDeviceList } from '../../src/log/device-list.ts'
import { fromBase64, fromUtf8, toBase64 } from './bytes.ts'
import { type ListSigner, listedDevice, listSigner, servedLists, signWith } from './device-lists.ts'
import { LyingLog, numberedKey } from './lying-log.ts'
import { randomFrom, seedOf } from './seed.ts'
import { type Step, ToldStory } from './told-story.ts'
import { type Json, Mutator } from './verdict-edits.ts'

export const FROZEN_STORIES = { seed: 1, stories: 14 } as const

export async function* storyLines({
  seed,
  stories,
}: {
  seed: number
  stories: number
}): AsyncGenerator<string> {
  yield JSON.stringify({ seed, keys: new LyingLog().published })
  for (let at = 0; at < stories; at++) {
    const story = new Story(new Mutator(randomFrom(seed + 7_919 * at)))
    yield JSON.stringify({ story: at, steps: await story.tell() })
  }
}

const ANN = 7n
const DEVICES = [1n, 2n, 3n].map(number => 2n ** 32n + number)
const GHOST = 2n ** 32n + 7_777n

const signerOf = (deviceId: bigint): ListSigner => listSigner(`device ${deviceId}`)
const keyOf = (deviceId: bigint): string => toBase64(fromUtf8(`public key ${deviceId}`))

class Story {
  readonly #mutator: Mutator
  #log = new LyingLog()
  /** Branches that went their own way. */
  readonly #forks: LyingLog[] = []
  readonly #told: ToldStory
  readonly #lists: Uint8Array[] = []
  #nowMs = 1_790_000_000_000

  constructor(mutator: Mutator) {
    this.#mutator = mutator
    this.#log.grow(3)
    this.#log.register(1n, 1n)
    // Some logs begin where a second tile does.
    this.#log.grow(mutator.below(8) === 0 ? 235 : 5 + mutator.below(20))
    this.#told = new ToldStory(this.#log.published, this.#log.signer.name, ANN)
    this.#told.serveLists = async (_userId, after) => this.#servedLists(after)
  }

  async tell(): Promise<readonly Step[]> {
    for (let turn = 0; turn < 12; turn++) {
      await this.#change()
      this.#told.serve = this.#server() as Fetch
      await this.#act()
    }
    return this.#told.steps
  }

  /** The log grows, by Ann's devices and lists too, or another branch begins. */
  async #change(): Promise<void> {
    const mutator = this.#mutator
    const way = mutator.below(10)
    if (way < 3) this.#log.grow(this.#log.size + mutator.below(25))
    if (way === 3)
      this.#log.register(1n, 1n, mutator.below(2) === 0 ? numberedKey(3) : numberedKey(this.#log.size))
    if (way === 4) {
      const fork = this.#log.fork(3 + mutator.below(this.#log.size - 3))
      fork.register(66n, BigInt(mutator.below(1_000)))
      fork.grow(fork.size + mutator.below(40))
      this.#forks.push(fork)
    }
    if (way > 6 || this.#lists.length === 0) {
      for (const deviceId of [...DEVICES, GHOST])
        if (this.#log.indexesOf(this.#log.identity(ANN, deviceId).vrfHash).length === 0)
          this.#log.register(ANN, deviceId, keyOf(deviceId))
      await this.#nextList()
    }
  }

  async #nextList(): Promise<void> {
    const mutator = this.#mutator
    const deviceIds = DEVICES.filter(() => mutator.below(3) > 0)
    if (deviceIds.length === 0) return
    const previous = this.#lists.at(-1)
    const listed =
      previous === undefined ? [] : parseDeviceList(previous).devices.map(({ deviceId }) => deviceId)
    const able = deviceIds.filter(deviceId => listed.includes(deviceId))
    const startsOver = able.length === 0 || mutator.below(6) === 0
    this.#nowMs += 60_000
    const signerDeviceId = mutator.pick(startsOver ? deviceIds : able)
    const list = await this.#signed(deviceIds, signerDeviceId, startsOver ? undefined : previous)
    this.#lists.push(list)
    this.#log.register(ANN, 0n, toBase64(deviceListHash(list)))
  }

  #signed(deviceIds: readonly bigint[], signerDeviceId: bigint, previous: Uint8Array | undefined) {
    const devices = deviceIds.map(id => listedDevice(id, fromBase64(keyOf(id)), signerOf(id)))
    const next = { userId: ANN, devices, signerDeviceId, createdAtMs: this.#nowMs }
    return signDeviceList({ ...next, ...(previous && { previous }) }, async bytes =>
      signWith(signerOf(signerDeviceId), bytes),
    )
  }

  #server() {
    const mutator = this.#mutator
    const answer = (text: string, status: number) => new Response(text, { status })
    const way = mutator.below(20)
    const fork = this.#forks.at(-1)
    if (way < 3 && fork !== undefined) return fork.fetch()
    if (way === 3) return this.#log.fork(3 + mutator.below(this.#log.size - 3)).fetch()
    const ofTiles = (lie: (path: string) => unknown) =>
      this.#log.fetch(path => (path.startsWith('tile/') ? lie(path) : undefined))
    if (way === 4) return ofTiles(() => answer('busy', 503))
    if (way === 5) return ofTiles(() => answer('not there', 404))
    if (way === 6 && fork !== undefined)
      return ofTiles(path =>
        fork
          .fetch()(`https://log.example/${path}`)
          .catch(() => answer('not there', 404)),
      )
    if (way === 7) return this.#log.fetch(() => answer('<html>', 200))
    if (way === 8) return this.#log.fetch(() => answer('{"code":"RATE_LIMITED"}', 429))
    if (way === 9) return this.#log.fetch(() => answer('{"code":"UNKNOWN_PUBLIC_KEY_HASH"}', 404))
    if (way === 10) return () => Promise.reject(new Error('no network'))
    if (way === 11) return this.#spoilt()
    return this.#log.fetch()
  }

  /** One answer has a text changed. */
  #spoilt() {
    const fetch = this.#log.fetch()
    return async (url: string, init?: { readonly body?: string }) => {
      const answer = await fetch(url, init)
      if (url.includes('/tile/')) return answer
      const text = await answer.text()
      const value: Json = url.endsWith('/checkpoint') ? { text } : JSON.parse(text)
      const [edit] = this.#mutator.edits(value, value)
      if (edit === undefined || !('cut' in edit)) return new Response(text)
      const [from, removed, inserted] = edit.cut
      const parents = edit.at.slice(0, -1)
      const parent = parents.reduce((at, step) => (at as Record<string | number, Json>)[step]!, value)
      const members = parent as Record<string | number, string>
      const last = edit.at.at(-1)!
      members[last] = members[last]!.slice(0, from) + inserted + members[last]!.slice(from + removed)
      // The answer travels as UTF-8, which has no lone surrogates.
      const whole = url.endsWith('/checkpoint') ? (value as { text: string }).text : JSON.stringify(value)
      return new Response(Buffer.from(whole, 'utf8'))
    }
  }

  #act(): Promise<string> {
    const mutator = this.#mutator
    const told = this.#told
    const way = mutator.below(20)
    const device = { userId: '1', deviceId: '1', vrfHash: this.#log.leaf(3).vrfHash }
    if (way < 4) return told.lookUp(device)
    if (way < 7) {
      const own = [3, ...this.#log.indexesOf(device.vrfHash).slice(1, 1 + mutator.below(3))]
      return told.checkOwnKeys({ ...device, publicKeys: own.map(numberedKey) })
    }
    if (way < 10) return told.refresh()
    if (way < 12) {
      const branch = mutator.pick([this.#log, ...this.#forks])
      return told.compareWith(branch.note(1 + mutator.below(branch.size)))
    }
    if (way === 12) {
      const kept = told.kept.get(this.#log.signer.name)
      return told.plantPending(mutator.below(2) === 0 ? [] : ['planted', ...(kept?.pending ?? [])])
    }
    if (way === 13) return told.restart()
    if (way === 14) return told.checkOwnList()
    if (way > 17 && this.#lists.length > 0)
      return told.accept(
        toBase64(deviceListHash(mutator.below(3) > 0 ? this.#lists.at(-1)! : mutator.pick(this.#lists))),
      )
    if (way === 15 && this.#lists.length > 0) {
      const shared = { userId: ANN, listHash: toBase64(deviceListHash(mutator.pick(this.#lists))) }
      return told.verifyShared(this.#named(), shared)
    }
    return told.verify(this.#named(), () => mutator.below(3) === 0)
  }

  /** Ann's lists. The server may leave one out, or spoil or swap them. */
  #servedLists(after: number | undefined): string[] {
    const mutator = this.#mutator
    const way = mutator.below(12)
    const lists = servedLists(this.#lists, after)
    if (way === 0) throw new Error('no network')
    if (way === 1) return lists.toReversed()
    if (way === 2) return lists.filter((_, at) => at !== 0)
    if (way === 3) return lists.map(list => toBase64(fromBase64(list).with(90, 1)))
    return lists
  }

  /** Ann as her server names her, which may lie. */
  #named(): NamedUser {
    const mutator = this.#mutator
    const way = mutator.below(12)
    const newest = this.#lists.at(-1)
    const list = way === 0 ? mutator.pick([undefined, ...this.#lists]) : newest
    const listed =
      list === undefined ? DEVICES.slice(0, 1) : parseDeviceList(list).devices.map(each => each.deviceId)
    const deviceIds = way === 1 ? [...listed, GHOST] : way === 2 ? listed.slice(1) : listed
    const vrfHashOf = (deviceId: bigint) => this.#log.identity(ANN, deviceId).vrfHash
    const devices = deviceIds.map((deviceId, at) => ({
      deviceId: `${deviceId}`,
      keyAlgorithm: way === 3 && at === 0 ? 'RSA-2048' : 'P-256',
      publicKey: keyOf(way === 4 && at === 0 ? GHOST : deviceId),
      publicKeyHash: vrfHashOf(deviceId),
    }))
    const isUnlisted = way === 5
    if (list === undefined || isUnlisted) return { userId: `${ANN}`, devices }
    const octets = way === 6 ? list.with(mutator.below(list.length), mutator.below(256)) : list
    const whole = { userId: `${ANN}`, devices, deviceList: toBase64(octets), deviceListHash: vrfHashOf(0n) }
    if (way !== 7) return whole
    const { deviceListHash: _, ...half } = whole
    return half
  }
}

if (import.meta.url === pathToFileURL(process.argv[1]!).href) {
  const isFrozen = process.env.CALLSIGN_CORPUS_CASES === undefined
  const stories = Number(process.env.CALLSIGN_CORPUS_CASES ?? FROZEN_STORIES.stories)
  for await (const line of storyLines({ seed: isFrozen ? FROZEN_STORIES.seed : seedOf(), stories }))
    console.log(line)
}
