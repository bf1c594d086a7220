/**
 * The table of caches that are late or lie and servers that lie, between an honest or a dishonest log and `@callsign/sdk/client`:
 * stories that other implementations are held to (`ToldStory`). JSON lines:
 *
 *     node dist/test/support/cache-stories.js > test/vectors/client-caches.jsonl
 *
 * `liar` says who lies. Only a server's lie may end in a refusal with two notes.
 */
import { pathToFileURL } from 'node:url'
import type { Fetch } from '../../src/client/client.ts'
import { cosignatureLine, formatWitnessKey, witnessKeyFromSeed } from '../../src/log/cosignature.ts'
import { type LyingFetch, LyingLog, numberedKey } from './lying-log.ts'
import { TOLD_AT_MS, type ToldOptions, ToldStory } from './told-story.ts'

export async function* cacheLines(): AsyncGenerator<string> {
  yield JSON.stringify({ seed: 'caches', keys: KEYS })
  for (const { story, liar, options = {}, tell } of STORIES) {
    const app = new App(story, options)
    await tell(app)
    yield JSON.stringify({ story, liar, ...options, steps: app.told.steps })
  }
}

export interface CacheStory {
  readonly story: string
  readonly liar: 'nobody' | 'cache' | 'server'
  readonly options?: ToldOptions & { readonly policy?: string }
  readonly tell: (app: App) => Promise<void>
}

/** The leaf of the device to look up. */
const ALICE = 3
const MIRROR = 'https://mirror.example'

/** 310 leaves: one full tile and one of 54. */
const log = new LyingLog()
log.grow(ALICE)
log.register(1n, 1n)
log.grow(310)
const KEYS = log.published

/** Other entries from leaf 50 on, signed with the same keys. */
function forkAt(size: number): LyingLog {
  const fork = log.fork(50)
  fork.register(66n, 6n)
  fork.grow(size)
  return fork
}

const grown = log.fork()
grown.grow(400)

const witness = witnessKeyFromSeed('witness.example', new Uint8Array(32).fill(9))
const POLICY = `log ${KEYS.vkey}\nwitness w ${formatWitnessKey(witness)}\nquorum w\n`

/** An app that has seen the tree of size 100. */
class App {
  readonly told: ToldStory
  readonly #name: string

  constructor(name: string, { policy, ...options }: NonNullable<CacheStory['options']>) {
    this.#name = name
    const { vrfPublicKey } = KEYS
    const keys = policy === undefined ? KEYS : { policy, vrfPublicKey }
    this.told = new ToldStory(keys, log.signer.name, 7n, options)
  }

  /** The outcome of a step that is answered by `fetch`. */
  async expect(outcome: string, act: (told: ToldStory) => Promise<string>, fetch: LyingFetch): Promise<void> {
    this.told.serve = fetch as Fetch
    const found = await act(this.told)
    if (!found.startsWith(outcome)) throw new Error(`${this.#name}: ${found}, not ${outcome}`)
  }

  seen(note = log.note(100)): Promise<void> {
    return this.refresh(`verified ${note.split('\n')[1]} |`, answering(log, 'checkpoint', note))
  }

  refresh(outcome: string, fetch: LyingFetch): Promise<void> {
    return this.expect(outcome, told => told.refresh(), fetch)
  }

  compare(outcome: string, note: string, fetch: LyingFetch): Promise<void> {
    return this.expect(outcome, told => told.compareWith(note), fetch)
  }

  wait(hours: number): Promise<void> {
    return this.expect('', told => told.wait(hours), log.fetch())
  }
}

/** A log whose cache has another answer for the paths that begin so. */
function answering(from: LyingLog, start: string, ...answers: readonly unknown[]): LyingFetch {
  let asked = 0
  return from.fetch(path => {
    if (!path.startsWith(start)) return undefined
    const answer = answers[Math.min(asked++, answers.length - 1)]
    return typeof answer === 'function' ? answer(path) : answer
  })
}

const notThere = () => new Response('not there', { status: 404 })
const isPartial = (path: string) => path.includes('.p/')
const garbled = (path: string) => {
  const { length } = tileOf(log, path)
  return new Uint8Array(length).fill(7)
}

function tileOf(from: LyingLog, path: string): Uint8Array {
  const [, level, index, , width = '256'] = /^tile\/(\d+)\/(\d+)(\.p\/(\d+))?$/.exec(path)!
  return from.tile({ level: Number(level), index: Number(index), width: Number(width) })
}

/** A log that keeps only the newest partial tiles, as it may. */
const withoutOldPartials = log.fetch(path =>
  isPartial(path) && !path.endsWith('/001.p/54') && !path.endsWith('1/000.p/1') ? notThere() : undefined,
)

