/**
 * Bodies: media type, UTF-8, depth, JSON, schema, in this order, and a pointer to each element at fault; and replies,
 * with ids in either form.
 */
import fc from 'fast-check'
import t from 'tap'
import Type from 'typebox'
import { type FieldError, SignalError } from '../../src/errors.ts'
import { GetPublicKeysRequest } from '../../src/keyserver/bodies.ts'
import { JSON_DEPTH_MAX } from '../../src/limits.ts'
import { BodyReader, formatJson, SharedJson } from '../../src/schema/json.ts'
import { Uint64 } from '../../src/schema/uint64.ts'
import { fromUtf8 } from '../support/bytes.ts'
import { codeOf } from '../support/codes.ts'
import { checkProperty } from '../support/property.ts'
import { randomFrom, seedOf } from '../support/seed.ts'

const anything = new BodyReader(Type.Unknown())

function read(text: string, contentType = 'application/json'): unknown {
  return anything.read(fromUtf8(text), contentType)
}

function codeOfBody(body: string | Uint8Array): string {
  return codeOf(() => anything.read(typeof body === 'string' ? fromUtf8(body) : body, 'application/json'))
}

/** Brackets to that depth, as arrays and objects in turn. */
function nested(depth: number): string {
  let text = '1'
  for (let level = depth; level > 0; level--) text = level % 2 === 0 ? `[${text}]` : `{"a":${text}}`
  return text
}

function fieldErrors(reader: BodyReader<typeof GetPublicKeysRequest>, value: unknown): readonly FieldError[] {
  try {
    reader.read(fromUtf8(JSON.stringify(value)), 'application/json')
  } catch (error) {
    if (error instanceof SignalError && error.code === 'VALIDATION_FAILED') return error.errors
    throw error
  }
  return []
}

t.test('only application/json is read, with or without parameters, in any case', async t => {
  for (const type of [
    'application/json',
    'Application/JSON',
    'application/json; charset=utf-8',
    'application/json ;x=y',
  ]) {
    t.same(read('{"a":1}', type), { a: 1 }, type)
  }
  for (const type of [
    '',
    'text/plain',
    'application/jsonp',
    'application/json-seq',
    'text/json',
    'x application/json',
    'application/xml;application/json',
  ]) {
    t.equal(
      codeOf(() => read('{}', type)),
      'UNSUPPORTED_MEDIA_TYPE',
      type,
    )
  }
})

t.test('depth is counted to its bound and no further', async t => {
  t.equal(codeOfBody(nested(JSON_DEPTH_MAX)), 'none')
  t.equal(codeOfBody(nested(JSON_DEPTH_MAX + 1)), 'MALFORMED_JSON')
  t.equal(codeOfBody('['.repeat(1_000_000)), 'MALFORMED_JSON', 'without a stack to overflow')
  const flat = `[${Array(1_000).fill('[[]]').join()}]`
  t.equal(codeOfBody(flat), 'none', 'brackets side by side are not deep')
  const closedTooOften = `${']'.repeat(40)}${nested(10)}`
  t.equal(codeOfBody(closedTooOften), 'MALFORMED_JSON')
})

t.test('brackets in strings are no depth, whatever is escaped before them', async t => {
  const brackets = '[{'.repeat(JSON_DEPTH_MAX)
  const texts = [
    brackets,
    `"${brackets}`,
    `\\${brackets}`,
    `\\"${brackets}"`,
    `a\\\\"${brackets}`,
    `\u2028${brackets}`,
  ]
  const wrong = texts.filter(text => {
    const body = JSON.stringify({ [text]: [text] })
    return JSON.stringify(read(body)) !== body
  })
  t.same(wrong, [])
  const escaped = `["\\u0022${brackets}"]`
  t.same(read(escaped), [`"${brackets}`], 'an escaped quotation mark written as a number')
  t.equal(
    codeOfBody(`["\\\\",${nested(JSON_DEPTH_MAX + 1)}]`),
    'MALFORMED_JSON',
    'a backslash before the end of a string',
  )
})

t.test('random values come back, and their depth is what it is', async t => {
  const seed = seedOf()
  const random = randomFrom(seed)
  const wrong: string[] = []
  for (let run = 0; run < 1_000; run++) {
    const value = randomValue(random, Math.floor(random() * (JSON_DEPTH_MAX + 8)))
    const text = JSON.stringify(value)
    const expected = depthOf(value) > JSON_DEPTH_MAX ? 'MALFORMED_JSON' : 'none'
    if (codeOfBody(text) !== expected) wrong.push(text)
    else if (expected === 'none' && JSON.stringify(read(text)) !== text) wrong.push(text)
  }
  t.same(wrong, [], `seed ${seed}`)
})

