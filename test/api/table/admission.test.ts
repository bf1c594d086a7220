/** Rates by network and its IPv6 prefixes and by session, and attackers who use up none of a user's. */
import t from 'tap'
import { Authentication } from '../../../src/api/accounts/authentication.ts'
import { Admission } from '../../../src/api/table/admission.ts'
import { RequestRates } from '../../../src/api/table/request-rates.ts'
import { formatAccessToken, formatRefreshToken } from '../../../src/domain/accounts/token.ts'
import type { UserId } from '../../../src/domain/ids.ts'
import { USUAL_RATES } from '../../../src/domain/rates.ts'
import { deriveSecrets } from '../../../src/domain/secrets.ts'
import { SignalError } from '../../../src/errors.ts'
import { sessionName } from '../../../src/store/accounts/session-store.ts'
import { networkOf, parseAddress } from '../../../src/transport/remote-address.ts'
import type { AdmissionScope } from '../../../src/transport/route.ts'

const HOME = net('192.0.2.1')
const SECRETS = deriveSecrets(Buffer.alloc(32, 7))

function net(address: string): string {
  return networkOf(parseAddress(address)!)
}

function sessionIdOf(number: number): Buffer {
  const id = Buffer.alloc(16)
  id.writeUInt32BE(number)
  return id
}

/** The header of a session's access token. */
function bearer(number: number, secrets = SECRETS): string {
  const token = { sessionId: sessionIdOf(number), generation: 1, expiresAtS: 100 }
  return `Bearer ${formatAccessToken(secrets.accessToken, token)}`
}

function refreshBody(number: number, secrets = SECRETS): Buffer {
  const token = formatRefreshToken(secrets.refreshToken, { sessionId: sessionIdOf(number), generation: 1 })
  return Buffer.from(JSON.stringify({ refreshToken: token }))
}

function openStage() {
  const clock = { nowMs: 1_000 }
  const live = {
    userId: 1n as UserId,
    generation: 1,
    rotatedAtMs: 0,
    isPairUsed: true,
    createdAtMs: 0,
    authenticatedAtMs: 0,
    lastUsedAtMs: 0,
    endsAtMs: Number.POSITIVE_INFINITY,
    methods: [],
    userAgent: '',
  }
  const authentication = new Authentication({
    secrets: SECRETS,
    lifetimes: { accessS: 3600, refreshS: 3600, sessionS: 3600 },
    nowMs: () => clock.nowMs,
    sessions: { current: () => live },
    markPairUsed: async () => undefined,
  })
  const rates = new RequestRates(USUAL_RATES, () => clock.nowMs)
  const admission = new Admission(rates, authentication)
  /** The refusal, undefined for none. */
  const refusalOf = (network: string, authorization = '', scope: AdmissionScope = 'request') => {
    try {
      admission.admit(network, scope, authorization)
      return undefined
    } catch (error) {
      if (error instanceof SignalError) return error
      throw error
    }
  }
  /** Asks until it is refused, or so many times; returns how many were admitted. */
  const drain = (
    network: string,
    { authorization = '', scope = 'request', most = 100_000 }: Partial<Drain> = {},
  ) => {
    let admitted = 0
    while (admitted < most && refusalOf(network, authorization, scope) === undefined) admitted++
    return admitted
  }
  /** One who asks so many times a second; returns how many are refused. */
  const refusedOf = (authorization: string, perSecond: number) => {
    let refused = 0
    for (let at = 0; at < perSecond; at++) if (refusalOf(HOME, authorization) !== undefined) refused++
    return refused
  }
  return { clock, authentication, rates, admission, refusalOf, drain, refusedOf }
}

interface Drain {
  readonly authorization: string
  readonly scope: AdmissionScope
  readonly most: number
}

const LOOKUP = { scope: 'lookup' } as const

t.test('each IPv4 address has its own bucket', async t => {
  const { drain } = openStage()
  t.same(
    ['192.0.2.1', '192.0.2.2', '192.0.2.1', '0.0.0.0', '255.255.255.255'].map(address =>
      drain(net(address), LOOKUP),
    ),
    [120, 120, 0, 120, 120],
  )
})

