/** Requests about calls, and what is tried once more. */

import type { CallRecord } from './call-record.ts'
import { Problem, type Session } from './session.ts'

export class CallRequests {
  readonly #session: Session

  constructor(session: Session) {
    this.#session = session
  }

  get(callId: string): Promise<CallRecord> {
    return this.#session.request('GET', `call/${callId}`)
  }

  post<Reply>(command: string, body?: object): Promise<Reply> {
    return this.#session.request('POST', `call/${command}`, body)
  }
}

/** Once more when a user's devices, or the epoch, have changed meanwhile. */
export async function withFreshDevices<Value>(act: () => Promise<Value>): Promise<Value> {
  try {
    return await act()
  } catch (error) {
    if (!(error instanceof Problem) || !OUTDATED.has(error.code)) throw error
    return act()
  }
}

const OUTDATED: ReadonlySet<string> = new Set(['DEVICE_LIST_MISMATCH', 'EPOCH_CONFLICT'])
