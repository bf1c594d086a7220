/** Phone numbers: one key for all spellings, and only kinds that take a message at an ordinary price. */
import fc from 'fast-check'
import { getCountries, getExampleNumber } from 'libphonenumber-js/max'
import examples from 'libphonenumber-js/mobile/examples'
import t from 'tap'
import { maskPhone, parsePhone } from '../../../src/domain/accounts/phone.ts'
import { checkProperty } from '../../support/property.ts'

function keyOf(text: string, country?: string): string | undefined {
  const phone = parsePhone(text, country)
  return phone.kind === 'accepted' ? phone.key : undefined
}

function reasonOf(text: string, country?: string): string {
  const phone = parsePhone(text, country)
  return phone.kind === 'accepted' ? 'none' : phone.reason
}

t.test('spellings of one number have one key', async t => {
  const spellings = [
    '+84912345678',
    '+84 91 234 56 78',
    ' +84 (912) 345-678 ',
    '+84.912.345.678',
    '+８４９１２３４５６７８',
    '＋８４　（９１２）　３４５－６７８',
    '＋84912345678',
    '\u202a+84 912 345 678\u202c',
    '+84\u00a0912\u00a0345\u00a0678',
    '+840912345678',
  ]
  for (const text of spellings) t.equal(keyOf(text), '+84912345678', text)
  for (const text of ['0912345678', '0912 345 678', '00 84 912 345 678', '+84912345678']) {
    t.equal(keyOf(text, 'VN'), '+84912345678', text)
    t.equal(keyOf(text, 'vn'), '+84912345678', text)
  }
})

t.test('the parser returns the country and its calling code', async t => {
  t.same(parsePhone('+84912345678', 'US'), {
    kind: 'accepted',
    key: '+84912345678',
    country: 'VN',
    countries: ['VN'],
    dialCode: '84',
    isGlobal: false,
  })
  t.match(parsePhone('+12025550123', undefined), { country: 'US', dialCode: '1' })
  t.match(parsePhone('+12423591234', undefined), { country: 'BS', dialCode: '1' })
})

t.test('a Mexican number is the same with the old mobile 1 and without it', async t => {
  for (const text of [
    '+5215512345678',
    '+52 1 55 1234 5678',
    '＋５２ １ ５５ １２３４ ５６７８',
    '+525512345678',
  ])
    t.equal(keyOf(text), '+525512345678', text)
  for (const text of ['1 55 1234 5678', '55 1234 5678']) t.equal(keyOf(text, 'MX'), '+525512345678', text)
  for (const text of ['+52155123456789', '+5215512345678 ext. 5', '+52 1 1 55 1234 5678'])
    t.equal(reasonOf(text), 'format', text)
  t.equal(reasonOf('+52 1 800 123 4567'), 'type', 'free of charge with the 1 and without it')
})

t.test(
  'a number of no country says so, and one of an unknown range has all countries of its calling code',
  async t => {
    const global = { kind: 'accepted', country: undefined, countries: [], isGlobal: true }
    t.match(parsePhone('+870773111632', undefined), { ...global, dialCode: '870' })
    t.match(parsePhone('+8821612345678', undefined), { ...global, dialCode: '882' })
    t.equal(reasonOf('+979123456789'), 'type', 'premium rate')
    const unknown = parsePhone('+447700900123', undefined)
    t.match(unknown, { country: undefined, isGlobal: false })
    t.same(unknown.kind === 'accepted' && [...unknown.countries].sort(), ['GB', 'GG', 'IM', 'JE'])
  },
)

t.test('a national number without a country, or with one that is none, is refused', async t => {
  for (const country of [undefined, '', 'XX', 'VNM', '84', '__proto__', 'toString']) {
    t.equal(reasonOf('0912345678', country), 'format')
    t.equal(keyOf('+84912345678', country), '+84912345678')
  }
})

