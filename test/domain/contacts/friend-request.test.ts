/** The rules of friend requests: the contract's cases, every state under every command, and what can't be observed. */

import t from 'tap'
import {
  CONTACTS_MAX,
  closed,
  decideAccept,
  decideBlock,
  decideCancel,
  decideDecline,
  decideRequest,
  expired,
  type FriendRequest,
  forgottenAtMs,
  INCOMING_MAX,
  isOpenToReceiver,
  isOpenToSender,
  OUTGOING_MAX,
  type Pair,
  REQUEST_OPEN_MS,
  type RequestCounts,
  type RequestDecision,
  type RequestRoute,
  relationOf,
} from '../../../src/domain/contacts/friend-request.ts'
import type { RequestId, UserId } from '../../../src/domain/ids.ts'

const NOW = 1_800_000_000_000
const DAY = 86_400_000
const ANN = 1n as UserId
const BOB = 2n as UserId
const FEW: RequestCounts = { contacts: 0, outgoing: 0, unshown: 0, otherIncoming: 0 }

function requestOf(senderId: UserId, changes: Partial<FriendRequest> = {}): FriendRequest {
  const receiverId = senderId === ANN ? BOB : ANN
  const is = { state: 'pending', isDelivered: true, isShown: true, isByToken: false } as const
  return { requestId: 9n as RequestId, senderId, receiverId, ...is, createdAtMs: NOW - DAY, ...changes }
}

function pairOf(changes: Partial<Pair> = {}): Pair {
  return {
    areContacts: false,
    hasBlocked: false,
    isBlocked: false,
    sent: undefined,
    received: undefined,
    quietUntilMs: 0,
    ...changes,
  }
}

/** In a word what the decision is. */
function wordOf(decision: RequestDecision): string {
  if (decision.kind === 'refused') return decision.code
  if (decision.kind !== 'created') return decision.kind
  return decision.isDelivered ? 'delivered' : 'withheld'
}

const STANDING: readonly (readonly [name: string, Partial<FriendRequest> | undefined])[] = [
  ['none', undefined],
  ['pending', {}],
  ['declined', { state: 'declined' }],
  ['undelivered', { isDelivered: false }],
  ['unshown', { isShown: false }],
  ['unshown, declined', { isShown: false, state: 'declined' }],
]
const ROUTES: readonly RequestRoute[] = ['id', 'token', 'address']

t.test('the cases of the contract', async t => {
  const cases: readonly (readonly [string, Partial<Pair>, string])[] = [
    ['new', {}, 'delivered'],
    ['same request pending', { sent: requestOf(ANN) }, 'repeated'],
    ['same request, which was declined', { sent: requestOf(ANN, { state: 'declined' }) }, 'repeated'],
    ['the other side has asked', { received: requestOf(BOB) }, 'crossed'],
    ['the other side was declined before', { received: requestOf(BOB, { state: 'declined' }) }, 'crossed'],
    ['contacts', { areContacts: true }, 'ALREADY_FRIENDS'],
    ['blocked by the target', { isBlocked: true }, 'withheld'],
    ['declined less than seven days ago', { quietUntilMs: NOW + 1 }, 'withheld'],
    ['declined seven days ago', { quietUntilMs: NOW }, 'delivered'],
    ['blocked by oneself', { hasBlocked: true }, 'USER_BLOCKED'],
  ]
  for (const [name, pair, word] of cases) {
    t.equal(wordOf(decideRequest(pairOf(pair), 'id', FEW, NOW)), word, name)
  }
})

t.test('each limit holds at its edge', async t => {
  const word = (counts: Partial<RequestCounts>, route: RequestRoute = 'id', pair: Partial<Pair> = {}) =>
    wordOf(decideRequest(pairOf(pair), route, { ...FEW, ...counts }, NOW))
  t.equal(word({ contacts: CONTACTS_MAX - 1 }), 'delivered')
  t.equal(word({ contacts: CONTACTS_MAX }), 'CONTACT_LIMIT')
  t.equal(word({ contacts: CONTACTS_MAX }, 'id', { received: requestOf(BOB) }), 'CONTACT_LIMIT')
  t.equal(word({ outgoing: OUTGOING_MAX - 1 }), 'delivered')
  t.equal(word({ outgoing: OUTGOING_MAX }), 'PENDING_LIMIT')
  t.equal(word({ outgoing: OUTGOING_MAX }, 'id', { received: requestOf(BOB) }), 'crossed')
  t.equal(word({ outgoing: OUTGOING_MAX }, 'id', { sent: requestOf(ANN) }), 'repeated')
  t.equal(word({ outgoing: OUTGOING_MAX }, 'address'), 'delivered', 'it is in no list of the sender')
  t.equal(word({ unshown: 100 }, 'address'), 'PENDING_LIMIT')
  t.equal(word({ unshown: 100 }), 'delivered')
  t.equal(word({ otherIncoming: INCOMING_MAX - 1 }), 'delivered')
  t.equal(word({ otherIncoming: INCOMING_MAX }), 'withheld')
})

