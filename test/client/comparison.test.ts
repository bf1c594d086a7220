/** Links and codes by which two people make sure that they mean each other. */

import t from 'tap'
import {
  comparisonCode,
  parseLogKeys,
  readShareFragment,
  shareFragment,
  type VerifiedCheckpoint,
  verifyCheckpoint,
} from '../../src/client/client.ts'
import { toBase64 } from '../support/bytes.ts'
import { LyingLog } from '../support/lying-log.ts'

const log = new LyingLog()
log.grow(5)
const { name: origin } = log.signer
const checkpoint = { origin, treeSize: log.size, rootHash: toBase64(log.root()), note: log.note() }
const ann = { userId: 2n ** 53n - 1n, listHash: toBase64(new Uint8Array(32).fill(251)) }
const bob = { userId: 7n, listHash: toBase64(new Uint8Array(32).fill(2)) }

t.test('both people see one code of sixty digits, and a different code for any other list', async t => {
  const code = comparisonCode(ann, bob)
  t.equal(
    code,
    '24228 54693 39596 66578 63496 48550 51315 85840 77969 87783 17802 78431',
    'a value for other programs',
  )
  t.equal(comparisonCode(bob, ann), code)
  const lists = Array.from({ length: 256 }, (_, octet) => {
    const hash = new Uint8Array(32)
    hash[31] = octet
    return comparisonCode(ann, { ...bob, listHash: toBase64(hash) })
  })
  t.equal(new Set(lists).size, 256)
  t.not(comparisonCode(ann, { ...bob, userId: 8n }), code)
  t.throws(() => comparisonCode(ann, { ...bob, listHash: 'AAAA' }), { code: 'MALFORMED' })
})

t.test('a link’s fragment says who it is of, and shows the log to the other person', async t => {
  const fragment = shareFragment(ann, checkpoint)
  t.match(fragment, /^#u=9007199254740991&l=[-\w]{43}&n=[-\w]{144}$/)
  t.same(readShareFragment(fragment, origin), { ...ann, note: checkpoint.note })
  t.same(readShareFragment(shareFragment(bob).slice(1), origin), bob)
})

t.test('a fragment carries the checkpoint of the index, too', async t => {
  const { index } = log
  const note = index.append(log).note()
  const { checkpoint: indexed } = verifyCheckpoint(
    parseLogKeys({ ...log.published, indexVkey: index.vkey }).index!,
    note,
  ) as VerifiedCheckpoint
  const fragment = shareFragment(ann, checkpoint, indexed)
  t.match(fragment, /&n=[-\w]{144}&i=[-\w]{144}$/)
  t.same(readShareFragment(fragment, origin), { ...ann, note: checkpoint.note, indexNote: note })
  t.same(readShareFragment(fragment.replace(/&n=[-\w]+/, ''), origin), { ...ann, indexNote: note })
  t.throws(() => readShareFragment(fragment.slice(0, -4), origin), { code: 'MALFORMED' })
})

t.test('other fragments say nothing, and damaged ones are refused', async t => {
  for (const fragment of ['', '#', '#top', '#a=1&b=2'])
    t.equal(readShareFragment(fragment, origin), undefined)
  const whole = shareFragment(ann, checkpoint)
  const list = whole.slice(whole.indexOf('&l='), whole.indexOf('&n='))
  for (const fragment of [
    '#u=7',
    list,
    `#u=-7${list}`,
    `#u=07${list}`,
    `#u=7${list.slice(0, -1)}`,
    `#u=7${list}&n=!`,
    `#u=${'9'.repeat(400)}${list}`,
    `#u=${2n ** 64n}${list}`,
    whole.slice(0, -4),
  ])
    t.throws(() => readShareFragment(fragment, origin), { code: 'MALFORMED' }, fragment)
})
