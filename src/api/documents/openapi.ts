/**
 * The OpenAPI 3.1 document, made from the table of operations: what it says of a request is what the request is checked
 * against. Aliases of paths are told in words only (contract 1.1).
 */

import { assert } from '../../errors.ts'
import { Challenge } from '../../schema/account.ts'
import { Time } from '../../schema/time.ts'
import type { HttpRoute } from '../../transport/route.ts'
import type { AppTag, OperationForm } from '../table/operation.ts'
import { documentRoute } from './document-route.ts'
import { DocumentSchemas } from './document-schemas.ts'
import { LOG_FILE_PATHS, type PathItem, plainOperations } from './log-operations.ts'
import { ID, openApiOperation, type StatusOf } from './openapi-operation.ts'

export interface OpenApiDeps {
  /** Without the plain routes, which the document knows by itself. */
  readonly operations: readonly OperationForm[]
  readonly lookupsNeedToken: boolean
  /** The software's. */
  readonly version: string
  /** Where clients reach the server. */
  readonly serverUrl: string
  readonly statusOf: StatusOf
}

/** The document, as a value that `JSON.stringify` writes. */
export function openApiDocument(deps: OpenApiDeps): object {
  const { operations, lookupsNeedToken, version, serverUrl, statusOf } = deps
  const paths: Record<string, PathItem> = { ...LOG_FILE_PATHS }
  const schemas = new DocumentSchemas()
  schemas.refer('Problem', PROBLEM)
  for (const operation of [...operations, ...plainOperations(lookupsNeedToken)]) {
    const object = openApiOperation(operation, statusOf, schemas)
    const method = operation.method.toLowerCase()
    assert(paths[operation.path]?.[method] === undefined, `two operations at ${method} ${operation.path}`)
    paths[operation.path] = { ...paths[operation.path], [method]: object }
  }
  return {
    openapi: '3.1.0',
    info: { ...INFO, version },
    servers: [{ url: serverUrl }],
    tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
    security: [{ session: [] }],
    paths: sorted(paths),
    components: { ...COMPONENTS, schemas: sorted(schemas.components) },
  }
}

/** `GET /openapi.json`. */
export function openApiRoute(deps: () => OpenApiDeps): HttpRoute {
  return documentRoute('/openapi.json', () => openApiDocument(deps()))
}

export function sorted<Value>(record: Readonly<Record<string, Value>>): Record<string, Value> {
  return Object.fromEntries(Object.entries(record).sort(([a], [b]) => (a < b ? -1 : 1)))
}

const INFO = {
  title: 'Callsign',
  summary: 'Sign-in, devices, contacts and calls of a calling app, with a key transparency log',
  description: [
    'Ids are 64-bit unsigned integers: decimal strings in replies; requests may have integers instead. Absent and null',
    'mean the same for optional members; unknown members of a request are ignored; replies may gain members, and',
    'enumerations values.',
    'Every refusal is an RFC 9457 problem with a stable `code`. 401 means that the session is over or must be',
    'refreshed, nothing else. A path that is not here is refused with `NOT_FOUND`, a method with `METHOD_NOT_ALLOWED`.',
  ].join(' '),
  license: { name: 'Apache 2.0', identifier: 'Apache-2.0' },
}

const TAGS: Record<AppTag, string> = {
  'sign-in': 'Codes, identity providers, tokens',
  user: 'The profile, login methods, the end of an account',
  devices: 'Devices, their keys and push tokens',
  contacts: 'Share tokens, friend requests, friends, blocks',
  calls: 'Calls',
  log: 'The key transparency log',
  meta: 'The server itself',
}

export const COMPONENTS = {
  securitySchemes: {
    session: { type: 'http', scheme: 'bearer', description: 'The access token of a session, opaque' },
  },
  parameters: {
    IdempotencyKey: {
      name: 'Idempotency-Key',
      in: 'header',
      description: 'A repeated request with the same key and body gets the reply of the first, for a day',
      schema: { type: 'string', pattern: '^[\\x21-\\x7e]{1,128}$' },
    },
    IfMatch: {
      name: 'If-Match',
      in: 'header',
      description:
        'The seq of the newest device list that the client knows, such as `"3"`; left out for the first list',
      schema: { type: 'string' },
    },
    ClientVersion: {
      name: 'X-Client-Version',
      in: 'header',
      description: 'Such as `ios/1.4.2 (214)`',
      schema: { type: 'string' },
    },
  },
  headers: {
    RetryAfter: { description: 'Seconds to wait', schema: { type: 'integer', minimum: 0 } },
    RateLimit: {
      description: 'What is counted, and when there is more of it: `"user";r=0;t=60`',
      schema: { type: 'string' },
    },
    RateLimitPolicy: {
      description: 'How much there is of it, and in how many seconds: `"user";q=20;w=3600`',
      schema: { type: 'string' },
    },
    WwwAuthenticate: { description: '`Bearer` with a realm (RFC 6750)', schema: { type: 'string' } },
  },
  responses: {
    TooManyFiles: {
      description: '`RATE_LIMITED`',
      headers: { 'Retry-After': { $ref: '#/components/headers/RetryAfter' } },
      content: { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } },
    },
  },
}

