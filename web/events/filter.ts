/** Which channels and messages hold what somebody looks for: in their names, texts, and members. */

import type { Channel, Message } from './document.ts'
import { memberRows } from './schema-rows.ts'

/** The channels that hold every word of `filter`, each with the messages that do; all of its messages when it does itself. */
export function matching(channels: readonly Channel[], filter: string): readonly Channel[] {
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean)
  return channels.flatMap(channel => {
    const own = [channel.id, channel.address, channel.summary, channel.description].join(' ').toLowerCase()
    if (words.every(word => own.includes(word))) return [channel]
    const messages = channel.messages.filter(message => {
      const text = `${own} ${textOf(message)}`
      return words.every(word => text.includes(word))
    })
    return messages.length === 0 ? [] : [{ ...channel, messages }]
  })
}

/** Whether the channel or message of this id is left by the filter. */
export function isShown(channels: readonly Channel[], filter: string, id: string): boolean {
  return matching(channels, filter).some(
    channel => channel.id === id || channel.messages.some(message => message.id === id),
  )
}

function textOf({ name, summary, payload }: Message): string {
  const members = memberRows(payload).flatMap(row => [row.name, row.description, ...row.values])
  return [name, summary, ...members].join(' ').toLowerCase()
}
