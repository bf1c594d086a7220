/**
 * Share tokens (contract 3.1). A token is a MAC over whose it is and its id, so that its owner can have it drawn again
 * while only its hash is stored. One that is over is kept for a while, so that people learn to ask for a new link.
 */

import { createHash, createHmac } from 'node:crypto'
import { formatShareToken, parseShareToken, SHARE_TOKEN_BYTES } from '../../domain/contacts/share-token.ts'
import type { TokenId, UserId } from '../../domain/ids.ts'
import type { Secrets } from '../../domain/secrets.ts'
import { EXPIRY, type Expiries } from '../engine/expiries.ts'
import { idInKey, idsKey, rangeOf } from '../engine/keys.ts'
import type { Change, View } from '../engine/store.ts'
import { type IdLists, LIST, type ListRange } from '../tables/id-lists.ts'
import { SHARE_TOKENS, type ShareToken, TOKENS_BY_HASH } from './contact-tables.ts'

/** The owner's terms for a token. */
export type ShareTokenTerms = Pick<
  ShareToken,
  'userId' | 'tokenId' | 'label' | 'createdAtMs' | 'expiresAtMs' | 'usesMax'
>

export class ShareTokenStore {
  readonly #expiries: Expiries
  readonly #lists: IdLists
  readonly #secrets: Pick<Secrets, 'shareToken'>

  constructor(expiries: Expiries, lists: IdLists, secrets: Pick<Secrets, 'shareToken'>) {
    this.#expiries = expiries
    this.#lists = lists
    this.#secrets = secrets
    expiries.define(EXPIRY.shareToken, (change, key) => this.#expire(change, key))
  }

  /** The user's token of that id, also an expired one. */
  read(view: View, userId: UserId, tokenId: bigint): ShareToken | undefined {
    return view.get(SHARE_TOKENS, idsKey(userId, tokenId))
  }

  /** The token of this text, also an expired one; undefined for a text that was never one, or long ago. */
  find(view: View, text: string): ShareToken | undefined {
    const bytes = parseShareToken(text)
    const key = bytes && view.get(TOKENS_BY_HASH, hashOf(bytes))
    return key && view.get(SHARE_TOKENS, key)
  }

  /** The text of a token; undefined when it was made under another secret. */
  textOf({ userId, tokenId, hash }: ShareToken): string | undefined {
    const bytes = this.#bytesOf(userId, tokenId)
    return hashOf(bytes).equals(hash) ? formatShareToken(bytes) : undefined
  }

  /** The user's live tokens, newest first. */
  readLive(view: View, userId: UserId, range: ListRange, nowMs: number): ShareToken[] {
    const entries = this.#lists.read(view, userId, LIST.shareTokens, range)
    return entries
      .flatMap(({ id }) => this.read(view, userId, id) ?? [])
      .filter(token => isLive(token, nowMs))
  }

  /** A new token, and its text. */
  create(change: Change, terms: ShareTokenTerms): { readonly token: ShareToken; readonly text: string } {
    const bytes = this.#bytesOf(terms.userId, terms.tokenId)
    const text = formatShareToken(bytes)
    const token = { ...terms, lastCharacters: text.slice(-4), hash: hashOf(bytes), uses: 0 }
    const key = keyOf(token)
    change.put(SHARE_TOKENS, key, token)
    change.put(TOKENS_BY_HASH, token.hash, key)
    this.#lists.add(change, token.userId, LIST.shareTokens, entryOf(token))
    this.#expiries.add(change, EXPIRY.shareToken, token.expiresAtMs, key)
    return { token, text }
  }

  /** One request more was made by it. */
  use(change: Change, token: ShareToken): void {
    const used = { ...token, uses: token.uses + 1 }
    if (used.uses < used.usesMax) change.put(SHARE_TOKENS, keyOf(token), used)
    else this.#end(change, used)
  }

  revoke(change: Change, token: ShareToken): void {
    if (isLive(token, change.nowMs)) this.#end(change, token)
  }

  /** Nothing of the user remains here. */
  eraseOf(change: Change, userId: UserId): void {
    const rows = [...change.range(SHARE_TOKENS, rangeOf(idsKey(userId)))]
    for (const { value } of rows) this.#remove(change, value)
  }

  #bytesOf(userId: UserId, tokenId: bigint): Uint8Array {
    const mac = createHmac('sha256', this.#secrets.shareToken).update(idsKey(userId, tokenId)).digest()
    return mac.subarray(0, SHARE_TOKEN_BYTES)
  }

  #end(change: Change, token: ShareToken): void {
    const over = { ...token, overAtMs: change.nowMs }
    change.put(SHARE_TOKENS, keyOf(token), over)
    this.#lists.remove(change, token.userId, LIST.shareTokens, entryOf(token))
    this.#expiries.add(change, EXPIRY.shareToken, forgottenAtMs(over), keyOf(token))
  }

  #expire(change: Change, key: Uint8Array): number | undefined {
    const { nowMs } = change
    const token = change.get(SHARE_TOKENS, idsKey(idInKey(key, 0), idInKey(key, 1)))
    if (token === undefined || isLive(token, nowMs)) return undefined
    this.#lists.remove(change, token.userId, LIST.shareTokens, entryOf(token))
    if (nowMs < forgottenAtMs(token)) return forgottenAtMs(token)
    this.#remove(change, token)
    return undefined
  }

  #remove(change: Change, token: ShareToken): void {
    change.remove(SHARE_TOKENS, keyOf(token))
    change.remove(TOKENS_BY_HASH, token.hash)
    this.#lists.remove(change, token.userId, LIST.shareTokens, entryOf(token))
    // Their keys name the user, for up to a year.
    for (const endsAtMs of [token.expiresAtMs, forgottenAtMs(token)]) {
      this.#expiries.remove(change, EXPIRY.shareToken, endsAtMs, keyOf(token))
    }
  }
}

/** Whether it can be used. */
export function isLive({ overAtMs, expiresAtMs }: ShareToken, nowMs: number): boolean {
  return overAtMs === undefined && nowMs < expiresAtMs
}

function forgottenAtMs({ overAtMs, expiresAtMs }: ShareToken): number {
  return (overAtMs ?? expiresAtMs) + OVER_KEPT_MS
}

function keyOf({ userId, tokenId }: ShareToken): Uint8Array {
  return idsKey(userId, tokenId)
}

function entryOf({ createdAtMs, tokenId }: ShareToken): { atMs: number; id: TokenId } {
  return { atMs: createdAtMs, id: tokenId }
}

function hashOf(bytes: Uint8Array): Buffer {
  return createHash('sha256').update(bytes).digest()
}

/** How long an expired token answers that it has expired. */
const OVER_KEPT_MS = 30 * 86_400_000
