/** What every message of the AsyncAPI document is for, in a sentence. */

import type { SaidCallCommand } from '../../schema/call-request.ts'
import { EVENTS } from '../../schema/event.ts'
import type { EventType } from '../../schema/event-form.ts'
import { WEBHOOKS } from '../../schema/webhook.ts'

/** The summary of a message by its name in the document. */
export function summaryOf(name: string): string {
  if (name in SUMMARIES) return SUMMARIES[name as keyof typeof SUMMARIES]
  const { summary } = name in WEBHOOKS ? WEBHOOKS[name as keyof typeof WEBHOOKS] : EVENTS[name as EventType]
  return summary
}

type CommandName = Exclude<SaidCallCommand['kind'], 'accept-rejoin'> | 'acceptRejoin'

const SUMMARIES: Readonly<Record<CommandName | 'error', string>> = {
  error: 'A frame of this connection was refused',
  ringing: 'The device rings',
  decline: 'No, with a reason',
  leave: 'The device leaves the call',
  acceptRejoin: 'The present key, sealed for the device that asked',
  keys: 'A new key, sealed for every device in the call, or the present one again',
}
