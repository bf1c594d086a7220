/**
 * Plays the stories of `test/vectors/device-calls.jsonl`: inputs to the calls of one device, and the acts that follow from each.
 * The file's first line says how a story is read; a player in another language needs no more than this one does.
 */

import type { Act } from '../../src/app/calls/act.ts'
import type { Reach } from '../../src/app/calls/call.ts'
import { type Device, isPresent, reachOf, type Waiting } from '../../src/app/calls/device.ts'
import { decide, newDevice, nextDeadlineMs } from '../../src/app/calls/device-call.ts'
import type { Input } from '../../src/app/calls/input.ts'
import type { CallParticipant } from '../../src/app/wire.ts'
import { readStoryFile, type StoryFile } from './story-file.ts'

export interface Step {
  readonly at?: number
  readonly in: Readonly<Record<string, unknown>> & { readonly on: string }
  readonly acts?: readonly unknown[]
}

export interface Story {
  readonly name?: string
  readonly situation?: string
  readonly given?: string
  readonly steps: readonly Step[]
  /** At the end: each call with its state, and when `time` is to be said; null for never. */
  readonly calls: readonly string[]
  readonly next: number | null
}

export interface Stories extends StoryFile<Story> {
  readonly me: { readonly userId: string; readonly deviceId: string }
}

export function readStories(): Stories {
  const file = readStoryFile<Story>('device-calls')
  return { ...file, me: file.all<Stories>('me')[0]!.me }
}

export class StoryPlayer {
  device: Device
  nowMs = 0
  /** Acts without an outcome so far, the oldest first. */
  readonly unanswered: {
    readonly act: number
    readonly name: string
    readonly outcome: object
    readonly key?: number
  }[] = []
  /** States and inputs that have met. */
  readonly met = new Set<string>()
  /** How often each command was answered. */
  readonly answers = new Map<string, number>()
  /** Keys that the shell has, by their number in the machine. */
  readonly octets = new Set<number>()
  readonly #keys: number[] = []
  readonly #nonces: number[] = []
  readonly #commands: string[] = []

  constructor({ userId, deviceId }: Stories['me']) {
    this.device = newDevice(userId, deviceId)
  }

  /** Plays a situation, whose acts no story looks at. */
  begin(situation: string, stories: Stories): void {
    const { given, steps } = stories.situations.get(situation)!
    if (given !== undefined) this.begin(given, stories)
    for (const step of steps) this.play(step)
  }

