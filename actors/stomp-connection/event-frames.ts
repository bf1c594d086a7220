/**
 * MESSAGE frames of the application's events. A change sends many devices the same event, but for a key, an event id and the
 * like: its frame is put together once, with gaps, and each device costs only the members in the gaps.
 */

import { type NoticeItem, noticeOf } from '../../src/domain/messages/inbox.ts'
import type { Badge, BadgeEvent } from '../../src/domain/messages/notice.ts'
import type { Admit } from '../../src/schema/call.ts'
import { EVENTS } from '../../src/schema/event.ts'
import type { EventReader, OwnMembers } from '../../src/schema/event-form.ts'
import { formatGapped, formatInGap, formatJson, type IdForm, type JsonGap } from '../../src/schema/json.ts'
import { SharedMessage, type SubscriptionHead } from '../../src/stomp/serializer.ts'

/** The device that an event is for. */
type Receiver = Required<Pick<EventReader, 'userId' | 'deviceId'>>

/** How events are written. */
export interface EventWords {
  readonly idsAs: IdForm
  /** See `Admit`, for `media_ready`. */
  readonly admit?: Admit | undefined
  /** The user as `GET user` has them, for `profile_changed`. */
  readonly userOf: (device: Receiver) => ReturnType<NonNullable<EventReader['user']>>
}

/** The subscription that gets a MESSAGE, and by which name. */
export interface MessagePlace {
  readonly head: SubscriptionHead
  readonly messageId: string
  readonly isRedelivered: boolean
}

/** A frame with gaps for the members of each device. */
interface SharedFrame extends Pick<NoticeItem, 'body' | 'sentAtMs'> {
  readonly expiresAtMs: number
  readonly message: SharedMessage
  readonly gaps: readonly JsonGap[]
}

/** One for all connections of a process. */
export class EventFrames {
  readonly #words: EventWords
  /** The last ones, in a circle. */
  readonly #shared: SharedFrame[] = []
  #oldest = 0

  constructor(words: EventWords) {
    this.#words = words
  }

  /** A notice that is kept until `expiresAtMs`, with the badge if it carries it. */
  notice(
    place: MessagePlace,
    item: NoticeItem,
    expiresAtMs: number,
    device: Receiver,
    badge: Badge | undefined,
  ): Buffer {
    const { admit, userOf } = this.#words
    const { own } = EVENTS[item.body.kind]
    const reader = { userId: device.userId, deviceId: device.deviceId, admit, badge }
    if (own === 'all') {
      const whole = this.#bodyOf(item, { ...reader, user: () => userOf(device) })
      return encoded(
        place,
        new SharedMessage(headersOf(item, expiresAtMs), [formatJson(whole, this.#words.idsAs)]),
      )
    }
    const { message, gaps } = this.#sharedFrame(item, expiresAtMs, own)
    return encoded(place, message, this.#partsOf(gaps, own, item, reader))
  }

  badge(place: MessagePlace, event: BadgeEvent): Buffer {
    const headers = ['type', event.kind, 'timestamp', String(event.sentAtMs), ...JSON_TYPE]
    return encoded(
      place,
      new SharedMessage(headers, [formatJson(EVENTS.badge.body(event, {}), this.#words.idsAs)]),
    )
  }

  #sharedFrame(item: NoticeItem, expiresAtMs: number, own: OwnMembers): SharedFrame {
    const { body, sentAtMs } = item
    for (const frame of this.#shared)
      if (frame.body === body && frame.sentAtMs === sentAtMs && frame.expiresAtMs === expiresAtMs)
        return frame
    // Written for no device: members of its own are left out.
    const { texts, gaps } = formatGapped(this.#bodyOf(item, {}), new Set(Object.keys(own)), this.#words.idsAs)
    const message = new SharedMessage(headersOf(item, expiresAtMs), texts)
    const frame = { body, sentAtMs, expiresAtMs, message, gaps }
    this.#shared[this.#oldest] = frame
    this.#oldest = (this.#oldest + 1) % SHARED_KEPT_MAX
    return frame
  }

  #bodyOf(item: NoticeItem, reader: EventReader): object {
    return EVENTS[item.body.kind].body(noticeOf(item), reader)
  }

  #partsOf(gaps: readonly JsonGap[], own: OwnMembers, item: NoticeItem, reader: EventReader): string[] {
    return gaps.map(gap => formatInGap(gap, own[gap.name]!(item, reader), this.#words.idsAs))
  }
}

function encoded(
  { head, messageId, isRedelivered }: MessagePlace,
  message: SharedMessage,
  parts?: readonly string[],
): Buffer {
  return message.encode(head, messageId, isRedelivered, parts)
}

function headersOf({ body, sentAtMs }: NoticeItem, expiresAtMs: number): string[] {
  return ['type', body.kind, 'timestamp', String(sentAtMs), 'expires', String(expiresAtMs), ...JSON_TYPE]
}

const JSON_TYPE = ['content-type', 'application/json'] as const
/** The calls of a moment tell their devices one after another, few of a call's devices another message than the rest. */
const SHARED_KEPT_MAX = 8