t.test('an IPv4 address in IPv6 form is that IPv4 address', async t => {
  const { drain } = openStage()
  t.equal(drain(net('192.0.2.1'), LOOKUP), 120)
  t.equal(drain(net('::ffff:c000:201'), LOOKUP), 0)
  t.equal(drain(net('::ffff:c000:202'), LOOKUP), 120, 'and not all of them are one network')
  t.equal(drain(net('192.0.2.2'), LOOKUP), 0)
})

t.test('addresses that only look like mapped IPv4 are in their /64', async t => {
  const { drain } = openStage()
  t.equal(drain(net('::1'), LOOKUP), 120)
  t.same(
    ['::c000:201', '::fffe:c000:201', '::1:ffff:c000:201', '::ff:c000:201'].map(address =>
      drain(net(address), LOOKUP),
    ),
    [0, 0, 0, 0],
    'all of them are in ::/64',
  )
  t.equal(drain(net('1::ffff:c000:201'), LOOKUP), 120)
})

t.test('IPv6 is counted by its /64, and by the prefixes around it at what they stand for', async t => {
  for (const [width, factor, addressOf] of [
    [64, 1, at => `2001:db8:0:1::${at.toString(16)}`],
    [56, 4, at => `2001:db8:0:${at.toString(16)}::1`],
    [48, 16, at => `2001:db8:0:${(at << 8).toString(16)}::1`],
    [40, 32, at => `2001:db8:${at.toString(16)}::1`],
    [32, 64, at => `2001:db8:${(at << 8).toString(16)}::1`],
  ] as const satisfies readonly (readonly [number, number, (at: number) => string])[]) {
    const { drain } = openStage()
    let admitted = 0
    for (let at = 0; at < 100; at++) admitted += drain(net(addressOf(at)), LOOKUP)
    t.equal(admitted, 120 * factor, `all of a /${width}`)
    t.equal(drain(net('2001:db9::'), LOOKUP), 120, 'the next /32')
    t.equal(drain(net('32.1.13.184'), LOOKUP), 120, 'an IPv4 address of the same octets')
  }
})

t.test('what an empty prefix refuses uses up nothing of the networks in it', async t => {
  const { clock, drain, refusalOf } = openStage()
  for (let at = 0; at < 4; at++) drain(net(`2001:db8:0:${at}::1`), LOOKUP)
  for (let asked = 0; asked < 500; asked++) refusalOf(net('2001:db8:0:9::1'), '', 'lookup')
  clock.nowMs += 10_000
  t.equal(drain(net('2001:db8:0:9::1'), LOOKUP), 80, 'all that the /56 has got back')
})

t.test('each kind of request has its own bucket and rate', async t => {
  const { drain } = openStage()
  t.same(
    (['lookup', 'request', 'log-files'] as const).map(scope => drain(HOME, { scope })),
    [120, 400, 60_000],
  )
})

t.test('who is refused hears whole seconds, rounded up, and is admitted after them', async t => {
  const { clock, drain, refusalOf } = openStage()
  drain(HOME, LOOKUP)
  const refusal = refusalOf(HOME, '', 'lookup')
  t.match(
    refusal,
    { code: 'RATE_LIMITED', members: { retryIn: 1, scope: 'address' } },
    'half a second is missing',
  )
  clock.nowMs += 1_000
  t.equal(drain(HOME, LOOKUP), 2, 'two come back in a second')
})

t.test('sweeping lets no refused address in', async t => {
  const { admission, clock, drain } = openStage()
  drain(HOME, LOOKUP)
  admission.sweep()
  t.equal(drain(HOME, LOOKUP), 0)
  clock.nowMs += 59_500
  admission.sweep()
  t.equal(drain(HOME, LOOKUP), 119, 'one is missing from a full bucket')
  clock.nowMs += 60_000
  admission.sweep()
  t.equal(drain(HOME, LOOKUP), 120)
})

t.test('ten thousand users behind one address each have their whole burst, at once', async t => {
  const { drain } = openStage()
  let short = 0
  for (let user = 0; user < 10_000; user++) {
    if (drain(HOME, { authorization: bearer(user), most: 200 }) < 200) short++
  }
  t.equal(short, 0)
  t.equal(drain(HOME), 400, 'and took nothing from strangers there')
})