  /** Gives the acts, told. */
  play({ at, in: said }: Step): unknown[] {
    this.nowMs = at ?? this.nowMs
    const input = this.#inputOf(said)
    for (const state of statesMet(this.device, input)) this.met.add(state)
    const { device, acts } = decide(this.device, input, this.nowMs)
    this.device = device
    return acts.map(act => this.#told(act))
  }

  /** Each with its state, those whom it does not reach, and its room and caller where the story names them; an ended one is gone with the next input. */
  get calls(): string[] {
    return this.device.calls.map(call => {
      const { callId, record, caller } = call
      const { displayName, alias, isContact } = caller
      const people = record?.participants ?? []
      const unreachable = people.flatMap(one => {
        const { isUnreachable, hasUnapprovedDevice } = reachOf(call, one)
        return isUnreachable ? [` without ${one.userId}${hasUnapprovedDevice ? ', unapproved' : ''}`] : []
      })
      const room = record?.roomId === undefined ? '' : ` in room ${record.roomId}`
      const person = `${alias ?? displayName}${isContact ? '' : ', a stranger'}`
      const by = isContact === undefined ? '' : ` by ${person}`
      return `${callId} ${stateIn(this.device, callId)}${unreachable.join('')}${room}${by}`
    })
  }

  get nextMs(): number | null {
    return nextDeadlineMs(this.device) ?? null
  }

  /** Left after a story, when nothing should be. */
  get rest(): object {
    const notAnsweredOnce = [...this.answers].filter(([, count]) => count !== 1).map(([name]) => name)
    return { calls: this.calls, next: this.nextMs, notAnsweredOnce, keys: [...this.octets] }
  }

  /** With a number for the act that it answers, or for its command. */
  #inputOf(said: Step['in']): Input {
    const { of, key, ...input } = said
    if (said.on === 'done' || said.on === 'failed') {
      const at = this.unanswered.findLastIndex(({ name }) => name.startsWith(String(of)))
      if (at < 0) throw new Error(`nothing unanswered begins with ${of}`)
      const [{ act, outcome, key: asked }] = this.unanswered.splice(at, 1) as [
        (typeof this.unanswered)[number],
      ]
      const opened = typeof key === 'number' ? this.#keys[key - 1] : asked
      if (said.on === 'failed') return { ...input, act } as unknown as Input
      if (opened !== undefined) this.octets.add(opened)
      return {
        ...withSet({ ...outcome, ...input }),
        act,
        ...(opened !== undefined && { key: opened }),
      } as unknown as Input
    }
    const event = said.event as { readonly type: string } | undefined
    const name = said.on === 'queue' ? event!.type : said.on
    if (UNANSWERED.includes(said.on)) return input as Input
    const count = this.#commands.filter(one => one.split(' ')[0] === name).length
    this.#commands.push(count === 0 ? name : `${name} ${count + 1}`)
    this.answers.set(this.#commands.at(-1)!, 0)
    return { ...input, command: this.#commands.length } as unknown as Input
  }

  #told(act: Act): unknown {
    const told = this.#nameOf(act)
    if ('act' in act) {
      const key = act.do === 'open' ? { key: act.key } : {}
      this.unanswered.push({ act: act.act, name: told, outcome: this.#outcomeOf(act), ...key })
    }
    if (act.do === 'make') this.octets.add(act.key)
    if (act.do === 'wipe') for (const key of act.keys) this.octets.delete(key)
    return act.do === 'request' && act.body !== undefined ? { [told]: act.body } : told
  }

  #nameOf(act: Act): string {
    switch (act.do) {
      case 'request': {
        const nonce = act.nonce === undefined ? '' : ` with nonce ${this.#nonceOf(act.nonce)}`
        return `${act.operation.replace('{callId}', String(act.callId))}${nonce}`
      }
      case 'send':
        return `SEND ${act.destination}`
      case 'watch':
      case 'unwatch':
        return `${act.do} ${act.callId}`
      case 'open': {
        const from = act.from.map(one => `${one.userId}_${one.deviceId}`).join(' ')
        const change = act.change && ` changed by +${act.change.added} -${act.change.removed.join(' -')}`
        const sets = act.sets.length === 0 ? '' : `, set ${act.sets.join(' or ')}${change ?? ''}`
        const asked = act.nonce === undefined ? '' : `, nonce ${this.#nonceOf(act.nonce)}`
        return `open ${act.text} of call ${act.callId}, epoch ${act.epoch}, from ${from} as key ${this.#keyOf(act.key)}${sets}${asked}`
      }
      case 'make':
        return `make key ${this.#keyOf(act.key)}`
      case 'seal':
        return `seal key ${this.#keyOf(act.key)} of call ${act.callId}, epoch ${act.epoch}, for ${receivers(act.to)}${act.nonce === undefined ? '' : `, nonce ${act.nonce}`}`
      case 'wipe':
        return `wipe key ${act.keys.map(key => this.#keyOf(key)).join(' ')}`
      case 'keep': {
        const opened = act.opened?.map(
          one =>
            `${one.callId} to epoch ${one.epoch}${one.isOver ? ', over' : ''}${one.removed ? `, without ${one.removed.join(' ')}` : ''}`,
        )
        const parts = [
          act.callId && `call ${act.callId}`,
          act.leaving && `leaving ${act.leaving.join(' ')}`,
          opened && `opened ${opened.join(' and ')}`,
          act.accepted && `accepted ${act.accepted.join(' ')}`,
        ]
        return `keep ${parts.filter(Boolean).join(', ') || 'nothing'}`
      }
      case 'settle': {
        const name = this.#commands[act.command - 1]!
        this.answers.set(name, this.answers.get(name)! + 1)
        return [`settle ${name}`, act.callId && `call ${act.callId}`, act.error?.code]
          .filter(Boolean)
          .join(': ')
      }
      case 'emit':
        return `${act.callId}: ${this.#event(act)}`
    }
  }

  #event(act: Extract<Act, { do: 'emit' }>): string {
    switch (act.name) {
      case 'state':
        return `state ${act.value}`
      case 'key':
        return `key ${this.#keyOf(act.value.key)} of epoch ${act.value.epoch} from ${act.value.fromUserId}${act.value.isProvisional ? ', provisional' : ''}`
      case 'sending':
        return `sends with key ${this.#keyOf(act.value.key)}`
      case 'participant':
        return `participant ${act.value.userId} ${stateText(act.value)}`
      case 'media':
        return `media ${act.value.state}`
      case 'key-asked':
        return `key-asked ${act.value.userId}_${act.value.deviceId}`
      case 'error':
        return `error ${act.value.code}`
      default:
        return act.name
    }
  }

  /** Fills in what a story leaves out: all who have a part in the call are in the set. */
  #outcomeOf(act: Act): object {
    const own = `${this.device.userId}_${this.device.deviceId}`
    if (act.do === 'open') {
      const { record } = this.device.calls.find(({ callId }) => callId === act.callId) ?? {}
      const waiting = this.device.waiting.find(one => 'act' in act && one.act === act.act)
      const { participants = [] } = (waiting && 'record' in waiting ? waiting.record : record) ?? {}
      const others = participants.filter(({ state }) => state !== 'removed').map(deviceOf)
      return { members: [own, ...act.from.map(deviceOf), ...others] }
    }
    if (act.do !== 'seal' || 'deviceId' in act.to) return {}
    const { to } = act
    const users = 'userIds' in to ? (to.userIds ?? []) : []
    const people = 'participants' in to ? to.participants : []
    const receivers = people.filter(({ state }) => ['joined', 'invited', 'ringing'].includes(state))
    return { members: [own, ...users.map(userId => deviceOf({ userId })), ...receivers.map(deviceOf)] }
  }

