/** The state tables of a call and of its participants (contract 4.2), each command against each state. */

import t from 'tap'
import { type Call, isOver } from '../../../src/domain/calls/call.ts'
import type { CallDecision } from '../../../src/domain/calls/call-command.ts'
import { decide } from '../../../src/domain/calls/call-decision.ts'
import type { UserId } from '../../../src/domain/ids.ts'
import { CallHouse, deviceOf, keyFor, type UntimedCommand } from '../../support/call-house.ts'

/** The commands' sender; 1 has started the call, 2 is called as well. */
const SUBJECT = 3
const [HOST, OTHER] = [deviceOf(1), deviceOf(2)]

/** Each way to a state, in a call whose other callee has joined it, or not yet. */
const WAYS: Record<string, (house: CallHouse) => void> = {
  invited: () => {},
  ringing: house => house.run({ kind: 'ringing', by: deviceOf(SUBJECT) }),
  joined: house => house.join(SUBJECT),
  left: house => {
    house.join(SUBJECT)
    house.run({ kind: 'leave', by: deviceOf(SUBJECT) })
  },
  lost: house => {
    house.join(SUBJECT)
    house.wait(90_000)
  },
  declined: house => house.run({ kind: 'decline', by: deviceOf(SUBJECT) }),
  busy: house => house.run({ kind: 'decline', by: deviceOf(SUBJECT), reason: 'busy' }),
  missed: house => house.run({ kind: 'decline', by: deviceOf(SUBJECT), reason: 'timeout' }),
  removed: house => house.run({ kind: 'remove', by: HOST, userId: BigInt(SUBJECT) as UserId }),
}

const COMMANDS: Record<string, (house: CallHouse, user: number) => CallDecision> = {
  join: (house, user) => house.decide({ kind: 'join', by: deviceOf(user) }),
  decline: (house, user) => house.decide({ kind: 'decline', by: deviceOf(user) }),
  leave: (house, user) => house.decide({ kind: 'leave', by: deviceOf(user) }),
  ringing: (house, user) => house.decide({ kind: 'ringing', by: deviceOf(user) }),
  ask: (house, user) => house.decide({ kind: 'request-rejoin', by: deviceOf(user) }),
  rejoin: (house, user) => house.decide({ kind: 'rejoin', by: deviceOf(user) }),
  end: (house, user) => house.decide({ kind: 'end', by: deviceOf(user) }),
  remove: (house, user) => house.decide({ kind: 'remove', by: deviceOf(user), userId: OTHER.userId }),
  invite: (house, user) => house.decide(house.inviteCommand([4], deviceOf(user)), house.facts([4], user)),
  keys: (house, user) => house.decide(house.keysCommand(deviceOf(user), [OTHER], 2)),
  answer: (house, user) =>
    house.decide({
      kind: 'accept-rejoin',
      by: deviceOf(user),
      encryptedAESKey: keyFor(OTHER),
      requesterUserId: OTHER.userId,
      requesterDeviceId: OTHER.deviceId,
    }),
}

/** A refusal's code, an ended call's status with it, the new state, `tells`, or `=` without any change. */
function wordOf(before: Call, user: number, decision: CallDecision): string {
  if (decision.kind === 'refused') return decision.code
  const stateIn = ({ participants }: Call) =>
    participants.find(({ userId }) => userId === BigInt(user))?.state
  const { call, effects } = decision
  if (isOver(call) && !isOver(before)) return call.status
  if (stateIn(call) !== stateIn(before)) return stateIn(call) ?? 'nobody'
  return effects.length > 0 ? 'tells' : '='
}

/** The rows of a table in text: the first line names the columns. */
function rowsOf(text: string): { readonly name: string; readonly cells: ReadonlyMap<string, string> }[] {
  const [head, ...lines] = text
    .trim()
    .split('\n')
    .map(line => line.trim().split(/\s+/))
  return lines.map(([name, ...cells]) => ({
    name: name!,
    cells: new Map(head!.map((column, at) => [column, cells[at] ?? '?'])),
  }))
}

