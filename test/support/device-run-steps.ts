/** Steps of a seeded run of devices: by people, apps, the network and the server. */

import { type DeviceCall, isPresent } from '../../src/app/calls/device.ts'
import type { DeviceRun } from './device-run.ts'
import type { RunCommand, RunDevice } from './device-run-phone.ts'
import type { SeededRandom } from './world.ts'

export function takeStep(run: DeviceRun): void {
  let at = run.draw.below(WEIGHTS)
  for (const [weight, step] of STEPS) {
    if (at < weight) return step(run)
    at -= weight
  }
}

/** Two people who are reachable call each other at once and answer whatever rings: there is one call, and both are in it. */
export function playGlare(run: DeviceRun): void {
  const { draw, net } = run
  const { faults } = net
  net.faults = new Set()
  const one = run.devices[0]!
  const other = run.devices.find(({ userId }) => userId !== one.userId)!
  const pair = [one, other]
  const starts: RunCommand[] = []
  for (const device of pair) {
    const userIds = pair.filter(each => each !== device).map(({ userId }) => userId)
    run.at(draw.chance(0.5) ? draw.below(100) : draw.below(1_500), () => {
      starts.push(
        device.command(command => ({
          on: 'start',
          command,
          callId: run.newCallId(),
          userIds,
          options: { isVideo: false },
        })),
      )
    })
  }
  for (let second = 0; second < 20; second++) {
    run.pass(1_000)
    for (const device of pair) if (draw.chance(0.5)) answerOn(device)
  }
  run.pass(5_000)
  net.faults = faults
  const callsOf = ({ device }: RunDevice) =>
    device.calls.flatMap(({ callId, phase }) => (phase.kind === 'active' ? [callId] : []))
  const [ones = [], others = []] = pair.map(callsOf)
  if (ones.length !== 1 || others.length !== 1 || ones[0] !== others[0])
    run.violate(
      `two who call each other are in ${ones.join() || 'no call'} and ${others.join() || 'no call'}`,
    )
  // One who has answered before that start reached the server is in the call already.
  for (const { error } of starts)
    if (error !== undefined && error.code !== 'ALREADY_IN_CALL')
      run.violate(`a start to a person who calls is refused with ${error.code}`)
}

function person(run: DeviceRun): void {
  const device = pick(run.draw, run.devices)
  if (!device.isOn) return
  const call = pickCall(run.draw, device)
  if (call === undefined) return begin(run, device)
  const { callId } = call
  const { draw } = run
  const as = (on: 'join' | 'answer' | 'end' | 'leave' | 'renew' | 'resend' | 'ask') =>
    device.command(command => ({ on, command, callId }))
  switch (call.phase.kind) {
    case 'ringing in':
      if (draw.chance(0.75)) return void as('answer')
      return void device.command(command => ({
        on: 'decline',
        command,
        callId,
        reason: draw.chance(0.5) ? 'declined' : 'busy',
      }))
    case 'ringing out':
      return draw.chance(0.3) ? void as(draw.chance(0.5) ? 'end' : 'leave') : invite(run, device, call)
    default: {
      const kind = pick(draw, [
        'end',
        'leave',
        'leave',
        'renew',
        'renew',
        'resend',
        'ask',
        'ask',
        'invite',
        'invite',
        'remove',
        'start',
        'join',
      ] as const)
      if (kind === 'invite') return invite(run, device, call)
      if (kind === 'start') return begin(run, device)
      if (kind !== 'remove') return void as(kind)
      const others = (call.record?.participants ?? []).filter(({ userId }) => userId !== device.userId)
      if (others.length === 0) return
      const { userId } = pick(draw, others)
      device.command(command => ({ on: 'remove', command, callId, userId }))
    }
  }
}