const DEVICE_NAMES = { type: 'array', items: { type: 'string', description: '`<userId>_<deviceId>`' } }

/** The schema of every refusal, over HTTP and STOMP. */
export const PROBLEM = {
  type: 'object',
  description: 'RFC 9457 problem details; `code` is what a client goes by',
  required: ['type', 'title', 'status', 'code', 'detail', 'requestId'],
  properties: {
    type: { type: 'string', description: '`urn:problem:` and the code in kebab case' },
    title: { type: 'string' },
    status: { type: 'integer' },
    code: { type: 'string', description: 'Stable, never renamed' },
    detail: { type: 'string', description: 'For logs and developers' },
    requestId: { type: 'string', description: "Names the request in the server's log" },
    retryIn: { type: 'integer', description: 'Seconds to wait, as in Retry-After' },
    scope: {
      type: 'string',
      description: 'With `RATE_LIMITED`: whose rate it is, such as `address`, `user` or `session`',
    },
    waitingId: {
      type: 'string',
      description: 'With `SIGN_IN_WAITING`: for `POST login/waiting`. Whoever has it gets the session',
    },
    signInCode: {
      type: 'string',
      description: 'With `SIGN_IN_WAITING`: twenty digits, which the device that is asked shows, too',
    },
    until: {
      ...Time,
      description:
        'With `SIGN_IN_WAITING`: when it goes through without an answer. With `SIGN_IN_REFUSED`: when the address opens a new ' +
        'account. With `ACCOUNT_SUSPENDED`: when the suspension ends by itself',
    },
    reason: {
      type: 'string',
      description:
        'With `ACCOUNT_SUSPENDED`: the operator’s own code for why. With `SESSION_REVOKED` and `REFRESH_TOKEN_INVALID`: why the ' +
        'session was ended, as in `session_revoked`',
    },
    attemptsLeft: { type: 'integer', description: 'With `OTP_INVALID`: how many codes may still be tried' },
    challenge: {
      ...Challenge,
      description: 'With `ACCOUNT_EXISTS` and `STEP_UP_REQUIRED`: the code that was sent, to go on with',
    },
    ways: {
      type: 'array',
      items: { type: 'string', enum: ['code', 'passkey', 'provider'] },
      description:
        'With `STEP_UP_REQUIRED`: by what the user can prove who they are, for `POST user/step-up`',
    },
    signed: {
      type: 'boolean',
      description: 'With `STEP_UP_REQUIRED`: whether the device signs the proof, being on the device list',
    },
    minClientVersion: { type: 'string', description: 'With `CLIENT_TOO_OLD`: the oldest that is served' },
    missing: { ...DEVICE_NAMES, description: 'With `DEVICE_LIST_MISMATCH`: devices that need a key too' },
    extra: { ...DEVICE_NAMES, description: 'With `DEVICE_LIST_MISMATCH`: devices that are to have none' },
    deviceListSeqs: {
      type: 'object',
      additionalProperties: { type: 'integer' },
      description:
        'With `DEVICE_LIST_MISMATCH`: by user id the seq of the newest device list of each callee who has one',
    },
    deviceListSeq: {
      type: 'integer',
      description: 'With `DEVICE_LIST_CONFLICT`: the seq of the newest list; left out where there is none',
    },
    callId: {
      ...ID,
      description:
        'With `ALREADY_IN_CALL`: the other call, to be left first. With `CALL_CROSSED`: the call to you, to be joined',
    },
    calleeIds: { type: 'array', items: ID, description: 'With `CALLEE_NOT_CONTACT`: who is none' },
    keyEpoch: { type: 'integer', description: 'With `EPOCH_CONFLICT`: the epoch of the call' },
    allow: { type: 'string', description: 'With `METHOD_NOT_ALLOWED`: as the header Allow' },
    acceptEncoding: {
      type: 'string',
      description: 'With `UNSUPPORTED_MEDIA_TYPE`: as the header Accept-Encoding',
    },
    errors: {
      type: 'array',
      items: {
        type: 'object',
        required: ['pointer', 'code', 'detail'],
        properties: {
          pointer: { type: 'string', description: 'JSON pointer to what is at fault; empty for the whole' },
          code: { type: 'string' },
          detail: { type: 'string' },
        },
      },
    },
  },
}
