/** The state tables of a call and of its participants (contract 4.2), each command against each state. */

import t from 'tap'
import { type Call, isOver } from '../../../src/domain/calls/call.ts'
import { type CallAccepted, type CallDecision, NO_FACTS } from '../../../src/domain/calls/call-command.ts'
import { decide } from '../../../src/domain/calls/call-decision.ts'
import type { UserId } from '../../../src/domain/ids.ts'
import { CallDriver, deviceOf, keyFor, type UntimedCommand } from '../../support/call-driver.ts'

/** The commands' sender; 1 has started the call, 2 is called as well. */
const SUBJECT = 3
const [HOST, OTHER] = [deviceOf(1), deviceOf(2)]

/** Each way to a state, in a call whose other callee has joined it, or not yet. */
const WAYS: Record<string, (driver: CallDriver) => void> = {
  invited: () => {},
  ringing: driver => driver.run({ kind: 'ringing', by: deviceOf(SUBJECT) }),
  joined: driver => driver.join(SUBJECT),
  left: driver => {
    driver.join(SUBJECT)
    driver.run({ kind: 'leave', by: deviceOf(SUBJECT) })
  },
  lost: driver => {
    driver.join(SUBJECT)
    driver.wait(90_000)
  },
  declined: driver => driver.run({ kind: 'decline', by: deviceOf(SUBJECT) }),
  busy: driver => driver.run({ kind: 'decline', by: deviceOf(SUBJECT), reason: 'busy' }),
  missed: driver => driver.run({ kind: 'decline', by: deviceOf(SUBJECT), reason: 'timeout' }),
  removed: driver => driver.run({ kind: 'remove', by: HOST, userId: BigInt(SUBJECT) as UserId }),
}

