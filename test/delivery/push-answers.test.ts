/**
 * The ring, the token and the operator's view when Apple or Google says no, as the tables of docs/protocol/push.md say: each row
 * is played against the stand-ins, over real connections, and the row is compared with what came out.
 */

import { readFileSync } from 'node:fs'
import t, { type Test } from 'tap'
import { ApnsSender } from '../../src/delivery/apns.ts'
import { Delivery } from '../../src/delivery/delivery.ts'
import { FcmSender } from '../../src/delivery/fcm.ts'
import type { DeliveryOutcome, Skipped } from '../../src/delivery/outcome.ts'
import { type PushTokens, pushTokensJudged } from '../../src/domain/devices/device.ts'
import type { UserId } from '../../src/domain/ids.ts'
import { type ApnsAnswer, startApnsStandIn } from '../support/apns-stand-in.ts'
import { type Http2Act, type HttpAct, startFcmStandIn } from '../support/fcm-stand-in.ts'
import { deviceWith, invitationWith } from '../support/push-samples.ts'

const DAY_MS = 86_400_000
const NOW_MS = 1_795_146_521_983
const USER = 5_000_000_001n as UserId
const DEVICE = deviceWith()
const INVITATION = {
  ...invitationWith({ expiresAtMs: NOW_MS + 60_000 }),
  eventId: 'A'.repeat(22),
  sentAtMs: NOW_MS,
}
const [VOIP, ALERT, GOOGLES] = ['b2'.repeat(32), 'a1'.repeat(32), 'fcm:token']
const IPHONE: PushTokens = {
  bundleId: 'org.example.callsign',
  apnsEnvironment: 'production',
  apnsToken: ALERT,
  apnsVoipToken: VOIP,
  registeredAtMs: { apnsToken: 1, apnsVoipToken: 1 },
}
const PIXEL: PushTokens = { fcmToken: GOOGLES, registeredAtMs: { fcmToken: 1 } }

/** A row of the table: the case in its first cell, and the expected results in the rest. */
interface Row {
  readonly answer: string
  readonly ring: string
  readonly token: string
  readonly seen: string
}

/** The provider's answers to the ring. */
interface Scenario {
  readonly push: PushTokens
  /** For the pushes of this ring, in order; later ones are taken. */
  readonly apns?: readonly ApnsAnswer[]
  /** For all VoIP pushes of this ring, in the place of `apns`; alerts are taken. */
  readonly voip?: ApnsAnswer
  readonly fcm?: readonly Http2Act[]
  readonly purchases?: readonly HttpAct[]
  readonly isAway?: 'closed' | 'distrusted'
}

const repeated = <Each>(answer: Each): readonly Each[] => Array.from({ length: 6 }, () => answer)
const google = (status: number, code: string, message = '-', details: readonly object[] = []): HttpAct => ({
  status,
  body: { error: { code: status, status: code, message, details: [{ errorCode: code }, ...details] } },
})
const { apnsToken: _, ...VOIP_ALONE } = IPHONE
const UNAVAILABLE: ApnsAnswer = { status: 503, reason: 'ServiceUnavailable' }
const BAD_TOKEN: ApnsAnswer = { status: 400, reason: 'BadDeviceToken' }
const EXPIRED: ApnsAnswer = { status: 403, reason: 'ExpiredProviderToken' }

