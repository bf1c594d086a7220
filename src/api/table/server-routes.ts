/**
 * Operations of the server API as routes: authenticate, count, check the scope, read body and query, hand over, answer. The same
 * steps for every operation, so that none forgets one.
 */

import { isConsoleToken, parseConsoleToken } from '../../domain/operators/console-session.ts'
import {
  CREDENTIAL_MS_MAX,
  isOperatorCredential,
  OPERATOR,
  type ServerKeyHolder,
} from '../../domain/operators/server-key.ts'
import { type ErrorCode, SignalError } from '../../errors.ts'
import { BodyReader, formatJson } from '../../schema/json.ts'
import { QueryReader } from '../../schema/query.ts'
import type { Change } from '../../store/engine/store.ts'
import type { HttpAnswer, HttpRequest, HttpRoute } from '../../transport/route.ts'
import type { ServerApiDeps } from '../server-api/deps.ts'
import { Idempotence } from './idempotence.ts'
import { LongAnswers } from './long-answers.ts'
import type { Reply } from './operation.ts'
import { answerBody, isMadeInParts } from './reply-body.ts'
import type { AuditedReply, ServerOperation, ServerRequest } from './server-operation.ts'

type Deps = Pick<
  ServerApiDeps,
  | 'auditLog'
  | 'database'
  | 'idempotency'
  | 'keptReplies'
  | 'nowMs'
  | 'requestRates'
  | 'secrets'
  | 'serverKeys'
>

/** The routes of the operations, for the process that writes. */
export function serverRoutes<Given extends Deps>(
  operations: readonly ServerOperation<NoInfer<Given>>[],
  deps: Given,
): readonly HttpRoute[] {
  const keyholders = new Keyholders(deps)
  const askers = new Askers(deps, keyholders)
  const longAnswers = new LongAnswers(LONG_ANSWERS_OF_KEY_MAX)
  return operations.map(operation => {
    const runner = new ServerRunner(operation, deps, { askers, longAnswers })
    return { ...serverRouteHead(operation, keyholders), handle: request => runner.run(request) }
  })
}

/**
 * The operation's route without its handler. Requests count by their key; those without a good one, by their address. They are
 * refused by their head: else a stranger could have the server hold bodies of megabytes.
 */
export function serverRouteHead(
  { access, method, path, bodyBytesMax }: ServerOperation<never>,
  keyholders: Pick<Keyholders, 'assertKnown'>,
): Omit<HttpRoute, 'handle'> {
  return {
    method,
    path,
    headers: HEADERS,
    isUncounted: true,
    ...(bodyBytesMax !== undefined && { bodyBytesMax }),
    // The credential of the operator's command is bound to the body.
    ...(access === 'server-key' && { admit: request => keyholders.assertKnown(request) }),
  }
}

type HeadOfRequest = Pick<HttpRequest, 'header' | 'network'>

/** Says whose key, or session of the operators' page, a request has. */
export class Keyholders {
  readonly #deps: Pick<Deps, 'nowMs' | 'requestRates' | 'secrets' | 'serverKeys'>

  constructor(deps: Pick<Deps, 'nowMs' | 'requestRates' | 'secrets' | 'serverKeys'>) {
    this.#deps = deps
  }

  /** Throws as `of`, and `RATE_LIMITED` where the address has sent many unknown keys. */
  assertKnown(request: HeadOfRequest): void {
    this.counted(request, () => this.of(request))
  }

  /** Throws `SERVER_KEY_INVALID`, `SERVER_KEY_EXPIRED` or `SERVER_KEY_REVOKED`. */
  of(request: HeadOfRequest): ServerKeyHolder {
    const { serverKeys, nowMs } = this.#deps
    const text = credentialOf(request)
    return isConsoleToken(text) ? this.#ofConsole(text) : serverKeys.holderOf(text, nowMs())
  }

  /** Counts what `find` does not know against the address. */
  counted<Found>({ network }: HeadOfRequest, find: () => Found): Found {
    try {
      return find()
    } catch (error) {
      if (error instanceof SignalError && UNKNOWN.has(error.code))
        this.#deps.requestRates?.takeByNetwork('request', network)
      throw error
    }
  }