  #nonceOf(nonce: number): number {
    if (!this.#nonces.includes(nonce)) this.#nonces.push(nonce)
    return this.#nonces.indexOf(nonce) + 1
  }

  /** Keys are numbered as they first appear. */
  #keyOf(key: number): number {
    if (!this.#keys.includes(key)) this.#keys.push(key)
    return this.#keys.indexOf(key) + 1
  }
}

/** The text of a set is the names in it. */
function withSet(outcome: { readonly [member: string]: unknown }): object {
  if (outcome.members === undefined) return outcome
  const members = [...new Set(outcome.members as readonly string[])].sort()
  return { keyMembers: members.join(' '), ...outcome, members }
}

/** A person has the device of ten times their number. */
function deviceOf({ userId, deviceId = `${userId}0` }: { userId: string; deviceId?: string }): string {
  return `${userId}_${deviceId}`
}

function receivers(to: Extract<Act, { do: 'seal' }>['to']): string {
  if ('deviceId' in to) return `device ${to.userId}_${to.deviceId} of set ${to.keyMembers}`
  const users = 'userIds' in to && to.userIds ? [`users ${to.userIds.join(' ')}`] : []
  const people = 'participants' in to ? to.participants.map(({ userId, state }) => `${userId} ${state}`) : []
  const set = 'keyMembers' in to ? ` of set ${to.keyMembers}` : ''
  const told = people.length === 0 ? users : [`participants ${people.join(', ')}`, ...users]
  return told.join(' and ') + set
}

/** Each state that the input meets: of its one call, or of all where it concerns them all. */
function statesMet(device: Device, input: Input): string[] {
  const answered = device.waiting.find(one => 'act' in input && one.act === input.act)
  const name = nameOf(input, answered)
  return statesFor(device, input, answered).map(state => `${state} / ${name}`)
}

function statesFor(device: Device, input: Input, answered: Waiting | undefined): string[] {
  if (answered !== undefined && /^(start|crossed)/.test(answered.for)) return ['starting']
  const about =
    answered ?? ('event' in input ? input.event : 'invitation' in input ? input.invitation : input)
  if ('callId' in about && about.callId !== undefined) {
    const state = stateIn(device, String(about.callId))
    return [answered !== undefined && state === 'starting' ? 'none' : state]
  }
  const states = device.calls.map(({ callId }) => stateIn(device, callId))
  if (device.starts.length > 0) states.push('starting')
  return states.length > 0 ? states : [device.ended.length > 0 ? 'ended' : 'none']
}

function nameOf(input: Input, answered: Waiting | undefined): string {
  if (input.on === 'queue') return `queue: ${QUEUE.includes(input.event.type) ? input.event.type : 'other'}`
  if (input.on === 'topic') return `topic: ${input.event.type}`
  return answered === undefined ? input.on : `${input.on}: ${answered.for}`
}

function stateIn(device: Device, callId: string): string {
  const phase = device.calls.find(one => one.callId === callId)?.phase
  if (phase !== undefined) return phase.kind === 'entering' ? phase.step : phase.kind
  if (device.ended.some(one => one.callId === callId)) return 'ended'
  return device.starts.length > 0 ? 'starting' : 'none'
}

/** Inputs that ask for no answer. */
const UNANSWERED: readonly string[] = [
  'close',
  'invited',
  'cancelled',
  'topic',
  'time',
  'restarted',
  'disconnected',
  'clock',
]

export const QUEUE: readonly string[] = [
  'call_invitation',
  'call_cancelled',
  'call_missed',
  'call_answered_elsewhere',
  'call_moved',
  'call_ended',
  'participant_request_rejoin',
  'participant_accept_rejoin',
  'key_update',
  'key_missing',
  'media_ready',
]

function stateText({ state, isUnreachable, hasUnapprovedDevice }: CallParticipant & Reach): string {
  if (!isUnreachable) return state
  return hasUnapprovedDevice ? 'unreachable, unapproved' : 'unreachable'
}

/** A person gives up all that goes on, and no request is answered any more: nothing is left, and nothing waits. */
export function leaveAll(player: StoryPlayer): void {
  const { device } = player
  for (const { callId, phase } of device.calls)
    if (phase.kind === 'ringing in') player.play({ in: { on: 'decline', callId, reason: 'declined' } })
    else if (isPresent({ phase } as Device['calls'][number])) player.play({ in: { on: 'leave', callId } })
  player.play({ in: { on: 'close', reason: 'left' } })
  player.play({ in: { on: 'time' } })
  for (let count = 0; player.unanswered.length > 0 && count < 100; count++)
    player.play({ in: { on: 'failed', of: '', failure: { code: 'OFFLINE' } } })
}
