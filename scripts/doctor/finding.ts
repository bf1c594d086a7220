/** The doctor's input and findings. */

import type { Config } from '../../src/server/settings/config.ts'

export interface Finding {
  /** The tested part, such as `mail`. */
  readonly check: string
  /** `off`: not set, and the detail says what to set. */
  readonly state: 'ok' | 'off' | 'fails'
  /** One line; of a failure also what to do. Never a secret. */
  readonly detail: string
}

export interface Patient {
  readonly config: Config
  /** The receiver of a real message; none is sent without it. */
  readonly mailTo?: string
  readonly smsTo?: string
  readonly pushToken?: string
  readonly bundleId?: string
  /** How far our clock is ahead of other hosts' in milliseconds, as far as checks have seen. */
  readonly skews: { readonly host: string; readonly aheadMs: number }[]
}

export type Check = (patient: Patient) => Promise<readonly Finding[]>

export function ok(check: string, detail: string): Finding {
  return { check, state: 'ok', detail }
}

export function off(check: string, detail: string): Finding {
  return { check, state: 'off', detail }
}

export function fails(check: string, detail: string): Finding {
  return { check, state: 'fails', detail }
}

/** The short name of what went wrong on the way to another host: never the text, which may quote an address. */
export function reasonOf(error: unknown): string {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if ('code' in cause && typeof cause.code === 'string') return cause.code
    if (cause.name === 'TimeoutError') return 'no answer'
  }
  return error instanceof Error ? error.name : 'unknown reason'
}
