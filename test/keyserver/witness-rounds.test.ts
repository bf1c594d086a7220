/** Witness rounds against witnesses that are slow, down, wrong or hostile, over HTTP. */

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { post } from '../../src/delivery/http-post.ts'
import { KEY_LOG } from '../../src/keyserver/kept-log.ts'
import { WitnessLink } from '../../src/keyserver/witness-link.ts'
import { type WitnessEvent, WitnessRounds, type WitnessTimes } from '../../src/keyserver/witness-rounds.ts'
import { parseAddCheckpoint } from '../../src/log/add-checkpoint.ts'
import { type LogHead, openCheckpoint, signCheckpoint } from '../../src/log/checkpoint.ts'
import { verifyConsistency } from '../../src/log/consistency.ts'
import { cosignatureLine, cosignedAtSeconds, witnessKeyFromSeed } from '../../src/log/cosignature.ts'
import { EMPTY_ROOT } from '../../src/log/hash.ts'
import { readNote, type SignerKey, signerKeyFromSeed } from '../../src/log/note.ts'
import type { QuorumMember, Witness } from '../../src/log/policy.ts'
import { NaiveTree, naiveLeafHash } from '../support/naive-tree.ts'

const SIGNER = signerKeyFromSeed('log.example', new Uint8Array(32).fill(9))
const tree = new NaiveTree(Array.from({ length: 64 }, (_, index) => naiveLeafHash(Uint8Array.of(index))))
const NOW_MS = 1_700_000_000_000

function deferred(): { readonly promise: Promise<void>; readonly resolve: () => void } {
  let resolve = () => {}
  const promise = new Promise<void>(settle => {
    resolve = settle
  })
  return { promise, resolve }
}

function headOf(treeSize: number): LogHead {
  return { treeSize, checkpoint: signCheckpoint({ treeSize, rootHash: tree.root(0, treeSize) }, SIGNER) }
}

interface Answer {
  readonly status?: number
  readonly body: string
}

/** What a witness answers a checkpoint; a promise holds the answer back. */
type Behaviour = (note: string, oldSize: number, key: SignerKey) => Answer | Promise<Answer>

const cosigns: Behaviour = (note, _, key) => ({
  body: cosignatureLine(readNote(note).text, key, NOW_MS / 1_000),
})

class StandIn {
  readonly key: SignerKey
  readonly witness: Witness & { url: string }
  /** Old size and size of each checkpoint it got. */
  readonly asked: (readonly [number, number])[] = []
  behaviour = cosigns
  underWayMax = 0
  #underWay = 0

  constructor(name: string, number: number, url: string) {
    this.key = witnessKeyFromSeed(`${name}.example`, new Uint8Array(32).fill(number))
    this.witness = { kind: 'witness', name, key: this.key, url }
  }

  async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.underWayMax = Math.max(this.underWayMax, ++this.#underWay)
    let body = ''
    for await (const chunk of request.setEncoding('utf8')) body += chunk
    const { oldSize, proof, note } = parseAddCheckpoint(body)
    const { treeSize, rootHash } = openCheckpoint(note, SIGNER)
    verifyConsistency({
      oldSize,
      oldRoot: oldSize === 0 ? EMPTY_ROOT : tree.root(0, oldSize),
      newSize: treeSize,
      newRoot: rootHash,
      proof,
    })
    this.asked.push([oldSize, treeSize])
    const answer = await this.behaviour(note, oldSize, this.key)
    this.#underWay--
    response.writeHead(answer.status ?? 200).end(answer.body)
  }
}

interface Stage {
  readonly rounds: WitnessRounds
  readonly witnesses: readonly StandIn[]
  readonly shown: LogHead[]
  readonly kept: LogHead[]
  readonly events: WitnessEvent[]
  readonly isLost: () => boolean
  /** Resolves when that size, or a larger one, is shown. */
  until(treeSize: number): Promise<LogHead>
  untilLost: Promise<void>
}

const TIMES: WitnessTimes = {
  answerMs: 400,
  startMs: 400,
  patienceMs: 1,
  backOff: { firstMs: 5, maxMs: 20 },
  heartbeatMs: 60_000,
}

