/**
 * What the runtime puts into a mailbox in place of a bare message: asks, timer firings, outcomes. It is opened when
 * its turn comes, because whether there is a message in it may change until then.
 */
import type { SignalError } from '../errors.ts'
import type { Cell } from './cell.ts'

export abstract class Envelope {
  /** The content shown in a dead letter. */
  abstract readonly content: unknown

  /** The message for `cell` to handle; undefined when there is none any more. */
  abstract open(cell: Cell): unknown

  /** Whether there still is a message in it for `cell`; once there is none, there never will be. */
  abstract hasMessageFor(cell: Cell): boolean

  /** Told instead of `open` when its mailbox is thrown away. */
  discard(_error: SignalError): void {}
}

/** The `kind` of a message, for dead letters; empty when it has none. */
export function messageKind(entry: unknown): string {
  const message = entry instanceof Envelope ? entry.content : entry
  if (typeof message !== 'object' || message === null || !('kind' in message)) return ''
  return String(message.kind)
}
