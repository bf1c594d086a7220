/**
 * What an operator with both secrets, or someone on the way, can answer an app with: each forgery is built and then
 * refused at the check that is meant for it, by the module as Node loads it and as it is bundled for a browser.
 */

import t from 'tap'
import type { KeptCheckpoint, LogClient, LookupClaim, LookupResult } from '../../src/client/client.ts'
import { signNote } from '../../src/log/note.ts'
import { encodeToGroup, generateChallenge, vrfInput } from '../../src/log/vrf.ts'
import { toBase64 } from '../support/bytes.ts'
import { clientBuilds } from '../support/client-builds.ts'
import { type LyingFetch, LyingLog, numberedKey } from '../support/lying-log.ts'

/** Alice is leaf 3, Bob leaf 7; 40 leaves in all. */
function honestLog(): LyingLog {
  const log = new LyingLog()
  log.grow(3)
  log.register(1n, 1n)
  log.grow(7)
  log.register(2n, 1n)
  log.grow(40)
  return log
}

const honest = honestLog()
const ALICE = 3
const BOB = 7
const alice = { userId: 1n, deviceId: 1n, vrfHash: honest.leaf(ALICE).vrfHash }
const bob = { userId: 2n, deviceId: 1n, vrfHash: honest.leaf(BOB).vrfHash }
const aliceKey = honest.leaf(ALICE).publicKey

/** The same secrets and size, but different entries from leaf 20 on. */
function forkedLog(size = 40): LyingLog {
  const forked = honest.fork(20)
  forked.register(66n, 6n)
  forked.grow(size)
  return forked
}

/** A proof that everyone can make for anything where the VRF key is the identity: Gamma = 0, so V = s*H. */
function proofUnderIdentity(input: Uint8Array): Uint8Array {
  const identity = new Uint8Array(32)
  const H = encodeToGroup(identity, input)
  const { BASE, ZERO } = H.constructor as unknown as { BASE: typeof H; ZERO: typeof H }
  const c = generateChallenge(identity, [H, ZERO, BASE, H])
  const proof = new Uint8Array(80)
  proof.set(c, 32)
  proof[48] = 1
  return proof
}

/** A store that reports the value put into it last. */
class WatchedStore {
  kept: KeptCheckpoint | undefined

  get(): KeptCheckpoint | undefined {
    return this.kept
  }

  put(checkpoint: KeptCheckpoint): void {
    this.kept = JSON.parse(JSON.stringify(checkpoint))
  }
}

const lookupOf = ({ vrfHash }: { readonly vrfHash: string }) => ({
  body: JSON.stringify({ targets: [{ publicKeyHash: vrfHash }] }),
})

const keptNote = ({ kept }: WatchedStore) => kept?.note