async function stageWith(
  t: Test,
  count: number,
  { threshold = count, times = {} }: { threshold?: number; times?: Partial<WitnessTimes> } = {},
): Promise<Stage> {
  const server = createServer((request, response) => {
    const name = request.url!.split('/')[1]!
    void witnesses.find(({ witness }) => witness.name === name)!.answer(request, response)
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const witnesses = Array.from({ length: count }, (_, at) => new StandIn(`w${at}`, at + 1, `${base}/w${at}`))
  const quorum: QuorumMember = {
    kind: 'group',
    name: 'g',
    threshold,
    members: witnesses.map(({ witness }) => witness),
  }
  const links = witnesses.map(
    ({ witness }) =>
      new WitnessLink(
        witness,
        async (url, body, timeoutMs) =>
          await post({ url, headers: {}, body, timeoutMs, answerBytesMax: 10_240 }),
        tree.readHashes,
        () => performance.now(),
      ),
  )
  const [kept, shown, events]: [LogHead[], LogHead[], WitnessEvent[]] = [[], [], []]
  const lost = deferred()
  const waiting: { treeSize: number; resolve: (head: LogHead) => void }[] = []
  const rounds = new WitnessRounds({
    of: KEY_LOG,
    quorum,
    links,
    keep: async head => void kept.push(head),
    nowMs: () => NOW_MS,
    monotonicMs: () => performance.now(),
    random: Math.random,
    report: event => void events.push(event),
    times: { ...TIMES, ...times },
  })
  rounds.listen({
    onCosigned(head) {
      shown.push(head)
      for (const { treeSize, resolve } of waiting) if (head.treeSize >= treeSize) resolve(head)
    },
    onQuorumLost: lost.resolve,
  })
  t.teardown(() => {
    rounds.close()
    server.close()
    server.closeAllConnections()
  })
  return {
    rounds,
    witnesses,
    shown,
    kept,
    events,
    isLost: () => rounds.isQuorumLost,
    untilLost: lost.promise,
    until: treeSize => new Promise(resolve => waiting.push({ treeSize, resolve })),
  }
}

/** The names of the witnesses whose cosignatures in the note hold. */
function cosignersOf({ checkpoint }: LogHead, witnesses: readonly StandIn[]): string[] {
  const { text, signatures } = readNote(checkpoint)
  return witnesses
    .filter(({ key }) =>
      signatures.some(
        ({ keyId, signature }) =>
          keyId === key.keyId && cosignedAtSeconds(text, key, signature) !== undefined,
      ),
    )
    .map(({ witness }) => witness.name)
}

t.test(
  'a head is shown once the quorum has cosigned it and that is kept; proofs begin where each witness is',
  async t => {
    const { rounds, witnesses, shown, kept, until } = await stageWith(t, 2)
    for (const size of [3, 8, 21]) {
      const done = until(size)
      rounds.submit(headOf(size))
      t.same(cosignersOf(await done, witnesses), ['w0', 'w1'])
      if (size === 8) rounds.submit(headOf(size))
    }
    t.same(witnesses[0]!.asked, [
      [0, 3],
      [3, 8],
      [8, 21],
    ])
    t.same(kept, shown)
  },
)

t.test('one round is under way; heads that arrive during it share the next one', async t => {
  const { rounds, witnesses, shown, until } = await stageWith(t, 1)
  const held = deferred()
  const [witness] = witnesses
  witness!.behaviour = async (...question) => {
    await held.promise
    return cosigns(...question)
  }
  const done = until(30)
  for (let size = 1; size <= 30; size++) rounds.submit(headOf(size))
  held.resolve()
  await done
  t.same(witness!.asked, [
    [0, 1],
    [1, 30],
  ])
  t.equal(witness!.underWayMax, 1)
  t.same(
    shown.map(({ treeSize }) => treeSize),
    [1, 30],
  )
})

t.test('the first quorum wins, and a witness that hangs is asked again only once it has ended', async t => {
  const { rounds, witnesses, until } = await stageWith(t, 3, { threshold: 2, times: { answerMs: 60_000 } })
  const held = deferred()
  witnesses[2]!.behaviour = async (...question) => {
    await held.promise
    return cosigns(...question)
  }
  for (const size of [4, 5, 6, 7]) {
    const done = until(size)
    rounds.submit(headOf(size))
    t.same(cosignersOf(await done, witnesses), ['w0', 'w1'])
  }
  t.same(witnesses[2]!.asked, [[0, 4]])
  held.resolve()
})

const line = (note: string, key: SignerKey, seconds = NOW_MS / 1_000) =>
  cosignatureLine(readNote(note).text, key, seconds)
const FAILURES: readonly (readonly [string, Behaviour, RegExp])[] = [
  ['silent', () => new Promise(() => {}), /no answer|timeout/],
  ['of another status', () => ({ status: 500, body: 'oops' }), /status 500/],
  ['that knows no such log', () => ({ status: 404, body: '' }), /status 404/],
  [
    'with a cosignature of another text',
    (_, __, key) => ({ body: cosignatureLine('another\n', key, 1) }),
    /does not verify/,
  ],
  [
    'with the line of another',
    note => ({ body: line(note, witnessKeyFromSeed('x.example', new Uint8Array(32))) }),
    /no cosignature/,
  ],
  ['with no line', () => ({ body: 'thank you\n' }), /signature/],
  [
    'of 11 KiB',
    (note, _, key) => ({
      body: line(note, key) + line(note, witnessKeyFromSeed('x.example', new Uint8Array(32))).repeat(90),
    }),
    /too long/,
  ],
  [
    'that says another size each time',
    (_, old) => ({ status: 409, body: `${old === 1 ? 2 : 1}\n` }),
    /another each time/,
  ],
  ['of status 409 without a size', () => ({ status: 409, body: 'no' }), /without another size/],
]

for (const [what, behaviour, reason] of FAILURES) {
  t.test(`an answer ${what} counts for nothing, and a good one later does`, async t => {
    const { rounds, witnesses, shown, events, until, untilLost, isLost } = await stageWith(t, 2)
    witnesses[1]!.behaviour = behaviour
    const done = until(9)
    rounds.submit(headOf(9))
    await untilLost
    t.same(shown, [])
    t.match(
      events.find(({ event }) => event === 'witness-failed'),
      { witness: 'w1', reason },
    )
    t.equal(rounds.figures.quorumAgeSeconds, Number.POSITIVE_INFINITY)
    t.ok(rounds.figures.failures.get('w1')! > 0)
    witnesses[1]!.behaviour = cosigns
    t.same(cosignersOf(await done, witnesses), ['w0', 'w1'])
    t.equal(isLost(), false)
    t.same(rounds.figures.failing, 0)
  })
}

t.test(
  'a witness that is further back, or is not where it was, gets the proof from where it says',
  async t => {
    const { rounds, witnesses, until } = await stageWith(t, 1)
    const [witness] = witnesses
    let size = 5
    witness!.behaviour = (note, old, key) => {
      if (old !== size) return { status: 409, body: `${size}\n` }
      size = openCheckpoint(note, SIGNER).treeSize
      return cosigns(note, old, key)
    }
    for (const next of [9, 12]) {
      const done = until(next)
      rounds.submit(headOf(next))
      await done
      if (next === 9) size = 2
    }
    t.same(witness!.asked, [
      [0, 9],
      [5, 9],
      [9, 12],
      [2, 12],
    ])
  },
)

t.test('two lines are fine, and the newest of its own counts', async t => {
  const { rounds, witnesses, until } = await stageWith(t, 1)
  const other = witnessKeyFromSeed('x.example', new Uint8Array(32))
  witnesses[0]!.behaviour = (note, _, key) => ({
    body: line(note, other) + line(note, key, 7) + line(note, key, 9),
  })
  const done = until(3)
  rounds.submit(headOf(3))
  t.equal((await done).checkpoint, headOf(3).checkpoint + line(headOf(3).checkpoint, witnesses[0]!.key, 9))
  t.equal(rounds.figures.quorumAgeSeconds, NOW_MS / 1_000 - 9)
})

t.test('a clock an hour ahead counts, and is named once', async t => {
  const { rounds, witnesses, events, until } = await stageWith(t, 1)
  witnesses[0]!.behaviour = (note, _, key) => ({ body: line(note, key, NOW_MS / 1_000 + 3_600) })
  for (const size of [3, 4]) {
    const done = until(size)
    rounds.submit(headOf(size))
    await done
  }
  t.same(events, [{ event: 'witness-clock', witness: 'w0', aheadSeconds: 3_600 }])
  t.equal(rounds.figures.quorumAgeSeconds, -3_600)
})

const CONFLICTS: readonly (readonly [string, Behaviour, RegExp])[] = [
  ['a larger tree', () => ({ status: 409, body: '40\n' }), /has cosigned size 40, and this log has 9/],
  ['another tree', () => ({ status: 422, body: 'no' }), /refuses the proof from size 0 to 9/],
]

for (const [what, behaviour, reason] of CONFLICTS) {
  t.test(`a witness that has cosigned ${what} stops every round`, async t => {
    const { rounds, witnesses, shown, events, untilLost, isLost } = await stageWith(t, 3, { threshold: 3 })
    witnesses[1]!.behaviour = behaviour
    rounds.submit(headOf(9))
    await untilLost
    t.match(
      events.find(({ event }) => event === 'witness-conflict'),
      { witness: 'w1', reason },
    )
    const asked = witnesses[0]!.asked.length
    rounds.submit(headOf(12))
    rounds.beat()
    t.same([shown, isLost(), rounds.figures.hasConflict], [[], true, true])
    t.ok(witnesses[0]!.asked.length <= Math.max(asked, 1), 'no further round')
  })

  t.test(`at the start a witness that has cosigned ${what} is refused aloud`, async t => {
    const { rounds, witnesses } = await stageWith(t, 3, { threshold: 1 })
    witnesses[2]!.behaviour = behaviour
    await t.rejects(rounds.begin(headOf(9)), { code: 'CHECKPOINT_INVALID', message: reason })
  })
}

t.test(
  'at the start all are asked once; without a quorum callers are refused until there is one',
  async t => {
    const { rounds, witnesses, shown, until, isLost } = await stageWith(t, 2)
    await rounds.begin(headOf(9))
    t.same([shown, isLost()], [[], false])
    const done = until(9)
    rounds.submit(headOf(9))
    await done
    t.same(witnesses[0]!.asked, [[0, 9]], 'what was cosigned at the start is shown')

    const other = await stageWith(t, 2)
    other.witnesses[0]!.behaviour = () => ({ status: 503, body: '' })
    await other.rounds.begin(headOf(9))
    t.equal(other.isLost(), true)
    other.witnesses[0]!.behaviour = cosigns
    const found = other.until(9)
    other.rounds.submit(headOf(9))
    await found
    t.equal(other.isLost(), false)
  },
)

t.test('where nothing grows there is a round after each interval, and the note is newer', async t => {
  const { rounds, witnesses, shown, until } = await stageWith(t, 1, { times: { heartbeatMs: 0 } })
  let seconds = NOW_MS / 1_000
  witnesses[0]!.behaviour = (note, _, key) => ({ body: line(note, key, seconds++) })
  // With no interval at all each round is due at once, until it is closed.
  const done = new Promise<void>(resolve => {
    const looking = until(3)
    void looking.then(async () => {
      while (shown.length < 4) await until(3)
      rounds.close()
      resolve()
    })
  })
  rounds.submit(headOf(3))
  await done
  t.same([...new Set(shown.map(({ treeSize }) => treeSize))], [3])
  t.equal(new Set(shown.map(({ checkpoint }) => checkpoint)).size, shown.length)
  t.match(witnesses[0]!.asked.slice(0, 3), [
    [0, 3],
    [3, 3],
    [3, 3],
  ])

  const quiet = await stageWith(t, 1)
  const first = quiet.until(3)
  quiet.rounds.submit(headOf(3))
  await first
  quiet.rounds.beat()
  t.equal(quiet.witnesses[0]!.asked.length, 1, 'before its time there is none')
})