/** Nested down to `depth`, with texts that look like brackets, quotation marks and escapes. */
function randomValue(random: () => number, depth: number): unknown {
  const text = Array.from(
    { length: Math.floor(random() * 6) },
    () => CHARACTERS[Math.floor(random() * CHARACTERS.length)],
  ).join('')
  if (depth === 0) return random() < 0.5 ? text : Math.floor(random() * 1_000)
  const inner = randomValue(random, depth - 1)
  return random() < 0.5 ? [text, inner] : { [text]: inner, z: text }
}

const CHARACTERS = [...'[]{}"\\u:,é🙂']

function depthOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  return 1 + Math.max(0, ...Object.values(value).map(depthOf))
}

t.test('a body that is not UTF-8 is refused', async t => {
  const inString = (...bytes: number[]) => Uint8Array.of(0x22, ...bytes, 0x22)
  const bad = {
    'a lone continuation byte': inString(0x80),
    'a sequence cut off': inString(0xc3),
    'an overlong slash': inString(0xc0, 0xaf),
    'a surrogate': inString(0xed, 0xa0, 0x80),
    'beyond U+10FFFF': inString(0xf4, 0x90, 0x80, 0x80),
    'UTF-16': Uint8Array.from(Buffer.from('{}', 'utf16le')),
    latin1: Uint8Array.from(Buffer.from('"é"', 'latin1')),
  }
  for (const [what, body] of Object.entries(bad)) t.equal(codeOfBody(body), 'MALFORMED_JSON', what)
  t.equal(read('"é🙂\u0000"'.replace('\u0000', '\\u0000')), 'é🙂\u0000')
})

t.test('a byte order mark is not JSON', async t => {
  t.equal(codeOfBody('\ufeff{}'), 'MALFORMED_JSON')
})

t.test('a body that is not one JSON value is refused', async t => {
  const bad = [
    '',
    ' ',
    '{',
    '{}}',
    '{"a":1,}',
    "{'a':1}",
    '{a:1}',
    '[1,]',
    'NaN',
    '01',
    '1 2',
    '"\n"',
    'undefined',
    '{}//',
  ]
  t.same(
    bad.filter(text => codeOfBody(text) !== 'MALFORMED_JSON'),
    [],
  )
})

t.test('a body in a larger buffer is read from its own bytes', async t => {
  const buffer = Buffer.from('xxxx{"a":1}yyyy')
  t.same(anything.read(buffer.subarray(4, 11), 'application/json'), { a: 1 })
})

t.test('a member called __proto__ is a member and changes no object', async t => {
  const value = read('{"__proto__":{"isAdmin":true}}') as object
  t.ok(Object.hasOwn(value, '__proto__'))
  t.equal(({} as { isAdmin?: boolean }).isAdmin, undefined)
})

const HASH = `${'A'.repeat(86)}==`

t.test('every element at fault is pointed to', async t => {
  const reader = new BodyReader(GetPublicKeysRequest)
  const pointersOf = (value: unknown) => [
    ...new Set(fieldErrors(reader, value).map(({ pointer }) => pointer)),
  ]
  t.same(pointersOf({ targets: [{ publicKeyHash: HASH }] }), [])
  t.same(
    pointersOf({ targets: [{ publicKeyHash: HASH, more: 1 }], more: [] }),
    [],
    'unknown members are no fault',
  )
  t.same(pointersOf([]), [''])
  t.same(pointersOf(null), [''])
  t.same(pointersOf({}), ['/targets'])
  t.same(pointersOf({ targets: 'x' }), ['/targets'])
  t.same(pointersOf({ targets: [] }), ['/targets'])
  const targets = [HASH, HASH.slice(1), 7, null, HASH].map(publicKeyHash => ({ publicKeyHash }))
  t.same(
    pointersOf({ targets }),
    [1, 2, 3].map(at => `/targets/${at}/publicKeyHash`),
  )
  t.same(pointersOf({ targets: [{ publicKeyHash: HASH }, {}, 5] }), [
    '/targets/1/publicKeyHash',
    '/targets/2',
  ])
})

t.test('a fault has a code in capitals and a sentence, and many of them are cut short', async t => {
  const reader = new BodyReader(GetPublicKeysRequest)
  const faults = fieldErrors(reader, { targets: Array(64).fill({ publicKeyHash: 'x' }) })
  t.ok(faults.length > 0 && faults.length <= 20, `${faults.length} faults`)
  t.ok(faults.every(({ code, detail }) => /^[A-Z_]+$/.test(code) && detail.length > 3))
})