const OPEN = 'unanswered - - at tiles'
const STALE = 'unanswered - - at stale'

export const STORIES: readonly CacheStory[] = [
  {
    story: 'a log has dropped a partial tile that the full one has taken over',
    liar: 'nobody',
    async tell(app) {
      await app.seen()
      await app.compare('verified 200 | 200, pending ', log.note(200), withoutOldPartials)
      await app.refresh('verified 310 | 310, pending ', withoutOldPartials)
    },
  },
  {
    story: 'a cache has an old 404 for the newest partial tile',
    liar: 'cache',
    async tell(app) {
      await app.seen()
      await app.refresh(`${OPEN} | 100, pending 310`, answering(log, 'tile/0/001.p/54', notThere))
      await app.refresh('verified 310 | 310, pending ', log.fetch())
    },
  },
  {
    story: 'a cache has 404s for the full tile and for the partial one',
    liar: 'cache',
    async tell(app) {
      await app.seen()
      await app.compare(`${OPEN} | 100, pending 200`, log.note(200), answering(log, 'tile/0/000', notThere))
      await app.compare('verified 200 | 200, pending ', log.note(200), withoutOldPartials)
    },
  },
  {
    story: 'a cache cuts tiles off',
    liar: 'cache',
    async tell(app) {
      await app.seen()
      const cut = log.fetch(path => (path.startsWith('tile/') ? tileOf(log, path).subarray(5) : undefined))
      await app.refresh(`${OPEN} | 100, pending 310`, cut)
      const partials = log.fetch(path => (isPartial(path) ? tileOf(log, path).subarray(5) : undefined))
      await app.compare('verified 200 | 200, pending 310', log.note(200), partials)
      await app.refresh('verified 310 | 310, pending ', log.fetch())
    },
  },
  {
    story: 'a cache garbles a partial tile',
    liar: 'cache',
    async tell(app) {
      await app.seen()
      await app.refresh(`${OPEN} | 100, pending 310`, answering(log, 'tile/0/001.p/54', garbled))
      await app.refresh('verified 310 | 310, pending ', log.fetch())
    },
  },
  {
    story: 'a cache garbles a full tile',
    liar: 'cache',
    async tell(app) {
      await app.seen()
      const fetch = log.fetch(path => (path === 'tile/0/000' ? garbled(path) : notThereIfOld(path)))
      await app.compare(`${OPEN} | 100, pending 200`, log.note(200), fetch)
      await app.refresh(`${OPEN} | 100, pending 200 310`, fetch)
      await app.refresh('verified 310 | 310, pending ', log.fetch())
    },
  },
  {
    story: 'a cache serves the tiles of another log of this name',
    liar: 'cache',
    async tell(app) {
      await app.seen()
      const other = forkAt(310)
      const fetch = log.fetch(path => (path.startsWith('tile/') ? tileOf(other, path) : undefined))
      await app.refresh(`${OPEN} | 100, pending 310`, fetch)
    },
  },
  {
    story: 'an edge is late with the checkpoint',
    liar: 'cache',
    async tell(app) {
      await app.seen()
      await app.refresh('verified 310', log.fetch())
      await app.refresh(`${STALE} | 310, pending `, answering(log, 'checkpoint', log.note(200)))
      await app.refresh('verified 310', log.fetch())
    },
  },
  {
    story: 'one of two edges is late for days, and answers every other time',
    liar: 'cache',
    async tell(app) {
      await app.seen()
      for (let day = 0; day < 3; day++) {
        await app.refresh('verified 310', log.fetch())
        await app.wait(20)
        await app.refresh(`${STALE} | 310, pending `, answering(log, 'checkpoint', log.note(200)))
      }
    },
  },
  {
    story: 'an edge has only the old checkpoint for longer than a day',
    liar: 'cache',
    async tell(app) {
      await app.seen()
      await app.refresh('verified 310', log.fetch())
      const late = answering(log, 'checkpoint', log.note(200))
      await app.refresh(STALE, late)
      await app.wait(20)
      await app.compare('verified 100 | 310', log.note(100), late)
      await app.refresh(STALE, late)
      await app.wait(5)
      await app.refresh('refused at stale | 310, pending ', late)
      await app.refresh('verified 310 | 310, pending ', log.fetch())
      await app.refresh(STALE, late)
    },
  },
  {
    story: 'a front is late with the answer to a lookup',
    liar: 'nobody',
    async tell(app) {
      await app.seen()
      await app.refresh('verified 310', log.fetch())
      const results = [log.result(ALICE, { treeSize: 200 })]
      await app.expect(STALE, told => told.lookUp(ALICES), answering(log, 'api/', { results }))
      await app.expect('verified 3 of 310', told => told.lookUp(ALICES), log.fetch())
    },
  },
  {
    story: 'a cache has the checkpoint of another log',
    liar: 'cache',
    async tell(app) {
      const other = new LyingLog({ origin: 'other.example/kt' })
      other.grow(310)
      await app.seen()
      await app.refresh('refused at origin | 100, pending ', answering(log, 'checkpoint', other.note()))
    },
  },
  {
    story: 'a cache garbles the checkpoint',
    liar: 'cache',
    async tell(app) {
      await app.seen()
      const spoilt = log.note().replace('\n310\n', '\n311\n')
      await app.refresh('refused at signature | 100, pending ', answering(log, 'checkpoint', spoilt))
      await app.refresh('verified 310 | 310, pending ', log.fetch())
    },
  },
  {
    story: 'a cache answers with errors, or with a page',
    liar: 'cache',
    async tell(app) {
      await app.seen()
      const busy = () => new Response('busy', { status: 503 })
      await app.refresh(`${OPEN} | 100, pending 310`, answering(log, 'tile/', busy))
      await app.refresh(`${OPEN} | 100, pending 310`, answering(log, 'tile/', '<html>'))
      await app.refresh('unanswered 503 - | 100, pending 310', answering(log, 'checkpoint', busy))
      await app.refresh('verified 310 | 310, pending ', log.fetch())
    },
  },
  {
    story: 'a cache answers with more than a tile can have',
    liar: 'cache',
    async tell(app) {
      await app.seen()
      const huge = answering(log, 'tile/', new Uint8Array(8_200))
      await app.refresh(`${OPEN} | 100, pending 310`, huge)
      await app.refresh('verified 310 | 310, pending ', log.fetch())
    },
  },
  {
    story: 'a cache never ends an answer',
    liar: 'cache',
    options: { timeoutMs: 200 },
    async tell(app) {
      await app.seen()
      await app.refresh(`${OPEN} | 100, pending 310`, silentFor('tile/'))
      await app.refresh('unanswered - - | 100, pending 310', silentFor('checkpoint'))
      await app.refresh('verified 310 | 310, pending ', log.fetch())
    },
  },
  {
    story: 'a mirror has what the cache has not, or garbles',
    liar: 'cache',
    options: { mirror: MIRROR },
    async tell(app) {
      await app.seen()
      await app.compare('verified 200 | 200, pending ', log.note(200), mirrored(notThere, undefined))
      await app.refresh('verified 310 | 310, pending ', mirrored(garbled, undefined))
    },
  },
  {
    story: 'the cache garbles the full tile and the mirror is late with the newest',
    liar: 'cache',
    options: { mirror: MIRROR },
    async tell(app) {
      await app.seen()
      const fetch = mirrored(
        path => (isPartial(path) ? undefined : garbled(path)),
        path => (isPartial(path) ? notThere() : undefined),
      )
      await app.refresh('verified 310 | 310, pending ', fetch)
    },
  },
  {
    story: 'a mirror lies',
    liar: 'cache',
    options: { mirror: MIRROR },
    async tell(app) {
      const other = forkAt(310)
      const lie = (path: string) => tileOf(other, path)
      await app.seen()
      await app.refresh(`${OPEN} | 100, pending 310`, mirrored(notThere, lie))
      await app.refresh('verified 310 | 310, pending ', mirrored(undefined, lie))
    },
  },
  {
    story: 'a server signs another tree of the same size',
    liar: 'server',
    async tell(app) {
      await app.seen(log.note())
      await app.refresh('refused at fork by 310 and 310 | 310, pending ', forkAt(310).fetch())
    },
  },
  {
    story: 'a server shows another person another tree of the same size',
    liar: 'server',
    async tell(app) {
      await app.seen(log.note())
      await app.compare('refused at fork by 310 and 310 | 310, pending ', forkAt(310).note(), log.fetch())
    },
  },
  {
    story: 'a server signs a larger tree with another history',
    liar: 'server',
    async tell(app) {
      await app.seen()
      await app.refresh('refused at consistency by 100 and 400 | 100, pending ', forkAt(400).fetch())
    },
  },
  {
    story: 'a server shows an older tree that is no beginning of the one seen before',
    liar: 'server',
    async tell(app) {
      await app.seen(log.note())
      const old = answering(log, 'checkpoint', forkAt(200).note())
      await app.refresh('refused at consistency by 200 and 310 | 310, pending ', old)
    },
  },
  {
    story: 'a server withholds the tiles of a fork until the log has grown past it',
    liar: 'server',
    async tell(app) {
      await app.seen()
      await app.refresh(`${OPEN} | 100, pending 310`, answering(forkAt(310), 'tile/', notThere))
      await app.refresh('refused at consistency by 310 and 400 | 100, pending 310', grown.fetch())
      await app.refresh('refused at consistency by 310 and 400 | 100, pending 310', grown.fetch())
    },
  },
  {
    story: 'a server withholds the tiles that would show another person’s tree to be a fork, for ever',
    liar: 'server',
    async tell(app) {
      const silent = answering(log, 'tile/', notThere)
      await app.seen(log.note())
      await app.compare(`${OPEN} | 310, pending 400`, forkAt(400).note(), silent)
      await app.refresh('verified 310 | 310, pending 400', silent)
      await app.wait(25)
      await app.refresh('refused at tiles | 310, pending 400', silent)
      await app.compare('refused at tiles | 310, pending 400', forkAt(400).note(), silent)
      await app.expect('refused at tiles | 310, pending 400', told => told.lookUp(ALICES), silent)
    },
  },
  {
    story: 'a server makes up the tiles of a fork',
    liar: 'server',
    async tell(app) {
      const rewritten = forkAt(400)
      const madeUp = rewritten.fetch(path => (path.startsWith('tile/') ? tileOf(grown, path) : undefined))
      await app.seen()
      await app.refresh(`${OPEN} | 100, pending 400`, madeUp)
      await app.wait(25)
      await app.refresh('refused at tiles | 100, pending 400', madeUp)
      await app.refresh('refused at fork by 400 and 400 | 100, pending 400', grown.fetch())
    },
  },
  {
    story: 'a server signs a size that it has no tiles for',
    liar: 'server',
    async tell(app) {
      const future = answering(log, 'checkpoint', log.note(1_000_000_000, log.root()))
      await app.seen()
      await app.refresh(`${OPEN} | 100, pending 1000000000`, future)
      await app.refresh('verified 310 | 310, pending 1000000000', log.fetch())
      await app.wait(25)
      await app.refresh('refused at tiles | 310, pending 1000000000', future)
      await app.refresh('refused at tiles | 310, pending 1000000000', log.fetch())
    },
  },
  {
    story: 'the hash tiles are right and the entry of a lookup is another',
    liar: 'server',
    async tell(app) {
      await app.seen()
      await app.refresh('verified 310', log.fetch())
      const results = [log.result(ALICE, { publicKey: numberedKey(999) })]
      const lookUp = (told: ToldStory) => told.lookUp(ALICES)
      await app.expect('refused at inclusion | 310', lookUp, answering(log, 'api/', { results }))
    },
  },
  {
    story: 'an edge has a checkpoint that witnesses saw longer ago than the app allows',
    liar: 'cache',
    options: { policy: POLICY, maxAgeMs: 3_600_000 },
    async tell(app) {
      const atFirst = answering(log, 'checkpoint', cosigned(log.note(200), TOLD_AT_MS))
      await app.refresh('verified 200', atFirst)
      await app.wait(2)
      await app.refresh('refused at stale | 200, pending ', atFirst)
      const newest = cosigned(log.note(), TOLD_AT_MS + 2 * 3_600_000)
      await app.refresh('verified 310 | 310, pending ', answering(log, 'checkpoint', newest))
      await app.refresh('refused at stale | 310, pending ', atFirst)
    },
  },
]

