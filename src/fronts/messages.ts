/**
 * Messages between the writer and its fronts as processes, and the forms of messages between their actors. The other
 * end is a process of ours, so the checks cover only members that an actor would trip over.
 */

import type { LogHead } from '../log/checkpoint.ts'
import type { FollowedCommit } from '../store/engine/store.ts'
import type { HttpRoute } from '../transport/route.ts'
import type { LinkOptions } from './link/link.ts'
import type { NodePlace } from './link/node-sockets.ts'

/** Where the server listens, in the form of the ready line. */
export interface Addresses {
  readonly http: string
  readonly grpc: string
  readonly admin: string
  readonly serverApi: string
  readonly stompTcp?: string
}

/** The process that started the front, or the main process of another node. */
export type WriterPlace = 'here' | NodePlace

export function isSamePlace(one: WriterPlace | undefined, other: WriterPlace | undefined): boolean {
  if (one === undefined || other === undefined || one === 'here' || other === 'here') return one === other
  return one.host === other.host && one.port === other.port
}

/** The name of a route between a front and the writer. */
export function nameOfRoute({ method, path }: Pick<HttpRoute, 'method' | 'path'>): string {
  return `${method} ${path}`
}

/** A route of the writer without its handler. */
export type RouteHead = Omit<HttpRoute, 'handle'>

export type MessageToFront =
  /** The first message: each change after `lastChange` follows. */
  | {
      readonly kind: 'welcome'
      /** The writer's settings, by `serialize` of `node:v8`: they have maps and sets. */
      readonly config: Uint8Array
      /** Where the server listens; a front shares the ports of HTTP and of the server API. */
      readonly addresses: Addresses
      readonly routes: readonly RouteHead[]
      readonly lastChange: number
      readonly head: LogHead
    }
  | ({ readonly kind: 'changed' } & FollowedCommit)
  /** To a front of another node: the writer had this change when it sent the next message. */
  | { readonly kind: 'position'; readonly number: number }
  /** `isComing`: announced, not yet published. Reads of the log wait until the same head comes without it. */
  | { readonly kind: 'published'; readonly head: LogHead; readonly isComing?: true }
  /** The front acknowledges all messages before this one. */
  | { readonly kind: 'barrier' }
  /** To a node's fronts: the store has all changes that the ledger had then, by `machineMs`. */
  | { readonly kind: 'current'; readonly atMs: number }
  /** To a front of another node: when it asked, by its own clock; undefined ends its lease. */
  | { readonly kind: 'read-lease'; readonly askedAtMs: number | undefined }
  /** The front reports its connections' acknowledgements, before it acknowledges this. */
  | { readonly kind: 'flush' }
  /** The writer's new place; undefined while there is no writer. */
  | { readonly kind: 'writer'; readonly at: WriterPlace | undefined }

export type MessageToWriter =
  | { readonly kind: 'ready' }
  /** To its parent, which balances them: the sockets that the front has, every `LOAD_EVERY_MS`. */
  | { readonly kind: 'load'; readonly sockets: number }
  /** To its node: the front waits for a `current` no older than this. */
  | { readonly kind: 'poll' }
  /** To the writer on another node. */
  | { readonly kind: 'renew-read-lease'; readonly askedAtMs: number }
  /** How many of the writer's messages the front has handled. */
  | { readonly kind: 'acknowledged'; readonly count: number }
  /** A request of the device came. */
  | { readonly kind: 'seen'; readonly userId: bigint; readonly deviceId: bigint }
  /** A request carried an access token of this generation. */
  | { readonly kind: 'pair-used'; readonly sessionId: Uint8Array; readonly generation: number }

/** The writer's kinds of actors that fronts may send to. */
export const WRITER_SERVES: LinkOptions['serves'] = new Map([
  [
    'presence',
    by({
      attached: ({ connection }) =>
        isObject(connection) &&
        isId(connection.deviceId) &&
        isText(connection.sessionName) &&
        isRef(connection.ref),
      detached: ({ connectionId }) => isText(connectionId),
    }),
  ],
  [
    'call-room',
    by({
      subscribe: ({ by, subscriber, tag }) => isDevice(by) && isRef(subscriber) && isNumber(tag),
      unsubscribe: ({ connectionId }) => isText(connectionId),
    }),
  ],
  [
    'dev-topic',
    by({
      subscribe: ({ subscriber, tag }) => isRef(subscriber) && isNumber(tag),
      unsubscribe: ({ connectionId }) => isText(connectionId),
      publish: ({ headers, body }) => Array.isArray(headers) && body instanceof Uint8Array,
    }),
  ],
  [
    'front-desk',
    by({
      request: ({ route, request }) =>
        isText(route) && isObject(request) && isObject(request.headers) && request.body instanceof Uint8Array,
      command: ({ callId, command, idempotent }) =>
        isId(callId) &&
        isObject(command) &&
        isText(command.kind) &&
        isDevice(command.by) &&
        (idempotent === undefined || isKeyed(idempotent)),
      'next-part': ({ stream }) => isText(stream),
      'stop-stream': ({ stream }) => isText(stream),
      settle: ({ settled }) =>
        Array.isArray(settled) && settled.every(each => isDevice(each) && Array.isArray(each.offsets)),
      register: ({ userId, deviceId, publicKey }) => isId(userId) && isId(deviceId) && isText(publicKey),
      'mark-delivered': message => isDevice(message) && isObject(message.delivered),
      'live-calls': ({ userId }) => isId(userId),
      'catch-up': () => true,
      served: ({ requests }) => Array.isArray(requests) && requests.every(isObject),
    }),
  ],
])

/** A front's kinds of actors that the writer may send to. */
export const FRONT_SERVES: LinkOptions['serves'] = new Map([
  ['stomp-connection', isMessage],
  ['front', isMessage],
])

/** A front's kinds of actors that another node's writer may send to. */
export const FAR_FRONT_SERVES: LinkOptions['serves'] = new Map([['stomp-connection', isMessage]])

type Members = Readonly<Record<string, unknown>>

/** A message of one of these kinds. */
function by(forms: Readonly<Record<string, (message: Members) => boolean>>): (message: unknown) => boolean {
  return message => isMessage(message) && forms[message.kind]?.(message) === true
}

function isMessage(value: unknown): value is Members & { readonly kind: string } {
  return isObject(value) && isText(value.kind)
}

function isObject(value: unknown): value is Members {
  return typeof value === 'object' && value !== null
}

function isDevice(value: unknown): value is Members {
  return isObject(value) && isId(value.userId) && isId(value.deviceId)
}

function isKeyed(value: unknown): boolean {
  return isObject(value) && isText(value.scope) && isText(value.key) && value.hash instanceof Uint8Array
}

function isRef(value: unknown): boolean {
  return isObject(value) && typeof value.tell === 'function'
}

function isId(value: unknown): boolean {
  return typeof value === 'bigint'
}

function isText(value: unknown): value is string {
  return typeof value === 'string'
}

function isNumber(value: unknown): boolean {
  return typeof value === 'number'
}

/**
 * A node's copy may lag, and another node may become the writer while the process that feeds the copy is paused. A
 * front stops reading a copy of this age, and ends without that process: both before a lease runs out.
 */
export const COPY_AGE_MS_MAX = 2_000
export const NODE_LOST_MS = 3_000
/** Counted from the request. A change waits so long at most for a front of another node that does not answer. */
export const READ_LEASE_MS = 1_500
/** On one machine a process's end shows at once, so the writer waits for one that is only starved of the processor. */
export const FRONT_SILENCE_MS_MAX = 30_000
