import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import {
  addCheckpoint,
  type CheckpointState,
  highestCheckpoint,
  type KnownCheckpoint,
  readCheckpointState,
  writeCheckpointState,
} from '../../scripts/support/checkpoint-state.ts'
import { signCheckpoint } from '../../src/log/checkpoint.ts'
import { signerKeyFromSeed } from '../../src/log/note.ts'
import { toBase64 } from '../support/bytes.ts'

const signer = signerKeyFromSeed('log.example/one', new Uint8Array(32).fill(1))
const reader = { program: 'audit', verifiers: [signer] }

function known(treeSize: number, by = signer): KnownCheckpoint {
  const rootHash = new Uint8Array(32).fill(treeSize)
  const note = signCheckpoint({ treeSize, rootHash }, by)
  return { treeSize, rootHash: toBase64(rootHash), note, verifiedAt: '2026-01-01T00:00:00.000Z' }
}

function stateOf(...checkpoints: KnownCheckpoint[]): CheckpointState {
  return { program: 'audit', origin: signer.name, checkpoints }
}

t.test('a state is read back, and replaced by the next', async t => {
  const file = join(t.testdir(), 'state.json')
  t.equal(readCheckpointState(file, reader), undefined)
  const first = stateOf(known(1))
  writeCheckpointState(file, first)
  t.same(readCheckpointState(file, reader), first)
  const second = addCheckpoint(first, known(2))
  writeCheckpointState(file, second)
  t.same(readCheckpointState(file, reader), second)
  t.equal(highestCheckpoint(second).treeSize, 2)
})

t.test('no draft is left beside the file, and a link stays a link', async t => {
  const folder = t.testdir({ real: {} })
  const link = join(folder, 'state.json')
  writeCheckpointState(join(folder, 'real/state.json'), stateOf(known(1)))
  symlinkSync('real/state.json', link)
  writeCheckpointState(link, stateOf(known(2)))
  t.match(readCheckpointState(join(folder, 'real/state.json'), reader), stateOf(known(2)))
  t.same(readdirSync(folder, { recursive: true }).sort(), ['real', 'real/state.json', 'state.json'])
})

t.test('a file that cannot be replaced stays as it was', async t => {
  const folder = t.testdir()
  const file = join(folder, 'state.json')
  mkdirSync(file)
  t.throws(() => writeCheckpointState(file, stateOf(known(1))))
  t.same(readdirSync(folder), ['state.json'])
  t.throws(() => writeCheckpointState(join(folder, 'nowhere/state.json'), stateOf(known(1))), {
    code: 'ENOENT',
  })
  t.notOk(existsSync(join(folder, 'nowhere')))
})

t.test('a checkpoint of a size that is known takes its place, and the oldest of too many go', async t => {
  const renewed = { ...known(2), verifiedAt: '2026-01-02T00:00:00.000Z' }
  t.same(addCheckpoint(stateOf(known(1), known(2)), renewed), stateOf(known(1), renewed))
  const many = Array.from({ length: 1_000 }, (_, size) => ({ ...known(1), treeSize: size }))
  const { checkpoints } = addCheckpoint(stateOf(...many), { ...known(1), treeSize: 5_000 })
  t.equal(checkpoints.length, 1_000)
  t.equal(checkpoints[0]!.treeSize, 1)
})

t.test('a file that is no use is refused and left as it is', async t => {
  const other = signerKeyFromSeed('log.example/two', new Uint8Array(32).fill(1))
  const imitator = signerKeyFromSeed(signer.name, new Uint8Array(32).fill(2))
  const good = stateOf(known(1), known(2))
  const texts = {
    empty: '',
    'not JSON': '{"program":"audit",',
    'not an object': '[1]',
    null: 'null',
    'no checkpoints': JSON.stringify(stateOf()),
    'a checkpoint without a note': JSON.stringify({
      ...good,
      checkpoints: [{ ...known(1), note: undefined }],
    }),
    'sizes out of order': JSON.stringify(stateOf(known(2), known(1))),
    'another program': JSON.stringify({ ...good, program: 'verify-proof' }),
    'another log': JSON.stringify({ ...good, origin: other.name, checkpoints: [known(2, other)] }),
    'another key': JSON.stringify(stateOf(known(2, imitator))),
    'a size unlike the note': JSON.stringify(stateOf({ ...known(2), treeSize: 3 })),
    'a root unlike the note': JSON.stringify(stateOf({ ...known(2), rootHash: known(1).rootHash })),
  }
  const folder = t.testdir()
  for (const [what, text] of Object.entries(texts)) {
    const file = join(folder, `${what}.json`)
    writeFileSync(file, text)
    t.throws(() => readCheckpointState(file, reader), { name: 'StateFileError' }, what)
    t.equal(readFileSync(file, 'utf8'), text)
  }
  t.throws(() => readCheckpointState(join(folder, 'another log.json'), reader), { message: /is of the log / })
  t.throws(() => readCheckpointState(folder, reader), { name: 'StateFileError' }, 'a folder')
})
