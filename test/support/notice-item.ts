/** A whole notice as the item of an inbox. */

import type { NoticeItem } from '../../src/domain/messages/inbox.ts'
import type { Notice, SharedNotice } from '../../src/domain/messages/notice.ts'

export function itemOf(notice: Notice): NoticeItem {
  const { eventId, sentAtMs, encryptedAESKey, ...body } = { encryptedAESKey: undefined, ...notice }
  return { kind: 'notice', body: body as SharedNotice, encryptedAESKey, eventId, sentAtMs }
}
