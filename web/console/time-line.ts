/** A call as a sequence diagram: the room and each device have a lane, the room's messages run down. */

import type { CallFact } from '../../src/operations/console/events.ts'
import type { WatchedCall } from './state.ts'

/** A lane; the first one is the room's. A participant none of whose devices took part yet has one without a device. */
export interface Lane {
  readonly userId: string
  readonly deviceId: string | undefined
}

/** A message to the room, from the lane `from` or the room's own timer, and what the lanes were told. */
export interface Moment {
  readonly sequence: number
  readonly atMs: number
  readonly command: string
  readonly from: number | undefined
  /** By lane. */
  readonly told: ReadonlyMap<number, readonly string[]>
  /** Events to the call's live subscribers. */
  readonly watchersTold: readonly string[]
  /** Devices that were told and have no lane. */
  readonly others: number
  /** The right-most lane that has a part in it. */
  readonly reach: number
  /** The call's status after it, where it differs from before. */
  readonly becomes: string | undefined
}

export interface TimeLine {
  /** Without the room's. Lane 1 is the first. */
  readonly lanes: readonly Lane[]
  readonly moments: readonly Moment[]
}

export function timeLineOf({ messages, participants }: WatchedCall): TimeLine {
  const lanes = lanesOf(messages, participants)
  const laneAt = new Map(lanes.map(({ userId, deviceId }, at) => [`${userId}_${deviceId}`, at + 1]))
  const moments = messages.map((message, at) => momentOf(message, messages[at - 1]?.status, laneAt))
  return { lanes, moments }
}

/** In the order of the participants, who is first; devices as they came up. */
function lanesOf(messages: readonly CallFact[], participants: CallFact['participants']): readonly Lane[] {
  const devices = new Map<string, Set<string>>(participants.map(({ userId }) => [userId, new Set()]))
  const add = (userId: string, deviceId: string) => {
    if (!devices.has(userId)) devices.set(userId, new Set())
    devices.get(userId)!.add(deviceId)
  }
  for (const { userId, deviceId, told } of messages) {
    if (userId !== undefined && deviceId !== undefined) add(userId, deviceId)
    for (const device of told) add(device.userId, device.deviceId)
  }
  const lanes = [...devices].flatMap(([userId, ids]) =>
    (ids.size === 0 ? [undefined] : [...ids]).map(deviceId => ({ userId, deviceId })),
  )
  return lanes.slice(0, LANES_MAX)
}

function momentOf(
  message: WatchedCall['messages'][number],
  statusBefore: string | undefined,
  laneAt: ReadonlyMap<string, number>,
): Moment {
  const { sequence, atMs, command, userId, deviceId, status } = message
  const from = userId === undefined ? undefined : laneAt.get(`${userId}_${deviceId}`)
  const told = new Map<number, readonly string[]>()
  for (const device of message.told) {
    const lane = laneAt.get(`${device.userId}_${device.deviceId}`)
    if (lane !== undefined) told.set(lane, [...(told.get(lane) ?? []), device.type])
  }
  const { watchersTold = [], toldCount = message.told.length } = message
  const shown = message.told.filter(device => laneAt.has(`${device.userId}_${device.deviceId}`))
  return {
    ...{ sequence, atMs, command, from, told, watchersTold },
    others: toldCount - shown.length,
    reach: Math.max(0, from ?? 0, ...told.keys()),
    becomes: status === statusBefore ? undefined : status,
  }
}

const LANES_MAX = 12
