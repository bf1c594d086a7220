/** Keys of the server API. The store has the hash of a key's secret; the key itself is shown once. */

import { timingSafeEqual } from 'node:crypto'
import {
  formatServerKey,
  hashServerKey,
  parseServerKey,
  type Scope,
  type ServerKeyHolder,
} from '../../domain/operators/server-key.ts'
import { type ErrorCode, SignalError } from '../../errors.ts'
import { EXPIRY, type Expiries } from '../engine/expiries.ts'
import type { Change, ReadStore, View } from '../engine/store.ts'
import { WatchedCache } from '../engine/watched-cache.ts'
import { ENDED_KEY_KEPT_MS, SERVER_KEYS, type ServerKey } from './operator-tables.ts'

export interface NewServerKey {
  readonly name: string
  readonly person?: string | undefined
  readonly scopes: readonly Scope[]
  readonly expiresAtMs?: number | undefined
}

export interface ListedServerKey extends ServerKey {
  readonly keyId: string
}

interface Deps {
  readonly database: ReadStore
  readonly expiries: Expiries
  readonly randomBytes: (length: number) => Uint8Array
}

export class ServerKeyStore {
  readonly #deps: Deps
  readonly #keys: WatchedCache<string, ServerKey | undefined>

  constructor(deps: Deps) {
    this.#deps = deps
    const idOf = (key: Uint8Array) => Buffer.from(key).toString('hex')
    this.#keys = new WatchedCache(deps.database, [SERVER_KEYS], idOf, KEYS_KEPT_MAX)
    deps.expiries.define(EXPIRY.serverKey, (change, key) => void change.remove(SERVER_KEYS, key))
  }

  /** The key's whole text, which is nowhere else. */
  create(
    change: Change,
    { name, person, scopes, expiresAtMs }: NewServerKey,
  ): { keyId: string; key: string } {
    const id = this.#deps.randomBytes(KEY_ID_BYTES)
    const keyId = Buffer.from(id).toString('hex')
    const secret = Buffer.from(this.#deps.randomBytes(SECRET_BYTES)).toString('hex')
    change.put(SERVER_KEYS, id, {
      name,
      ...(person !== undefined && { person }),
      scopes: [...scopes],
      secretHash: hashServerKey({ keyId, secret }),
      createdAtMs: change.nowMs,
      ...(expiresAtMs !== undefined && { expiresAtMs }),
    })
    if (expiresAtMs !== undefined) this.#expire(change, id, expiresAtMs)
    return { keyId, key: formatServerKey({ keyId, secret }) }
  }

  list(view: View): ListedServerKey[] {
    return [...view.range(SERVER_KEYS)].map(({ key, value }) => ({
      ...value,
      keyId: Buffer.from(key).toString('hex'),
    }))
  }

  /** Throws `SERVER_KEY_NOT_FOUND`. A key that is revoked already stays so. */
  revoke(change: Change, keyId: string): void {
    const id = Buffer.from(keyId, 'hex')
    const row = change.get(SERVER_KEYS, id)
    if (row === undefined) throw new SignalError('SERVER_KEY_NOT_FOUND', 'there is no server key of this id')
    if (row.revokedAtMs !== undefined) return
    change.put(SERVER_KEYS, id, { ...row, revokedAtMs: change.nowMs })
    const { expiries } = this.#deps
    if (row.expiresAtMs !== undefined)
      expiries.remove(change, EXPIRY.serverKey, row.expiresAtMs + ENDED_KEY_KEPT_MS, id)
    this.#expire(change, id, change.nowMs)
  }

  /** The holder of a key. Throws `SERVER_KEY_INVALID`, `SERVER_KEY_REVOKED` or `SERVER_KEY_EXPIRED`. */
  holderOf(text: string, nowMs: number): ServerKeyHolder {
    const parts = parseServerKey(text)
    if (parts === undefined) throw refusal('SERVER_KEY_INVALID')
    const row = this.#read(parts.keyId)
    if (row === undefined || !timingSafeEqual(row.secretHash, hashServerKey(parts)))
      throw refusal('SERVER_KEY_INVALID')
    return this.current(parts.keyId, nowMs)
  }

  /** The holder of the key of this id, as it stands now. Throws as `holderOf`. */
  current(keyId: string, nowMs: number): ServerKeyHolder {
    const row = this.#read(keyId)
    if (row === undefined) throw refusal('SERVER_KEY_INVALID')
    if (row.revokedAtMs !== undefined) throw refusal('SERVER_KEY_REVOKED')
    if (row.expiresAtMs !== undefined && nowMs >= row.expiresAtMs) throw refusal('SERVER_KEY_EXPIRED')
    const { name, person, scopes } = row
    return { keyId, name, ...(person !== undefined && { person }), scopes: new Set(scopes) }
  }

  #read(keyId: string): ServerKey | undefined {
    const { database } = this.#deps
    return this.#keys.of(keyId, () => database.view(view => view.get(SERVER_KEYS, Buffer.from(keyId, 'hex'))))
  }

  /** For a while it is refused by its own code, which names the reason. */
  #expire(change: Change, id: Uint8Array, endedAtMs: number): void {
    this.#deps.expiries.add(change, EXPIRY.serverKey, endedAtMs + ENDED_KEY_KEPT_MS, id)
  }
}

function refusal(code: ErrorCode): SignalError {
  return new SignalError(code, SENTENCES[code] ?? 'the server key is not accepted')
}

const SENTENCES: Partial<Record<ErrorCode, string>> = {
  SERVER_KEY_INVALID: 'send a server key as Authorization: Bearer csk_...',
  SERVER_KEY_REVOKED: 'this server key was revoked: use another',
  SERVER_KEY_EXPIRED: 'this server key has expired: use another',
}
const KEY_ID_BYTES = 6
const SECRET_BYTES = 32
const KEYS_KEPT_MAX = 1_024
