/** Names and messages: their kept form, their length, and forbidden characters. */
import fc from 'fast-check'
import t from 'tap'
import {
  displayNameFromEmail,
  normalizeDisplayName,
  normalizeLabel,
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
    '\u200fעלי': 'עלי',
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
    'accents that go': `a${'\u0300'.repeat(390)}`,
    'what is not seen goes': `${'a\u200b'.repeat(50)}`,
    'half of it spaces that go': `${' '.repeat(300)}${'a'.repeat(50)}`,
  }
  for (const [what, text] of Object.entries(taken)) t.ok(normalizeDisplayName(text), what)
  const refused = {
    letters: 'a'.repeat(51),
    'accents apart': 'e\u0301'.repeat(51),
    'beyond 200 bytes': FAMILY.repeat(9),
    'beyond 200 bytes in one character': `a${'\u0903'.repeat(70)}`,
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

t.test('what a reader can not see goes, so that names that look the same are', async t => {
  const hidden = [
    '\u00ad',
    '\u034f',
    '\u061c',
    '\u115f',
    '\u1160',
    '\u17b4',
    '\u180b',
    '\u180e',
    '\u200b',
    '\u200c',
    '\u200d',
    '\u200e',
    '\u200f',
    '\u2060',
    '\u2064',
    '\u206f',
    '\u3164',
    '\ufe00',
    '\ufe0f',
    '\uffa0',
    '\u{1bca0}',
    '\u{1d173}',
    '\u{e0020}',
    '\u{e0041}',
    '\u{e0100}',
  ]
  for (const character of hidden) {
    for (const text of [`Mu${character}m`, `${character}Mum`, `Mum${character}`, `Mum ${character} `])
      t.equal(normalizeDisplayName(text), 'Mum', escape(character))
  }
  t.equal(normalizeDisplayName('e\u034f\u0301'), 'é', 'what then stands together is composed')
  t.equal(normalizeDisplayName('a\u200b \u200b b'), 'a b')
  t.equal(normalizeMessage('I am\u{e0068}\u{e0069} Mum\u200b'), 'I am Mum')
  t.equal(normalizeMessage('\u200b\u{e0041}'), '')
})

t.test('what scripts and emoji need stays', async t => {
  const kept = {
    'Persian, apart': 'می\u200cخواهم',
    'Sinhala, a conjunct': 'ශ්\u200dරී',
    'Malayalam, an old final': 'അവന്\u200d',
    'Bengali, a ya': 'র\u200d্য',
    'Mongolian, a form': '\u182d\u180b\u1822',
    'Mongolian, a final vowel': '\u182d\u180e\u1820',
    'a variant of a Japanese name': '葛\u{e0100}城',
    'a family': FAMILY,
    'a heart on fire': '❤\ufe0f\u200d🔥',
    'a woman with red hair': '👩🏽\u200d🦰',
    'a rainbow flag': '🏳\ufe0f\u200d🌈',
    'a keycap': '1\ufe0f\u20e3',
    'the flag of Scotland': '🏴\u{e0067}\u{e0062}\u{e0073}\u{e0063}\u{e0074}\u{e007f}',
  }
  for (const [what, text] of Object.entries(kept)) t.equal(normalizeDisplayName(text), text, what)
  const cut = {
    'a joiner behind Latin': ['Ann\u200dLee', 'AnnLee'],
    'a joiner at the end': ['می\u200c', 'می'],
    'two joiners': ['م\u200d\u200dن', 'من'],
    'a joiner behind an emoji': ['👩\u200d', '👩'],
    'two selectors': ['❤\ufe0f\ufe0f', '❤\ufe0f'],
    'a selector behind a digit': ['1\ufe0f2', '12'],
    'a flag with a message': ['🏴\u{e0061}\u{e0062}\u{e007f}', '🏴'],
  } as const
  for (const [what, [text, name]] of Object.entries(cut)) t.equal(normalizeDisplayName(text), name, what)
})

t.test('four marks stay over a character', async t => {
  const four = 'o\u0315\u0316\u0317\u0318'.normalize('NFC')
  t.equal(normalizeDisplayName(`${four}${'\u0319'.repeat(60)}`)?.length, 5)
  t.equal(normalizeDisplayName('မြှို့'), 'မြှို့', 'spacing ones are not counted')
  t.equal(normalizeMessage(`Z${'\u0335'.repeat(900)}a`)?.length, 6)
})

t.test('of a label that goes which a name may not have', async t => {
  t.equal(normalizeLabel('Ann’s\u202e phone\u2066 \u200b'), 'Ann’s phone')
  t.equal(normalizeLabel('a\u{10ffff}b\ud800c'), 'abc')
  for (const text of ['', ' ', '\u202e', '\u200b\u3164', '\u2800', '\ud800'])
    t.equal(normalizeLabel(text), undefined)
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
      ...'\u200c\ufe0f\u034f\u09c7\u09be\u09cdরمن1\u20e3葛\u{e0100}\u{e0067}🏴❤\u180b\u1820\u0316\u0903',
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
