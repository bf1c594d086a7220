/** The last settlement of a front that stops. */

import t from 'tap'
import { SignalError } from '../../../src/errors.ts'
import type { Following } from '../../../src/server/fronts/following.ts'
import { WriterNews } from '../../../src/server/fronts/writer-news.ts'
import type { DeviceInbox } from '../../../src/store/messages/device-inbox.ts'

/** News in a front whose acknowledgements can't be written. */
function newsWhere(error: Error): WriterNews {
  const inbox = { settleNow: () => Promise.reject(error) } as unknown as DeviceInbox
  return new WriterNews({} as Following, inbox, {} as ConstructorParameters<typeof WriterNews>[2])
}

t.test('a front stops in order without a writer: what it can not settle is given again', async t => {
  await newsWhere(new SignalError('OVERLOADED', 'the other process can not be reached now')).settled()
  await newsWhere(new SignalError('DEADLINE_EXCEEDED', 'no answer')).settled()
  await t.rejects(newsWhere(new Error('a mistake')).settled(), { message: 'a mistake' })
})
