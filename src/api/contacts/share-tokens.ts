/** Share tokens (contract 3.1): make, list, revoke and draw one's own, and see who is behind another's. */

import { encodeQR } from 'qr'
import type { Static } from 'typebox'
import { normalizeLabel } from '../../domain/accounts/display-name.ts'
import { newId, type TokenId, type UserId } from '../../domain/ids.ts'
import { SignalError } from '../../errors.ts'
import { invalidMember } from '../../schema/check.ts'
import {
  CreateShareTokenReply,
  CreateShareTokenRequest,
  QrImage,
  ResolveShareTokenReply,
  ResolveShareTokenRequest,
  ShareTokenPage,
} from '../../schema/contact.ts'
import { PageQuery } from '../../schema/page.ts'
import { timeText } from '../../schema/time.ts'
import type { ShareToken } from '../../store/contacts/contact-tables.ts'
import { isLive, type ShareTokenStore } from '../../store/contacts/share-token-store.ts'
import type { View } from '../../store/engine/store.ts'
import type { ApiDeps, Reading } from '../deps.ts'
import { assertRate, type LastingRate, refuseCounted, takeRate } from '../table/lasting-rates.ts'
import {
  type Operation,
  operation,
  operationWithBody,
  pathId,
  type Reply,
  read,
  readWithQuery,
} from '../table/operation.ts'
import { type Page, pageOf, rangeOf } from '../table/page.ts'
import { assertByUsers, isReachable, personOf } from './people.ts'

type Deps = Pick<
  ApiDeps,
  | 'accounts'
  | 'contacts'
  | 'contactsBy'
  | 'database'
  | 'deepLinkScheme'
  | 'publicUrl'
  | 'randomBytes'
  | 'rateLimits'
  | 'rates'
  | 'shareTokens'
>

/**
 * The live token of a text. Rejects with `SHARE_TOKEN_NOT_FOUND`, also when its owner is gone, with
 * `SHARE_TOKEN_EXPIRED`, or with `RATE_LIMITED` for a user who has tried too many that are none.
 */
export async function findShareToken(
  deps: Pick<Deps, 'accounts' | 'database' | 'rateLimits' | 'rates' | 'shareTokens'>,
  userId: UserId,
  text: string,
  nowMs: number,
): Promise<ShareToken> {
  const token = deps.database.view(view => {
    // Also for a token that is one: else an answer would tell it from the others.
    assertRate(deps, view, UNKNOWN_TOKENS, { userId, nowMs })
    const found = deps.shareTokens.find(view, text)
    return found !== undefined && isReachable(view, deps, found.userId) ? found : undefined
  })
  if (token === undefined) return refuseCounted(deps, UNKNOWN_TOKENS, { userId, nowMs }, tokenNotFound())
  assertLive(token, nowMs)
  return token
}

/** Throws `SHARE_TOKEN_EXPIRED`. */
export function assertLive(token: ShareToken, nowMs: number): void {
  if (!isLive(token, nowMs)) throw new SignalError('SHARE_TOKEN_EXPIRED', 'this share token is over')
}

const createShareToken = operationWithBody(CreateShareTokenRequest, {
  id: 'createShareToken',
  method: 'POST',
  path: '/app/api/share-token',
  tag: 'contacts',
  summary: 'Make a share token, by which people find the user',
  access: 'session',
  replies: { 201: CreateShareTokenReply },
  codes: ['SHARE_TOKEN_LIMIT', 'CONTACTS_BY_SERVER'],
  isIdempotent: true,
  isBodyOptional: true,
  handle: (deps: Deps, { requester: { userId }, body, nowMs, commit }) => {
    assertByUsers(deps)
    return commit(change => {
      const { shareTokens, randomBytes } = deps
      const { expiresIn = EXPIRES_IN, maxUses = MAX_USES } = body
      const label = readLabel(body.label)
      const live = shareTokens.readLive(change, userId, { limit: LIVE_READ_MAX }, nowMs)
      if (live.length >= SHARE_TOKENS_MAX) {
        throw new SignalError('SHARE_TOKEN_LIMIT', `nobody has more than ${SHARE_TOKENS_MAX} share tokens`)
      }
      takeRate(deps, change, TOKENS_MADE, userId)
      const { token, text } = shareTokens.create(change, {
        userId,
        tokenId: newId(randomBytes) as TokenId,
        ...(label === undefined ? {} : { label }),
        createdAtMs: nowMs,
        expiresAtMs: nowMs + expiresIn * 1000,
        usesMax: maxUses,
      })
      const deepLink = `${deps.deepLinkScheme}://c/${text}`
      return { status: 201, body: { ...viewOf(token), token: text, url: urlOf(deps, text), deepLink } }
    })
  },
})