for (const [build, client] of await clientBuilds()) {
  const keys = client.parseLogKeys(honest.published)

  function verify(result: LookupResult, claim: LookupClaim = alice) {
    return client.verifyLookup(keys, claim, result)
  }

  function clientOf(fetch: LyingFetch, store = new WatchedStore()): LogClient {
    return new client.LogClient({ ...honest.published, url: 'https://log.example', fetch, store })
  }

  t.test(`${build}: an honest log is believed in everything`, async t => {
    const log = honestLog()
    const store = new WatchedStore()
    const app = clientOf(log.fetch(), store)
    t.match(await app.lookUp({ ...alice, publicKey: aliceKey }), { kind: 'verified', index: ALICE })
    t.match(await app.checkOwnKeys({ ...alice, publicKeys: [aliceKey] }), { kind: 'clean' })
    log.grow(300)
    t.match(await app.refreshCheckpoint(), { kind: 'verified', checkpoint: { treeSize: 300 } })
    t.match(await app.compareWith(log.note(123)), { kind: 'verified' })
    t.equal(keptNote(store), log.note(300))
  })

  t.test(`${build}: another key in the answer is not in the tree`, async t => {
    t.match(verify(honest.result(ALICE, { publicKey: numberedKey(999) })), { check: 'inclusion' })
    t.match(verify(honest.result(ALICE, { publicKey: honest.leaf(BOB).publicKey })), { check: 'inclusion' })
  })

  t.test(`${build}: the entry of another device has no VRF proof for this one`, async t => {
    const { vrfHash, vrfProof } = honest.identity(1n, 1n)
    t.match(verify(honest.result(BOB)), { check: 'vrf' })
    t.match(verify(honest.result(BOB, { vrfHash, vrfProof })), { check: 'inclusion' })
    t.match(verify(honest.result(BOB, { vrfHash })), { check: 'vrf' })
    t.match(verify(honest.result(ALICE, { vrfHash: bob.vrfHash })), { check: 'vrfHash' })
  })

  t.test(`${build}: a VRF proof under another key is refused`, async t => {
    const stranger = new LyingLog({ number: 2 })
    const result = honest.result(ALICE, stranger.identity(1n, 1n))
    t.match(verify(result), { check: 'vrf' })
    const strangers = client.parseLogKeys({
      ...honest.published,
      vrfPublicKey: stranger.published.vrfPublicKey,
    })
    const claim = { userId: 1n, deviceId: 1n }
    t.match(client.verifyLookup(strangers, claim, result), { check: 'inclusion' })
  })

  t.test(`${build}: the identity is no VRF key, neither when pinned nor when used`, async t => {
    const identity = new Uint8Array(32)
    const vrfPublicKey = toBase64(identity)
    t.throws(() => client.parseLogKeys({ ...honest.published, vrfPublicKey }), { code: 'KEY_INVALID' })
    const vrfProof = proofUnderIdentity(vrfInput(1n, 1n))
    const weak = { ...keys, vrfPublicKey: identity }
    t.match(client.verifyLookup(weak, alice, honest.result(ALICE, { vrfProof })), { check: 'vrf' })
  })

  t.test(`${build}: a checkpoint signed again with another root does not hold the entry`, async t => {
    const note = honest.note(40, forkedLog().root())
    t.match(verify(honest.result(ALICE, { note })), { check: 'inclusion' })
  })

  t.test(`${build}: a whole other tree of one size, signed with the right key, is a fork`, async t => {
    const store = new WatchedStore()
    const app = clientOf(honest.fetch(), store)
    await app.refreshCheckpoint()
    const forked = forkedLog()
    const misled = clientOf(forked.fetch(), store)
    const evidence = [honest.note(), forked.note()]
    t.match(await misled.lookUp(alice), { kind: 'refused', check: 'fork', evidence })
    t.match(await misled.checkOwnKeys({ ...alice, publicKeys: [aliceKey] }), { check: 'fork', evidence })
    t.match(await misled.refreshCheckpoint(), { check: 'fork', evidence })
    t.match(await app.compareWith(forked.note()), { check: 'fork', evidence })
    t.equal(keptNote(store), honest.note(), 'the pin stays')
  })

  t.test(`${build}: another origin, or another key for this one, is refused`, async t => {
    const elsewhere = new LyingLog({ origin: 'other.example/kt' })
    const imitator = new LyingLog({ number: 3 })
    const text = honest.note().split('\n\n')[0]!
    const signedForOrigin = signNote(`${text}\n`, [imitator.signer])
    const signedElsewhere = signNote(
      `${elsewhere.note(0).split('\n')[0]}\n40\n${toBase64(honest.root())}\n`,
      [honest.signer],
    )
    t.match(verify(honest.result(ALICE, { note: elsewhere.note(0) })), { check: 'origin' })
    t.match(verify(honest.result(ALICE, { note: signedElsewhere })), { check: 'origin' })
    t.match(verify(honest.result(ALICE, { note: signedForOrigin })), { check: 'signature' })
  })

  t.test(`${build}: a path that is too short or too long leads nowhere`, async t => {
    const path = honest.path(ALICE)
    const wrong = [path.slice(0, -1), path.slice(1), [], [...path, path[0]!], [path[0]!, ...path]]
    for (const path of wrong) t.match(verify(honest.result(ALICE, { path })), { check: 'inclusion' })
    t.match(verify(honest.result(ALICE, { index: 40 })), { check: 'index' })
    t.match(verify(honest.result(ALICE, { index: BOB })), { check: 'inclusion' })
  })

  t.test(
    `${build}: a second key under the own hash is a legal tree, which only its owner can object to`,
    async t => {
      const log = honestLog()
      const foreign = log.register(1n, 1n, numberedKey(666))
      const lookup = await clientOf(log.fetch()).lookUp(alice)
      t.match(lookup, { kind: 'verified', publicKey: foreign.publicKey }, 'a contact cannot tell')
      const owner = clientOf(log.fetch())
      t.match(await owner.lookUp({ ...alice, publicKey: aliceKey }), { kind: 'refused', check: 'publicKey' })
      t.match(await owner.checkOwnKeys({ ...alice, publicKeys: [aliceKey] }), {
        kind: 'alert',
        foreign: [{ index: 40, publicKey: foreign.publicKey }],
        missing: [],
        outdated: [],
      })
    },
  )

  t.test(`${build}: an injected key shows although lookups give the owner the own one`, async t => {
    const log = honestLog()
    log.register(1n, 1n, numberedKey(666))
    const owner = clientOf(
      log.fetch(path => (path === 'api/get-public-keys' ? { results: [log.result(ALICE)] } : undefined)),
    )
    t.match(await owner.checkOwnKeys({ ...alice, publicKeys: [aliceKey] }), {
      kind: 'alert',
      foreign: [{ index: 40 }],
    })
  })

  t.test(`${build}: a history that leaves out or denies what a lookup shows is refused`, async t => {
    const log = honestLog()
    log.register(1n, 1n, numberedKey(666))
    const fetch = log.fetch(path => (path === 'api/get-key-history' ? log.history([ALICE]) : undefined))
    const report = await clientOf(fetch).checkOwnKeys({ ...alice, publicKeys: [aliceKey] })
    t.match(report, { kind: 'refused', check: 'history' })
    const problem = JSON.stringify({ code: 'UNKNOWN_PUBLIC_KEY_HASH', status: 404 })
    const denial = log.fetch(path =>
      path === 'api/get-key-history' ? new Response(problem, { status: 404 }) : undefined,
    )
    t.match(await clientOf(denial).checkOwnKeys({ ...alice, publicKeys: [aliceKey] }), {
      kind: 'refused',
      check: 'history',
      detail: /no history leaves out leaf 40/,
    })
  })

  t.test(`${build}: an own key that was never logged, or that the server denies, is missing`, async t => {
    const publicKeys = [aliceKey, numberedKey(777)]
    t.match(await clientOf(honest.fetch()).checkOwnKeys({ ...alice, publicKeys }), {
      kind: 'alert',
      foreign: [],
      missing: [numberedKey(777)],
      outdated: [{ index: ALICE }],
    })
    const problem = { code: 'UNKNOWN_PUBLIC_KEY_HASH', status: 404 }
    const denied = honest.fetch(() => new Response(JSON.stringify(problem), { status: 404 }))
    t.match(await clientOf(denied).checkOwnKeys({ ...alice, publicKeys }), {
      kind: 'alert',
      missing: publicKeys,
    })
  })

  t.test(`${build}: an old key of one's own that other users get again is outdated`, async t => {
    const log = honestLog()
    const renewed = log.register(1n, 1n)
    const device = { ...alice, publicKeys: [aliceKey, renewed.publicKey] }
    t.match(await clientOf(log.fetch()).checkOwnKeys(device), { kind: 'clean' })
    const oldKeyGiven = log.fetch(path =>
      path === 'api/get-public-keys' ? { results: [log.result(ALICE)] } : undefined,
    )
    t.match(await clientOf(oldKeyGiven).checkOwnKeys(device), { kind: 'alert', outdated: [{ index: ALICE }] })
    log.register(1n, 1n, aliceKey)
    const alert = { kind: 'alert', foreign: [], missing: [], outdated: [{ index: 41, publicKey: aliceKey }] }
    t.match(await clientOf(log.fetch()).checkOwnKeys(device), alert)
  })

  t.test(`${build}: an answer from the beginning of a tree seen before is not used`, async t => {
    const store = new WatchedStore()
    await clientOf(honest.fetch(), store).refreshCheckpoint()
    const old = honest.fork(30).fetch()
    const earlier = clientOf(
      honest.fetch(path =>
        path.startsWith('tile/') ? undefined : old(`https://log.example/${path}`, lookupOf(alice)),
      ),
      store,
    )
    t.match(await earlier.lookUp(alice), { kind: 'unanswered', check: 'stale', evidence: undefined })
    t.match(await earlier.refreshCheckpoint(), { kind: 'unanswered', check: 'stale', evidence: undefined })
    t.equal(keptNote(store), honest.note(), 'the pin stays')
  })

  t.test(`${build}: a stale pin shows a history that was rewritten since`, async t => {
    const store = new WatchedStore()
    await clientOf(honest.fetch(), store).refreshCheckpoint()
    const rewritten = forkedLog(500)
    const evidence = [honest.note(), rewritten.note()]
    t.match(await clientOf(rewritten.fetch(), store).lookUp(alice), { check: 'consistency', evidence })
    t.equal(keptNote(store), honest.note(), 'the pin stays')
    const grown = honestLog()
    grown.grow(500)
    t.match(await clientOf(grown.fetch(), store).lookUp(alice), { kind: 'verified' })
    t.equal(keptNote(store), grown.note(), 'while growth moves it')
  })

  t.test(
    `${build}: a larger tree whose tiles the server does not have, or makes up, is not taken`,
    async t => {
      const store = new WatchedStore()
      await clientOf(honest.fetch(), store).refreshCheckpoint()
      const rewritten = forkedLog(500)
      const grown = honestLog()
      grown.grow(500)
      const withTilesOf = (log: LyingLog | undefined) =>
        rewritten.fetch(path => {
          if (!path.startsWith('tile/')) return undefined
          return log?.fetch()(`https://log.example/${path}`) ?? new Response('not there', { status: 404 })
        })
      const answer = (log?: LyingLog) => clientOf(withTilesOf(log), store).refreshCheckpoint()
      const open = { kind: 'unanswered', check: 'tiles', evidence: undefined }
      t.match(await answer(), open)
      t.match(await answer(grown), open)
      t.equal(keptNote(store), honest.note(), 'the pin stays')
      t.same(store.kept?.pending, [rewritten.note()], 'what the log signed is kept, once')
    },
  )

  t.test(`${build}: a fork that is never answered for is proven once the log has grown past it`, async t => {
    const store = new WatchedStore()
    await clientOf(honest.fetch(), store).refreshCheckpoint()
    const rewritten = forkedLog(300)
    const busy = (log: LyingLog) =>
      log.fetch(path => (path.startsWith('tile/') ? new Response('busy', { status: 503 }) : undefined))
    const open = { kind: 'unanswered', check: 'tiles' }
    for (const ask of ['refreshCheckpoint', 'lookUp'] as const) {
      const answer = await clientOf(busy(rewritten), store)[ask](alice)
      t.match(answer, open)
    }
    t.match(await clientOf(busy(honest)).compareWith(rewritten.note()), { kind: 'verified' }, 'a first pin')
    t.match(await clientOf(busy(honest), store).compareWith(rewritten.note()), open)
    t.same(store.kept?.pending, [rewritten.note()])

    const grown = honestLog()
    grown.grow(500)
    const caught = await clientOf(grown.fetch(), store).lookUp(alice)
    t.match(caught, { kind: 'refused', check: 'consistency', evidence: [rewritten.note(), grown.note()] })
    t.match(await clientOf(grown.fetch(), store).lookUp(alice), { kind: 'refused' }, 'it is not forgotten')
  })

  t.test(`${build}: tiles that were late prove nothing against an honest log`, async t => {
    const store = new WatchedStore()
    await clientOf(honest.fetch(), store).refreshCheckpoint()
    const grown = honestLog()
    grown.grow(300)
    const late = grown.fetch(path => {
      if (path.startsWith('tile/')) throw new Error('no network')
      return undefined
    })
    t.match(await clientOf(late, store).lookUp(alice), { kind: 'unanswered' })
    t.same(store.kept?.pending, [grown.note()])
    t.match(await clientOf(grown.fetch(), store).lookUp(alice), { kind: 'verified' })
    t.same([keptNote(store), store.kept?.pending], [grown.note(), undefined])
  })

  t.test(`${build}: a checkpoint that the log did not sign is not taken from the store`, async t => {
    const store = new WatchedStore()
    await clientOf(honest.fetch(), store).refreshCheckpoint()
    const good = store.kept!
    const forked = forkedLog()
    for (const planted of [
      { ...good, treeSize: 1_000_000 },
      { ...good, rootHash: toBase64(forked.root()) },
      { ...good, note: signNote('log.example/kt\n40\nAAAA\n', [new LyingLog({ number: 2 }).signer]) },
      { ...good, note: 'planted' },
    ]) {
      store.kept = planted
      await t.rejects(clientOf(honest.fetch(), store).lookUp(alice), { code: 'MALFORMED' }, planted.note)
    }
    store.kept = { ...good, pending: ['planted', 5 as unknown as string] }
    t.match(await clientOf(honest.fetch(), store).lookUp(alice), { kind: 'verified' }, 'nor is evidence')
    t.equal(store.kept.pending, undefined)
  })

  t.test(
    `${build}: of many VRF proofs for one hash, one is verified and none of another hash passes`,
    async t => {
      const log = honestLog()
      for (let at = 0; at < 50; at++) log.register(1n, 1n)
      const indexes = log.indexesOf(alice.vrfHash)
      const history = log.history(indexes)
      // Another c and s under the same Gamma: the hash is the same whether they hold or not.
      const proofOf = (at: number, changedAt: number) => {
        const vrfProof = Uint8Array.from(log.leaf(indexes[at]!).vrfProof)
        vrfProof[changedAt]! ^= at + 1
        return { ...history.entries[at]!, proof: log.result(indexes[at]!, { vrfProof }).proof }
      }
      const verify = (entries: typeof history.entries) =>
        client.verifyKeyHistory(keys, alice, { ...history, entries })
      const different = history.entries.map((entry, at) => (at === 0 ? entry : proofOf(at, 40)))
      t.match(verify(different), { kind: 'verified' })
      t.match(verify(different.with(0, proofOf(0, 40))), { check: 'vrf' }, 'the first has to hold')
      t.match(verify(different.with(30, proofOf(30, 5))), { check: 'vrf' }, 'another Gamma is another hash')
    },
  )

  t.test(`${build}: two apps that were shown different trees find out by comparing notes`, async t => {
    const store = new WatchedStore()
    const mine = clientOf(honest.fetch(), store)
    const theirs = clientOf(forkedLog(45).fetch())
    await mine.lookUp(alice)
    await theirs.lookUp(alice)
    const note = (await theirs.highestCheckpoint())!.note
    for (const other of [undefined, null, 5, {}, '']) {
      t.match(await mine.compareWith(other as string), { kind: 'refused' }, String(other))
    }
    const verdict = await mine.compareWith(note)
    t.match(verdict, { kind: 'unanswered', check: 'tiles' }, 'no server has tiles of both')
    const grown = honestLog()
    grown.grow(50)
    t.match(await clientOf(grown.fetch(), store).refreshCheckpoint(), {
      kind: 'refused',
      check: 'consistency',
      evidence: [note, grown.note()],
    })
    const checks = client.compareCheckpoints(
      (await mine.highestCheckpoint())!,
      (await theirs.highestCheckpoint())!,
    )
    t.match(checks, { kind: 'larger' })
  })

  t.test(`${build}: results in another order, too few or too many are refused`, async t => {
    const [a, b] = [honest.result(ALICE), honest.result(BOB)]
    const answers: [unknown, string[]][] = [
      [{ results: [b, a] }, ['vrf', 'vrf']],
      [{ results: [a] }, ['proof', 'proof']],
      [{ results: [a, b, a] }, ['proof', 'proof']],
      [{ results: {} }, ['proof', 'proof']],
      [{}, ['proof', 'proof']],
      [null, ['proof', 'proof']],
      [{ results: [null, b] }, ['proof', 'verified']],
    ]
    for (const [answer, expected] of answers) {
      const json = JSON.stringify(answer)
      const outcomes = await clientOf(honest.fetch(() => json)).lookUpAll([alice, bob])
      t.same(
        outcomes.map(outcome => (outcome.kind === 'refused' ? outcome.check : outcome.kind)),
        expected,
        json.slice(0, 40),
      )
    }
  })
}
