/** Query strings: `?limit=20&userIds=1,2,3` to a value of a schema's type, refused in the style of bodies. */

import Type, { type Static, type TObject, type TSchema } from 'typebox'
import { invalidMember, SchemaCheck } from './check.ts'

/**
 * Reads and checks query strings of one schema, whose members are strings, integers, booleans, ids (`Uint64`), or
 * arrays of these, which are written with commas between their elements.
 *
 * An empty value is an absent one, unknown names are ignored, and a plus sign is a plus sign (RFC 3986, not the form
 * encoding of HTML: no value of ours has a space in it).
 */
export class QueryReader<Schema extends TObject> {
  readonly schema: Schema
  readonly #check: SchemaCheck<Schema>

  constructor(schema: Schema) {
    this.schema = schema
    this.#check = new SchemaCheck(schema, 'the query')
  }

  /**
   * `query` is the text behind the question mark. Throws `VALIDATION_FAILED` with a pointer `/<name>` to each fault.
   */
  read(query: string): Static<Schema> {
    const members: Record<string, unknown> = {}
    const seen = new Set<string>()
    for (const pair of query.split('&')) {
      const [rawName, rawValue] = halves(pair)
      const name = decodePercent(rawName, '')
      if (!Object.hasOwn(this.schema.properties, name)) continue
      if (seen.has(name)) throw invalidMember(`/${name}`, 'DUPLICATE', 'is given twice', 'the query')
      seen.add(name)
      const value = decodePercent(rawValue, `/${name}`)
      if (value !== '') members[name] = textValue(this.schema.properties[name]!, value)
    }
    return this.#check.check(members)
  }
}

function halves(pair: string): readonly [string, string] {
  const equals = pair.indexOf('=')
  return equals === -1 ? [pair, ''] : [pair.slice(0, equals), pair.slice(equals + 1)]
}

function decodePercent(text: string, pointer: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw invalidMember(pointer, 'ENCODING', 'has a percent sign that encodes nothing', 'the query')
  }
}

/**
 * The value that a text stands for where the schema expects this. A text without such a value stays text, and is
 * refused there.
 */
function textValue(schema: TSchema, text: string): unknown {
  if (Type.IsArray(schema)) return text.split(',').map(element => textValue(schema.items, element))
  if (Type.IsInteger(schema)) return INTEGER_FORM.test(text) ? Number(text) : text
  if (Type.IsBoolean(schema)) return text === 'true' || (text === 'false' ? false : text)
  return text
}

const INTEGER_FORM = /^(?:0|-?[1-9][0-9]{0,14})$/
