/** Promises of a seeded run of devices, looked at after each step and once everything has come to rest. */

import { type DeviceCall, isPresent, newestKey } from '../../src/app/calls/device.ts'
import type { QueueEvent } from '../../src/app/wire.ts'
import { isJoined, isOver, joinedOn } from '../../src/domain/calls/call.ts'
import type { CallId } from '../../src/domain/ids.ts'
import type { DeviceRun } from './device-run.ts'
import { inWords, type RunDevice } from './device-run-phone.ts'

export function faultsAtStep(run: DeviceRun, { device, actor, octets, name }: RunDevice): string[] {
  const faults: string[] = []
  let inside = 0
  for (const call of device.calls) {
    const { callId, phase, key } = call
    if (phase.kind === 'ended') continue
    const known = run.server.calls.get(BigInt(callId) as CallId)
    const isLive = known !== undefined && !isOver(known) && joinedOn(known, actor) !== undefined
    if (isPresent(call) && phase.kind !== 'entering' && isLive) inside += 1
    for (const held of key.held) {
      const token = octets.get(held.key)
      if (token === undefined) faults.push(`${name} has a key in call ${callId} that is wiped`)
      const owner = token && run.callOfKey.get(token)
      if (owner !== undefined && owner !== callId)
        faults.push(`${name} uses a key of call ${owner} in call ${callId}`)
    }
    if (phase.kind === 'active' && key.held.length === 0)
      faults.push(`${name} is active in ${callId} without a key`)
  }
  if (inside > 1) faults.push(`${name} is in two calls`)
  return faults
}

/** A ring stops as soon as the queue says so. */
export function faultsAfterMessage({ device, name }: RunDevice, event: QueueEvent): string[] {
  if (!RUNG_OUT.includes(event.type) || !('callId' in event)) return []
  const rings = device.calls.some(
    ({ callId, phase }) => callId === event.callId && phase.kind === 'ringing in',
  )
  return rings ? [`${name} rings on in call ${event.callId} after ${event.type}`] : []
}

/** All are online, and no timer is left that changes anything. */
export function faultsAtRest(run: DeviceRun): string[] {
  const faults: string[] = []
  for (const device of run.devices) {
    for (const call of device.device.calls)
      if (call.phase.kind !== 'ended') faults.push(...faultsOf(run, device, call))
    if (device.device.calls.filter(isPresent).length > 1)
      faults.push(`${device.name} is in two calls at rest`)
    faults.push(...unsettled(run, device))
  }
  for (const call of run.server.live)
    for (const device of run.devices) {
      const callId = String(call.callId)
      const isIn = joinedOn(call, device.actor) !== undefined
      const shown = device.device.calls.find(one => one.callId === callId)
      if (isIn && (shown === undefined || !isPresent(shown)) && !run.unheardStarts.has(callId))
        faults.push(`the server has ${device.name} in call ${callId}, and the device does not know`)
    }
  return faults.length === 0 ? [] : [...faults, ...run.devices.map(inWords)]
}

/** Everybody has left. */
export function faultsAtEnd(run: DeviceRun): string[] {
  const live = run.server.live.filter(({ callId }) => !run.unheardStarts.has(String(callId)))
  const faults = live.map(({ callId }) => `call ${callId} goes on without anybody`)
  for (const device of run.devices) {
    for (const { callId } of device.device.calls.filter(({ phase }) => phase.kind !== 'ended'))
      faults.push(`${device.name} still has call ${callId}`)
    if (device.octets.size > 0) faults.push(`${device.name} still has ${[...device.octets.values()].join()}`)
    faults.push(...unsettled(run, device))
  }
  return faults.length === 0 ? [] : [...faults, ...run.devices.map(inWords)]
}

function faultsOf(run: DeviceRun, { name, actor, octets }: RunDevice, call: DeviceCall): string[] {
  const { callId, phase, key } = call
  const known = run.server.calls.get(BigInt(callId) as CallId)
  if (!isPresent(call)) return [`${name} rings on in call ${callId}`]
  if (known === undefined || isOver(known))
    return [`${name} is ${phase.kind} in call ${callId}, which is over`]
  if (phase.kind === 'entering' || phase.kind === 'ringing out')
    return [`${name} is still ${phase.kind} in ${callId}`]
  if (phase.kind !== 'active')
    return hasHolder(run, callId) ? [`${name} is ${phase.kind} in ${callId}, and gets no key`] : []
  if (joinedOn(known, actor) === undefined)
    return [`${name} is active in call ${callId}, and not joined at the server`]
  if (key.kind === 'asked') return []
  // Another key is made once there is a person to talk to.
  if (known.participants.filter(isJoined).length < 2) return []
  const held = newestKey(call)
  const right = run.keyOfEpoch.get(`${callId} ${known.keyEpoch}`)
  if (held?.epoch !== known.keyEpoch)
    return [`${name} has epoch ${held?.epoch} of call ${callId}, not ${known.keyEpoch}`]
  if (right !== undefined && octets.get(held.key) !== right)
    return [`${name} has another key in call ${callId}`]
  return []
}

/** Whether a device in the call could give the key. */
function hasHolder(run: DeviceRun, callId: string): boolean {
  return run.devices.some(({ device }) =>
    device.calls.some(call => call.callId === callId && call.phase.kind === 'active'),
  )
}

function unsettled({ server }: DeviceRun, { actor, commands, name }: RunDevice): string[] {
  const faults = [...commands.values()]
    .filter(({ settled }) => settled === 0)
    .map(({ on, atMs }) => `${name} has not settled ${on} of ${atMs / 1000} s`)
  for (const { notice } of server.inboxOf(actor)) faults.push(`${name} has not taken ${notice.kind}`)
  return faults
}

const RUNG_OUT: readonly string[] = ['call_cancelled', 'call_missed', 'call_answered_elsewhere', 'call_ended']
