/** Text to values on both paths: the plain parser, and the lossless one that a long number calls for. */
import fc from 'fast-check'
import t from 'tap'
import { parseJson } from '../../src/schema/lossless.ts'
import { fromUtf8 } from '../support/bytes.ts'
import { codeOf } from '../support/codes.ts'
import { checkProperty } from '../support/property.ts'

function parse(text: string): unknown {
  return parseJson(fromUtf8(text))
}

/** The same text on the other path: beside a number that doubles can't hold. */
function besideLongNumber(text: string): string {
  return `[18446744073709551615,${text}]`
}

/** The plain parser's value of a long integer. */
function asDouble(_: string, value: unknown): unknown {
  return typeof value === 'bigint' ? Number(value) : value
}

function codesOf(text: string): readonly string[] {
  return [text, besideLongNumber(text)].map(each => codeOf(() => parse(each)))
}

t.test('an integer that a double can not hold is a bigint, every other number is a number', async t => {
  t.equal(parse('9007199254740991'), 9007199254740991)
  t.equal(parse('9007199254740992'), 9007199254740992n)
  t.equal(parse('9007199254740993'), 9007199254740993n)
  t.equal(parse('18446744073709551615'), 18446744073709551615n)
  t.equal(parse('1234567890123456'), 1234567890123456)
  t.equal(parse('-9007199254740993'), -9007199254740992, 'no id is negative')
  t.equal(parse('1.0000000000000000'), 1)
  t.equal(parse('9007199254740993.5'), 9007199254740994)
  t.equal(parse('1234567890123456e3'), 1234567890123456000)
  t.equal(parse('100000000000000000000'), 1e20, 'no id has 21 digits')
})

t.test('both paths read the same values', async t => {
  checkProperty(t, [fc.json({ maxDepth: 5 })], text => {
    const [, value] = parse(besideLongNumber(text)) as unknown[]
    return JSON.stringify(value, asDouble) === JSON.stringify(JSON.parse(text))
  })
})

t.test('both paths refuse the same texts', async t => {
  // One edit in a text that was JSON.
  const edit = fc.record({
    text: fc.json({ maxDepth: 4 }),
    at: fc.nat(),
    by: fc.constantFrom(
      '',
      '"',
      '\\',
      ',',
      ':',
      '{',
      '}',
      '[',
      ']',
      '0',
      '-',
      '.',
      'e',
      'n',
      '\t',
      '\u00a0',
      '\ufeff',
    ),
  })
  checkProperty(
    t,
    [edit],
    ({ text, at, by }) => {
      const cut = at % (text.length + 1)
      const edited = text.slice(0, cut) + by + text.slice(cut + 1)
      if (edited.includes('],[') || edited.trim() === '') return true
      const [plain, lossless] = codesOf(`[${edited}]`)
      return plain === lossless
    },
    3_000,
  )
})

t.test('digits in strings call for nothing and change nothing', async t => {
  const text = '{"publicKey":"18446744073709551615","n":1}'
  t.same(parse(text), { publicKey: '18446744073709551615', n: 1 })
  t.same(parse(`{"a":"x\\"","b":18446744073709551615,"c":"18446744073709551615"}`), {
    a: 'x"',
    b: 18446744073709551615n,
    c: '18446744073709551615',
  })
})

t.test(
  'a member given twice is refused at any depth, also with equal values and in other spellings',
  async t => {
    const bad = [
      '{"a":1,"a":2}',
      '{"a":1,"a":1}',
      '{"a":1,"b":2,"a":{"c":3}}',
      '{"a":{"c":3,"d":4},"a":1}',
      '[[{"x":{"a":[],"a":[]}}]]',
      '{"a":1,"\\u0061":1}',
      '{"":1,"":1}',
      '{"__proto__":1,"__proto__":1}',
      '{"__proto__":{"a":1},"__proto__":{"a":1}}',
      '{"1":1,"1":1}',
      '{"toString":1,"toString":2}',
    ]
    const codes = bad.flatMap(codesOf)
    t.same(
      codes.filter(code => code !== 'MALFORMED_JSON'),
      [],
    )
  },
)

