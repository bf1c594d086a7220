/** Positions in an inbox as texts, and the queues of its messages. */

import t from 'tap'
import { type InboxItem, missedInsteadOf, queueOf } from '../../../src/domain/messages/inbox.ts'
import {
  formatLiveId,
  formatPosition,
  isLiveId,
  parsePosition,
} from '../../../src/domain/messages/inbox-position.ts'
import type { Notice } from '../../../src/domain/messages/notice.ts'
import { itemOf } from '../../support/notice-item.ts'

const EPOCH_MAX = 2 ** 32 - 1

t.test('a position is read as it was written', async t => {
  for (const epoch of [0, 1, 35, 36, 1_234_567, EPOCH_MAX]) {
    for (const offset of [0, 1, 9, 10, 499, 2 ** 48 - 1].filter(offset => offset < 1e14)) {
      const text = formatPosition({ epoch, offset })
      t.match(text, /^[0-9a-z-]+$/)
      t.same(parsePosition(text), { epoch, offset }, text)
    }
  }
})

t.test('what no inbox gave out is no position', async t => {
  const texts = [
    '',
    '-',
    '1',
    '1-',
    '-1',
    '1-01',
    '01-1',
    'A-1',
    '1-a',
    '1--1',
    '1-1 ',
    ' 1-1',
    '1-1\n',
    '1-1-1',
    '+1-1',
  ]
  for (const text of [
    ...texts,
    '1z141z4-0',
    'zzzzzzz-1',
    'aaaaaaaa-1',
    '1-999999999999999',
    '1-1e3',
    '1-1.5',
  ]) {
    t.equal(parsePosition(text), undefined, JSON.stringify(text))
  }
  t.same(parsePosition('1z141z3-0'), { epoch: EPOCH_MAX, offset: 0 }, 'the last epoch')
})

t.test('a live message is named by the position before it, which can be read from it', async t => {
  const eventId = 'q5xPYmBtR0aS2wJ7cVd3-_'
  const id = formatLiveId({ epoch: EPOCH_MAX, offset: 7 }, eventId)
  t.equal(id, `1z141z3-7-${eventId}`)
  t.same([parsePosition(id), isLiveId(id)], [{ epoch: EPOCH_MAX, offset: 7 }, true])
  t.equal(isLiveId('1z141z3-99999999999999'), false)
  for (const end of [
    '-',
    '-q5xPYmBtR0aS2wJ7cVd3',
    `-${eventId}x`,
    `-${eventId.slice(1)}\n`,
    `-${eventId}-1`,
  ]) {
    t.equal(parsePosition(`1-7${end}`), undefined, JSON.stringify(end))
  }
})

t.test('a subscription to a queue finds calls, contacts, the account or messages sent to it', async t => {
  const noticeOf = (kind: string) => itemOf({ kind } as Notice)
  t.equal(queueOf(noticeOf('call_invitation')), 'calls')
  t.equal(queueOf(noticeOf('key_update')), 'calls')
  t.equal(queueOf(noticeOf('friend_request')), 'contacts')
  t.equal(queueOf(noticeOf('badge')), 'account')
  const item: InboxItem = { kind: 'dev', queue: 'dev.t', headers: [], body: new Uint8Array() }
  t.equal(queueOf(item), 'dev.t')
})

t.test('only an invitation leaves word that a call was missed, of the moment when it was', async t => {
  const call = { callId: 7n, callerId: 8n, callerName: 'Ann', isVideo: true }
  const invitation = { kind: 'call_invitation', ...call, expiresAtMs: 99, encryptedAESKey: 'k', roomId: 3 }
  t.same(missedInsteadOf(invitation as unknown as Notice), { kind: 'call_missed', ...call, atMs: 99 })
  t.equal(missedInsteadOf({ kind: 'participant_request_rejoin', expiresAtMs: 99 } as Notice), undefined)
})