t.test('an address full of strangers keeps no user out, nor a user another', async t => {
  const { clock, drain, refusalOf, refusedOf } = openStage()
  drain(HOME)
  t.equal(drain(HOME, { authorization: bearer(1) }), 200)
  t.match(refusalOf(HOME, bearer(1)), { code: 'RATE_LIMITED', members: { scope: 'session' } })
  // The first goes on as fast as they can, for two minutes.
  let refused = 0
  for (let second = 0; second < 120; second++) {
    clock.nowMs += 1_000
    refusedOf(bearer(1), 1_000)
    refused += refusedOf(bearer(2), 10)
  }
  t.equal(refused, 0, 'what is refused for its own rate uses up nothing of the address')
})

t.test('users at a full address share twenty times its rate; each has a reserve beyond that', async t => {
  const { clock, refusedOf } = openStage()
  const crowd = Array.from({ length: 1_000 }, (_, at) => bearer(1_000 + at))
  let [refused, refusedOfCrowd] = [0, 0]
  for (let second = 0; second < 60; second++) {
    clock.nowMs += 1_000
    for (const each of crowd) refusedOfCrowd += refusedOf(each, 10)
    refused += refusedOf(bearer(1), second < 20 ? 10 : 0)
  }
  t.equal(refused, 0, 'two hundred of one who came late')
  // 600,000 asked. Each has a reserve of 200 and 30 a minute, and all share 8,000 and 400 a second.
  t.ok(refusedOfCrowd > 330_000, 'the crowd itself is held')
})

t.test('a token that was refused counts as none, and its first refusal is always told', async t => {
  const { admission, authentication, drain, refusalOf } = openStage()
  const old = bearer(1)
  t.equal(refusalOf(HOME, old), undefined)
  admission.onTokenRefused(HOME, old)
  t.equal(drain(HOME, { authorization: old }), 399, 'the first one was counted likewise')
  t.equal(drain(HOME), 0, 'the same bucket as strangers have')
  t.equal(drain(HOME, { authorization: bearer(2) }), 200, 'which is not that of users')
  t.equal(refusalOf(HOME, bearer(3)), undefined, 'another whose token has expired hears that')
  t.equal(authentication.requesterOf(old).userId, 1n)
  t.equal(refusalOf(HOME, old), undefined, 'and one that was good after all is one again')
})

t.test('a token that was not made here is refused at once, and counts for the address', async t => {
  const { authentication, drain, refusalOf } = openStage()
  const false1 = bearer(1, deriveSecrets(Buffer.alloc(32, 8)))
  t.match(refusalOf(HOME, false1), { code: 'TOKEN_INVALID' })
  t.match(refusalOf(HOME, 'Basic YTpi'), { code: 'TOKEN_INVALID' })
  t.equal(drain(HOME), 398)
  t.match(refusalOf(HOME, false1), { code: 'RATE_LIMITED' })
  t.equal(
    authentication.tokenOf(`bearer   ${bearer(2).slice(7)}`),
    authentication.tokenOf(bearer(2)),
    'in any spelling',
  )
})

t.test('refreshes count for their session, and false ones for the address', async t => {
  const { admission } = openStage()
  const admitted = (bodies: readonly Buffer[]) =>
    bodies.filter(body => {
      try {
        admission.admitRefresh(HOME, body)
        return true
      } catch {
        return false
      }
    }).length
  const others = deriveSecrets(Buffer.alloc(32, 9))
  t.equal(admitted(Array.from({ length: 500 }, (_, at) => refreshBody(at, others))), 400)
  t.equal(admitted([Buffer.from('{}'), Buffer.from('krt_'), refreshBody(1).subarray(0, 40)]), 0)
  t.equal(admitted(Array.from({ length: 10_000 }, (_, at) => refreshBody(at))), 10_000)
  t.equal(admitted(Array<Buffer>(500).fill(refreshBody(10_001))), 200, 'one token again and again')
})