/** Every pair, route and count that rules tell apart. */
function* everySituation() {
  for (const route of ROUTES)
    for (const [, sent] of STANDING)
      for (const [, received] of STANDING)
        for (let bits = 0; bits < 2 ** 8; bits++) {
          const is = (bit: number) => (bits & (1 << bit)) !== 0
          const pair = pairOf({
            areContacts: is(0),
            hasBlocked: is(1),
            isBlocked: is(2),
            quietUntilMs: is(3) ? NOW + 1 : 0,
            sent: sent && requestOf(ANN, sent),
            received: received && requestOf(BOB, received),
          })
          const counts = {
            contacts: is(4) ? CONTACTS_MAX : 0,
            outgoing: is(5) ? OUTGOING_MAX : 0,
            unshown: is(6) ? 100 : 0,
            otherIncoming: is(7) ? INCOMING_MAX : 0,
          }
          yield { route, pair, counts }
        }
}

t.test('what the sender is answered depends on nothing that the sender must not know', async t => {
  const answers = new Map<string, Set<string>>()
  let situations = 0
  for (const { route, pair, counts } of everySituation()) {
    situations++
    // A search by address is always answered alike.
    if (route === 'address') continue
    const { areContacts, hasBlocked, sent, received } = pair
    const { contacts, outgoing } = counts
    const known = [
      areContacts,
      hasBlocked,
      sent?.isShown === true,
      received !== undefined,
      contacts,
      outgoing,
    ]
    const decision = decideRequest(pair, route, counts, NOW)
    const answer = decision.kind === 'refused' ? decision.code : decision.kind
    const key = known.join()
    answers.set(key, (answers.get(key) ?? new Set()).add(answer))
  }
  t.equal(situations, 3 * 36 * 2 ** 8)
  t.equal(answers.size, 2 ** 6)
  t.same(
    [...answers].filter(([, given]) => given.size !== 1),
    [],
  )
})

t.test('a search by address repeats an unshown request, and a request by id takes its place', async t => {
  const sent = requestOf(ANN, { isShown: false })
  t.equal(wordOf(decideRequest(pairOf({ sent }), 'address', FEW, NOW)), 'repeated')
  const decision = decideRequest(pairOf({ sent }), 'id', FEW, NOW)
  t.match(decision, { kind: 'created', isDelivered: true })
  t.equal(decision.kind === 'created' && decision.replaces, sent)
})

t.test('a token that is shown for a request that stands makes it one by token', async t => {
  const byToken = (route: RequestRoute, isByToken: boolean) => {
    const decision = decideRequest(pairOf({ sent: requestOf(ANN, { isByToken }) }), route, FEW, NOW)
    return decision.kind === 'repeated' && decision.request.isByToken
  }
  t.same([byToken('token', false), byToken('id', false), byToken('id', true)], [true, false, true])
})

