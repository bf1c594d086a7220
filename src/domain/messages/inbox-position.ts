/** Positions in an inbox, as message-ids are made of them. */

/** A place in an inbox. Offsets begin with 1 and only grow; an inbox that was erased begins anew in another epoch. */
export interface InboxPosition {
  readonly epoch: number
  readonly offset: number
}

/** `<epoch>-<offset>`: of `0-9`, `a-z` and `-`, so that no version of STOMP has to escape it. */
export function formatPosition({ epoch, offset }: InboxPosition): string {
  return formatEpoch(epoch) + offset
}

/** The part of a position before its offset. Callers that format many of an epoch keep it: it costs five times the rest. */
export function formatEpoch(epoch: number): string {
  return `${epoch.toString(36)}-`
}

/**
 * `<epoch>-<offset>-<eventId>`: names a live message on a queue. The position is the preceding stored message's, so
 * that a client may acknowledge it and pass it as `since`.
 */
export function formatLiveId(before: InboxPosition, eventId: string): string {
  return `${formatPosition(before)}-${eventId}`
}

export function isLiveId(text: string): boolean {
  return LIVE_FORM.test(text)
}

/** The position that a message-id names or, of a live one, follows; undefined for a text that no inbox ever gave out. */
export function parsePosition(text: string): InboxPosition | undefined {
  const [, epochText, offsetText] = POSITION_FORM.exec(text) ?? []
  if (epochText === undefined || offsetText === undefined) return undefined
  const epoch = Number.parseInt(epochText, 36)
  return epoch <= EPOCH_MAX ? { epoch, offset: Number(offsetText) } : undefined
}

/** An epoch has 32 bits, an offset less than 2^48, whose digits a double holds exactly. */
const POSITION_FORM = /^(0|[1-9a-z][0-9a-z]{0,6})-(0|[1-9][0-9]{0,13})(?:-[\w-]{22})?$/
const LIVE_FORM = /^[0-9a-z]+-[0-9]+-[\w-]{22}$/
const EPOCH_MAX = 2 ** 32 - 1