t.test('ten thousand sockets from one address open at once; without a CONNECT only some', async t => {
  const { admission, clock, drain } = openStage()
  let refused = 0
  for (let socket = 0; socket < 10_000; socket++) {
    if (admission.admitSocket(HOME) !== undefined) refused++
    if (admission.connected(HOME, sessionName(sessionIdOf(socket))) > 0) refused++
  }
  t.equal(refused, 0)
  let opened = 0
  while (admission.admitSocket(HOME) === undefined) opened++
  t.equal(opened, 8_000)
  t.equal(drain(HOME), 400, 'requests count by themselves')
  clock.nowMs += 60_000
  let connects = 0
  while (admission.connected(HOME, 'one session') === 0) connects++
  t.equal(connects, 200)
})

t.test('ten thousand sessions behind one address come back after a restart, and none is refused', async t => {
  const { admission, drain, rates, refusalOf } = openStage()
  drain(HOME)
  drain(HOME, LOOKUP)
  const refused: string[] = []
  const tell = (what: string, isRefused: boolean) => isRefused && refused.push(what)
  for (let number = 0; number < 10_000; number++) {
    const authorization = bearer(number)
    const name = sessionName(sessionIdOf(number))
    admission.admitRefresh(HOME, refreshBody(number))
    rates.takeSignedIn('refresh-token', 'refresh-token-session', name, HOME)
    tell('socket', admission.admitSocket(HOME) !== undefined)
    tell('CONNECT', admission.connected(HOME, name) > 0)
    for (const what of ['user', 'call/pending', 'get-public-keys', 'contacts'])
      tell(what, refusalOf(HOME, authorization) !== undefined)
    tell('no good token', !admission.isGood(authorization))
    tell('lookup', refusalOf(HOME, authorization, 'lookup') !== undefined)
  }
  t.same(refused, [])
  t.match(refusalOf(HOME, '', 'lookup'), { code: 'RATE_LIMITED' }, 'strangers there are, all the while')
})

t.test(
  'lookups of one session have its rate, and those of a crowd twenty times that of the address',
  async t => {
    const { clock, drain } = openStage()
    t.equal(drain(HOME, { ...LOOKUP, authorization: bearer(1) }), 120)
    t.equal(drain(HOME, LOOKUP), 120, 'and took nothing from strangers there')
    clock.nowMs += 60_000
    let admitted = 0
    for (let session = 0; session < 100; session++)
      admitted += drain(HOME, { ...LOOKUP, authorization: bearer(session) })
    t.equal(admitted, 100 * 120)
    clock.nowMs += 60_000
    for (let session = 0; session < 100; session++)
      admitted += drain(HOME, { ...LOOKUP, authorization: bearer(session) })
    t.equal(admitted, 100 * 120 + 20 * 120 + 80 * 6, 'a minute later')
  },
)

t.test('where a token only says whom to count, one that is not good counts as none', async t => {
  const { admission, authentication, clock, drain } = openStage()
  const others = deriveSecrets(Buffer.alloc(32, 8))
  t.same(
    ['', 'Basic YTpi', bearer(1, others), bearer(1), `bearer ${bearer(2).slice(7)}`].map(each =>
      admission.isGood(each),
    ),
    [false, false, false, true, true],
  )
  t.equal(drain(HOME), 400, 'asking takes nothing')
  admission.onTokenRefused(HOME, bearer(1))
  t.equal(admission.isGood(bearer(1)), true)
  t.equal(authentication.tokenOf(bearer(1))?.isRefused, false, 'and it counts for its session again')
  clock.nowMs = 100_000
  t.equal(admission.isGood(bearer(1)), false, 'expired')
  t.equal(drain(HOME, { authorization: bearer(1), most: 1 }), 1, 'other requests still hear of it first')
})

t.test('failed CONNECTs are bounded by address, but the first of an old token hears why', async t => {
  const { admission } = openStage()
  for (let tries = 0; tries < 30; tries++) t.equal(admission.failedConnect(HOME, ''), 0)
  t.ok(admission.failedConnect(HOME, 'Bearer x') > 0)
  t.equal(admission.failedConnect(HOME, bearer(1)), 0)
  t.ok(admission.failedConnect(HOME, bearer(1)) > 0)
})