export const listShareTokens = readWithQuery(PageQuery, {
  id: 'listShareTokens',
  method: 'GET',
  path: '/app/api/share-token',
  tag: 'contacts',
  summary: 'The live share tokens, newest first, without the tokens themselves',
  access: 'session',
  replies: { 200: ShareTokenPage },
  codes: [],
  handle: (
    { database, shareTokens }: Pick<ApiDeps, 'shareTokens'> & Pick<Reading, 'database'>,
    { requester: { userId }, query, nowMs },
  ) => ({
    status: 200,
    body: database.view(view => shareTokenPage(view, { shareTokens }, userId, query, nowMs)),
  }),
})

export function shareTokenPage(
  view: View,
  { shareTokens }: Pick<ApiDeps, 'shareTokens'>,
  userId: UserId,
  query: Static<typeof PageQuery>,
  nowMs: number,
): Page {
  const found = shareTokens.readLive(view, userId, rangeOf(query), nowMs)
  const entryOf = ({ createdAtMs, tokenId }: ShareToken) => ({ atMs: createdAtMs, id: tokenId })
  const itemOf = (token: ShareToken) => ({ ...viewOf(token), last4: token.lastCharacters })
  return pageOf(query, found, entryOf, itemOf)
}

const revokeShareToken = operation({
  id: 'revokeShareToken',
  method: 'DELETE',
  path: '/app/api/share-token/{id}',
  tag: 'contacts',
  summary: 'Revoke a share token at once',
  access: 'session',
  replies: { 204: null },
  codes: ['SHARE_TOKEN_NOT_FOUND'],
  handle: ({ shareTokens }: Deps, { requester: { userId }, params, commit }) =>
    commit(change => {
      shareTokens.revoke(change, ownToken(change, shareTokens, userId, params))
      return { status: 204 }
    }),
})

export const drawShareToken = read({
  id: 'drawShareToken',
  method: 'GET',
  path: '/app/api/share-token/{id}/qr.svg',
  tag: 'contacts',
  summary: "The share token's URL as a QR code",
  access: 'session',
  replies: { 200: QrImage },
  codes: ['SHARE_TOKEN_NOT_FOUND', 'SHARE_TOKEN_EXPIRED'],
  handle: (
    deps: Pick<ApiDeps, 'publicUrl' | 'shareTokens'> & Pick<Reading, 'database'>,
    { requester: { userId }, params, nowMs },
  ) => {
    const { database, shareTokens } = deps
    const token = database.view(view => ownToken(view, shareTokens, userId, params))
    assertLive(token, nowMs)
    const text = shareTokens.textOf(token)
    if (text === undefined) {
      throw new SignalError('SHARE_TOKEN_EXPIRED', 'this share token is of an earlier secret of the server')
    }
    return svgReply(qrImage(urlOf(deps, text)))
  },
})