const COMMANDS: Record<string, (driver: CallDriver, user: number) => CallDecision> = {
  join: (driver, user) => driver.decide({ kind: 'join', by: deviceOf(user) }),
  decline: (driver, user) => driver.decide({ kind: 'decline', by: deviceOf(user) }),
  leave: (driver, user) => driver.decide({ kind: 'leave', by: deviceOf(user) }),
  ringing: (driver, user) => driver.decide({ kind: 'ringing', by: deviceOf(user) }),
  ask: (driver, user) => driver.decide({ kind: 'request-rejoin', by: deviceOf(user) }),
  rejoin: (driver, user) => driver.decide({ kind: 'rejoin', by: deviceOf(user) }),
  end: (driver, user) => driver.decide({ kind: 'end', by: deviceOf(user) }),
  remove: (driver, user) => driver.decide({ kind: 'remove', by: deviceOf(user), userId: OTHER.userId }),
  invite: (driver, user) => driver.decide(driver.inviteCommand([4], deviceOf(user)), driver.facts([4], user)),
  keys: (driver, user) => driver.decide(driver.keysCommand(deviceOf(user), [OTHER], 2)),
  answer: (driver, user) =>
    driver.decide({
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
function cellsOf(driver: CallDriver, user: number, cells: ReadonlyMap<string, string>) {
  const found = [...cells.keys()].map(command => {
    const word = wordOf(driver.call, user, COMMANDS[command]!(driver, user))
    return `${command}: ${word}`
  })
  return { found, wanted: [...cells].map(([command, word]) => `${command}: ${word}`) }
}

function ringingDriver(): CallDriver {
  const driver = new CallDriver()
  driver.start([2, SUBJECT])
  for (const device of [HOST, OTHER]) driver.run({ kind: 'device-online', by: device })
  return driver
}

function activeDriver(): CallDriver {
  const driver = ringingDriver()
  driver.join(2)
  driver.run({ kind: 'device-online', by: OTHER })
  return driver
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
    const driver = activeDriver()
    WAYS[name]!(driver)
    t.equal(driver.call.status, 'active')
    t.equal(driver.person(SUBJECT).state, name)
    const { found, wanted } = cellsOf(driver, SUBJECT, cells)
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
    const driver = ringingDriver()
    WAYS[name]!(driver)
    t.equal(driver.call.status, 'ringing')
    t.equal(driver.person(SUBJECT).state, name)
    const { found, wanted } = cellsOf(driver, SUBJECT, cells)
    t.same(found, wanted, name)
  }
})

const OF_THE_HOST = `
            join  decline  leave      ringing  ask              rejoin           end        remove  invite  keys             answer
  ringing   =     =        cancelled  =        CALL_NOT_ACTIVE  CALL_NOT_ACTIVE  cancelled  tells   tells   CALL_NOT_ACTIVE  CALL_NOT_ACTIVE
  active    =     =        left       =        tells            =                ended      tells   tells   tells            =`

t.test('every command of the initiator', async t => {
  for (const { name, cells } of rowsOf(OF_THE_HOST)) {
    const driver = name === 'ringing' ? ringingDriver() : activeDriver()
    const { found, wanted } = cellsOf(driver, 1, cells)
    t.same(found, wanted, name)
  }
})

/** Ways to each end of a call. */
const ENDS: Record<string, () => CallDriver> = {
  ended: () => {
    const driver = activeDriver()
    driver.run({ kind: 'end', by: HOST })
    return driver
  },
  cancelled: () => {
    const driver = ringingDriver()
    driver.run({ kind: 'end', by: HOST })
    return driver
  },
  missed: () => {
    const driver = ringingDriver()
    driver.wait(65_000)
    return driver
  },
  declined: () => {
    const driver = ringingDriver()
    driver.run({ kind: 'decline', by: OTHER })
    driver.run({ kind: 'decline', by: deviceOf(SUBJECT), reason: 'busy' })
    return driver
  },
}

t.test('an ended call never changes, and refuses all but ending and leaving', async t => {
  const goes = new Set(['leave', 'end'])
  let tried = 0
  for (const [status, way] of Object.entries(ENDS)) {
    const driver = way()
    t.equal(driver.call.status, status)
    for (const user of [1, 2, SUBJECT]) {
      const hasSaidNo = ['declined', 'busy'].includes(driver.person(user).state)
      for (const [name, command] of Object.entries(COMMANDS)) {
        const word = wordOf(driver.call, user, command(driver, user))
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
      t.equal(driver.run({ kind, by: HOST }).call, driver.call)
    }
    const before = driver.call
    t.same([driver.wait(1e12).call === before, driver.call.status], [true, status])
  }
  t.equal(tried, 4 * 3 * 11)
})

t.test('of a call that one has no part in, or that is none, nothing is said', async t => {
  const driver = activeDriver()
  const commands = Object.entries(COMMANDS)
  t.same(
    commands.map(([, command]) => wordOf(driver.call, 9, command(driver, 9))),
    commands.map(() => 'CALL_NOT_FOUND'),
  )
  const none = decide(undefined, { kind: 'join', by: HOST, nowMs: 0 }, { ...NO_FACTS, actor: HOST })
  t.same(none, driver.decide({ kind: 'join', by: deviceOf(9) }))
  t.match(driver.decide({ kind: 'device-online', by: deviceOf(9) }), { kind: 'accepted', effects: [] })
})

/** Contract 4.2, the table of calls: an event, then the call's state. */
const CALLS: readonly (readonly [string, (driver: CallDriver) => void, string, string | undefined])[] = [
  ['the start', () => {}, 'ringing', undefined],
  ['the first callee joins', driver => driver.join(2), 'active', undefined],
  ['the initiator ends', driver => driver.run({ kind: 'end', by: HOST }), 'cancelled', 'cancelled'],
  ['the initiator leaves', driver => driver.run({ kind: 'leave', by: HOST }), 'cancelled', 'cancelled'],
  ['one of two declines', driver => declined(driver, 2), 'ringing', undefined],
  ['both decline', driver => declined(driver, 2, 3), 'declined', 'declined'],
  [
    'one declines and one is busy',
    driver => {
      declined(driver, 2)
      driver.run({ kind: 'decline', by: deviceOf(3), reason: 'busy' })
    },
    ...(['declined', 'declined'] as const),
  ],
  [
    'one declines and one rings out',
    driver => {
      declined(driver, 2)
      driver.run({ kind: 'decline', by: deviceOf(3), reason: 'timeout' })
    },
    ...(['missed', 'unanswered'] as const),
  ],
  ['the host removes all', driver => removed(driver, 2, 3), 'cancelled', 'cancelled'],
  ['65 seconds but one millisecond', driver => driver.wait(64_999), 'ringing', undefined],
  ['65 seconds', driver => driver.wait(65_000), 'missed', 'unanswered'],
  [
    '65 seconds, then a callee who was invited later',
    driver => {
      driver.wait(30_000)
      driver.invite([4], HOST)
      driver.wait(64_999)
    },
    ...(['ringing', undefined] as const),
  ],
  [
    '65 seconds after the last invitation',
    driver => {
      driver.wait(30_000)
      driver.invite([4], HOST)
      driver.wait(65_000)
    },
    ...(['missed', 'unanswered'] as const),
  ],
  [
    'the host ends it when active',
    driver => joinedThen(driver, { kind: 'end', by: HOST }),
    'ended',
    'hangup',
  ],
  [
    'the only callee in it leaves',
    driver => joinedThen(driver, { kind: 'leave', by: OTHER }),
    'active',
    undefined,
  ],
]

t.test('each row of the table of calls', async t => {
  for (const [name, happens, status, endReason] of CALLS) {
    const driver = ringingDriver()
    happens(driver)
    t.same([driver.call.status, driver.call.endReason], [status, endReason], name)
    t.equal(driver.call.endedAtMs, isOver(driver.call) ? driver.nowMs : undefined, `${name}: when`)
    t.equal(driver.call.startedAtMs !== undefined, ['active', 'ended'].includes(status), `${name}: started`)
  }
})

t.test(
  'each change makes the next version, which all that it tells of has; a refusal or a repeat makes none',
  async t => {
    const driver = new CallDriver()
    const versionsOf = ({ call, effects }: CallAccepted) => [
      call.version,
      ...new Set(
        effects.flatMap(effect => {
          if (effect.kind === 'topic') return effect.event.version
          return effect.kind === 'device' ? effect.notice.version : []
        }),
      ),
    ]
    t.same(versionsOf(driver.start([2, 3])), [1, 1])
    t.same(versionsOf(driver.run({ kind: 'ringing', by: OTHER })), [2, 2])
    t.same(versionsOf(driver.run({ kind: 'ringing', by: OTHER })), [2])
    t.equal(driver.decide({ kind: 'request-rejoin', by: OTHER }).kind, 'refused')
    driver.nowMs += 65_000
    t.same(
      versionsOf(driver.run({ kind: 'device-online', by: HOST })),
      [3, 3],
      'the rings end in the same change',
    )

    const active = new CallDriver()
    active.start([2, 3])
    t.same(versionsOf(active.join(2)), [2, 2])
    active.nowMs += 1
    t.same(versionsOf(active.run({ kind: 'device-seen', by: OTHER })), [2], 'a sign of life is no change')
    t.same(versionsOf(active.join(3)), [3, 3])
    t.same(versionsOf(active.run(active.keysCommand(HOST, [OTHER, deviceOf(3)], 2))), [4, 4])
    const admitted = {
      kind: 'media-admitted',
      gateway: 'janus',
      devices: [HOST, OTHER],
      answered: [],
    } as const
    t.same(versionsOf(active.run(admitted)), [5, 5])
    t.same(versionsOf(active.run({ kind: 'leave', by: deviceOf(3) })), [6, 6])
    t.same(versionsOf(active.run({ kind: 'request-rejoin', by: deviceOf(3) })), [7, 7])
    const answer = { requesterUserId: 3n as UserId, requesterDeviceId: deviceOf(3).deviceId }
    const accepted = {
      kind: 'accept-rejoin',
      by: OTHER,
      encryptedAESKey: keyFor(deviceOf(3)),
      ...answer,
    } as const
    t.same(versionsOf(active.run(accepted)), [8, 8])
    t.same(versionsOf(active.run({ kind: 'end', by: HOST })), [9, 9])
  },
)

function declined(driver: CallDriver, ...users: number[]): void {
  for (const user of users) driver.run({ kind: 'decline', by: deviceOf(user) })
}

function removed(driver: CallDriver, ...users: number[]): void {
  for (const user of users) driver.run({ kind: 'remove', by: HOST, userId: BigInt(user) as UserId })
}

function joinedThen(driver: CallDriver, command: UntimedCommand): void {
  driver.join(2)
  driver.run(command)
}
