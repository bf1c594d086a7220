/** Lookups of keys by the hash that they are logged under. */

import type { HttpRequest } from './http-load.ts'

export const LOOKUP_PATH = '/api/get-public-keys'

/** One request for each target, with these members besides. */
export function lookupRequests(targets: readonly string[], more: object = {}): readonly HttpRequest[] {
  return targets.map(target => ({ path: LOOKUP_PATH, body: lookupBody(target, more) }))
}

export function lookupBody(publicKeyHash: string, more: object = {}): string {
  return JSON.stringify({ targets: [{ publicKeyHash }], ...more })
}

/** Has every target proven, many with each request. `url` without a path. */
export async function askEachOnce(url: string, targets: readonly string[], more: object = {}): Promise<void> {
  for (let first = 0; first < targets.length; first += TARGETS_AT_ONCE) {
    const body = JSON.stringify({
      targets: targets.slice(first, first + TARGETS_AT_ONCE).map(publicKeyHash => ({ publicKeyHash })),
      ...more,
    })
    const answer = await fetch(url + LOOKUP_PATH, {
      method: 'POST',
      body,
      headers: { 'content-type': 'application/json' },
    })
    if (answer.status !== 200)
      throw new Error(`${LOOKUP_PATH} answered ${answer.status}: ${await answer.text()}`)
    await answer.arrayBuffer()
  }
}

const TARGETS_AT_ONCE = 64