t.test('every state under every command', async t => {
  const states: Record<string, FriendRequest> = {
    pending: requestOf(ANN),
    undelivered: requestOf(ANN, { isDelivered: false }),
    unshown: requestOf(ANN, { isShown: false }),
    declined: requestOf(ANN, { state: 'declined' }),
    accepted: closed(requestOf(ANN), 'accepted', NOW - 1),
    cancelled: closed(requestOf(ANN), 'cancelled', NOW - 1),
    expired: closed(requestOf(ANN), 'expired', NOW - 1),
    'due to expire': requestOf(ANN, { createdAtMs: NOW - REQUEST_OPEN_MS }),
  }
  const commands = {
    'receiver accepts': (request: FriendRequest) => decideAccept(request, BOB, 0, NOW),
    'receiver declines': (request: FriendRequest) => decideDecline(request, BOB, NOW),
    'receiver cancels': (request: FriendRequest) => decideCancel(request, BOB, NOW),
    'sender accepts': (request: FriendRequest) => decideAccept(request, ANN, 0, NOW),
    'sender declines': (request: FriendRequest) => decideDecline(request, ANN, NOW),
    'sender cancels': (request: FriendRequest) => decideCancel(request, ANN, NOW),
  }
  const table: Record<string, Record<string, string>> = {}
  for (const [state, request] of Object.entries(states)) {
    const row: Record<string, string> = {}
    for (const [command, decide] of Object.entries(commands)) {
      const decision = decide(request)
      row[command] = decision.kind === 'refused' ? decision.code : decision.request.state
    }
    table[state] = row
  }
  const NONE = 'REQUEST_NOT_FOUND'
  const OVER = 'REQUEST_CLOSED'
  const row = (accept: string, decline: string, cancel: string) => ({
    'receiver accepts': accept,
    'receiver declines': decline,
    'receiver cancels': NONE,
    'sender accepts': NONE,
    'sender declines': NONE,
    'sender cancels': cancel,
  })
  t.same(table, {
    pending: row('accepted', 'declined', 'cancelled'),
    undelivered: row(NONE, NONE, 'cancelled'),
    unshown: row('accepted', 'declined', NONE),
    declined: row(OVER, OVER, 'cancelled'),
    accepted: row(OVER, OVER, OVER),
    cancelled: row(OVER, OVER, OVER),
    expired: row(OVER, OVER, OVER),
    'due to expire': row(OVER, OVER, OVER),
  })
  t.match(decideAccept(undefined, BOB, 0, NOW), { code: NONE })
  t.match(decideAccept(states.pending, BOB, CONTACTS_MAX, NOW), { code: 'CONTACT_LIMIT' })
  t.match(decideAccept(states.pending, BOB, CONTACTS_MAX - 1, NOW), { kind: 'closed' })
})

t.test('a request ends to the millisecond after 30 days, and is forgotten after 30 more', async t => {
  const request = requestOf(ANN, { createdAtMs: NOW })
  const end = NOW + 30 * DAY
  t.same([isOpenToSender(request, end - 1), isOpenToSender(request, end)], [true, false])
  t.same([isOpenToReceiver(request, end - 1), isOpenToReceiver(request, end)], [true, false])
  t.same([expired(request, end - 1), expired(request, end)?.state], [undefined, 'expired'])
  t.equal(expired(closed(request, 'cancelled', NOW), end), undefined, 'what is closed stays as it is')
  t.equal(forgottenAtMs(request), end + 30 * DAY)
  t.equal(forgottenAtMs(closed(request, 'accepted', NOW + 5)), NOW + 5 + 30 * DAY)
})

t.test('a request’s message is deleted when it is closed', async t => {
  const request = requestOf(ANN, { message: 'hello' })
  t.equal(closed(request, 'cancelled', NOW).message, undefined)
  t.equal(expired(request, NOW + REQUEST_OPEN_MS)?.message, undefined)
})

t.test('a relation shows what the viewer may know', async t => {
  const relation = (changes: Partial<Pair>) => relationOf(pairOf(changes), NOW)
  t.equal(relation({}), 'none')
  t.equal(relation({ areContacts: true }), 'contact')
  const sent = STANDING.map(([, changes]) => relation({ sent: changes && requestOf(ANN, changes) }))
  t.same(sent, ['none', 'outgoing', 'outgoing', 'outgoing', 'none', 'none'])
  const received = STANDING.map(([, changes]) => relation({ received: changes && requestOf(BOB, changes) }))
  t.same(received, ['none', 'incoming', 'none', 'none', 'incoming', 'none'])
  t.same([relation({ isBlocked: true }), relation({ hasBlocked: true })], ['none', 'none'])
})

t.test('a block ends a link and both kinds of request', async t => {
  const [sent, received] = [requestOf(ANN), requestOf(BOB)]
  t.same(decideBlock(pairOf({ areContacts: true }), NOW), {
    unlinks: true,
    cancels: undefined,
    declines: undefined,
  })
  t.equal(decideBlock(pairOf({ sent }), NOW).cancels, sent)
  t.equal(decideBlock(pairOf({ received }), NOW).declines, received)
  const undelivered = requestOf(BOB, { isDelivered: false })
  t.equal(decideBlock(pairOf({ received: undelivered }), NOW).declines, undefined, 'it never came')
})
