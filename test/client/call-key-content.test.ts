/** A call's key carries its sender's checkpoint: two people who were shown two trees find it out by calling. */

import t from 'tap'
import { type Fetch, LogClient, MemoryStore, packCallKey, readCallKey } from '../../src/client/client.ts'
import { fromUtf8, toBase64, toHex } from '../support/bytes.ts'
import { LyingLog } from '../support/lying-log.ts'
import { readVectors } from '../support/vectors.ts'

const log = new LyingLog()
log.grow(40)
const { name: origin } = log.signer
const callKey = Uint8Array.from({ length: 32 }, (_, at) => at)
const content = { callKey, setHash: callKey.map(octet => 255 - octet), sealedAtMs: 1_795_000_000_000 }

function appOf(of: LyingLog): LogClient {
  const url = 'https://log.example'
  return new LogClient({ ...log.published, url, store: new MemoryStore(), fetch: of.fetch() as Fetch })
}

async function sealedBy(app: LogClient): Promise<Uint8Array> {
  await app.refreshCheckpoint()
  return packCallKey(content, await app.highestCheckpoint())
}

t.test('key, set, time and checkpoint come out as they went in, in 180 octets', async t => {
  const sealed = await sealedBy(appOf(log))
  const vector = readVectors<Record<string, string>>('call-key-checkpoint')
  t.equal(toHex(sealed), vector.opened_hex, 'as the vector for other programs has it')
  t.same([log.published.vkey, log.note(), toHex(callKey)], [vector.vkey, vector.note, vector.call_key_hex])
  t.same([toHex(content.setHash), content.sealedAtMs], [vector.set_hash_hex, vector.sealed_at_ms])
  t.equal(sealed.length, 180)
  t.same(readCallKey(sealed, origin), { ...content, note: log.note() })
})

t.test('a note with cosignatures travels with the log’s own signature', async t => {
  const app = appOf(log)
  await app.refreshCheckpoint()
  const checkpoint = (await app.highestCheckpoint())!
  const cosigned = `${checkpoint.note}— witness.example ${toBase64(new Uint8Array(76))}\n`
  t.equal(readCallKey(packCallKey(content, { ...checkpoint, note: cosigned }), origin).note, log.note())
  const unsigned = { ...checkpoint, note: checkpoint.note.split('\n—')[0]! }
  t.same(packCallKey(content, unsigned), packCallKey(content))
})

t.test('a key comes without a checkpoint too, and in no other form', async t => {
  t.same(readCallKey(packCallKey(content), origin), content)
  const sealed = await sealedBy(appOf(log))
  const lengths = [0, 31, 32, 71, 73, 140, 179]
  for (const length of lengths)
    t.throws(() => readCallKey(sealed.slice(0, length), origin), { code: 'MALFORMED' }, `${length} octets`)
  t.throws(() => readCallKey(Uint8Array.of(...sealed, 0), origin), { code: 'MALFORMED' })
  const late = sealed.slice()
  late[64] = 1
  t.throws(() => readCallKey(late, origin), { code: 'MALFORMED' }, 'a time that no number of milliseconds is')
  for (const part of ['callKey', 'setHash'])
    t.throws(() => packCallKey({ ...content, [part]: fromUtf8('short') }), { code: 'MALFORMED' })
})

t.test('another tree that the log has signed is proof; one that it has not is nothing', async t => {
  const fork = log.fork(39)
  fork.grow(39)
  fork.register(9n, 9n)
  const annsLog = log.fork()
  const ann = appOf(annsLog)
  await ann.refreshCheckpoint()
  const { note } = readCallKey(await sealedBy(appOf(fork)), origin)
  t.match(await ann.compareWith(note!), {
    kind: 'refused',
    check: 'fork',
    evidence: [log.note(), fork.note()],
  })

  const larger = log.fork(39)
  larger.register(9n, 9n)
  larger.grow(300)
  const other = readCallKey(await sealedBy(appOf(larger)), origin)
  t.match(await ann.compareWith(other.note!), { kind: 'unanswered', check: 'tiles' }, 'no tiles of both')
  annsLog.grow(301)
  const evidence = [other.note, annsLog.note()]
  t.match(await ann.refreshCheckpoint(), { kind: 'refused', check: 'consistency', evidence })

  const forged = await sealedBy(appOf(log))
  forged[90]! ^= 1
  t.match(await ann.compareWith(readCallKey(forged, origin).note!), { kind: 'refused', check: 'signature' })
})