/** Rows that say more than a status and its reasons. */
const APPLES: Readonly<Record<string, Partial<Scenario>>> = {
  '`400` `BadDeviceToken` of one host': { apns: [BAD_TOKEN] },
  '`400` `BadDeviceToken` of both hosts': { voip: BAD_TOKEN },
  'the same, a day later': {
    push: { ...IPHONE, doubtedAtMs: { apnsVoipToken: NOW_MS - DAY_MS } },
    voip: BAD_TOKEN,
  },
  '`403` `ExpiredProviderToken`, `InvalidProviderToken`': { apns: [EXPIRED] },
  'the same for the new provider token': { apns: repeated(EXPIRED) },
  '`410` of a time before the app last sent that token': {
    push: { ...IPHONE, registeredAtMs: { apnsVoipToken: NOW_MS - 1_000 } },
    voip: { status: 410, reason: 'Unregistered', timestamp: NOW_MS - 2_000 },
  },
  '`503`, and the second is taken': { apns: [UNAVAILABLE] },
  '`503`, from a phone without an alert token': { push: VOIP_ALONE, apns: repeated(UNAVAILABLE) },
  'no answer': { voip: 'silence' },
  'no answer, and the second is taken': { apns: ['silence'] },
  'GOAWAY, a reset, or a connection that ends': { apns: ['goaway'] },
  'no connection': { isAway: 'closed' },
  'TLS refused': { isAway: 'distrusted' },
}
const GOOGLES_OWN: Readonly<Record<string, Partial<Scenario>>> = {
  '`400` `INVALID_ARGUMENT`, about the token': {
    fcm: repeated(google(400, 'INVALID_ARGUMENT', '-', [{ fieldViolations: [{ field: 'message.token' }] }])),
  },
  '`401` `UNAUTHENTICATED`': { fcm: [google(401, 'UNAUTHENTICATED')] },
  'the same for the new access token': { fcm: repeated(google(401, 'UNAUTHENTICATED')) },
  'no answer': { fcm: repeated('silence') },
  'no answer, and the second is taken': { fcm: ['silence'] },
  'GOAWAY, or a connection that ends': { fcm: ['goaway'] },
  'no connection': { isAway: 'closed' },
  'TLS refused': { isAway: 'distrusted' },
  'no access token: `invalid_grant`': {
    purchases: repeated<HttpAct>({ status: 400, body: { error: 'invalid_grant' } }),
  },
}

/** Apple, "Handling notification responses from APNs", and Google, "ErrorCode". */
const DOCUMENTED = `BadCollapseId BadDeviceToken BadExpirationDate BadMessageId BadPriority BadTopic
  DeviceTokenNotForTopic DuplicateHeaders IdleTimeout InvalidPushType MissingDeviceToken MissingTopic PayloadEmpty
  TopicDisallowed BadCertificate BadCertificateEnvironment BadEnvironmentKeyIdInToken ExpiredProviderToken Forbidden
  InvalidProviderToken MissingProviderToken UnrelatedKeyIdInToken BadPath MethodNotAllowed ExpiredToken Unregistered
  PayloadTooLarge TooManyProviderTokenUpdates TooManyRequests InternalServerError ServiceUnavailable Shutdown
  INVALID_ARGUMENT UNREGISTERED SENDER_ID_MISMATCH QUOTA_EXCEEDED UNAVAILABLE INTERNAL THIRD_PARTY_AUTH_ERROR`

/** The rows of both tables. */
const [APPLE_ROWS, GOOGLE_ROWS] = tablesOf(readFileSync('docs/protocol/push.md', 'utf8'))