t.test('a hash is canonical base64 of 64 bytes', async t => {
  const reader = new BodyReader(GetPublicKeysRequest)
  const isTaken = (publicKeyHash: string) =>
    fieldErrors(reader, { targets: [{ publicKeyHash }] }).length === 0
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'
  const canonical = [...alphabet].filter(last => isTaken(`${'z'.repeat(85)}${last}==`))
  t.same(canonical, ['A', 'Q', 'g', 'w'])
  const bad = [
    '',
    HASH.slice(0, -1),
    `${HASH}=`,
    `${HASH}\n`,
    ` ${HASH}`,
    HASH.replace('A', '-'),
    HASH.replace('A', '_'),
  ]
  t.notOk(bad.some(isTaken))
})

t.test('an id is a decimal string or a number in the body and a bigint to the handler', async t => {
  const reader = new BodyReader(Type.Object({ targetUserId: Uint64 }))
  const read = (text: string) =>
    reader.read(fromUtf8(`{"targetUserId":${text}}`), 'application/json').targetUserId
  const ids = [0n, 7n, 2n ** 32n, 2n ** 53n - 1n, 2n ** 53n, 2n ** 53n + 1n, 2n ** 63n + 1n, 2n ** 64n - 1n]
  for (const id of ids) {
    t.equal(read(`${id}`), id)
    t.equal(read(`"${id}"`), id)
  }
  const bad = [
    '18446744073709551616',
    '"18446744073709551616"',
    '99999999999999999999999',
    '-1',
    '"-1"',
    '"01"',
    '"1e3"',
    '""',
    '1.5',
    '1e300',
    '1e19',
    '9007199254740993.5',
    'null',
    'true',
    '[1]',
    '{}',
  ]
  t.same(
    bad.filter(text => codeOf(() => read(text)) !== 'VALIDATION_FAILED'),
    [],
  )
})

t.test('a refused id is one fault, with a sentence', async t => {
  const reader = new BodyReader(Type.Object({ ids: Type.Array(Uint64) }))
  try {
    reader.read(fromUtf8('{"ids":["1","x",3]}'), 'application/json')
    t.fail('the body was taken')
  } catch (error) {
    const { errors } = error as SignalError
    t.same(
      errors.map(({ pointer, code }) => ({ pointer, code })),
      [{ pointer: '/ids/1', code: 'FORMAT' }],
    )
    t.match(errors[0]?.detail, /64-bit integer/)
  }
})

t.test('each missing member is named, and a value that is none of a few has one error', async t => {
  const Body = Type.Object({
    kind: Type.Union([Type.Literal('email'), Type.Literal('phone')]),
    name: Type.String({ maxLength: 2 }),
    inner: Type.Object({ one: Type.String(), two: Type.String() }),
  })
  const faults = (value: unknown) => {
    try {
      new BodyReader(Body).read(fromUtf8(JSON.stringify(value)), 'application/json')
    } catch (error) {
      return (error as SignalError).errors.map(({ pointer, code, detail }) => `${pointer} ${code} ${detail}`)
    }
    return []
  }
  t.same(faults({ kind: 'x', name: 'long', inner: { one: '1' } }), [
    '/kind ENUM must be one of "email", "phone"',
    '/name MAX_LENGTH must not have more than 2 characters',
    '/inner/two REQUIRED is missing',
  ])
  const missing = faults({}).map(fault => fault.split(' ').slice(0, 2).join(' '))
  t.same(missing, ['/kind REQUIRED', '/name REQUIRED', '/inner REQUIRED'])
})

t.test('a value that is none of many is told all of them', async t => {
  const names = Array.from({ length: 15 }, (_, at) => `kind ${at}`)
  const Body = Type.Object({ kinds: Type.Array(Type.Union(names.map(name => Type.Literal(name)))) })
  const reader = new BodyReader(Body)
  const errors = [
    {
      pointer: '/kinds/1',
      code: 'ENUM',
      detail: `must be one of ${names.map(name => `"${name}"`).join(', ')}`,
    },
  ]
  const read = () => reader.read(fromUtf8('{"kinds":["kind 3","kind x"]}'), 'application/json')
  t.throws(read, { code: 'VALIDATION_FAILED', errors })
})