/** Every cell's actual and expected value in a row. */
function cellsOf(house: CallHouse, user: number, cells: ReadonlyMap<string, string>) {
  const found = [...cells.keys()].map(command => {
    const word = wordOf(house.call, user, COMMANDS[command]!(house, user))
    return `${command}: ${word}`
  })
  return { found, wanted: [...cells].map(([command, word]) => `${command}: ${word}`) }
}

function ringingHouse(): CallHouse {
  const house = new CallHouse()
  house.start([2, SUBJECT])
  for (const device of [HOST, OTHER]) house.run({ kind: 'device-online', by: device })
  return house
}

function activeHouse(): CallHouse {
  const house = ringingHouse()
  house.join(2)
  house.run({ kind: 'device-online', by: OTHER })
  return house
}

const IN_ACTIVE_CALL = `
            join             decline   leave     ringing  ask              rejoin           end              remove           invite           keys             answer
  invited   joined           declined  declined  ringing  tells            REJOIN_REQUIRED  NOT_HOST         NOT_HOST         NOT_PARTICIPANT  NOT_PARTICIPANT  NOT_PARTICIPANT
  ringing   joined           declined  declined  =        tells            REJOIN_REQUIRED  NOT_HOST         NOT_HOST         NOT_PARTICIPANT  NOT_PARTICIPANT  NOT_PARTICIPANT
  joined    =                =         left      =        tells            =                NOT_HOST         NOT_HOST         tells            NOT_HOST         =
  left      REJOIN_REQUIRED  =         =         =        tells            REJOIN_REQUIRED  NOT_HOST         NOT_HOST         NOT_PARTICIPANT  NOT_PARTICIPANT  NOT_PARTICIPANT
  lost      REJOIN_REQUIRED  =         =         =        tells            REJOIN_REQUIRED  NOT_HOST         NOT_HOST         NOT_PARTICIPANT  NOT_PARTICIPANT  NOT_PARTICIPANT
  declined  REJOIN_REQUIRED  =         =         =        tells            REJOIN_REQUIRED  NOT_HOST         NOT_HOST         NOT_PARTICIPANT  NOT_PARTICIPANT  NOT_PARTICIPANT
  busy      REJOIN_REQUIRED  =         =         =        tells            REJOIN_REQUIRED  NOT_HOST         NOT_HOST         NOT_PARTICIPANT  NOT_PARTICIPANT  NOT_PARTICIPANT
  missed    joined           =         =         =        tells            REJOIN_REQUIRED  NOT_HOST         NOT_HOST         NOT_PARTICIPANT  NOT_PARTICIPANT  NOT_PARTICIPANT
  removed   NOT_PARTICIPANT  NOT_PARTICIPANT  =  NOT_PARTICIPANT  NOT_PARTICIPANT  NOT_PARTICIPANT  NOT_PARTICIPANT  NOT_PARTICIPANT  NOT_PARTICIPANT  NOT_PARTICIPANT  NOT_PARTICIPANT`

t.test('every command of a participant in every state, in an active call', async t => {
  for (const { name, cells } of rowsOf(IN_ACTIVE_CALL)) {
    const house = activeHouse()
    WAYS[name]!(house)
    t.equal(house.call.status, 'active')
    t.equal(house.person(SUBJECT).state, name)
    const { found, wanted } = cellsOf(house, SUBJECT, cells)
    t.same(found, wanted, name)
  }
})