function tablesOf(page: string): [readonly Row[], readonly Row[]] {
  const [, section = ''] = page.split(/^## When Apple or Google says no$/m)
  const [own = ''] = section.split(/^## /m)
  const rows = own
    .split('\n')
    .filter(line => line.startsWith('| ') && !line.startsWith('| ---'))
    .map(line => line.slice(2, -2).split(' | '))
  const heads = rows.flatMap((cells, at) => (cells[1]?.startsWith('Then') ? [at] : []))
  const read = (cells: readonly string[]): Row => {
    const [answer = '', ring = '', token = '', seen = ''] = cells
    // Words that explain, and leave nothing to compare.
    return { answer, ring: ring.replace(/, by a new (?:provider|access) token/, ''), token, seen }
  }
  return [rows.slice(heads[0]! + 1, heads[1]).map(read), rows.slice(heads[1]! + 1).map(read)]
}

/** The plays of a row: one for each reason that it names. */
function playsOf(row: Row, usual: PushTokens, special: Readonly<Record<string, Partial<Scenario>>>) {
  const own = special[row.answer]
  if (own !== undefined) {
    const [, reason] = row.answer.matchAll(/`(\w+)`/g)
    return [
      {
        scenario: { push: usual, ...own },
        reason: EXPIRES.has(row.answer) ? 'ExpiredProviderToken' : reason?.[1],
      },
    ]
  }
  // A status stands before its reasons.
  return [...row.answer.matchAll(/`(\d+)`((?:,? `[A-Za-z]\w+`)+)/g)].flatMap(([, status, reasons]) =>
    [...reasons!.matchAll(/\w+/g)].map(([reason]) => {
      const voip = { status: Number(status), reason }
      const answers = usual === PIXEL ? { fcm: repeated(google(Number(status), reason)) } : { voip }
      return { scenario: { push: usual, ...answers }, reason }
    }),
  )
}
const EXPIRES = new Set(['the same for the new provider token'])

/** One ring in trouble, and the way of the next one without; the first as the cells of a row. */
async function play(t: Test, scenario: Scenario): Promise<Omit<Row, 'answer'> & { readonly next: string }> {
  const stage = await Stage.open(t, scenario)
  const outcome = await stage.ring()
  const { pushes, seen, tokens } = stage
  const name = scenario.push.fcmToken === undefined ? 'apnsVoipToken' : 'fcmToken'
  const isDoubted = tokens?.doubtedAtMs?.[name] !== undefined
  const later = pushes.slice(1).map(({ way, host, atMs }) => {
    const isAgain = way === pushes[0]!.way
    const isElsewhere = host !== pushes[0]!.host
    const what = isAgain ? `${way} ${isElsewhere ? 'at the other host' : 'again'}` : way
    return `${what} at ${atMs === 0 ? 'once' : `${atMs / 1_000} s`}`
  })
  if (outcome.kind === 'retry')
    later.push(later.length === 0 ? 'every few seconds' : 'then every few seconds')
  if (outcome.kind !== 'sent' && 'reason' in outcome) seen.push(`\`${outcome.kind}\`, \`${outcome.reason}\``)
  const after = await Stage.open(t, { push: tokens ?? NO_TOKENS })
  await after.ring()
  return {
    ring: later.join(', ') || 'nothing',
    token: tokens?.[name] === undefined ? 'dropped' : isDoubted ? 'in doubt' : 'kept',
    next: after.pushes[0]?.way ?? 'none',
    seen: [...new Set(seen)].join() || 'nothing',
  }
}

const NO_TOKENS: PushTokens = { registeredAtMs: {} }
const WARMING = {
  token: 'aa'.repeat(32),
  environment: 'production',
  topic: 'org.example.callsign',
  pushType: 'background',
  priority: 5,
  expiresAtMs: 0,
  id: '7f3c2b9e-0c1d-4e5f-8a9b-0c1d2e3f4a5b',
  payload: { aps: {} },
  data: {},
} as const
const HOSTS = { production: 'localhost', development: '127.0.0.1' }

/** A device that rings through the stand-ins, by a clock that moves when all that can be answered is. */
class Stage {
  readonly pushes: { readonly way: string; readonly host: string; readonly atMs: number }[] = []
  readonly seen: string[] = []
  tokens: PushTokens | undefined
  readonly #delivery: Delivery
  readonly #silent: () => number
  readonly #waits: { readonly atMs: number; readonly resolve: () => void }[] = []
  #atMs = 0
  #sending = 0

  constructor(apns: ApnsSender, fcm: FcmSender, push: PushTokens, silent: () => number) {
    this.tokens = push
    this.#silent = silent
    this.#delivery = new Delivery({
      senders: {
        apns: { send: push => this.#counted(apns.send(push)) },
        fcm: { send: push => this.#counted(fcm.send(push)) },
      },
      letters: { appName: 'Callsign', domain: 'call.example', language: 'en' },
      nowMs: () => NOW_MS + this.#atMs,
      deviceOf: () => ({ ...DEVICE, ...(this.tokens && { push: this.tokens }) }),
      badgeOf: () => 0,
      isRinging: () => true,
      judgeToken: async (_user, _device, judged) => {
        this.tokens = this.tokens && pushTokensJudged(this.tokens, judged)
      },
      setApnsEnvironment: async () => {},
      onRingTaken: () => undefined,
      wait: ms => new Promise<void>(resolve => this.#waits.push({ atMs: this.#atMs + ms, resolve })),
      onTryFailed: outcome => {
        if ('reason' in outcome) this.seen.push(`\`${outcome.kind}\`, \`${outcome.reason}\``)
      },
    })
  }

  static async open(t: Test, { push, apns, voip, fcm, purchases, isAway }: Scenario): Promise<Stage> {
    const [apple, googles] = await Promise.all([startApnsStandIn(), startFcmStandIn()])
    const { key, keyId, teamId, ca, port } = apple
    const trust = isAway === 'distrusted' ? {} : { ca }
    const apnsSender = new ApnsSender({
      key,
      keyId,
      teamId,
      port,
      hosts: HOSTS,
      urgentTimeoutMs: 60_000,
      ...trust,
    })
    const url = isAway === 'distrusted' ? `https://localhost:${port}` : googles.url
    const fcmSender = new FcmSender({ serviceAccount: googles.serviceAccount, url, urgentTimeoutMs: 500 })
    // Sessions are open when the ring comes, where they can be.
    if (isAway === undefined && purchases === undefined) {
      await Promise.all([
        apnsSender.send(WARMING),
        fcmSender.send({ ...WARMING, priority: 'high', ttlSeconds: 1 }),
      ])
    }
    const isSilent = (answer: unknown) => answer === 'silence'
    let silent = 0
    const stage = new Stage(apnsSender, fcmSender, push, () => {
      const count = googles.messages.length - 1
      return silent + (fcm ?? []).slice(0, count).filter(isSilent).length
    })
    const answers = [...(apns ?? [])]
    apple.decide = ({ token, host }) => {
      stage.#saw(token === VOIP ? 'VoIP' : 'alert', host)
      const answer = (token === VOIP ? voip : undefined) ?? answers.shift() ?? { status: 200 }
      if (isSilent(answer)) silent++
      return answer
    }
    googles.onMessage = () => stage.#saw('FCM', '')
    googles.answerNext(...(fcm ?? []))
    googles.answerNextPurchase(...(purchases ?? []))
    t.teardown(async () => {
      apnsSender.close()
      fcmSender.close()
      await Promise.all([apple.close(), googles.close()])
    })
    if (isAway === 'closed') await Promise.all([apple.close(), googles.close()])
    return stage
  }

  async ring(): Promise<DeliveryOutcome | Skipped> {
    const { now } = performance
    // A session is silent by this clock.
    performance.now = () => now.call(performance) + this.#atMs
    const message = {
      channel: 'push',
      userId: USER,
      deviceId: DEVICE.deviceId,
      notice: INVITATION,
      provider: 'apns',
    } as const
    const outcome = this.#delivery.send({ ...message, expiresAtMs: NOW_MS + 60_000 })
    for (const atMs of [0, 1_000, 2_500, 3_000]) {
      this.#atMs = atMs
      for (const wait of this.#waits) if (wait.atMs <= atMs) wait.resolve()
      do await new Promise(setImmediate)
      while (this.#sending > this.#silent())
    }
    performance.now = now
    return outcome
  }

  #saw(way: string, host: string): void {
    this.pushes.push({ way, host, atMs: this.#atMs })
  }

  async #counted<Outcome>(sending: Promise<Outcome>): Promise<Outcome> {
    this.#sending++
    const outcome = await sending
    this.#sending--
    return outcome
  }
}

for (const [name, rows, usual, special] of [
  ['Apple', APPLE_ROWS, IPHONE, APPLES],
  ['Google', GOOGLE_ROWS, PIXEL, GOOGLES_OWN],
] as const) {
  for (const row of rows) {
    t.test(`${name}: ${row.answer}`, async t => {
      const plays = playsOf(row, usual, special)
      t.ok(plays.length > 0, 'the row can be played')
      for (const { scenario, reason = '' } of plays) {
        const { ring, token, seen } = row
        const [way, without] = usual === PIXEL ? ['FCM', 'none'] : ['VoIP', 'alert']
        const next = token === 'dropped' ? without : way
        const expected = { ring, token, next, seen: seen.replace('the reason', `\`${reason}\``) }
        t.same(await play(t, scenario), expected, reason)
      }
    })
  }
  t.test(`${name}: no play is without its row`, async t => {
    t.same(
      Object.keys(special).filter(answer => !rows.some(row => row.answer === answer)),
      [],
    )
  })
}

t.test('each documented reason has a row', async t => {
  const named = [...APPLE_ROWS, ...GOOGLE_ROWS].map(({ answer }) => answer).join()
  t.same(
    DOCUMENTED.split(/\s+/).filter(reason => !named.includes(`\`${reason}\``)),
    [],
  )
})