t.test('null is absence where a member is optional, and a fault where it is not', async t => {
  const Inner = Type.Object({ token: Type.Optional(Type.String()), kind: Type.String() })
  const reader = new BodyReader(
    Type.Object({
      name: Type.Optional(Type.String()),
      userId: Type.Optional(Uint64),
      inner: Type.Optional(Inner),
      list: Type.Optional(Type.Array(Inner)),
    }),
  )
  const read = (text: string) => reader.read(fromUtf8(text), 'application/json')
  t.same(Object.keys(read('{"name":null,"userId":null,"inner":null,"list":null}')), [])
  t.same(read('{"inner":{"token":null,"kind":"a"},"list":[{"token":null,"kind":"b"}]}'), {
    inner: { kind: 'a' },
    list: [{ kind: 'b' }],
  })
  t.throws(() => read('{"inner":{"kind":null}}'), { code: 'VALIDATION_FAILED' })
  t.throws(() => read('{"list":[null]}'), { code: 'VALIDATION_FAILED' })
  const nullable = new BodyReader(Type.Object({ userId: Type.Union([Uint64, Type.Null()]) }))
  t.same(nullable.read(fromUtf8('{"userId":null}'), 'application/json'), { userId: null })
})

t.test('ids and null are read in each branch of a union and an intersection', async t => {
  const ById = Type.Object({ userId: Uint64, message: Type.Optional(Type.String()) })
  const ByToken = Type.Object({ token: Type.String() })
  const union = new BodyReader(Type.Union([ById, ByToken]))
  t.same(union.read(fromUtf8('{"userId":"5","message":null}'), 'application/json'), { userId: 5n })
  t.same(union.read(fromUtf8('{"token":"5"}'), 'application/json'), { token: '5' })
  const both = new BodyReader(Type.Intersect([ById, ByToken]))
  t.same(both.read(fromUtf8('{"userId":5,"token":"5"}'), 'application/json'), { userId: 5n, token: '5' })
})

/** Plain values as replies have them, with ids. */
const { reply } = fc.letrec(tie => ({
  reply: fc.oneof(
    { depthSize: 'small' },
    fc.string({ unit: 'binary' }),
    fc.integer(),
    fc.double({ noNaN: true, noDefaultInfinity: true }).map(number => number + 0),
    fc.boolean(),
    fc.constant(null),
    fc.bigInt({ min: 2n ** 53n, max: 2n ** 64n - 1n }),
    fc.array(tie('reply')),
    fc.dictionary(fc.string({ unit: 'binary' }), fc.oneof(tie('reply'), fc.constant(undefined))),
  ),
}))

const idsAsText = (_: string, value: unknown) => (typeof value === 'bigint' ? value.toString() : value)

t.test('replies are written as JSON.stringify would, with ids as strings', async t => {
  checkProperty(t, [reply], value => formatJson(value, 'string') === JSON.stringify(value, idsAsText))
})

t.test('ids written as digits are read back whole, whatever the strings beside them say', async t => {
  checkProperty(t, [reply], value => {
    const text = formatJson({ value }, 'number')
    const back = anything.read(fromUtf8(text), 'application/json')
    return formatJson(back, 'number') === text
  })
  const id = 2n ** 64n - 1n
  t.equal(
    formatJson({ id, text: `"${id}","x":"\\` }, 'number'),
    `{"id":${id},"text":"\\"${id}\\",\\"x\\":\\"\\\\"}`,
  )
})

t.test('what JSON can not say is a defect of ours', async t => {
  const bad = [
    Number.NaN,
    Number.POSITIVE_INFINITY,
    undefined,
    [undefined],
    Symbol('x'),
    new Date(0),
    new Map(),
    () => 1,
  ]
  t.same(
    bad.filter(value => codeOf(() => formatJson(value, 'string')) === 'none'),
    [],
  )
})

t.test('a string is written as JSON.stringify writes it, plain or not', async t => {
  const texts = [
    '',
    'Ann',
    ' ~!#[]^',
    'a"b',
    'a\\b',
    'a\nb',
    '\u0000',
    '\u007f',
    'grüße',
    '\ud83d\ude00',
    '\ud83d',
    '\u2028',
  ]
  t.same(
    texts.map(text => formatJson(text, 'string')),
    texts.map(text => JSON.stringify(text)),
  )
  const strings = fc.string({ unit: 'binary' })
  checkProperty(t, [strings], text => formatJson(text, 'string') === JSON.stringify(text))
})

t.test('a shared value is written as if it stood there, in either form of ids', async t => {
  const people = [{ userId: 7n, displayName: 'Ann' }]
  const shared = new SharedJson(people)
  for (const form of ['string', 'number', 'string'] as const) {
    t.equal(
      formatJson({ people: shared, also: [shared] }, form),
      formatJson({ people, also: [people] }, form),
    )
  }
})