const IN_RINGING_CALL = `
            join             decline   leave     ringing  ask              rejoin           end       remove    invite           keys             answer
  invited   joined           declined  declined  ringing  CALL_NOT_ACTIVE  CALL_NOT_ACTIVE  NOT_HOST  NOT_HOST  NOT_PARTICIPANT  CALL_NOT_ACTIVE  CALL_NOT_ACTIVE
  ringing   joined           declined  declined  =        CALL_NOT_ACTIVE  CALL_NOT_ACTIVE  NOT_HOST  NOT_HOST  NOT_PARTICIPANT  CALL_NOT_ACTIVE  CALL_NOT_ACTIVE
  declined  CALL_NOT_ACTIVE  =         =         =        CALL_NOT_ACTIVE  CALL_NOT_ACTIVE  NOT_HOST  NOT_HOST  NOT_PARTICIPANT  CALL_NOT_ACTIVE  CALL_NOT_ACTIVE
  busy      CALL_NOT_ACTIVE  =         =         =        CALL_NOT_ACTIVE  CALL_NOT_ACTIVE  NOT_HOST  NOT_HOST  NOT_PARTICIPANT  CALL_NOT_ACTIVE  CALL_NOT_ACTIVE
  missed    CALL_NOT_ACTIVE  =         =         =        CALL_NOT_ACTIVE  CALL_NOT_ACTIVE  NOT_HOST  NOT_HOST  NOT_PARTICIPANT  CALL_NOT_ACTIVE  CALL_NOT_ACTIVE
  removed   NOT_PARTICIPANT  NOT_PARTICIPANT  =  NOT_PARTICIPANT  NOT_PARTICIPANT  NOT_PARTICIPANT  NOT_PARTICIPANT  NOT_PARTICIPANT  NOT_PARTICIPANT  NOT_PARTICIPANT  NOT_PARTICIPANT`

t.test('every command of a callee in every state, in an unanswered call', async t => {
  for (const { name, cells } of rowsOf(IN_RINGING_CALL)) {
    const house = ringingHouse()
    WAYS[name]!(house)
    t.equal(house.call.status, 'ringing')
    t.equal(house.person(SUBJECT).state, name)
    const { found, wanted } = cellsOf(house, SUBJECT, cells)
    t.same(found, wanted, name)
  }
})

const OF_THE_HOST = `
            join  decline  leave      ringing  ask              rejoin           end        remove  invite  keys             answer
  ringing   =     =        cancelled  =        CALL_NOT_ACTIVE  CALL_NOT_ACTIVE  cancelled  tells   tells   CALL_NOT_ACTIVE  CALL_NOT_ACTIVE
  active    =     =        left       =        tells            =                ended      tells   tells   tells            =`

t.test('every command of the initiator', async t => {
  for (const { name, cells } of rowsOf(OF_THE_HOST)) {
    const house = name === 'ringing' ? ringingHouse() : activeHouse()
    const { found, wanted } = cellsOf(house, 1, cells)
    t.same(found, wanted, name)
  }
})

/** Ways to each end of a call. */
const ENDS: Record<string, () => CallHouse> = {
  ended: () => {
    const house = activeHouse()
    house.run({ kind: 'end', by: HOST })
    return house
  },
  cancelled: () => {
    const house = ringingHouse()
    house.run({ kind: 'end', by: HOST })
    return house
  },
  missed: () => {
    const house = ringingHouse()
    house.wait(65_000)
    return house
  },
  declined: () => {
    const house = ringingHouse()
    house.run({ kind: 'decline', by: OTHER })
    house.run({ kind: 'decline', by: deviceOf(SUBJECT), reason: 'busy' })
    return house
  },
}

t.test('an ended call never changes, and refuses all but ending and leaving', async t => {
  const goes = new Set(['leave', 'end'])
  let tried = 0
  for (const [status, way] of Object.entries(ENDS)) {
    const house = way()
    t.equal(house.call.status, status)
    for (const user of [1, 2, SUBJECT]) {
      const hasSaidNo = ['declined', 'busy'].includes(house.person(user).state)
      for (const [name, command] of Object.entries(COMMANDS)) {
        const word = wordOf(house.call, user, command(house, user))
        const isFine = goes.has(name) || (name === 'decline' && hasSaidNo)
        t.equal(word, isFine ? '=' : 'CALL_ENDED', `${status}: ${name} of ${user}`)
        tried++
      }
    }
    for (const kind of [
      'device-online',
      'device-offline',
      'device-seen',
      'device-signed-out',
      'device-removed',
    ] as const) {
      t.equal(house.run({ kind, by: HOST }).call, house.call)
    }
    const before = house.call
    t.same([house.wait(1e12).call === before, house.call.status], [true, status])
  }
  t.equal(tried, 4 * 3 * 11)
})

