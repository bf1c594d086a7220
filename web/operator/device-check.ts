/**
 * Whether the log has the key of each device, checked here as an app checks it: signature, VRF proof, the way to the root, and
 * that the log has only grown since this browser looked last.
 */

import {
  type CheckpointStore,
  type KeptCheckpoint,
  LogClient,
  type LookupOutcome,
  leastOf,
} from '../../src/client/client.ts'
import { completenessWords } from '../shared/completeness.ts'
import type { LogFacts, Page } from './page.ts'

export interface DeviceClaim {
  readonly deviceId: string
  readonly publicKeyHash: string
  readonly publicKeyIndex: string
}

export interface DeviceVerdict {
  readonly deviceId: string
  readonly verdict: 'holds' | 'fails' | 'open'
  readonly words: string
}

/** Resolves with one verdict for each device, also where the log can't be asked. */
export async function checkDevices(
  page: Page,
  userId: string,
  devices: readonly DeviceClaim[],
): Promise<readonly DeviceVerdict[]> {
  const client = clientFor(page)
  const claims = devices.map(({ deviceId, publicKeyHash }) => ({ userId, deviceId, vrfHash: publicKeyHash }))
  const outcomes = await client.lookUpAll(claims)
  return devices.map((device, at) => ({ deviceId: device.deviceId, ...verdictOf(device, outcomes[at]!) }))
}

function verdictOf(
  { publicKeyIndex }: DeviceClaim,
  outcome: LookupOutcome,
): Pick<DeviceVerdict, 'verdict' | 'words'> {
  switch (outcome.kind) {
    case 'verified':
      if (outcome.complete === true && outcome.indexes.length > 1) {
        const words = `The log has another key under its hash: entries ${outcome.indexes.join(', ')}.`
        return { verdict: 'fails', words }
      }
      if (`${outcome.index}` === publicKeyIndex)
        return {
          verdict: 'holds',
          words: `The log has its key: entry ${outcome.index}. ${completenessWords(leastOf([outcome]))}`,
        }
      return {
        verdict: 'fails',
        words: `The log has a later key of it, entry ${outcome.index}; the server says entry ${publicKeyIndex}.`,
      }
    case 'refused':
      return { verdict: 'fails', words: `The proof of its key does not hold: ${outcome.detail}.` }
    case 'unanswered':
      return { verdict: 'open', words: `Not checked: ${outcome.detail}.` }
  }
}

/** Asks this page's server alone. Lookups carry the session, since the server may refuse strangers. */
function clientFor({ log, session }: Page): LogClient {
  return new LogClient({
    url: location.origin,
    ...log,
    store: storeFor(log),
    fetch: (url, init) => {
      const { pathname } = new URL(url)
      if (pathname !== '/api/get-public-keys') return fetch(url, init)
      const authorization = `Bearer ${session?.token ?? ''}`
      return fetch('/server/api/v1/key-lookups', { ...init, headers: { ...init.headers, authorization } })
    },
  })
}

/** The highest checkpoints that this browser has seen of the log and its index. */
function storeFor({ vkey }: LogFacts): CheckpointStore {
  const nameOf = (origin: string) => `callsign operator checkpoint ${vkey} ${origin}`
  return {
    get: origin => JSON.parse(localStorage.getItem(nameOf(origin)) ?? 'null') as KeptCheckpoint | null,
    put: checkpoint => localStorage.setItem(nameOf(checkpoint.origin), JSON.stringify(checkpoint)),
  }
}
