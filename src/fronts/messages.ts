/**
 * Messages between the writer and its fronts as processes, and the forms of messages between their actors. A process of ours
 * is at the other end, so the checks cover only what an actor would stumble over.
 */

import type { LogHead } from '../log/checkpoint.ts'
import type { FollowedChange } from '../store/engine/store.ts'
import type { HttpRoute } from '../transport/route.ts'
import type { LinkOptions } from './link/link.ts'
import type { NodePlace } from './link/node-sockets.ts'

/** Where the server listens, as the ready line says it. */
export interface Addresses {
  readonly http: string
  readonly grpc: string
  readonly admin: string
  readonly stompTcp?: string
}

/** The process that has started the front, or one of another node. */
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
  /** Comes first: each change behind `lastChange` follows. */
  | {
      readonly kind: 'welcome'
      /** The writer's settings, by `serialize` of `node:v8`: they have maps and sets. */
      readonly config: Uint8Array
      readonly port: number
      /** Where the server listens; a front shares the port of HTTP. */
      readonly addresses: Addresses
      readonly routes: readonly RouteHead[]
      readonly lastChange: number
      readonly head: LogHead
    }
  | ({ readonly kind: 'changed' } & FollowedChange)
  /** To a front of another node: the writer had this change when it sent what comes next. */
  | { readonly kind: 'position'; readonly number: number }
  /** `isComing`: reads of the log wait until the same head comes without it. */
  | { readonly kind: 'published'; readonly head: LogHead; readonly isComing?: true }
  /** The front acknowledges all messages before this one. */
  | { readonly kind: 'barrier' }
  /** To a node's fronts: the store has all that the ledger had then, by `machineMs`. */
  | { readonly kind: 'current'; readonly atMs: number }
  /** To a front of another node, which asked for it then by its own clock; undefined: its lease ends. */
  | { readonly kind: 'read-lease'; readonly askedAtMs: number | undefined }
  /** The front reports what its connections have acknowledged, before it acknowledges this. */
  | { readonly kind: 'flush' }
  /** Where the writer is from now on; undefined while there is none. */
  | { readonly kind: 'writer'; readonly at: WriterPlace | undefined }

export type MessageToWriter =
  | { readonly kind: 'ready' }
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

/** The kinds of actors of the writer that fronts speak to. */
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
      command: ({ command, idempotent }) =>
        isObject(command) &&
        isText(command.kind) &&
        isDevice(command.by) &&
        (idempotent === undefined || isObject(idempotent)),
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
      settle: ({ settled }) =>
        Array.isArray(settled) && settled.every(each => isDevice(each) && Array.isArray(each.offsets)),
      register: ({ userId, deviceId, publicKey }) => isId(userId) && isId(deviceId) && isText(publicKey),
      'mark-delivered': message => isDevice(message) && isObject(message.delivered),
      'catch-up': () => true,
      served: ({ requests }) => Array.isArray(requests) && requests.every(isObject),
    }),
  ],
])

/** The kinds of actors of a front that the writer speaks to. */
export const FRONT_SERVES: LinkOptions['serves'] = new Map([
  ['stomp-connection', isMessage],
  ['front', isMessage],
])

/** Those of a front that the writer of another node speaks to. */
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
 * The copy of a node may lag, and another node may have become the writer while the process that feeds the copy does not run. A
 * copy of this age is not read any more, and a front without that process ends: both before a lease has run out.
 */
export const COPY_AGE_MS_MAX = 2_000
export const NODE_LOST_MS = 3_000
/**
 * From when it was asked for. Shorter than the silence for which a writer gives a link up (`Link`), and than the two ticks for
 * which it waits for a front that hangs: it waits for each front that has a lease.
 */
export const READ_LEASE_MS = 1_500
/** On one machine the end of a process is noticed at once, and one that is only starved of the processor is waited for. */
export const FRONT_SILENCE_MS_MAX = 30_000
