/**
 * Lies about the index of a log and how `@callsign/sdk/client` finds each out, as stories that other implementations are held
 * to (`ToldStory`). JSON lines:
 *
 *     node dist/test/support/index-stories.js > test/vectors/client-index.jsonl
 *
 * Each outcome that matters is written beside its step; any other is an error. A story says under which `policy` the app knows
 * the log, unless by the keys of the first line.
 */
import { pathToFileURL } from 'node:url'
import type { Fetch, NamedUser } from '../../src/client/client.ts'
import { formatWitnessKey, witnessKeyFromSeed } from '../../src/log/cosignature.ts'
import type { SignerKey } from '../../src/log/note.ts'
import { fromUtf8, toBase64 } from './bytes.ts'
import type { MapEntry } from './lying-index.ts'
import { type LyingFetch, LyingLog } from './lying-log.ts'
import { TOLD_AT_MS, type ToldOptions, ToldStory } from './told-story.ts'

export async function* indexLines(): AsyncGenerator<string> {
  yield JSON.stringify({ seed: 'index', keys: KEYS })
  for (const [story, { options = {}, tell }] of Object.entries(STORIES)) {
    const app = new App(story, options)
    await tell(app)
    yield JSON.stringify({ story, ...options, steps: app.told.steps })
  }
}

interface Story {
  readonly options?: ToldOptions & { readonly policy?: string }
  readonly tell: (app: App) => Promise<void>
}

const MIRROR = 'https://mirror.example'
const ANN = 7n
const [PHONE, TABLET] = [2n ** 32n + 1n, 2n ** 32n + 2n] as const
const ALICE = { userId: '1', deviceId: '1' }

const [w1, r1] = ['w1', 'r1'].map((name, at) =>
  witnessKeyFromSeed(name, new Uint8Array(32).fill(0x50 + at)),
) as [SignerKey, SignerKey]
const published = new LyingLog()
const KEYS = { ...published.published, indexVkey: published.index.vkey }
const LOGS = `log ${KEYS.vkey}\nlog ${KEYS.indexVkey}\n`
const [W1, R1] = [w1, r1].map(key => `witness ${key.name} ${formatWitnessKey(key)}\n`) as [string, string]
const DEMANDED = { policy: `${LOGS}quorum none\n` }
/** The index alone needs cosignatures here: those of rebuilders. */
const REBUILT = { policy: `${LOGS}${R1}group rebuilders any r1\nquorum none\n` }
const WITNESSED = { policy: `${LOGS}${W1}group rebuilders any w1\nquorum none\n` }

/** An app and its log. Alice is leaf 3 and again 20; Ann’s phone 21. The index has all of the 40 leaves. */
class App {
  readonly log = new LyingLog()
  readonly told: ToldStory
  readonly #name: string

  constructor(name: string, { policy, ...options }: NonNullable<Story['options']>) {
    this.#name = name
    const { vrfPublicKey } = KEYS
    const keys = policy === undefined ? KEYS : { policy, vrfPublicKey }
    this.told = new ToldStory(keys, this.log.signer.name, ANN, options)
    this.log.grow(3)
    this.log.register(1n, 1n)
    this.log.grow(20)
    this.log.register(1n, 1n)
    this.log.register(ANN, PHONE, keyOf(PHONE))
    this.log.grow(40)
    this.log.index.append(this.log)
  }

  get alice() {
    return { ...ALICE, vrfHash: this.log.leaf(3).vrfHash }
  }

  /** The outcome of a step that is answered by `fetch`. */
  async expect(outcome: string, act: (told: ToldStory) => Promise<string>, fetch = this.log.fetch()) {
    this.told.serve = fetch as Fetch
    const found = await act(this.told)
    if (!found.startsWith(outcome)) throw new Error(`${this.#name}: ${found}, not ${outcome}`)
  }

  /** Looks Alice up. */
  look(outcome: string, fetch?: LyingFetch): Promise<void> {
    return this.expect(outcome, told => told.lookUp(this.alice), fetch)
  }

  see(outcome: string, user: NamedUser, fetch?: LyingFetch): Promise<void> {
    return this.expect(outcome, told => told.verify(user), fetch)
  }

  /** Ann with one device and no list, as her server names her. */
  ann(absent?: NamedUser['absent']): NamedUser {
    const { vrfHash } = this.log.identity(ANN, PHONE)
    const key = { keyAlgorithm: 'P-256', publicKey: keyOf(PHONE), publicKeyHash: vrfHash }
    return { userId: `${ANN}`, devices: [{ deviceId: `${PHONE}`, ...key }], ...(absent && { absent }) }
  }

