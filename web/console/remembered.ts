/**
 * The highest checkpoint that this page has verified, kept by the browser under the log's own key: a development
 * server that has made new keys is another log.
 */

import type { SignedCheckpoint } from '../../src/client/client.ts'

export function rememberedCheckpoint(vkey: string): SignedCheckpoint | undefined {
  try {
    const kept = JSON.parse(localStorage.getItem(nameFor(vkey)) ?? 'null') as SignedCheckpoint | null
    return kept ?? undefined
  } catch {
    // Not of this page's writing.
    return undefined
  }
}

export function rememberCheckpoint(vkey: string, checkpoint: SignedCheckpoint): void {
  localStorage.setItem(nameFor(vkey), JSON.stringify(checkpoint))
}

export function forgetCheckpoint(vkey: string): void {
  localStorage.removeItem(nameFor(vkey))
}

function nameFor(vkey: string): string {
  return `callsign checkpoint ${vkey}`
}
