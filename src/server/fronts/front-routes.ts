/**
 * The routes of a front. It answers reads, lookups and public facts from the store, as soon as that may be read, and checks
 * and answers commands to calls, which the writer carries out. The writer answers the rest: a front knows only the head of a
 * writing route.
 */

import { partsFrom } from '../../../actors/answer-streams.ts'
import type { ForwardedAnswer, FrontDeskMessage } from '../../../actors/messages.ts'
import { WRITES } from '../../api/operations.ts'
import { SERVER_OPERATIONS } from '../../api/server-api/operations.ts'
import { routeHead } from '../../api/table/operation-routes.ts'
import { type Keyholders, serverRouteHead } from '../../api/table/server-routes.ts'
import { nameOfRoute, type RouteHead } from '../../fronts/messages.ts'
import type { ReadLease } from '../../fronts/read-lease.ts'
import type { Ref } from '../../runtime/actor.ts'
import type { HttpRequest, HttpRoute } from '../../transport/route.ts'

/** Says when a read may be answered: now, or once the promise resolves. */
type Gate = Pick<ReadLease, 'mayRead'>

interface Gates {
  readonly readLease: (Gate & Pick<ReadLease, 'isFresh'>) | undefined
  readonly shownLog: Gate
}

/** This front answers `own` and `commands`; `others` are the remaining routes of the writer. */
export function frontRoutes(
  own: readonly HttpRoute[],
  commands: readonly HttpRoute[],
  { readLease, shownLog }: Gates,
  others: readonly RouteHead[],
  desk: Ref<FrontDeskMessage>,
): readonly HttpRoute[] {
  return [
    ...own.map(route => answeredHere(route, route.isLookup ? shownLog : readLease)),
    ...commands.map(route => checkedHere(route, readLease, desk)),
    ...[...WRITES.map(routeHead), ...others].map(head => forwarded(head, desk)),
  ]
}

/** Answers as soon as a read may be answered. */
function answeredHere(route: HttpRoute, gate: Gate | undefined): HttpRoute {
  if (gate === undefined) return route
  return {
    ...route,
    handle(request) {
      const until = gate.mayRead()
      if (until === undefined) return route.handle(request)
      const kept = keptRequest(request)
      return until.then(() => route.handle(kept))
    },
  }
}

/** An older copy may be wrong about the sender: the writer then checks the request itself. */
function checkedHere(
  route: HttpRoute,
  readLease: Pick<ReadLease, 'isFresh'> | undefined,
  desk: Ref<FrontDeskMessage>,
): HttpRoute {
  if (readLease === undefined) return route
  const { handle, ...head } = route
  const elsewhere = forwarded(head, desk)
  return { ...head, handle: request => (readLease.isFresh ? handle(request) : elsewhere.handle(request)) }
}

/** It outlives the handler's return. */
function keptRequest(request: HttpRequest): HttpRequest {
  const { method, path, params, query, requestId, contentType, network, header, body } = request
  return { method, path, params, query, requestId, contentType, network, header, body: body.slice() }
}

/**
 * The server API, which the writer answers alone. A request without a good key goes no further than here, as far as the front's
 * own store says so.
 */
export function serverApiForwarded(
  desk: Ref<FrontDeskMessage>,
  keyholders: Pick<Keyholders, 'assertKnown'>,
  readLease: Pick<ReadLease, 'isFresh'> | undefined,
): readonly HttpRoute[] {
  const known: typeof keyholders = {
    assertKnown(request) {
      // An older copy may lack the key: the writer knows.
      if (readLease?.isFresh ?? true) keyholders.assertKnown(request)
    },
  }
  return SERVER_OPERATIONS.map(operation => forwarded(serverRouteHead(operation, known), desk))
}

/** The writer answers it. */
function forwarded(head: RouteHead, desk: Ref<FrontDeskMessage>): HttpRoute {
  const route = nameOfRoute(head)
  return {
    ...head,
    async handle(request) {
      const { stream, ...answer } = await desk.ask<ForwardedAnswer>(
        reply => ({ kind: 'request', route, request: dataOf(request, head), reply }),
        REQUEST_DEADLINE_MS,
      )
      return stream === undefined ? answer : { ...answer, body: partsFrom(desk, stream, REQUEST_DEADLINE_MS) }
    },
  }
}

function dataOf(request: HttpRequest, { headers = [] }: RouteHead) {
  const { method, path, params, query, requestId, contentType, network, body } = request
  const sent: Record<string, string> = {}
  for (const name of headers) {
    const value = request.header(name)
    if (value !== '') sent[name] = value
  }
  return { method, path, params, query, requestId, contentType, network, body, headers: sent }
}

/** The writer refuses sooner what it can't do. */
export const REQUEST_DEADLINE_MS = 60_000
