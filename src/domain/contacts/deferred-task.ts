/**
 * A request's deferred work. It runs later so that the reply's timing does not reveal the outcome: whether a search
 * found a user, or whether the asker is blocked. Telling many contacts runs later, too, so that no change is long.
 */

import type { Address } from '../accounts/challenge.ts'
import type { CircleId, RequestId, UserId } from '../ids.ts'

/** Looks for the owner of an address, and asks them. */
export interface SearchTask {
  readonly kind: 'search'
  /** The id of the request that this makes, if the search finds a user. */
  readonly requestId: RequestId
  readonly senderId: UserId
  readonly address: Pick<Address, 'kind' | 'key'>
  readonly message: string | undefined
}

/** Tells the receiver of a request that was made, if they are to get it. */
export interface RequestMadeTask {
  readonly kind: 'request_made'
  readonly requestId: RequestId
}

/** Tells the receiver of a request that was cancelled. */
export interface RequestGoneTask {
  readonly kind: 'request_gone'
  readonly requestId: RequestId
  readonly senderId: UserId
  readonly receiverId: UserId
  /** Whether the receiver had it in their list. */
  readonly isMissed: boolean
}

/** Tells a user's contacts that the user has another name, some at a time. */
export interface RenamedTask {
  readonly kind: 'renamed'
  readonly userId: UserId
  /** The contact who was told last, and since when they are one; undefined at the start. */
  readonly after: { readonly atMs: number; readonly id: bigint } | undefined
}

/** Takes the members out of a circle that is gone, some at a time. */
export interface CircleGoneTask {
  readonly kind: 'circle_gone'
  readonly circleId: CircleId
}

export type DeferredTask = SearchTask | RequestMadeTask | RequestGoneTask | RenamedTask | CircleGoneTask

export type DeferredTaskOf<Kind extends DeferredTask['kind']> = Extract<DeferredTask, { readonly kind: Kind }>