/** A start; or the user comes into a call that they are, or were, in with another device. */
function begin(run: DeviceRun, device: RunDevice): void {
  const { draw } = run
  const own = run.server.live.filter(({ participants }) =>
    participants.some(({ userId, state }) => String(userId) === device.userId && state !== 'removed'),
  )
  if (own.length > 0 && draw.chance(0.5)) {
    const callId = String(pick(draw, own).callId)
    return void device.command(command => ({ on: 'join', command, callId }))
  }
  const others = othersOf(run, device)
  const called = others.filter(() => draw.chance(0.4))
  const userIds = called.length > 0 ? called : [pick(draw, others)]
  const options = { isVideo: draw.chance(0.3) }
  device.command(command => ({ on: 'start', command, callId: run.newCallId(), userIds, options }))
  const [only] = userIds
  // The other calls back at once.
  if (userIds.length > 1 || only === undefined || !draw.chance(0.3)) return
  const other = pick(draw, run.devicesOf(only))
  if (!other.isOn) return
  run.at(draw.below(300), () => {
    if (!other.isOn) return
    other.command(command => ({
      on: 'start',
      command,
      callId: run.newCallId(),
      userIds: [device.userId],
      options,
    }))
  })
}

function invite(run: DeviceRun, device: RunDevice, { callId }: DeviceCall): void {
  const userIds = othersOf(run, device).filter(() => run.draw.chance(0.5))
  if (userIds.length > 0) device.command(command => ({ on: 'invite', command, callId, userIds }))
}

/** All that ring, or some of them, are answered. */
function answer(run: DeviceRun): void {
  for (const device of run.devices) if (device.isOn && run.draw.chance(0.7)) answerOn(device)
}

function answerOn(device: RunDevice): void {
  for (const { callId, phase } of device.device.calls)
    if (phase.kind === 'ringing in') device.command(command => ({ on: 'answer', command, callId }))
}

function network(run: DeviceRun): void {
  const { draw } = run
  const device = pick(draw, run.devices)
  if (!device.hasNetwork) {
    device.hasNetwork = true
    run.note(() => `${device.name} has a network again`)
    return
  }
  run.note(() => `${device.name} has no network`)
  device.hasNetwork = false
  const ms = draw.chance(0.6) ? draw.below(6_000) : draw.below(150_000)
  run.at(draw.below(2_000), () => device.disconnect())
  run.at(ms, () => {
    device.hasNetwork = true
  })
}

function connection(run: DeviceRun): void {
  const device = pick(run.draw, run.devices)
  run.note(() => `the connection of ${device.name} breaks`)
  device.disconnect()
}

function app(run: DeviceRun): void {
  const { draw } = run
  const device = pick(draw, run.devices)
  if (!device.isOn) return device.begin()
  if (draw.chance(0.4)) device.take({ on: 'close', reason: 'left' })
  run.note(() => `the app of ${device.name} ends`)
  device.stop()
  run.at(draw.chance(0.6) ? draw.below(3_000) : draw.below(120_000), () => device.begin())
}

/** Another tab leads for a while. */
function tab(run: DeviceRun): void {
  const device = pick(run.draw, run.devices)
  if (!device.isOn) return
  device.take({ on: 'close', reason: 'moved' })
  device.disconnect()
}

function server(run: DeviceRun): void {
  const { draw } = run
  if (!run.isServerUp) return
  const ms = draw.chance(0.5) ? draw.below(500) : draw.below(30_000)
  run.note(() => `the server is away for ${ms} ms`)
  run.stopServer()
  run.at(ms, () => run.startServer())
}

function pickCall(draw: SeededRandom, { device }: RunDevice): DeviceCall | undefined {
  const { calls } = device
  if (calls.length === 0) return undefined
  const present = calls.filter(isPresent)
  return present.length > 0 && draw.chance(0.6) ? pick(draw, present) : pick(draw, calls)
}

function othersOf(run: DeviceRun, { userId }: RunDevice): string[] {
  return [...new Set(run.devices.map(one => one.userId))].filter(one => one !== userId)
}

function pick<Item>(draw: SeededRandom, items: readonly Item[]): Item {
  return items[draw.below(items.length)]!
}

const STEPS: readonly (readonly [number, (run: DeviceRun) => void])[] = [
  [30, person],
  [14, answer],
  [6, network],
  [4, connection],
  [5, app],
  [1, tab],
  [2, server],
]
const WEIGHTS = STEPS.reduce((sum, [weight]) => sum + weight, 0)
