/** Messages to devices over STOMP (contract 7.3), by their `type`. The same table makes the AsyncAPI document. */

import { CALL_NOTICES, TOPIC_EVENTS } from './call-event.ts'
import type { EventForm, EventType } from './event-form.ts'
import { PERSONAL_EVENTS } from './personal-event.ts'

export const EVENTS: Readonly<Record<EventType, EventForm>> = {
  ...CALL_NOTICES,
  ...TOPIC_EVENTS,
  ...PERSONAL_EVENTS,
}