  /** A server that shows this leaf for a lookup, with the honest proof of the index or another. */
  showing(leaf: number, indexProof: unknown = this.log.index.proof(this.log.leaf(leaf).vrfHash)): LyingFetch {
    const results = [{ ...this.log.result(leaf), ...(indexProof !== null && { indexProof }) }]
    return this.log.fetch(path => (path === 'api/get-public-keys' ? { results } : undefined))
  }
}

function keyOf(deviceId: bigint): string {
  return toBase64(fromUtf8(`public key ${deviceId}`))
}

const without = (left: number) => (entries: readonly MapEntry[]) =>
  entries.filter(each => each.index !== left)
const notThere = () => new Response('not there', { status: 404 })
const isTail = (path: string) => path.startsWith('tile/entries/')
const COMPLETE = 'verified 20 of 40, complete [3,20] age unknown unproved'
const INCOMPLETE = 'refused at completeness'
const HOUR_S = 3_600

const STORIES: Readonly<Record<string, Story>> = {
  'an honest index proves the newest entry, and one that comes later from the tail': {
    options: DEMANDED,
    async tell(app) {
      await app.look(`${COMPLETE} | 40, pending , index 1`)
      await app.look(COMPLETE)
      app.log.grow(270)
      await app.look('verified 20 of 270, complete [3,20] age unknown unproved | 270, pending , index 1')
      app.log.register(1n, 1n)
      await app.look('verified 270 of 271, complete [3,20,270]')
      app.log.index.append(app.log)
      app.log.grow(280)
      await app.look('verified 270 of 280, complete [3,20,270] age unknown unproved | 280, pending , index 2')
    },
  },

  'a server that leaves out the newest entry is refused': {
    options: DEMANDED,
    async tell(app) {
      await app.look(`${INCOMPLETE} | 40, pending , index 1`, app.showing(3))
      app.log.register(1n, 1n)
      await app.look(`${INCOMPLETE} | 41`, app.showing(20))
      await app.look('verified 40 of 41, complete [3,20,40]')
    },
  },

  'an index that leaves it out, too, is for auditors to find, unless rebuilders have to cosign it': {
    options: DEMANDED,
    async tell(app) {
      app.log.index = app.log.index.fork(0).append(app.log, { entries: without(20) })
      await app.look('verified 3 of 40, complete [3] age unknown unproved', app.showing(3))
      await app.look(INCOMPLETE)
    },
  },

  'an index that no rebuilder has cosigned is refused': {
    options: REBUILT,
    async tell(app) {
      app.log.index.cosigned = [[r1, TOLD_AT_MS / 1_000 - 5]]
      await app.look('verified 20 of 40, complete [3,20] age 5000 proved')
      app.log.grow(44)
      app.log.index.append(app.log, { entries: without(20) })
      // A rebuilder has not signed this leaf.
      app.log.index.cosigned = [[w1, TOLD_AT_MS / 1_000]]
      await app.look('refused at witnesses | 44, pending , index 1', app.showing(3))
    },
  },

  'a root with one key changed is refused for that key': {
    options: DEMANDED,
    async tell(app) {
      const changed = (entries: readonly MapEntry[]) =>
        entries.map(entry => (entry.index === 20 ? { ...entry, index: 30 } : entry))
      app.log.index.append(app.log, { entries: changed })
      await app.look(INCOMPLETE)
      await app.look(INCOMPLETE, app.showing(3))
      const phone = { userId: `${ANN}`, deviceId: `${PHONE}`, vrfHash: app.log.leaf(21).vrfHash }
      await app.expect('verified 21 of 40, complete [21]', told => told.lookUp(phone))
    },
  },

  'an old leaf hides nothing, because the tail is read': {
    options: DEMANDED,
    async tell(app) {
      const old = app.log.index.fork()
      app.log.register(1n, 1n)
      app.log.index.append(app.log)
      await app.look('verified 40 of 41, complete [3,20,40] age unknown unproved | 41, pending , index 2')
      await app.look(INCOMPLETE, app.showing(20, old.proof(app.alice.vrfHash)))
      await app.look('verified 40 of 41, complete [3,20,40]', app.showing(40, old.proof(app.alice.vrfHash)))
    },
  },

  'an index that stops is stale once its cosignatures are too old': {
    options: WITNESSED,
    async tell(app) {
      app.log.index.cosigned = [[w1, TOLD_AT_MS / 1_000]]
      await app.look('verified 20 of 40, complete [3,20] age 0 proved')
      await app.expect('', told => told.wait(24))
      await app.look(`verified 20 of 40, complete [3,20] age ${24 * HOUR_S * 1_000} proved`)
      await app.expect('', told => told.wait(1))
      await app.look('refused at stale | 40, pending , index 1')
      app.log.index.cosigned = [[w1, TOLD_AT_MS / 1_000 + 25 * HOUR_S]]
      await app.look('verified 20 of 40, complete [3,20] age 0 proved')
    },
  },

  'how old it may be is the app’s to say': {
    options: { ...WITNESSED, maxIndexAgeMs: 600_000 },
    async tell(app) {
      app.log.index.cosigned = [[w1, TOLD_AT_MS / 1_000 - 600]]
      await app.look('verified 20 of 40, complete [3,20] age 600000 proved')
      app.log.index.cosigned = [[w1, TOLD_AT_MS / 1_000 - 601]]
      await app.look('refused at stale')
    },
  },

  'a tail of more than 4,096 entries is not read': {
    async tell(app) {
      app.log.grow(40 + 4_097)
      await app.look('verified 20 of 4137, tail-unread | 4137, pending , index 1')
      await app.look(INCOMPLETE)
      app.log.index.append(app.log)
      await app.look('verified 20 of 4137, complete [3,20] age unknown unproved | 4137, pending , index 2')
    },
  },

  'an answer without a proof is refused where one is demanded': {
    options: DEMANDED,
    async tell(app) {
      await app.look(`${INCOMPLETE} | 40, pending  |`.slice(0, -2), app.showing(20, null))
      await app.look(INCOMPLETE, app.showing(20, {}))
      await app.look(COMPLETE)
    },
  },

  'who knows the index by its key alone demands a proof once there was one': {
    async tell(app) {
      await app.look('verified 20 of 40 | 40, pending', app.showing(20, null))
      await app.look(INCOMPLETE, app.showing(3))
      await app.look(COMPLETE)
      await app.expect('', told => told.restart())
      await app.look(INCOMPLETE, app.showing(20, null))
    },
  },

  'an app may ask for no proof': {
    options: { completeness: 'off' },
    async tell(app) {
      await app.look('verified 20 of 40 | 40, pending')
      await app.look('verified 3 of 40 | 40, pending', app.showing(3))
    },
  },

  'two output logs are evidence, also by the note of another person': {
    options: DEMANDED,
    async tell(app) {
      app.log.index.append(app.log)
      await app.look(`${COMPLETE} | 40, pending , index 2`)
      const other = app.log.index.fork(1).append(app.log, { entries: without(20) })
      await app.look(
        'refused at fork by 2 and 2 | 40, pending , index 2',
        app.showing(3, other.proof(app.alice.vrfHash)),
      )
      await app.expect('refused at fork by 2 and 2', told => told.compareWith(other.note()))
      other.append(app.log)
      const tiles = app.log.fork()
      tiles.index = other
      await app.expect(
        'refused at consistency by 2 and 3',
        told => told.compareWith(other.note()),
        tiles.fetch(),
      )
      await app.expect('verified 1', told => told.compareWith(app.log.index.note(1)))
      await app.expect('refused at signature', told =>
        told.compareWith(stranger.index.append(stranger).note()),
      )
    },
  },

  'an index over another history of the log is evidence': {
    options: DEMANDED,
    async tell(app) {
      await app.look(COMPLETE)
      const other = app.log.fork(20)
      other.grow(40)
      app.log.index.append(other)
      await app.look('refused at fork by 40 and 40 | 40, pending , index 1', app.showing(3))
    },
  },

  'a tail with an entry missing or swapped is not believed, and a mirror may have the right one': {
    options: { ...DEMANDED, mirror: MIRROR },
    async tell(app) {
      app.log.register(1n, 1n)
      app.log.grow(44)
      const lying = app.log.fork(40)
      lying.grow(44)
      const swapped = (path: string) =>
        isTail(path) ? lying.fetch()(`https://log.example/${path}`) : undefined
      const missing = (path: string) =>
        isTail(path) ? app.log.tile({ level: 'entries', index: 0, width: 43 }) : undefined
      const nobody = (lie: (path: string) => unknown) =>
        app.log.fetch(path => lie(path.replace(`${MIRROR}/`, '')))
      for (const lie of [swapped, missing, (path: string) => (isTail(path) ? notThere() : undefined)])
        await app.look('unanswered - - at tiles | 44, pending , index 1', nobody(lie))
      let asked = 0
      const half = app.log.fetch(path => (isTail(path) && asked++ === 0 ? notThere() : undefined))
      await app.look('verified 40 of 44, complete [3,20,40]', half)
    },
  },

  'an answer from before the newest leaf is late': {
    options: DEMANDED,
    async tell(app) {
      await app.look(
        'unanswered - - at stale | 40, pending , index 1',
        app.log.fetch(path =>
          path === 'api/get-public-keys'
            ? {
                results: [
                  {
                    ...app.log.result(3, { treeSize: 18 }),
                    indexProof: app.log.index.proof(app.alice.vrfHash),
                  },
                ],
              }
            : undefined,
        ),
      )
    },
  },

  'another key under the hash of a device is refused, whichever is shown': {
    options: DEMANDED,
    async tell(app) {
      const named = () => app.ann(app.log.absent(ANN))
      await app.see(`verified by first-use: ${PHONE}, complete true unproved`, named())
      app.log.register(ANN, PHONE, keyOf(TABLET))
      await app.see('refused at completeness', named(), app.showing(21))
      const { devices, ...ann } = named()
      const other = { ...ann, devices: [{ ...devices[0]!, publicKey: keyOf(TABLET) }] }
      await app.see('refused at otherKey', other)
      app.log.index.append(app.log)
      await app.see('refused at otherKey', { ...other, absent: app.log.absent(ANN) })
      // The person's own key again does not make it better.
      app.log.register(ANN, PHONE, keyOf(PHONE))
      await app.see('refused at otherKey', named())
    },
  },

  'a list that is left out at the first meeting is refused': {
    options: DEMANDED,
    async tell(app) {
      await app.see('refused at completeness', app.ann())
      const { indexProof: _, ...bare } = app.log.absent(ANN)
      await app.see('refused at completeness', app.ann(bare))
      await app.see('refused at vrf', app.ann(app.log.absent(8n)))
      const { vrfHash } = app.log.identity(8n, 0n)
      await app.see('refused at vrfHash', app.ann({ ...app.log.absent(ANN), vrfHash }))
      await app.see('refused at proof', app.ann({ ...app.log.absent(ANN), vrfProof: '!' }))
      await app.see(`verified by first-use: ${PHONE}, complete true unproved`, app.ann(app.log.absent(ANN)))
      app.log.register(ANN, 0n)
      const inTail = app.log.absent(ANN)
      // The proof is from before, so the app has to know the newer tree.
      await app.expect('verified 41', told => told.refresh())
      await app.see('refused at completeness', app.ann(inTail))
      app.log.index.append(app.log)
      await app.see('refused at completeness', app.ann(app.log.absent(ANN)))
    },
  },

  'without a demand the proof that there is no list counts where it is there': {
    async tell(app) {
      const bare = { ...app.ann(), devices: [] }
      await app.see('verified by first-use: ; events', bare)
      app.log.register(ANN, 0n)
      app.log.index.append(app.log)
      await app.see('refused at completeness', { ...bare, absent: app.log.absent(ANN) })
    },
  },

  'an own key that was logged twice is there twice': {
    options: DEMANDED,
    async tell(app) {
      // As long as a point on a curve.
      const publicKey = toBase64(new Uint8Array(65).fill(4))
      const { vrfHash } = app.log.register(ANN, TABLET, publicKey)
      const own = { userId: `${ANN}`, deviceId: `${TABLET}`, vrfHash, publicKeys: [publicKey] }
      await app.expect('clean, 40 ', told => told.checkOwnKeys(own))
      app.log.register(ANN, TABLET, publicKey)
      await app.expect('clean, 40 41 ', told => told.checkOwnKeys(own))
    },
  },

  'a history of the own keys that leaves out what the index has is refused': {
    options: DEMANDED,
    async tell(app) {
      const own = { ...app.alice, publicKeys: [app.log.leaf(3).publicKey, app.log.leaf(20).publicKey] }
      await app.expect('clean, 3 20', told => told.checkOwnKeys(own))
      const histories = (leaves: number[]) =>
        app.log.fetch(path => (path === 'api/get-key-history' ? app.log.history(leaves) : undefined))
      await app.expect('refused at history', told => told.checkOwnKeys(own), histories([20]))
      app.log.register(1n, 1n)
      await app.expect('refused at history', told => told.checkOwnKeys(own), histories([3, 40]))
      await app.expect('alert, foreign 40', told => told.checkOwnKeys(own))
    },
  },
}

const stranger = new LyingLog({ number: 2 })

if (import.meta.url === pathToFileURL(process.argv[1]!).href)
  for await (const line of indexLines()) console.log(line)