const resolveShareToken = operationWithBody(ResolveShareTokenRequest, {
  id: 'resolveShareToken',
  method: 'POST',
  path: '/app/api/share-token/resolve',
  tag: 'contacts',
  summary: 'The person behind a share token: the preview before a request',
  access: 'session',
  replies: { 200: ResolveShareTokenReply },
  codes: ['SHARE_TOKEN_NOT_FOUND', 'SHARE_TOKEN_EXPIRED', 'CONTACTS_BY_SERVER'],
  rates: [
    { name: 'share-token-resolve-address', by: 'address' },
    { name: 'share-token-resolve', by: 'user' },
  ],
  handle: async (deps: Deps, { requester, body, nowMs }) => {
    assertByUsers(deps)
    const { userId } = await findShareToken(deps, requester.userId, body.token, nowMs)
    return deps.database.view(view => {
      const { displayName } = personOf(view, deps, userId)
      const relation = deps.contacts.relationOf(view, requester.userId, userId, nowMs)
      return { status: 200, body: { token: body.token, displayName, relation } }
    })
  },
})

export const SHARE_TOKENS: readonly Operation<Deps>[] = [
  createShareToken,
  listShareTokens,
  revokeShareToken,
  drawShareToken,
  resolveShareToken,
]

/** Black modules on white as one path of runs, each a module high. */
export function qrImage(text: string): string {
  const rows = encodeQR(text, 'raw', { ecc: 'medium', border: QUIET_MODULES })
  const size = rows.length
  const path = rows.map((row, y) =>
    runsOf(row)
      .map(([x, length]) => `M${x} ${y}h${length}v1h-${length}z`)
      .join(''),
  )
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${size} ${size}" shape-rendering="crispEdges">` +
    `<rect width="${size}" height="${size}" fill="#fff"/><path d="${path.join('')}"/></svg>`
  )
}

/** Where black runs begin and how long they are. */
function runsOf(row: readonly boolean[]): [start: number, length: number][] {
  const runs: [number, number][] = []
  for (const [x, isBlack] of row.entries()) {
    const last = runs.at(-1)
    if (isBlack && last !== undefined && last[0] + last[1] === x) last[1]++
    else if (isBlack) runs.push([x, 1])
  }
  return runs
}

function svgReply(body: string): Reply {
  return { status: 200, body, contentType: 'image/svg+xml' }
}

/** Throws `SHARE_TOKEN_NOT_FOUND` where the path names none of the user's. */
function ownToken(
  view: View,
  shareTokens: ShareTokenStore,
  userId: UserId,
  params: readonly string[],
): ShareToken {
  const tokenId = pathId(params)
  const token = tokenId === undefined ? undefined : shareTokens.read(view, userId, tokenId)
  if (token === undefined) throw tokenNotFound()
  return token
}

/** The label as it is kept. Throws `VALIDATION_FAILED` if no visible character is left. */
function readLabel(text = ''): string | undefined {
  const label = normalizeLabel(text)
  if (label !== undefined || text.trim() === '') return label
  throw invalidMember('/label', 'FORMAT', 'has nothing that a reader could see')
}

function viewOf({ tokenId, label, createdAtMs, expiresAtMs, usesMax, uses }: ShareToken): object {
  return {
    id: tokenId,
    label,
    createdAt: timeText(createdAtMs),
    expiresAt: timeText(expiresAtMs),
    maxUses: usesMax,
    uses,
  }
}

function urlOf({ publicUrl }: Pick<ApiDeps, 'publicUrl'>, text: string): string {
  return `${publicUrl().replace(/\/$/, '')}/c/${text}`
}

export function tokenNotFound(): SignalError {
  return new SignalError('SHARE_TOKEN_NOT_FOUND', 'no such share token')
}

/** Live tokens of a user. */
const SHARE_TOKENS_MAX = 20
/** As many and those whose end the sweep has not come to. */
const LIVE_READ_MAX = 200
const EXPIRES_IN = 7 * 86_400
const MAX_USES = 100
const TOKENS_MADE: LastingRate = {
  name: 'share-token-create',
  rates: ['share-token-create'],
}
const UNKNOWN_TOKENS: LastingRate = {
  name: 'share-token-unknown',
  rates: ['share-token-unknown'],
}
/** The white border that ISO/IEC 18004 asks for. */
const QUIET_MODULES = 4