t.test('members that only look alike are different', async t => {
  const good = [
    '{"a":1,"A":1}',
    '{"a":{"a":{"a":1}}}',
    '[{"a":1},{"a":1}]',
    '{"a:b":1,"a":":::"}',
    '{"a\\":":1,"a\\\\":2}',
    '{"\u00e9":1,"e\u0301":2}',
    '{"1":1,"01":2}',
    '{"__proto__":1,"constructor":2,"toString":3}',
    '{"\\u0000":1,"":2}',
  ]
  t.same(
    good.flatMap(codesOf).filter(code => code !== 'none'),
    [],
  )
})

t.test('random objects are refused exactly when a name comes twice', async t => {
  const name = fc.constantFrom('a', 'b', ':', '"', '\\', '__proto__', '1', 'é')
  const member = fc.tuple(name, fc.json({ maxDepth: 2 }))
  checkProperty(t, [fc.array(member, { maxLength: 5 }), fc.boolean()], (members, isEscaped) => {
    const spelled = (name: string) =>
      isEscaped
        ? `"\\u${name.charCodeAt(0).toString(16).padStart(4, '0')}${JSON.stringify(name.slice(1)).slice(1)}`
        : JSON.stringify(name)
    const text = `{${members.map(([name, value]) => `${spelled(name)}:${value}`).join()}}`
    const isTwice = new Set(members.map(([name]) => name)).size < members.length
    return codesOf(text).every(code => code === (isTwice ? 'MALFORMED_JSON' : 'none'))
  })
})

t.test('a name that is escaped is itself, whatever names were read before it', async t => {
  for (let times = 0; times < 3; times++) {
    t.strictSame(parse('{"a":1,"\\\\":2}'), { a: 1, '\\': 2 })
    t.strictSame(parse('{"a":1,"\\u0062":2}'), { a: 1, b: 2 })
    t.strictSame(parse('{"a":"\\"", "\\u0062\\n" : {"c\\\\":"\\\\"}}'), { a: '"', 'b\n': { 'c\\': '\\' } })
  }
})

t.test('a member called __proto__ is a member and changes no object, on both paths', async t => {
  const text = '{"__proto__":{"isAdmin":true}}'
  for (const value of [parse(text), (parse(besideLongNumber(text)) as object[])[1]]) {
    t.ok(Object.hasOwn(value as object, '__proto__'))
    t.equal(Object.getPrototypeOf(value), Object.prototype)
  }
  t.equal(({} as { isAdmin?: boolean }).isAdmin, undefined)
})

t.test('half a surrogate pair is refused, a whole one is a character', async t => {
  const bad = [
    '"\\ud800"',
    '"\\udc00"',
    '"a\\uDBFFb"',
    '"\\udc00\\ud800"',
    '"\\ud83d\\\\ude00"',
    '{"\\ud800":1}',
  ]
  t.same(
    bad.flatMap(codesOf).filter(code => code !== 'MALFORMED_JSON'),
    [],
  )
  const good = ['"\\ud83d\\ude42"', '"\\\\ud800"', '"\\\\\\\\ud800"', '"\\u0000"', '"🙂"']
  t.same(
    good.flatMap(codesOf).filter(code => code !== 'none'),
    [],
  )
  t.equal(parse('"\\ud83d\\ude42"'), '🙂')
})

t.test('a byte order mark is not JSON on either path', async t => {
  t.same(codesOf('\ufeff{}'), ['MALFORMED_JSON', 'MALFORMED_JSON'])
  t.equal(
    codeOf(() => parse('\ufeff18446744073709551615')),
    'MALFORMED_JSON',
  )
})

t.test('hostile texts of half a megabyte are judged in linear time', async t => {
  const size = 512 * 1024
  const texts = [
    `"${'\\\\'.repeat(size / 2)}"`,
    `"${'\\"'.repeat(size / 2)}"`,
    `"${'\\'.repeat(size)}`,
    '9'.repeat(size),
    `[${'1,'.repeat(size / 2)}1]`,
    `18446744073709551615${' '.repeat(size)}x`,
    ':'.repeat(size),
  ]
  const before = process.cpuUsage()
  for (const text of texts) codeOf(() => parse(text))
  t.ok(process.cpuUsage(before).user < 4_000_000)
})
