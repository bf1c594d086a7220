/** Which countries' numbers are served: by a list, without those that are refused, and none of no country unasked. */
import { createRequire } from 'node:module'
import t from 'tap'
import { parsePhone } from '../../../src/domain/accounts/phone.ts'
import { GLOBAL_CALLING_CODES, isServed } from '../../../src/domain/accounts/served-number.ts'

const NUMBERS = {
  vn: '+84912345678',
  us: '+12025550123',
  jersey: '+447797123456',
  cuba: '+5351234567',
  newBritish: '+447700900123',
  inmarsat: '+870773111632',
  iridium: '+881612345678',
  thuraya: '+8821612345678',
} as const

function servedOf(listed: readonly string[], blocked: readonly string[] = []): string {
  const rules = { smsCountries: new Set(listed), blockedCountries: new Set(blocked) }
  return Object.entries(NUMBERS)
    .filter(([, number]) => {
      const phone = parsePhone(number, undefined)
      return phone.kind === 'accepted' && isServed(phone, rules)
    })
    .map(([name]) => name)
    .join(' ')
}

t.test('every country is served unless some are listed, and no satellite', async t => {
  t.equal(servedOf([]), 'vn us jersey cuba newBritish')
  t.equal(servedOf(['*']), 'vn us jersey cuba newBritish')
  t.equal(servedOf(['VN']), 'vn')
  t.equal(servedOf(['VN', '+870']), 'vn inmarsat')
  t.equal(servedOf(['*', '+881', '+882']), 'vn us jersey cuba newBritish iridium thuraya')
  t.equal(servedOf(['+870']), 'inmarsat')
})

t.test('a country that is refused is refused, listed or not', async t => {
  t.equal(servedOf([], ['CU']), 'vn us jersey newBritish')
  t.equal(servedOf(['VN', 'CU'], ['CU']), 'vn')
})

t.test('a range that the tables do not know is of each country that shares its calling code', async t => {
  t.equal(servedOf(['GB']), 'newBritish')
  t.equal(servedOf(['JE']), 'jersey newBritish')
  t.equal(servedOf([], ['GB']), 'vn us jersey cuba newBritish')
  t.equal(servedOf([], ['GB', 'GG', 'IM', 'JE']), 'vn us cuba')
})

t.test('the calling codes of no country are those of the tables that any message may go to', async t => {
  const tables = createRequire(import.meta.url)('libphonenumber-js/metadata.max.json') as {
    readonly nonGeographic: Readonly<Record<string, unknown>>
  }
  // Free of charge, shared cost, universal access and premium rate are refused by their type.
  const others = ['800', '808', '888', '979']
  const listed = [...others, ...[...GLOBAL_CALLING_CODES].map(code => code.slice(1))]
  t.same(Object.keys(tables.nonGeographic).sort(), listed.sort())
})
