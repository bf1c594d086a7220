/**
 * What a request leaves to be done behind it, so that the time it takes does not tell its sender what there was to do:
 * whether a search found anybody, whether somebody has blocked the one who asks.
 */

import type { Address } from '../accounts/challenge.ts'
import type { RequestId, UserId } from '../ids.ts'

/** Looks for the owner of an address, and asks them. */
export interface SearchErrand {
  readonly kind: 'search'
  /** Of the request that this makes, if it finds anybody. */
  readonly requestId: RequestId
  readonly senderId: UserId
  readonly address: Pick<Address, 'kind' | 'key'>
  readonly message: string | undefined
}

/** Tells the receiver of a request that was made, if they are to get it. */
export interface RequestMadeErrand {
  readonly kind: 'request_made'
  readonly requestId: RequestId
}

/** Tells the receiver of a request that was cancelled. */
export interface RequestGoneErrand {
  readonly kind: 'request_gone'
  readonly requestId: RequestId
  readonly senderId: UserId
  readonly receiverId: UserId
  /** Whether the receiver had it in their list. */
  readonly isMissed: boolean
}

export type Errand = SearchErrand | RequestMadeErrand | RequestGoneErrand

export type ErrandOf<Kind extends Errand['kind']> = Extract<Errand, { readonly kind: Kind }>
