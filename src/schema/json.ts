/**
 * Reads a JSON body: bytes to a value of a schema's type, or one refusal that names every element at fault
 * (contract 1.2, 1.5).
 */

import { isUtf8 } from 'node:buffer'
import type { Static, TSchema } from 'typebox'
import { Compile, type Validator } from 'typebox/compile'
import { type FieldError, SignalError } from '../errors.ts'
import { JSON_DEPTH_MAX } from '../limits.ts'

/** Reads and checks bodies of one schema. The checking code is compiled at the first use. */
export class BodyReader<Schema extends TSchema> {
  readonly schema: Schema
  #validator: Validator | undefined

  constructor(schema: Schema) {
    this.schema = schema
  }

  /** Throws `UNSUPPORTED_MEDIA_TYPE`, `MALFORMED_JSON`, or `VALIDATION_FAILED` with a pointer to each fault. */
  read(body: Uint8Array, contentType: string): Static<Schema> {
    if (contentType !== 'application/json' && !MEDIA_TYPE_FORM.test(contentType)) {
      throw new SignalError('UNSUPPORTED_MEDIA_TYPE', 'send the body as application/json')
    }
    const value = parseJson(body)
    this.#validator ??= Compile(this.schema)
    if (!this.#validator.Check(value)) throw validationFailed(this.#validator, value)
    return value as Static<Schema>
  }
}

function parseJson(body: Uint8Array): unknown {
  if (!isUtf8(body)) throw new SignalError('MALFORMED_JSON', 'the body is not UTF-8')
  const text = Buffer.from(body.buffer, body.byteOffset, body.length).toString('utf8')
  if (depthOf(text) > JSON_DEPTH_MAX) {
    throw new SignalError('MALFORMED_JSON', `the body nests deeper than ${JSON_DEPTH_MAX} levels`)
  }
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new SignalError('MALFORMED_JSON', 'the body is not JSON', { cause })
  }
}

/** The deepest nesting of brackets outside strings; for text that is not JSON any number will do. */
function depthOf(text: string): number {
  let depth = 0
  let deepest = 0
  let isInString = false
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (isInString) {
      if (code === BACKSLASH) at++
      else if (code === QUOTE) isInString = false
    } else if (code === QUOTE) isInString = true
    else if (code === OPEN_BRACKET || code === OPEN_BRACE) deepest = Math.max(deepest, ++depth)
    else if (code === CLOSE_BRACKET || code === CLOSE_BRACE) depth--
  }
  return deepest
}

function validationFailed(validator: Validator, value: unknown): SignalError {
  const errors: FieldError[] = []
  // The validator stops at the eighth fault.
  for (const error of validator.Errors(value)) {
    errors.push({ pointer: error.instancePath, code: error.keyword.toUpperCase(), detail: error.message })
  }
  const [first] = errors
  const where = first === undefined ? 'the body' : `${first.pointer || 'the body'} ${first.detail}`
  return new SignalError('VALIDATION_FAILED', where, { errors })
}

const MEDIA_TYPE_FORM = /^application\/json\s*(;|$)/i
const QUOTE = 0x22
const BACKSLASH = 0x5c
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d
