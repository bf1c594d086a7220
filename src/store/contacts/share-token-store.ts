/**
 * Share tokens (contract 3.1). A token is a MAC over whose it is and its id, so that its owner can have it drawn again
 * while only its hash is stored. One that is over is kept for a while, so that people learn to ask for a new link.
 */

import { createHash, createHmac } from 'node:crypto'
import { formatShareToken, parseShareToken, SHARE_TOKEN_BYTES } from '../../domain/contacts/share-token.ts'
import type { TokenId, UserId } from '../../domain/ids.ts'
import type { Secrets } from '../../domain/secrets.ts'
import type { Database, Table } from '../engine/database.ts'
import { EXPIRY, type Expiries } from '../engine/expiries.ts'
import { type IdLists, LIST, type ListRange } from '../engine/id-lists.ts'
import { idInKey, idsKey, rangeOf } from '../engine/keys.ts'

export interface ShareToken {
  readonly userId: UserId
  readonly tokenId: TokenId
  readonly label?: string
  /** The last four characters: enough for its owner to know it by. */
  readonly lastCharacters: string
  /** SHA-256 of the token's bytes. */
  readonly hash: Uint8Array
  readonly createdAtMs: number
  readonly expiresAtMs: number
  readonly usesMax: number
  readonly uses: number
  /** When it was revoked or used for the last time. */
  readonly overAtMs?: number
}

/** What its owner says of a token. */
export type ShareTokenTerms = Pick<
  ShareToken,
  'userId' | 'tokenId' | 'label' | 'createdAtMs' | 'expiresAtMs' | 'usesMax'
>

export interface ShareTokenParts {
  readonly database: Database
  readonly expiries: Expiries
  readonly lists: IdLists
  readonly secrets: Pick<Secrets, 'shareToken'>
}

export class ShareTokenStore {
  readonly #parts: ShareTokenParts
  readonly #tokens: Table<ShareToken>
  /** The key of the token that has this hash. */
  readonly #byHash: Table<Uint8Array>

  constructor(parts: ShareTokenParts) {
    this.#parts = parts
    this.#tokens = parts.database.table('share-tokens')
    this.#byHash = parts.database.table('share-tokens-by-hash')
    parts.expiries.define(EXPIRY.shareToken, (key, nowMs) => this.#expire(key, nowMs))
  }

  /** The user's token of that id, also one that is over. */
  read(userId: UserId, tokenId: bigint): ShareToken | undefined {
    return this.#tokens.get(idsKey(userId, tokenId))
  }

  /** The token of this text, also one that is over; undefined for a text that was never one, or long ago. */
  find(text: string): ShareToken | undefined {
    const bytes = parseShareToken(text)
    const key = bytes && this.#byHash.get(hashOf(bytes))
    return key && this.#tokens.get(key)
  }

  /** The text of a token; undefined when it was made under another secret. */
  textOf({ userId, tokenId, hash }: ShareToken): string | undefined {
    const bytes = this.#bytesOf(userId, tokenId)
    return hashOf(bytes).equals(hash) ? formatShareToken(bytes) : undefined
  }

  /** The user's live tokens, newest first. */
  readLive(userId: UserId, range: ListRange, nowMs: number): ShareToken[] {
    const entries = this.#parts.lists.read(this.#parts.database.ambient, userId, LIST.shareTokens, range)
    return entries.flatMap(({ id }) => this.read(userId, id) ?? []).filter(token => isLive(token, nowMs))
  }

  /** In a transaction: a new token, and its text. */
  create(terms: ShareTokenTerms): { readonly token: ShareToken; readonly text: string } {
    const bytes = this.#bytesOf(terms.userId, terms.tokenId)
    const text = formatShareToken(bytes)
    const token = { ...terms, lastCharacters: text.slice(-4), hash: hashOf(bytes), uses: 0 }
    const key = keyOf(token)
    this.#tokens.put(key, token)
    this.#byHash.put(token.hash, key)
    this.#parts.lists.add(this.#parts.database.ambient, token.userId, LIST.shareTokens, entryOf(token))
    this.#parts.expiries.add(EXPIRY.shareToken, token.expiresAtMs, key)
    return { token, text }
  }

  /** In a transaction: one request more was made by it. */
  use(token: ShareToken, nowMs: number): void {
    const used = { ...token, uses: token.uses + 1 }
    if (used.uses < used.usesMax) this.#tokens.put(keyOf(token), used)
    else this.#end(used, nowMs)
  }

  /** In a transaction. */
  revoke(token: ShareToken, nowMs: number): void {
    if (isLive(token, nowMs)) this.#end(token, nowMs)
  }

  /** In a transaction: nothing of the user remains here. */
  eraseOf(userId: UserId): void {
    const rows = [...this.#tokens.getRange(rangeOf(idsKey(userId)))]
    for (const { value } of rows) this.#remove(value)
  }

  #bytesOf(userId: UserId, tokenId: bigint): Uint8Array {
    const mac = createHmac('sha256', this.#parts.secrets.shareToken).update(idsKey(userId, tokenId)).digest()
    return mac.subarray(0, SHARE_TOKEN_BYTES)
  }

  #end(token: ShareToken, overAtMs: number): void {
    const over = { ...token, overAtMs }
    this.#tokens.put(keyOf(token), over)
    this.#parts.lists.remove(this.#parts.database.ambient, token.userId, LIST.shareTokens, entryOf(token))
    this.#parts.expiries.add(EXPIRY.shareToken, forgottenAtMs(over), keyOf(token))
  }

  #expire(key: Uint8Array, nowMs: number): number | undefined {
    const token = this.#tokens.get(idsKey(idInKey(key, 0), idInKey(key, 1)))
    if (token === undefined || isLive(token, nowMs)) return undefined
    this.#parts.lists.remove(this.#parts.database.ambient, token.userId, LIST.shareTokens, entryOf(token))
    if (nowMs < forgottenAtMs(token)) return forgottenAtMs(token)
    this.#remove(token)
    return undefined
  }

  #remove(token: ShareToken): void {
    this.#tokens.remove(keyOf(token))
    this.#byHash.remove(token.hash)
    this.#parts.lists.remove(this.#parts.database.ambient, token.userId, LIST.shareTokens, entryOf(token))
    // Their keys name the user, for up to a year.
    for (const endsAtMs of [token.expiresAtMs, forgottenAtMs(token)]) {
      this.#parts.expiries.remove(EXPIRY.shareToken, endsAtMs, keyOf(token))
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

/** How long a token that is over answers that it is over. */
const OVER_KEPT_MS = 30 * 86_400_000