  /** The holder of a session's key, as the key stands now. */
  #ofConsole(text: string): ServerKeyHolder {
    const { secrets, serverKeys, nowMs } = this.#deps
    const session = parseConsoleToken(secrets.consoleSession, text)
    if (session === undefined)
      throw new SignalError('SERVER_KEY_INVALID', 'this is no session of the operators’ page: sign in there')
    if (nowMs() >= session.expiresAtMs)
      throw new SignalError('SERVER_KEY_EXPIRED', 'this session has ended: sign in again with your key')
    return { ...serverKeys.current(session.keyId, nowMs()), isConsoleSession: true }
  }
}

/** Says who asks. */
class Askers {
  readonly #deps: Deps
  readonly #keyholders: Keyholders
  /** Credentials of the operator's command that were used, by when they are no more good. */
  readonly #used = new Map<string, number>()

  constructor(deps: Deps, keyholders: Keyholders) {
    this.#deps = deps
    this.#keyholders = keyholders
  }

  of(request: HttpRequest, operation: ServerOperation<never>): ServerKeyHolder {
    return this.#keyholders.counted(request, () => this.#holderOf(request, operation))
  }

  #holderOf(request: HttpRequest, { access, scope }: ServerOperation<never>): ServerKeyHolder {
    if (access === 'operator') return this.#operator(request, credentialOf(request))
    const holder = this.#keyholders.of(request)
    this.#deps.requestRates?.take('server-key', 'server-key', holder.keyId)
    if (scope !== undefined && !holder.scopes.has(scope))
      throw new SignalError('SCOPE_MISSING', `this needs a server key with the scope ${scope}`)
    return holder
  }

  #operator({ method, path, body }: HttpRequest, text: string): ServerKeyHolder {
    const { secrets, nowMs } = this.#deps
    const now = nowMs()
    for (const [used, untilMs] of this.#used) if (untilMs <= now) this.#used.delete(used)
    if (
      this.#used.has(text) ||
      !isOperatorCredential(secrets.operatorCommand, text, { method, path, body }, now)
    )
      throw new SignalError(
        'SERVER_KEY_INVALID',
        'this is for the operator’s command alone, with the server’s own secret and time',
      )
    this.#used.set(text, now + 2 * CREDENTIAL_MS_MAX)
    return { keyId: OPERATOR, name: OPERATOR, scopes: new Set() }
  }
}

/** By all operations. */
interface Shared {
  readonly askers: Askers
  readonly longAnswers: LongAnswers
}

class ServerRunner<Given extends Deps> {
  readonly #operation: ServerOperation<Given>
  readonly #deps: Given
  readonly #askers: Askers
  readonly #longAnswers: LongAnswers
  readonly #bodyReader: BodyReader<NonNullable<ServerOperation<Given>['bodySchema']>> | undefined
  readonly #queryReader: QueryReader<NonNullable<ServerOperation<Given>['querySchema']>> | undefined
  readonly #idempotence: Idempotence

  constructor(operation: ServerOperation<Given>, deps: Given, { askers, longAnswers }: Shared) {
    this.#operation = operation
    this.#deps = deps
    this.#askers = askers
    this.#longAnswers = longAnswers
    this.#bodyReader = operation.bodySchema && new BodyReader(operation.bodySchema)
    this.#queryReader = operation.querySchema && new QueryReader(operation.querySchema)
    this.#idempotence = new Idempotence(operation, deps, body => this.#bodyText(body))
  }

