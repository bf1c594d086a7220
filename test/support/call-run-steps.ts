/** The next step of a seeded run of calls: by people, clients, the network, the server, the store, or time. */

import { nextDeadlineMs } from '../../src/domain/calls/call-deadline.ts'
import { sessionIdOf } from '../../src/store/accounts/session-store.ts'
import type { Run } from './call-run.ts'
import type { LineManners } from './call-run-line.ts'
import type { RunPhone } from './call-run-phone.ts'
import { type DrawnRequest, drawCrossing, drawRequest, pick } from './call-run-requests.ts'
import type { SeededRandom } from './world.ts'

/** The differences between runs. */
export interface Habits {
  /** How often everything that is under way comes to its end before the next step. */
  readonly haste: number
  readonly refuses: boolean
  readonly crashes: boolean
  readonly cuts: boolean
  readonly removes: boolean
  readonly areRatesLimited: boolean
}

export function drawHabits(draw: SeededRandom): Habits {
  return {
    haste: pick(draw, [0.05, 0.3, 0.7]),
    refuses: draw.chance(0.4),
    crashes: draw.chance(0.4),
    cuts: draw.chance(0.6),
    removes: draw.chance(0.2),
    areRatesLimited: draw.chance(0.1),
  }
}

export function takeStep(run: Run): void {
  let at = run.draw.below(WEIGHTS)
  for (const [weight, step] of STEPS) {
    if (at < weight) return step(run)
    at -= weight
  }
}

/** A request, which impatient people make twice. */
function request(run: Run): void {
  const phone = pick(run.draw, run.phonesInUse)
  const drawn = drawRequest(run, phone)
  if (drawn === undefined) return
  send(run, phone, drawn)
  if (run.draw.chance(0.15)) send(run, phone, drawn)
  run.lastRequest = { phone, drawn }
}

/** Two people call each other at once, or one when the other may be gone. */
function cross(run: Run): void {
  const { draw } = run
  for (const { phone, drawn } of drawCrossing(run)) {
    run.submit(phone, drawn)
    if (draw.chance(0.3)) turn(run)
    if (draw.chance(0.3)) store(run)
    if (!draw.chance(0.3)) continue
    run.server.world.run()
    run.database.settleAll()
    run.pass(GONE_MS + draw.below(GONE_MS))
  }
}

/** Clients repeat unanswered requests, also to another process. */
function repeat(run: Run): void {
  const { lastRequest } = run
  if (lastRequest === undefined || lastRequest.phone.ledger.isErased) return
  run.submit(lastRequest.phone, lastRequest.drawn)
}

function send(run: Run, phone: RunPhone, drawn: DrawnRequest): void {
  const { callId, request } = drawn
  const { kind, by: _, ...body } = request
  if (ENDS_RING.has(kind)) phone.answer(callId)
  const { line } = phone
  const isStomp = STOMP_KINDS.has(kind) && run.draw.chance(0.4)
  if (!isStomp || line === undefined) return run.submit(phone, drawn)
  run.note(`${phone.name} sends ${kind} ${callId}`)
  line.send(callId, kind, body)
}

function turn(run: Run): void {
  const { world } = run.server
  for (let turns = 1 + run.draw.below(6); turns > 0 && !world.isIdle; turns--) world.runOne()
}

function store(run: Run): void {
  const { database, draw } = run
  for (let count = draw.below(4); count > 0 && database.waiting > 0; count--) database.writeNext()
  for (let count = draw.below(4); count > 0 && database.written > 0; count--) database.tellNext()
}

function network(run: Run): void {
  const { draw, stalled } = run
  const busy = run.links.filter(link => link.isBusy && !stalled.has(link))
  if (busy.length === 0) return
  const link = pick(draw, busy)
  const ways = [() => link.arrive(), () => link.flush(), () => link.read(), () => link.flow()]
  pick(draw, ways)()
}

function connect(run: Run): void {
  const phone = pick(run.draw, run.phonesInUse)
  run.note(`${phone.name} connects`)
  const line = phone.connect(drawManners(run))
  if (run.draw.chance(0.2)) run.stalled.add(line.link)
  for (const { callId } of run.ledger.live()) if (run.draw.chance(0.5)) line.watch(callId)
}

function drawManners({ draw }: Run): LineManners {
  return {
    mode: pick(draw, ['client', 'client', 'client-individual', 'client-individual', 'auto'] as const),
    window: pick(draw, [1, 2, 32, 32]),
    hasHeartBeat: draw.chance(0.25),
    goesOn: draw.chance(0.2),
    isObedient: false,
  }
}

