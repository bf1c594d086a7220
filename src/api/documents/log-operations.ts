/**
 * The document's part about routes beside the table of operations: `meta` and lookups in the log, which are plain
 * routes, and the log's public files.
 */

import {
  GetKeyHistoryReply,
  GetKeyHistoryRequest,
  GetPublicKeysReply,
  GetPublicKeysRequest,
} from '../../keyserver/bodies.ts'
import { INDEX_LOOKUP_PATH } from '../../keyserver/index/index-route.ts'
import { IndexLookup } from '../../schema/index-lookup.ts'
import { MetaReply } from '../../schema/meta.ts'
import { UserTokenKeys } from '../../schema/user-token.ts'
import { NOTHING_TAKEN, type OperationForm } from '../table/operation.ts'

const LOG = { ...NOTHING_TAKEN, countsFor: 'good-token', tag: 'log' } as const
const LOOKUP = {
  ...LOG,
  isBodyOptional: false,
  method: 'POST',
  codes: [
    'UNKNOWN_PUBLIC_KEY_HASH',
    'IDENTITY_MISMATCH',
    'CHECKPOINT_INVALID',
    'LOG_UNAVAILABLE',
    'OVERLOADED',
  ],
} as const

/** The plain routes, as if they were rows of the table. */
export function plainOperations(lookupsNeedToken: boolean): readonly OperationForm[] {
  const access = lookupsNeedToken ? 'session' : 'public'
  return [
    {
      ...NOTHING_TAKEN,
      id: 'getMeta',
      method: 'GET',
      path: '/app/api/meta',
      tag: 'meta',
      summary: 'Limits, features and public keys of this server',
      access: 'public',
      replies: { 200: MetaReply },
      codes: [],
    },
    {
      ...NOTHING_TAKEN,
      id: 'getUserTokenKeys',
      method: 'GET',
      path: '/.well-known/jwks.json',
      tag: 'meta',
      summary: "The public keys of user tokens, for the operator's own services (RFC 7517)",
      access: 'public',
      replies: { 200: UserTokenKeys },
      codes: [],
    },
    {
      ...LOOKUP,
      id: 'getPublicKeys',
      path: '/api/get-public-keys',
      summary: 'Keys by their hashes, each with its proof',
      access,
      bodySchema: GetPublicKeysRequest,
      replies: { 200: GetPublicKeysReply },
    },
    {
      ...LOOKUP,
      id: 'getKeyHistory',
      path: '/api/get-key-history',
      summary: 'Every key that was logged under a hash, each with its proof',
      access,
      bodySchema: GetKeyHistoryRequest,
      replies: { 200: GetKeyHistoryReply },
    },
    {
      ...LOG,
      id: 'lookUpInIndex',
      method: 'GET',
      path: INDEX_LOOKUP_PATH,
      summary: "The index's entry for a key, or that it has none, with its proof",
      access,
      replies: { 200: IndexLookup },
      codes: ['NOT_FOUND', 'INDEX_UNAVAILABLE'],
    },
  ]
}

/** A path of the document. */
export type PathItem = Readonly<Record<string, unknown>>

const TEXT = { 'text/plain': { schema: { type: 'string' } } }
const TILE = {
  parameters: [
    pathValue('level', 'Level of the tile, 0 for leaf hashes', '^(0|[1-9]|[1-5][0-9]|6[0-3])$'),
    tileIndex(),
  ],
}
const ENTRIES = { parameters: [tileIndex()] }

/** The public files (c2sp.org/tlog-tiles). Their refusals are plain text, told from each other by the status. */
export const LOG_FILE_PATHS: Readonly<Record<string, PathItem>> = {
  '/checkpoint': {
    get: file('getCheckpoint', 'The newest signed tree head (c2sp.org/tlog-checkpoint)', 'text/plain'),
  },
  '/tile/{level}/{index}': {
    ...TILE,
    get: file('getTile', 'A tile of hashes (c2sp.org/tlog-tiles)', 'application/octet-stream'),
  },
  '/tile/entries/{index}': {
    ...ENTRIES,
    get: file('getEntries', 'A bundle of log entries (c2sp.org/tlog-tiles)', 'application/octet-stream'),
  },
  '/index/checkpoint': {
    get: indexFile('getIndexCheckpoint', 'The newest signed tree head of the index', 'text/plain'),
  },
  '/index/tile/{level}/{index}': {
    ...TILE,
    get: indexFile('getIndexTile', 'A tile of hashes of the index', 'application/octet-stream'),
  },
  '/index/tile/entries/{index}': {
    ...ENTRIES,
    get: indexFile('getIndexEntries', 'A bundle of leaves of the index', 'application/octet-stream'),
  },
}

/** A file of the index's output log, of the same forms. */
function indexFile(operationId: string, summary: string, mediaType: string): object {
  const operation = file(operationId, summary, mediaType)
  const unavailable = { description: 'No index to answer from at the moment', content: TEXT }
  return { ...operation, responses: { ...operation.responses, 503: unavailable } }
}

function file(operationId: string, summary: string, mediaType: string) {
  return {
    operationId,
    tags: ['log'],
    summary,
    security: [],
    responses: {
      200: { description: 'The file, with its ETag', content: { [mediaType]: {} } },
      304: { description: 'As `If-None-Match` has it' },
      404: { description: 'Not in the log, or not the canonical spelling of its path', content: TEXT },
      429: { $ref: '#/components/responses/TooManyFiles' },
    },
  }
}

function tileIndex(): object {
  const description =
    'Three digits; from 1000 on in groups, such as x001/234; a partial tile is followed by .p/ and its width'
  return pathValue('index', description, '^(x[0-9]{3}/)*[0-9]{3}(\\.p/[1-9][0-9]{0,2})?$')
}

function pathValue(name: string, description: string, pattern: string): object {
  return { name, in: 'path', required: true, description, schema: { type: 'string', pattern } }
}
