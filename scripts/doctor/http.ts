/** Requests to other hosts, with what their answers say of the time. */

import type { Patient } from './finding.ts'

/**
 * Follows no redirect. Rejects when there is no answer within ten seconds; one that is longer than a megabyte is cut. Keeps
 * what the `Date` header tells.
 */
export async function ask(
  patient: Pick<Patient, 'skews'>,
  url: string,
  init: { readonly method?: string } = {},
): Promise<{ readonly status: number; readonly text: string }> {
  const askedAtMs = Date.now()
  const signal = AbortSignal.timeout(TIMEOUT_MS)
  const answer = await fetch(url, { redirect: 'manual', ...init, signal })
  // Whole seconds: in the middle the header is half a second old, as the question is half its way.
  const theirsMs = Date.parse(answer.headers.get('date') ?? '') + 500
  if (!Number.isNaN(theirsMs)) {
    patient.skews.push({ host: new URL(url).host, aheadMs: (askedAtMs + Date.now()) / 2 - theirsMs })
  }
  return { status: answer.status, text: await readText(answer) }
}

async function readText({ body }: Response): Promise<string> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  // Leaving the loop early cancels the rest, which may be endless.
  for await (const chunk of body ?? []) {
    bytes += chunk.length
    if (bytes > TEXT_BYTES_MAX) break
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

/** The members of a JSON object; none for anything else. */
export function membersOf(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? { ...value } : {}
  } catch {
    return {}
  }
}

const TIMEOUT_MS = 10_000
const TEXT_BYTES_MAX = 1_000_000