/** A client's act on its connection. */
function client(run: Run): void {
  const { draw, habits, stalled } = run
  const phone = pick(draw, run.phones)
  const { line } = phone
  if (line === undefined) return
  if (draw.chance(0.4)) return line.acknowledge()
  if (draw.chance(0.3)) return void stalled.delete(line.link)
  if (draw.chance(0.3)) return watch(run, line)
  if (!habits.cuts) return
  run.note(`${phone.name} is gone`)
  if (draw.chance(0.2)) line.disconnect()
  else line.link.cut()
}

function watch({ draw, ledger }: Run, line: NonNullable<RunPhone['line']>): void {
  const live = ledger.live()
  if (live.length === 0) return
  const { callId } = pick(draw, live)
  if (draw.chance(0.8)) line.watch(callId)
  else line.unwatch(callId)
}

/** The server sees that a client is gone. */
function notice(run: Run): void {
  const cut = run.links.filter(link => link.isCut)
  if (cut.length > 0) pick(run.draw, cut).notice()
}

function pass(run: Run): void {
  const { draw } = run
  const way = draw.below(10)
  if (way < 4) run.pass(100 + draw.below(400))
  else if (way < 6) run.pass(1_000 + draw.below(4_000))
  else if (way < 7) run.pass(10_000 + draw.below(60_000))
  else passToDeadline(run)
}

/** To about when something is due. */
function passToDeadline(run: Run): void {
  const { draw } = run
  const deadlines = run.ledger.live().flatMap(call => nextDeadlineMs(call) ?? [])
  if (deadlines.length === 0) return
  const ms = pick(draw, deadlines) - run.nowMs() + draw.below(400) - 200
  if (ms > 0 && ms < LONGEST_WAIT_MS) run.pass(ms)
}

function fail(run: Run): void {
  const { draw, database, habits } = run
  if (habits.refuses && database.waiting > 0) run.refuse(1 + draw.below(database.waiting))
}

/** Some of the writes under way may have reached the disk. */
function crash(run: Run): void {
  const { draw, database, habits } = run
  if (!habits.crashes) return
  for (let count = draw.below(database.waiting + 1); count > 0; count--) database.writeNext()
  run.crash(pick(draw, [0, 500, 5_000, 40_000, 100_000]))
}

/** As the writer does it. */
export function sweep(run: Run): void {
  const { database, expiries, inbox } = run.server.stores
  const nowMs = run.nowMs()
  const swept = inbox.keepLong(database, nowMs).then(() => expiries.sweep(database, nowMs, 100))
  swept.catch(() => undefined)
}

function removeDevice(run: Run): void {
  const { draw, habits } = run
  if (!habits.removes) return
  const person = pick(draw, run.people)
  const inUse = person.phones.filter(({ ledger }) => !ledger.isErased)
  if (inUse.length < 2) return
  const phone = pick(draw, inUse)
  // It may be about to sign in.
  if (draw.chance(0.5)) phone.connect(drawManners(run)).link.flowUp()
  run.note(`${phone.name} is removed`)
  run.server.removeDevice(phone).catch(() => undefined)
}

function revoke(run: Run): void {
  if (!run.habits.removes) return
  const { name, actor } = pick(run.draw, run.phones)
  run.note(`the session of ${name} is over`)
  run.database.say({
    kind: 'session-ended',
    userId: actor.userId,
    sessionId: sessionIdOf(name),
  })
}

const STEPS: readonly (readonly [number, (run: Run) => void])[] = [
  [28, request],
  [2, cross],
  [3, repeat],
  [20, turn],
  [14, store],
  [14, network],
  [9, connect],
  [6, client],
  [2, notice],
  [9, pass],
  [3, fail],
  [2, crash],
  [2, sweep],
  [2, removeDevice],
  [1, revoke],
]
const WEIGHTS = STEPS.reduce((sum, [weight]) => sum + weight, 0)
const STOMP_KINDS: ReadonlySet<string> = new Set(['accept-rejoin', 'keys', 'ringing', 'decline', 'leave'])
const ENDS_RING: ReadonlySet<string> = new Set(['join', 'decline', 'leave', 'end', 'rejoin'])
/** A caller without a socket is gone after a little more. */
const GONE_MS = 9_000
const LONGEST_WAIT_MS = 400_000
