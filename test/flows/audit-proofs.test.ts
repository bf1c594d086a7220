/** The auditor checks proofs from the API. */

import { writeFileSync } from 'node:fs'
import t, { type Test } from 'tap'
import { signCheckpoint } from '../../src/log/checkpoint.ts'
import { formatEntry } from '../../src/log/entry.ts'
import { proveInclusion } from '../../src/log/inclusion.ts'
import { signerKeyFromSeed } from '../../src/log/note.ts'
import { formatProof } from '../../src/log/proof.ts'
import { generateVrfSecret, proveVrf, vrfInput, vrfPublicKey } from '../../src/log/vrf.ts'
import { vrfHashFromProof } from '../../src/log/vrf-verify.ts'
import { audit, newStateFile, openAuditor } from '../support/audit.ts'
import { NaiveTree, naiveLeafHash } from '../support/naive-tree.ts'
import { entriesOf, entryOf, logFilesOf, SIGNER, serveFiles } from '../support/served-log.ts'

const SECRET = generateVrfSecret(new Uint8Array(64).fill(5))
const VRF_KEY = vrfPublicKey(SECRET)

interface Claim {
  userID: string | number
  deviceID: string | number
  publicKey: string
  vrfHash: string
  proof: string
}

/** The key of device 1 of user 7, which is entry 300 of every log here. */
const INDEX = 300
const PUBLIC_KEY = Buffer.alloc(32, 7).toString('base64')
const VRF_PROOF = proveVrf(SECRET, vrfInput(7n, 1n))
const ENTRY = Uint8Array.from(formatEntry(vrfHashFromProof(VRF_PROOF), PUBLIC_KEY))

function logOf(size: number, forkedAt = size): Uint8Array[] {
  return entriesOf(size, forkedAt).with(INDEX, ENTRY)
}

/** The API's answer for a log of these entries. */
function claimIn(entries: readonly Uint8Array[], signer = SIGNER): Claim {
  const tree = new NaiveTree(entries.map(naiveLeafHash))
  const treeSize = entries.length
  const checkpoint = signCheckpoint({ treeSize, rootHash: tree.root(0, treeSize) }, signer)
  const path = proveInclusion(INDEX, treeSize, tree.readHashes)
  return {
    userID: '7',
    deviceID: '1',
    publicKey: PUBLIC_KEY,
    vrfHash: Buffer.from(vrfHashFromProof(VRF_PROOF)).toString('base64'),
    proof: formatProof({ extra: VRF_PROOF, index: INDEX, path, checkpoint }),
  }
}

/** Audits the log of 400 entries with a file of these lines. */
async function auditProofs(t: Test, lines: readonly (Claim | string)[], logSize = 400) {
  const server = await serveFiles(t, logFilesOf(logOf(logSize)))
  const proofsFile = `${newStateFile(t)}.proofs`
  writeFileSync(
    proofsFile,
    lines.map(line => `${typeof line === 'string' ? line : JSON.stringify(line)}\n`).join(''),
  )
  return audit({ url: server.url, stateFile: newStateFile(t), proofsFile, vrfPublicKey: VRF_KEY })
}

t.test('proofs of this and of earlier sizes hold, ids as texts or numbers', async t => {
  const now = claimIn(logOf(400))
  const earlier = claimIn(logOf(301))
  const { verdict, of } = await auditProofs(t, [now, earlier, { ...now, userID: 7, deviceID: 1 }])
  t.equal(verdict, 0)
  t.match(of('proofs'), { ok: true, detail: '3 proofs hold' })
})

t.test('a proof of a size that the log showed a moment later holds, by the tiles of that size', async t => {
  const server = await serveFiles(t, logFilesOf(logOf(400)))
  for (const [path, bytes] of logFilesOf(logOf(500))) if (path !== 'checkpoint') server.files.set(path, bytes)
  const proofsFile = `${newStateFile(t)}.proofs`
  writeFileSync(proofsFile, JSON.stringify(claimIn(logOf(500))))
  const settings = { url: server.url, proofsFile, vrfPublicKey: VRF_KEY }
  t.equal((await audit({ ...settings, stateFile: newStateFile(t) })).verdict, 0)
  for (const path of server.files.keys()) if (path.startsWith('tile/0/001')) server.files.delete(path)
  t.equal((await audit({ ...settings, stateFile: newStateFile(t) })).verdict, 3, 'not without them')
})