  async run(request: HttpRequest): Promise<HttpAnswer> {
    const holder = this.#askers.of(request, this.#operation)
    // Now, since the body's memory is gone at the first await.
    const idempotent = this.#idempotence.requestBy(request, `key ${holder.keyId}`)
    const kept = idempotent && this.#deps.database.view(view => this.#idempotence.kept(view, idempotent))
    const body = this.#readBody(request)
    if (kept !== undefined) return this.#answer(kept)
    const checked = new CheckedServerRequest(this.#operation.id, this.#deps, this.#idempotence, {
      body,
      query: this.#queryReader?.read(request.query),
      params: request.params,
      holder,
      requestId: request.requestId,
      network: request.network,
      nowMs: this.#deps.nowMs(),
      idempotent,
    })
    const reply = await this.#operation.handle(this.#deps, checked)
    return this.#answer(this.#counted(reply, holder))
  }

  #readBody({ body, contentType }: HttpRequest): unknown {
    const { bodyMediaType, isBodyOptional } = this.#operation
    if (bodyMediaType !== undefined) {
      if (contentType.split(';', 1)[0]!.trim().toLowerCase() === bodyMediaType) return Uint8Array.from(body)
      throw new SignalError('UNSUPPORTED_MEDIA_TYPE', `send the body as ${bodyMediaType}`)
    }
    if (this.#bodyReader === undefined) return undefined
    if (body.length === 0 && isBodyOptional) return this.#bodyReader.read(EMPTY_OBJECT, 'application/json')
    return this.#bodyReader.read(body, contentType)
  }

  #counted(reply: Reply, { keyId }: ServerKeyHolder): Reply {
    const { body } = reply
    if (body === undefined || !isMadeInParts(body)) return reply
    return { ...reply, body: this.#longAnswers.counted(keyId, body) }
  }

  #answer({ status, body, contentType = JSON_TYPE }: Reply): HttpAnswer {
    const written = answerBody(body, members => this.#bodyText(members))
    return { status, contentType, body: written, noStore: true }
  }

  /** Ids are texts whatever the settings say, which are for decoders of apps. */
  #bodyText(body: object | string): string {
    return typeof body === 'string' ? body : formatJson(body, 'string')
  }
}

type CheckedMembers = Omit<ServerRequest<unknown, unknown>, 'audit' | 'auditRow' | 'commit'>

class CheckedServerRequest implements ServerRequest<unknown, unknown> {
  readonly body: unknown
  readonly query: unknown
  readonly params: readonly string[]
  readonly holder: ServerKeyHolder
  readonly requestId: string
  readonly network: string
  readonly nowMs: number
  readonly idempotent: ServerRequest<unknown, unknown>['idempotent']
  readonly #operation: string
  readonly #auditLog: Deps['auditLog']
  readonly #idempotence: Idempotence

  constructor(
    operation: string,
    { auditLog }: Deps,
    idempotence: Idempotence,
    { body, query, params, holder, requestId, network, nowMs, idempotent }: CheckedMembers,
  ) {
    this.body = body
    this.query = query
    this.params = params
    this.holder = holder
    this.requestId = requestId
    this.network = network
    this.nowMs = nowMs
    this.idempotent = idempotent
    this.#operation = operation
    this.#auditLog = auditLog
    this.#idempotence = idempotence
  }

  audit(change: Change, target: string): void {
    this.#auditLog.add(change, this.auditRow(target))
  }

  get auditRow(): ServerRequest<unknown, unknown>['auditRow'] {
    return target => {
      const { keyId, person } = this.holder
      const row = { keyId, ...(person !== undefined && { person }), operation: this.#operation, target }
      return { ...row, requestId: this.requestId }
    }
  }

  get commit(): ServerRequest<unknown, unknown>['commit'] {
    return write => this.#commit(write)
  }

  #commit(write: (change: Change) => AuditedReply): Promise<Reply> {
    const audited = (change: Change): Reply => {
      const { target, ...reply } = write(change)
      if (target !== undefined) this.audit(change, target)
      return reply
    }
    return this.#idempotence.commit(audited, this.idempotent, this.nowMs)
  }
}

function credentialOf({ header }: HeadOfRequest): string {
  return BEARER_FORM.exec(header('authorization'))?.[1] ?? ''
}

const UNKNOWN: ReadonlySet<ErrorCode> = new Set([
  'SERVER_KEY_INVALID',
  'SERVER_KEY_EXPIRED',
  'SERVER_KEY_REVOKED',
])
/** Exports and imports of one key at once: an import holds its body, of megabytes. */
const LONG_ANSWERS_OF_KEY_MAX = 8
const HEADERS = ['authorization', 'idempotency-key']
const BEARER_FORM = /^bearer +(\S+) *$/i
const EMPTY_OBJECT = Buffer.from('{}')
const JSON_TYPE = 'application/json; charset=utf-8'
