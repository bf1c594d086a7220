/** An app's lasting storage, for its session and its device's keys. */

import { CallsignError } from '../callsign-error.ts'

/** Two operations over plain JSON. A value survives a crash once `put` has resolved. */
export interface AppStorage {
  /** The value that was put last; `undefined` or `null` where there is none. */
  get(key: string): Promise<unknown>
  /** `null` takes a value away. */
  put(key: string, value: unknown): Promise<void>
  /** Whether a value may have a `CryptoKey` in it. Private keys then can't be exported. */
  readonly keepsCryptoKeys?: boolean
}

/** Forgets everything when the program ends. */
export function memoryStorage(): AppStorage {
  const values = new Map<string, unknown>()
  return {
    keepsCryptoKeys: true,
    get: async key => values.get(key),
    async put(key, value) {
      values.set(key, value)
    },
  }
}

/**
 * The value under the key, if there is one. Rejects with `STORAGE_CORRUPT` for a value of another form, and with
 * `STORAGE_FAILED` where the storage can't be read.
 */
export async function readStored<Value>(
  storage: AppStorage,
  key: string,
  isValue: (value: Readonly<Record<string, unknown>>) => boolean,
): Promise<Value | undefined> {
  const value = await storage.get(key).catch(cause => {
    throw storageFailed(`The value "${key}" could not be read from the storage.`, cause)
  })
  if (value === undefined || value === null) return undefined
  if (!isRecord(value) || !isValue(value)) throw storageCorrupt(key)
  return value as Value
}

/** Rejects with `STORAGE_FAILED`, for example where the storage is full. */
export async function writeStored(storage: AppStorage, key: string, value: object | null): Promise<void> {
  await storage.put(key, value).catch(cause => {
    throw storageFailed(`The value "${key}" could not be written to the storage.`, cause)
  })
}

export function storageCorrupt(key: string, cause?: unknown): CallsignError {
  const sentence = `The stored value "${key}" is damaged. Remove it to start without it.`
  return new CallsignError('STORAGE_CORRUPT', sentence, { cause, members: { key } })
}

function storageFailed(sentence: string, cause: unknown): CallsignError {
  return cause instanceof CallsignError ? cause : new CallsignError('STORAGE_FAILED', sentence, { cause })
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null
}
