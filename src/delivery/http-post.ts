/**
 * One POST by `fetch`, as the SMS gateway and Google's token endpoint get them: a deadline over all of it, redirects not followed, and of
 * the answer's body no more read than the caller asked for.
 */

export interface HttpPost {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  /** From the first byte to the last one of the answer. */
  readonly timeoutMs: number
  /** A longer answer is cut there. */
  readonly answerBytesMax: number
}

export type PostResult =
  /** `body` is what had come when the answer ended, failed or grew too long. */
  | {
      readonly kind: 'answered'
      readonly status: number
      readonly body: string
      /** False for one that was cut, or broke off. */
      readonly isWhole: boolean
      readonly retryAfterMs?: number
    }
  | { readonly kind: 'failed'; readonly reason: 'timeout' | 'network' }

/** Never rejects. */
export async function post({ url, headers, body, timeoutMs, answerBytesMax }: HttpPost): Promise<PostResult> {
  const signal = AbortSignal.timeout(timeoutMs)
  try {
    const response = await fetch(url, { method: 'POST', headers, body, redirect: 'manual', signal })
    const waitMs = retryAfterMs(response.headers.get('retry-after'), Date.now())
    return {
      kind: 'answered',
      status: response.status,
      ...(await readUpTo(response, answerBytesMax)),
      ...(waitMs === undefined ? {} : { retryAfterMs: waitMs }),
    }
  } catch {
    return { kind: 'failed', reason: signal.aborted ? 'timeout' : 'network' }
  }
}

/**
 * Milliseconds that a `Retry-After` header asks for (RFC 9110, section 10.2.3: seconds or a date), at most an hour;
 * undefined when there is none or it can't be read.
 */
export function retryAfterMs(header: string | null, nowMs: number): number | undefined {
  const waitMs = waitOf(header ?? '', nowMs)
  return Number.isNaN(waitMs) ? undefined : Math.min(Math.max(waitMs, 0), RETRY_AFTER_MS_MAX)
}

function waitOf(header: string, nowMs: number): number {
  if (/^\d{1,9}$/.test(header)) return Number(header) * 1000
  // `Date.parse` takes nearly everything for a date; one of HTTP begins with its day.
  return /^[A-Z][a-z]+, /.test(header) ? Date.parse(header) - nowMs : Number.NaN
}

async function readUpTo(
  { body }: Response,
  bytesMax: number,
): Promise<{ readonly body: string; readonly isWhole: boolean }> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  let isWhole = false
  try {
    if (bytesMax === 0) await body?.cancel()
    else if (body !== null) {
      // Leaving the loop early cancels the rest of the body.
      for await (const chunk of body) {
        bytes += chunk.length
        if (bytes > bytesMax) break
        chunks.push(chunk)
      }
      isWhole = bytes <= bytesMax
    }
  } catch {
    // The status has come, and it alone says what became of the message.
  }
  return { body: Buffer.concat(chunks).toString('utf8'), isWhole }
}

const RETRY_AFTER_MS_MAX = 3_600_000
