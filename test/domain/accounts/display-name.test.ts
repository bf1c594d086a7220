/** Names and messages: their kept form, their length, and forbidden characters. */
import fc from 'fast-check'
import t from 'tap'
import {
  displayNameFromEmail,
  normalizeDisplayName,
  normalizeMessage,
} from '../../../src/domain/accounts/display-name.ts'
import { checkProperty } from '../../support/property.ts'

const FAMILY = '👨‍👩‍👧‍👦'

t.test('a name is kept in NFC with single spaces', async t => {
  const kept = {
    Ann: 'Ann',
    '  Ann   Lee  ': 'Ann Lee',
    'Ann\u00a0\u3000\u2003Lee\ufeff': 'Ann Lee',
    'Rene\u0301': 'René',
    '\u1112\u1161\u11ab': '한',
    'Nguyễn Văn A': 'Nguyễn Văn A',
    '42:Ann': '42:Ann',
    'O\'Neil <b> "x"': 'O\'Neil <b> "x"',
    علي: 'علي',
    'مى\u200cخواهم': 'مى\u200cخواهم',
    '\u200fעלי': '\u200fעלי',
    '🙂': '🙂',
    '-': '-',
  }
  for (const [text, name] of Object.entries(kept)) t.equal(normalizeDisplayName(text), name, text)
})

t.test('fifty characters are what a person counts as fifty', async t => {
  const taken = {
    letters: 'a'.repeat(50),
    'accents apart': 'e\u0301'.repeat(50),
    'three bytes each': '한'.repeat(50),
    'four bytes each': '🙂'.repeat(50),
    flags: '🇻🇳'.repeat(25),
    families: FAMILY.repeat(8),
    'one with many accents': `a${'\u0300'.repeat(90)}`,
    'half of it spaces that go': `${' '.repeat(300)}${'a'.repeat(50)}`,
  }
  for (const [what, text] of Object.entries(taken)) t.ok(normalizeDisplayName(text), what)
  const refused = {
    letters: 'a'.repeat(51),
    'accents apart': 'e\u0301'.repeat(51),
    'beyond 200 bytes': FAMILY.repeat(9),
    'beyond 200 bytes in one character': `a${'\u0300'.repeat(101)}`,
  }
  for (const [what, text] of Object.entries(refused)) t.equal(normalizeDisplayName(text), undefined, what)
})

t.test(
  'controls, line breaks, turns of direction and code points that are no character are refused',
  async t => {
    const codes = [0, 1, 9, 10, 11, 12, 13, 27, 31, 127, 0x80, 0x85, 0x9f, 0x2028, 0x2029]
    const turns = [0x202a, 0x202b, 0x202c, 0x202d, 0x202e, 0x2066, 0x2067, 0x2068, 0x2069]
    const none = [0x378, 0xfdd0, 0xfffe, 0xffff, 0x1ffff, 0x10ffff, 0xe0080, 0xd800, 0xdbff, 0xdc00, 0xdfff]
    const taken = [...codes, ...turns, ...none].filter(code => {
      const character = String.fromCodePoint(code)
      return [`Ann${character}Lee`, `${character}Ann`, `Ann${character}`].some(text =>
        normalizeDisplayName(text),
      )
    })
    t.same(taken, [])
    t.ok(normalizeDisplayName('\u{1faff}'), 'a place kept for a pictograph')
  },
)

t.test('a name of nothing that can be seen is none', async t => {
  const invisible = [
    '',
    ' ',
    '\u00a0',
    '\u200b',
    '\u200d\u200c',
    '\u2060',
    '\ufeff',
    '\u00ad',
    '\u034f',
    '\u115f',
    '\u1160',
    '\u3164',
    '\uffa0',
    '\u2800',
    '\ufe0f',
    '\u0301',
    '\u{e0041}',
    '\u{e0100}',
    '\u180e',
    '\u200e\u200f',
    ' \u200b \u3164 ',
  ]
  t.same(
    invisible.filter(text => normalizeDisplayName(text) !== undefined),
    [],
  )
})

t.test('hostile lengths are refused at once', async t => {
  const before = process.cpuUsage()
  const hostile = [
    'a'.repeat(10_000_000),
    ' '.repeat(10_000_000),
    `a${'\u0300'.repeat(10_000_000)}`,
    '\ufdfa'.repeat(5_000_000),
    '\n'.repeat(10_000_000),
  ]
  t.ok(
    hostile.every(text => normalizeDisplayName(text) === undefined && normalizeMessage(text) === undefined),
  )
  t.ok(process.cpuUsage(before).user < 1_000_000)
})

t.test('a kept name is within its bounds, and keeping it again changes nothing', async t => {
  const character = fc.oneof(
    fc.constantFrom(
      ...' \u00a0\u3000\t\n\u200b\u0301\u0327aéÅ:\u212b\u1100\u1161\u11a8🙂\u{1f3fd}\u200d🇻\u202e\ud800',
    ),
    fc.string({ unit: 'binary', minLength: 1, maxLength: 2 }),
  )
  const text = fc.array(character, { maxLength: 70 }).map(characters => characters.join(''))
  const segmenter = new Intl.Segmenter('en', { granularity: 'grapheme' })
  checkProperty(
    t,
    [text],
    text => {
      const name = normalizeDisplayName(text)
      if (name === undefined) return true
      const length = [...segmenter.segment(name)].length
      const isBounded = length >= 1 && length <= 50 && Buffer.byteLength(name) <= 200
      return isBounded && normalizeDisplayName(name) === name && name === name.normalize('NFC').trim()
    },
    5_000,
  )
})

t.test('a message may have lines, which become spaces, and may be empty', async t => {
  t.equal(normalizeMessage('Hi Ann,\r\n\r\n\tit is me.\n'), 'Hi Ann, it is me.')
  t.equal(normalizeMessage(''), '')
  t.equal(normalizeMessage(' \n '), '')
  t.equal(normalizeMessage('a'.repeat(200))?.length, 200)
  t.equal(normalizeMessage('a'.repeat(201)), undefined)
  t.ok(normalizeMessage('👍🏽'.repeat(200)))
  t.notOk(normalizeMessage(FAMILY.repeat(100)), 'beyond 1,600 bytes')
  for (const text of ['a\u0000b', 'a\u202eb', 'a\u0085b', 'a\ud800b'])
    t.equal(normalizeMessage(text), undefined)
})

t.test('a user without a name is called by the local part of the address', async t => {
  t.equal(displayNameFromEmail('ann.lee@b.co'), 'ann.lee')
  t.equal(displayNameFromEmail(`${'a'.repeat(64)}@b.co`), 'a'.repeat(50))
  for (const address of ['', '@b.co', 'ann', '\u0000@b.co']) t.equal(displayNameFromEmail(address), 'User')
})