t.test('the example mobile numbers of all countries are taken', async t => {
  const countries = getCountries()
  const refused = countries.filter(country => {
    const example = getExampleNumber(country, examples)
    return example !== undefined && keyOf(example.formatNational(), country) !== example.number
  })
  t.ok(countries.length > 200)
  t.same(refused, [])
})

t.test('landlines and numbers that cost are refused by their type', async t => {
  const numbers = {
    'premium rate, US': '+19002345678',
    'premium rate, GB': '+449098790000',
    'premium rate, DE': '+499001234567',
    'shared cost, IT': '+39840123456',
    'shared cost, FR': '+33884012345',
    'toll free, US': '+18005550100',
    'toll free, international': '+80012345678',
    'fixed line, GB': '+442079460018',
    'fixed line, FR': '+33123456789',
    'personal number, GB': '+447012345678',
    'pager, GB': '+447640123456',
    'voip, GB': '+445612345678',
    'universal access, GB': '+445512345678',
  }
  for (const [what, number] of Object.entries(numbers)) t.equal(reasonOf(number), 'type', what)
})

t.test('a possible number of a range that the tables do not know is tried', async t => {
  t.match(parsePhone('+447700900123', undefined), { kind: 'accepted', key: '+447700900123', dialCode: '44' })
})

t.test('a text that is no phone number is refused', async t => {
  const bad = [
    '',
    '+',
    '+84',
    '+849',
    '+849123456789012345',
    '+999123456',
    '+0912345678',
    '+84005333191',
    '++84912345678',
    '84912345678',
    'tel:+84912345678',
    '+84912345678;ext=5',
    '+84912345678 ext. 5',
    '+84912345678x5',
    '+84912345678,+84912345679',
    '+84912345678\n+84912345679',
    'call +84912345678',
    '+84912345678 now',
    '+1800FLOWERS',
    'ann@b.co',
    '+15550100',
    '\0+84912345678',
    '+84912345678'.padEnd(41),
    '+'.repeat(10_000_000),
    '1'.repeat(10_000_000),
    '\u202a'.repeat(10_000_000),
  ]
  t.same(
    bad.filter(text => reasonOf(text) !== 'format').map(text => text.slice(0, 50)),
    [],
  )
})

t.test('only listed test numbers skip the check', async t => {
  const testNumbers = new Set(['+15550100', '+999000001'])
  t.match(parsePhone('+15550100', undefined, testNumbers), {
    kind: 'accepted',
    key: '+15550100',
    country: undefined,
    dialCode: '1',
  })
  t.match(parsePhone('+1 555-0100', 'VN', testNumbers), { kind: 'accepted', key: '+15550100' })
  t.match(parsePhone('+999 000001', undefined, testNumbers), {
    kind: 'accepted',
    key: '+999000001',
    dialCode: '',
  })
  t.match(parsePhone('+15550101', undefined, testNumbers), { kind: 'refused', reason: 'format' })
  t.match(parsePhone('+155501001', undefined, testNumbers), { kind: 'refused' })
})

t.test('a key is E.164 and is its own key', async t => {
  const text = fc.string({ unit: fc.constantFrom(...'+0123456789 ()-.;,x#*\u202a٣'), maxLength: 24 })
  checkProperty(
    t,
    [text, fc.constantFrom(undefined, 'VN', 'US', 'GB', 'IT', 'RU')],
    (text, country) => {
      for (const spelling of [text, `+${text}`, `+84${text}`]) {
        const key = keyOf(spelling, country)
        if (key !== undefined && (!/^\+[1-9][0-9]{4,14}$/.test(key) || keyOf(key) !== key)) return false
      }
      return true
    },
    5_000,
  )
})

t.test('a mask keeps three characters at either end', async t => {
  t.equal(maskPhone('+84912345678'), '+84•••678')
  t.equal(maskPhone('+15550100'), '+15•••100')
  t.equal(maskPhone('+1555010'), '•••')
})
