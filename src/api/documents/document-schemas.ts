/**
 * Schemas as the OpenAPI and AsyncAPI documents have them: of the forms that client generators make types of. What several
 * operations share has a name of its own; an id is a text, a choice of texts an `enum`, one of several forms `oneOf`, a map
 * has `additionalProperties`, and an integer beyond 32 bits says so. Requests are checked against schemas that take more (an
 * id as an integer), and never less.
 */

import type { TSchema } from 'typebox'
import { Badge, Challenge, LoginChallenge, Settings, SignedIn, UserView } from '../../schema/account.ts'
import {
  CallParticipant,
  CallRecordReply,
  CallStatusText,
  EndReasonText,
  HistoryPage,
  KeySetView,
  KeysReasonText,
  ParticipantStateText,
  SentKeysReasonText,
} from '../../schema/call.ts'
import {
  ContactPage,
  PeerDevice,
  Person,
  RequestPage,
  RequestReply,
  ShareTokenPage,
} from '../../schema/contact.ts'
import { DeviceInfoBody, DeviceItem, KeyAlgorithm, PutPushRequest } from '../../schema/device.ts'
import { LoginMethodView, MethodKind } from '../../schema/login-method.ts'
import { VerifyReply } from '../../schema/profile.ts'

/** Schemas with a name, each behind its own parts. */
const NAMED: Readonly<Record<string, TSchema>> = {
  KeyAlgorithm,
  LoginMethodKind: MethodKind,
  LoginMethod: LoginMethodView,
  Badge,
  Settings,
  User: UserView,
  Challenge,
  LoginChallenge,
  SignedIn,
  Verified: VerifyReply,
  PushTokens: PutPushRequest,
  DeviceInfo: DeviceInfoBody,
  Device: DeviceItem,
  Person,
  PeerDevice,
  FriendRequest: itemOf(RequestPage),
  SentFriendRequest: RequestReply,
  Contact: itemOf(ContactPage),
  ShareToken: itemOf(ShareTokenPage),
  CallStatus: CallStatusText,
  CallEndReason: EndReasonText,
  SentKeysReason: SentKeysReasonText,
  KeySet: KeySetView,
  ParticipantState: ParticipantStateText,
  CallParticipant,
  // Not `Call`, which the HTTP client of generated Kotlin has.
  CallRecord: CallRecordReply,
  PastCall: itemOf(HistoryPage),
}

/** Schemas with a name that no operation has. */
const NAMED_FOR_EVENTS: Readonly<Record<string, TSchema>> = { KeysReason: KeysReasonText }

type Members = Readonly<Record<string, unknown>>

/** The schemas of one document. */
export class DocumentSchemas {
  /** By name: `components.schemas`. */
  readonly components: Record<string, object> = {}
  /** By what a schema says, its description apart. */
  readonly #names = new Map<string, string>()
  readonly #isForEvents: boolean

  /** For events, which AsyncAPI has: a text that is always the same stays a `const`, and nothing stands beside a `$ref`. */
  constructor({ isForEvents = false } = {}) {
    this.#isForEvents = isForEvents
    const named = isForEvents ? { ...NAMED, ...NAMED_FOR_EVENTS } : NAMED
    for (const [name, schema] of Object.entries(named)) this.refer(name, schema)
  }

  /** A reference to a schema, which gets this name unless it has one. */
  refer(name: string, schema: TSchema | object): object {
    const form = this.form(schema)
    if ('$ref' in form) return form
    this.components[name] = form
    if (name in NAMED || name in NAMED_FOR_EVENTS) this.#names.set(meaningOf(form as Members), name)
    return refTo(name)
  }

  /** The components that `value` refers to, by way of others too; with titles, by which generators for events name. */
  usedBy(value: object): Record<string, object> {
    const used: Record<string, object> = {}
    const visit = (value: object) => {
      for (const [, name] of JSON.stringify(value).matchAll(REFERENCES)) {
        if (name! in used) continue
        used[name!] = { title: name, ...this.components[name!] }
        visit(used[name!]!)
      }
    }
    visit(value)
    return used
  }

  /** A schema as it stands in the document. */
  form(schema: TSchema | object): object {
    return this.#formOf(JSON.parse(JSON.stringify(schema))) as object
  }

  #formOf(value: unknown): unknown {
    if (Array.isArray(value)) return value.map(element => this.#formOf(element))
    if (typeof value !== 'object' || value === null) return value
    const isKept = this.#isForEvents && typeof (value as Members).const === 'string'
    const members = Object.entries(isKept ? value : rewritten(value as Members)).map(([name, member]) => [
      name,
      this.#formOf(member),
    ])
    const form: Members = Object.fromEntries(members)
    const name = this.#names.get(meaningOf(form))
    if (name === undefined) return form
    const isSameDescription =
      form.description === undefined || form.description === (this.components[name] as Members).description
    if (isSameDescription) return refTo(name)
    return this.#isForEvents ? { title: name, ...form } : { ...refTo(name), description: form.description }
  }
}

/** A reference to a component. */
export function refTo(name: string): object {
  return { $ref: `#/components/schemas/${name}` }
}

function meaningOf({ description, ...meaning }: Members): string {
  return JSON.stringify(meaning)
}

function rewritten(form: Members): Members {
  const { oneOf, anyOf, patternProperties, ...others } = form
  const [first] = (oneOf ?? []) as readonly Members[]
  if (first?.format === 'uint64') return { ...others, ...first }
  const texts = ((anyOf ?? []) as readonly Members[]).map(choice => choice.const)
  if (texts.length > 0 && texts.every(text => typeof text === 'string')) {
    return { ...others, type: 'string', enum: texts }
  }
  // Generators for Swift and Kotlin make one type of all the members of an `anyOf`, each required.
  if (texts.length > 0) return { ...others, oneOf: anyOf }
  if (typeof patternProperties === 'object' && patternProperties !== null) {
    return { ...others, additionalProperties: Object.values(patternProperties)[0] }
  }
  if ('const' in form && 'type' in form) return constant(form)
  return Number(form.maximum) > INT32_MAX ? { ...form, format: 'int64' } : form
}

/**
 * As `x-const`, and in words: of a `const` generators make a type of its own, which does not compile if it is of a
 * boolean.
 */
function constant({ const: value, description, ...others }: Members): Members {
  const always = `Always \`${value}\``
  const type = Number.isInteger(value) ? 'integer' : others.type
  return {
    ...others,
    type,
    'x-const': value,
    description: description === undefined ? always : `${always}. ${description}`,
  }
}

function itemOf(page: { readonly properties: { readonly items: { readonly items: TSchema } } }): TSchema {
  return page.properties.items.items
}

const REFERENCES = /"#\/components\/schemas\/(\w+)"/g
const INT32_MAX = 2 ** 31 - 1
