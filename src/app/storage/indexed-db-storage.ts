/** A storage in the browser's IndexedDB, which also keeps private keys that can't be exported. */

import type { AppStorage } from './storage.ts'

export function indexedDbStorage(name = 'callsign-app'): AppStorage {
  let database: Promise<IDBDatabase> | undefined
  const opened = () => {
    database ??= openDatabase(name, () => {
      database = undefined
    })
    return database
  }
  return {
    keepsCryptoKeys: true,
    async get(key) {
      return resultOf((await opened()).transaction(VALUES).objectStore(VALUES).get(key))
    },
    async put(key, value) {
      const transaction = (await opened()).transaction(VALUES, 'readwrite', { durability: 'strict' })
      transaction.objectStore(VALUES).put(value, key)
      await committed(transaction)
    },
  }
}

/** Calls `onLost` when the connection is unusable, so that the next operation opens a new one. */
function openDatabase(name: string, onLost: () => void): Promise<IDBDatabase> {
  const request = indexedDB.open(name, 1)
  request.onupgradeneeded = () => request.result.createObjectStore(VALUES)
  const opened = resultOf(request).then(database => {
    database.onclose = onLost
    database.onversionchange = () => {
      database.close()
      onLost()
    }
    return database
  })
  opened.catch(onLost)
  return opened
}

function resultOf<Value>(request: IDBRequest<Value>): Promise<Value> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result)
    request.onerror = () => reject(request.error)
  })
}

function committed(transaction: IDBTransaction): Promise<void> {
  return new Promise((resolve, reject) => {
    transaction.oncomplete = () => resolve()
    transaction.onabort = () => reject(transaction.error)
  })
}

const VALUES = 'values'