const ALICES = { userId: '1', deviceId: '1', vrfHash: log.leaf(ALICE).vrfHash }

function notThereIfOld(path: string): Response | undefined {
  return path === 'tile/0/000.p/200' ? notThere() : undefined
}

/** A log that does not answer for these paths within the request's time. */
function silentFor(start: string): LyingFetch {
  const honest = log.fetch()
  const fetch = (url: string, init: { readonly body?: string; readonly signal?: AbortSignal } = {}) => {
    if (!url.includes(`example/${start}`)) return honest(url, init)
    return new Promise<Response>((_, reject) => {
      init.signal?.addEventListener('abort', () => reject(init.signal?.reason))
    })
  }
  return Object.assign(fetch, { requests: honest.requests })
}

type Lie = ((path: string) => unknown) | undefined

/** The log and its mirror serve tiles with these lies. */
function mirrored(atLog: Lie, atMirror: Lie): LyingFetch {
  const tilesBy = (lie: Lie) => log.fetch(path => (path.startsWith('tile/') ? lie?.(path) : undefined))
  const [own, mirror] = [tilesBy(atLog), tilesBy(atMirror)]
  const fetch: typeof own = Object.assign(
    (url: string, init?: { readonly body?: string }) => (url.startsWith(MIRROR) ? mirror : own)(url, init),
    { requests: own.requests },
  )
  return fetch
}

function cosigned(note: string, atMs: number): string {
  return note + cosignatureLine(note.slice(0, note.indexOf('\n\n') + 1), witness, atMs / 1_000)
}

if (import.meta.url === pathToFileURL(process.argv[1]!).href)
  for await (const line of cacheLines()) console.log(line)