const claim = claimIn(logOf(400))
const otherLogKey = signerKeyFromSeed(SIGNER.name, new Uint8Array(32).fill(9))
const failing: Record<string, [Claim, RegExp]> = {
  'another user': [{ ...claim, userID: '8' }, /vrf proof does not hold/],
  'another device': [{ ...claim, deviceID: 2 }, /vrf proof does not hold/],
  'another key': [
    { ...claim, publicKey: Buffer.alloc(32, 8).toString('base64') },
    /^inclusion: leaf 300 does not lead/,
  ],
  'a key that is not canonical base64': [{ ...claim, publicKey: 'AB==' }, /^proof: publicKey is not base64/],
  'another hash': [{ ...claim, vrfHash: Buffer.alloc(64).toString('base64') }, /^vrfHash: .*another hash/],
  'a hash that is not canonical base64': [{ ...claim, vrfHash: 'AB==' }, /not canonical/],
  'a changed VRF proof': [
    { ...claim, proof: claim.proof.replace(/(?<=extra .{80})./, letter => (letter === 'A' ? 'B' : 'A')) },
    /vrf proof/,
  ],
  'no VRF proof': [
    { ...claim, proof: claim.proof.replace(/extra .*\n/, '') },
    /^proof: .*lacks its VRF proof/,
  ],
  'another index': [
    { ...claim, proof: claim.proof.replace('index 300', 'index 301') },
    /^inclusion: leaf 301/,
  ],
  'an index beyond the tree': [
    { ...claim, proof: claim.proof.replace('index 300', 'index 400') },
    /^index: leaf 400/,
  ],
  'a path that is too short': [
    { ...claim, proof: claim.proof.replace(/(?<=index 300\n).*\n/, '') },
    /malformed/,
  ],
  'a signature of another key': [claimIn(logOf(400), otherLogKey), /^signature: /],
  'a proof that is no proof': [{ ...claim, proof: 'hello' }, /proof has no blank line/],
  'an entry that is not in the tree': [
    claimIn(logOf(400).with(INDEX, entryOf(INDEX))),
    /^inclusion: leaf 300 does not lead/,
  ],
}
for (const [what, [forged, detail]] of Object.entries(failing)) {
  t.test(`${what}: proofs, with its line`, async t => {
    const { verdict, failures, of } = await auditProofs(t, [claim, forged])
    t.equal(verdict, 3)
    t.strictSame(failures, ['proofs null'])
    t.match(of('proofs'), { line: 2, detail })
    t.equal(of('proofs')?.index, /^index (.*)$/m.exec(forged.proof)?.[1])
  })
}

t.test('a proof from a tree that others are not shown: proofs, with both notes', async t => {
  const sizes = [400, 350, 500]
  for (const size of sizes) {
    const forged = claimIn(logOf(size, 301))
    const files = logFilesOf(logOf(400))
    const server = await serveFiles(t, files)
    // The forger also serves the tiles of the larger tree.
    if (size > 400)
      for (const [path, bytes] of logFilesOf(logOf(size, 301))) if (!files.has(path)) files.set(path, bytes)
    const proofsFile = `${newStateFile(t)}.proofs`
    writeFileSync(proofsFile, JSON.stringify(forged))
    const outcome = await audit({
      url: server.url,
      stateFile: newStateFile(t),
      proofsFile,
      vrfPublicKey: VRF_KEY,
    })
    t.equal(outcome.verdict, 1, `size ${size}`)
    t.match(outcome.of('proofs'), { ok: false, line: 1, notes: [String, String] }, `size ${size}`)
  }
})

t.test('lines that do not parse: 2, and the rest are checked', async t => {
  const lines = [
    'hello',
    '[]',
    'null',
    JSON.stringify({ ...claim, userID: undefined }),
    JSON.stringify({ ...claim, userID: '07' }),
    JSON.stringify({ ...claim, userID: 2 ** 53 }),
    JSON.stringify({ ...claim, userID: '18446744073709551616' }),
    JSON.stringify({ ...claim, deviceID: -1 }),
    JSON.stringify({ ...claim, proof: 5 }),
  ]
  for (const line of lines) {
    const { verdict, failures } = await auditProofs(t, [line])
    t.strictSame([line, verdict, ...failures], [line, 2, 'proofs null'])
  }
  const { verdict, failures } = await auditProofs(t, ['hello', { ...claim, userID: '8' }])
  t.strictSame([verdict, ...failures], [3, 'proofs null', 'proofs null'])
})

t.test('who follows a log checks the proofs once they hold, and until then', async t => {
  const server = await serveFiles(t, logFilesOf(logOf(400)))
  const stateFile = newStateFile(t)
  const proofsFile = `${stateFile}.proofs`
  writeFileSync(proofsFile, 'hello')
  const { auditor, findings } = openAuditor({ url: server.url, stateFile, proofsFile, vrfPublicKey: VRF_KEY })
  t.teardown(() => auditor.close())
  const verdicts = [await auditor.run()]
  writeFileSync(proofsFile, JSON.stringify(claim))
  for (let run = 0; run < 3; run++) verdicts.push(await auditor.run())
  t.strictSame(verdicts, [2, 0, 0, 0])
  t.strictSame(
    findings.filter(({ check }) => check === 'proofs').map(({ ok }) => ok),
    [null, true],
  )
})

t.test('a file that is not there: 2', async t => {
  const server = await serveFiles(t, logFilesOf(logOf(400)))
  const proofsFile = newStateFile(t)
  const outcome = await audit({
    url: server.url,
    stateFile: newStateFile(t),
    proofsFile,
    vrfPublicKey: VRF_KEY,
  })
  t.strictSame([outcome.verdict, ...outcome.failures], [2, 'proofs null'])
})