t.test('of a call that one has no part in, or that is none, nothing is said', async t => {
  const house = activeHouse()
  const commands = Object.entries(COMMANDS)
  t.same(
    commands.map(([, command]) => wordOf(house.call, 9, command(house, 9))),
    commands.map(() => 'CALL_NOT_FOUND'),
  )
  const none = decide(undefined, { kind: 'join', by: HOST, nowMs: 0 })
  t.same(none, house.decide({ kind: 'join', by: deviceOf(9) }))
  t.match(house.decide({ kind: 'device-online', by: deviceOf(9) }), { kind: 'accepted', effects: [] })
})

/** Contract 4.2, the table of calls: what happens to one, then what it is. */
const CALLS: readonly (readonly [string, (house: CallHouse) => void, string, string | undefined])[] = [
  ['the start', () => {}, 'ringing', undefined],
  ['the first callee joins', house => house.join(2), 'active', undefined],
  ['the initiator ends', house => house.run({ kind: 'end', by: HOST }), 'cancelled', 'cancelled'],
  ['the initiator leaves', house => house.run({ kind: 'leave', by: HOST }), 'cancelled', 'cancelled'],
  ['one of two declines', house => declined(house, 2), 'ringing', undefined],
  ['both decline', house => declined(house, 2, 3), 'declined', 'declined'],
  [
    'one declines and one is busy',
    house => {
      declined(house, 2)
      house.run({ kind: 'decline', by: deviceOf(3), reason: 'busy' })
    },
    ...(['declined', 'declined'] as const),
  ],
  [
    'one declines and one rings out',
    house => {
      declined(house, 2)
      house.run({ kind: 'decline', by: deviceOf(3), reason: 'timeout' })
    },
    ...(['missed', 'unanswered'] as const),
  ],
  ['the host removes all', house => removed(house, 2, 3), 'cancelled', 'cancelled'],
  ['65 seconds but one millisecond', house => house.wait(64_999), 'ringing', undefined],
  ['65 seconds', house => house.wait(65_000), 'missed', 'unanswered'],
  [
    '65 seconds, then a callee who was invited later',
    house => {
      house.wait(30_000)
      house.invite([4], HOST)
      house.wait(64_999)
    },
    ...(['ringing', undefined] as const),
  ],
  [
    '65 seconds after the last invitation',
    house => {
      house.wait(30_000)
      house.invite([4], HOST)
      house.wait(65_000)
    },
    ...(['missed', 'unanswered'] as const),
  ],
  ['the host ends it when active', house => joinedThen(house, { kind: 'end', by: HOST }), 'ended', 'hangup'],
  [
    'the only callee in it leaves',
    house => joinedThen(house, { kind: 'leave', by: OTHER }),
    'active',
    undefined,
  ],
]

t.test('each row of the table of calls', async t => {
  for (const [name, happens, status, endReason] of CALLS) {
    const house = ringingHouse()
    happens(house)
    t.same([house.call.status, house.call.endReason], [status, endReason], name)
    t.equal(house.call.endedAtMs, isOver(house.call) ? house.nowMs : undefined, `${name}: when`)
    t.equal(house.call.startedAtMs !== undefined, ['active', 'ended'].includes(status), `${name}: started`)
  }
})

function declined(house: CallHouse, ...users: number[]): void {
  for (const user of users) house.run({ kind: 'decline', by: deviceOf(user) })
}

function removed(house: CallHouse, ...users: number[]): void {
  for (const user of users) house.run({ kind: 'remove', by: HOST, userId: BigInt(user) as UserId })
}

function joinedThen(house: CallHouse, command: UntimedCommand): void {
  house.join(2)
  house.run(command)
}
