/** The destinations over STOMP and the webhooks, with their messages, from the AsyncAPI document's tables. */

import { asyncApiDocument } from '../../../src/api/documents/asyncapi.ts'
import { table } from './markdown-table.ts'

interface Schema {
  readonly $ref?: string
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
}

interface Reference {
  readonly $ref: string
}

interface AsyncApi {
  readonly channels: Readonly<
    Record<
      string,
      {
        readonly address: string
        readonly summary: string
        readonly description: string
        readonly messages: Readonly<Record<string, Reference>>
      }
    >
  >
  readonly components: {
    readonly messages: Readonly<Record<string, { readonly summary: string; readonly payload: Schema }>>
    readonly schemas: Readonly<Record<string, Schema>>
  }
}

export function eventTables(): string {
  const document = asyncApiDocument({ version: '', serverUrl: 'http://localhost' }) as AsyncApi
  return Object.values(document.channels)
    .map(({ address, summary, description, messages }) => {
      const rows = Object.keys(messages).map(name => {
        const message = document.components.messages[name]!
        return [`\`${name}\``, message.summary, membersOf(document, message.payload)]
      })
      const title = address === 'webhooks' ? 'Webhooks' : `\`${address}\``
      return `## ${title}\n\n${summary}. ${description}\n\n${table(['Message', 'In a line', 'Members'], rows)}`
    })
    .join('\n')
}

function membersOf({ components }: AsyncApi, payload: Schema): string {
  const name = payload.$ref?.split('/').at(-1)
  const { properties = {}, required = [] } = name === undefined ? payload : components.schemas[name]!
  return Object.keys(properties)
    .filter(member => !IN_ALL.has(member))
    .map(member => `\`${member}${required.includes(member) ? '' : '?'}\``)
    .join(', ')
}

const IN_ALL = new Set(['v', 'type', 'eventId', 'sentAt'])
