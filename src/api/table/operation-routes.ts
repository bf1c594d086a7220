/**
 * Operations as routes: authenticate, count against the rates, read body and query, hand over, write the answer. The
 * same steps for every operation, so that none forgets one.
 */

import { type Restriction, restrictionError } from '../../domain/devices/restriction.ts'
import type { CountedNetwork } from '../../domain/network.ts'
import { SignalError } from '../../errors.ts'
import { BodyReader, formatJson } from '../../schema/json.ts'
import { QueryReader } from '../../schema/query.ts'
import { unknownMembers } from '../../schema/shape.ts'
import type { IdempotentRequest } from '../../store/tables/idempotency-store.ts'
import type { HttpAnswer, HttpRequest, HttpRoute } from '../../transport/route.ts'
import type { Requester } from '../accounts/authentication.ts'
import type { ApiDeps, Reading } from '../deps.ts'
import { Idempotence, KeyedRequests } from './idempotence.ts'
import type {
  Command,
  CommandRequest,
  Operation,
  OperationForm,
  OperationRequest,
  Read,
  ReadRequest,
  Reply,
} from './operation.ts'
import { isVersionChecked } from './refusals.ts'
import { answerBody } from './reply-body.ts'

type ReadDeps = Pick<
  ApiDeps,
  'authentication' | 'idsAs' | 'nowMs' | 'onRequester' | 'requestRates' | 'restrictions'
>
type CommandDeps = ReadDeps & Pick<ApiDeps, 'isDevelopment' | 'keptReplies'> & Pick<Reading, 'database'>
type Deps = CommandDeps & Pick<ApiDeps, 'database' | 'idempotency'>

/** The routes of reads, for a process that may have nothing to write with. */
export function readRoutes<Given extends ReadDeps>(
  reads: readonly Read<NoInfer<Given>>[],
  deps: Given,
): readonly HttpRoute[] {
  return reads.map(read => {
    const runner = new ReadRunner(read, deps)
    return { ...routeHead(read), handle: request => runner.run(request) }
  })
}

/** The routes of commands, for a process that can ask the writer. */
export function commandRoutes<Given extends CommandDeps>(
  commands: readonly Command<NoInfer<Given>>[],
  deps: Given,
): readonly HttpRoute[] {
  return commands.map(command => {
    const runner = new CommandRunner(command, deps)
    return { ...routeHead(command), handle: request => runner.run(request) }
  })
}

/** The routes of the operations, for a process that has what they need. */
export function operationRoutes<Given extends Deps>(
  operations: readonly Operation<NoInfer<Given>>[],
  deps: Given,
): readonly HttpRoute[] {
  return operations.map(operation => {
    const runner = new OperationRunner(operation, deps)
    return { ...routeHead(operation), handle: request => runner.run(request) }
  })
}

/** The operation's route without its handler. */
export function routeHead(operation: OperationForm): Omit<HttpRoute, 'handle'> {
  return {
    method: operation.method,
    path: operation.path,
    headers: headersOf(operation),
    ...(operation.aliases === undefined ? {} : { aliases: operation.aliases }),
    ...(operation.deprecatedAliases === undefined ? {} : { deprecatedAliases: operation.deprecatedAliases }),
    ...(operation.bodyBytesMax === undefined ? {} : { bodyBytesMax: operation.bodyBytesMax }),
    isVersionChecked: isVersionChecked(operation),
    ...countsForOf(operation),
  }
}

function countsForOf({ access, countsFor }: OperationForm): Pick<HttpRoute, 'countsFor'> {
  if (countsFor !== undefined) return { countsFor }
  return access === 'public' ? {} : { countsFor: 'access-token' }
}

function headersOf({ method, readsIfMatch = false }: OperationForm): readonly string[] {
  if (method === 'GET') return READERS_HEADERS
  return readsIfMatch ? [...HEADERS, 'if-match'] : HEADERS
}

/** The steps that a read has in common with any other operation. */
class RequestSteps {
  readonly #operation: OperationForm
  readonly #deps: ReadDeps
  readonly #queryReader: QueryReader<NonNullable<OperationForm['querySchema']>> | undefined

  constructor(operation: OperationForm, deps: ReadDeps) {
    this.#operation = operation
    this.#deps = deps
    this.#queryReader = operation.querySchema && new QueryReader(operation.querySchema)
  }

  protected requesterOf(request: HttpRequest): Requester | undefined {
    const requester = this.#authenticate(request.header('authorization'))
    const { onRequester, requestRates } = this.#deps
    if (onRequester !== undefined && requester !== undefined) onRequester(request, requester)
    if (requester === undefined) return undefined
    const restriction = this.#deps.restrictions.current(requester)
    // First, so that what it refuses uses up nothing scarcer. A restricted session, which may be an intruder's, uses up nothing
    // of its user's: the owner could not end it.
    if (restriction === undefined) requestRates?.take('authenticated', 'user', `${requester.userId}`)
    else requestRates?.take('authenticated', 'session', requester.sessionName)
    this.#assertAllowed(requester, restriction)
    return requester
  }

  /** Against the operation's own rates. */
  protected count(
    { network }: HttpRequest,
    requester: Requester | undefined,
    isPrefixKnown?: (prefix: CountedNetwork) => boolean,
  ): void {
    const { requestRates } = this.#deps
    const { rates = [] } = this.#operation
    if (requestRates === undefined) return
    for (const { name, by } of rates) {
      if (by !== 'address') requestRates.take(name, by, countedKey(by, requester))
      else if (requester === undefined) requestRates.takeByNetwork(name, network, isPrefixKnown)
      else requestRates.takeSignedIn(name, name, requester.sessionName, network)
    }
  }

  protected readQuery({ query }: HttpRequest): unknown {
    return this.#queryReader?.read(query)
  }

  protected answer({ status, body, contentType = JSON_TYPE }: Reply, unknownFields = ''): HttpAnswer {
    return {
      status,
      contentType,
      body: answerBody(body, members => this.bodyText(members)),
      noStore: true,
      headers: unknownFields === '' ? undefined : [['X-Unknown-Fields', unknownFields]],
    }
  }

  protected bodyText(body: object | string): string {
    return typeof body === 'string' ? body : formatJson(body, this.#deps.idsAs)
  }

  #authenticate(authorization: string): Requester | undefined {
    const { access } = this.#operation
    if (access === 'public' || (access === 'optional' && authorization === '')) return undefined
    const { authentication } = this.#deps
    if (access === 'ended') return authentication.requesterUnlessOver(authorization)
    return authentication.requesterOf(authorization)
  }

  #assertAllowed(requester: Requester, restriction: Restriction | undefined): void {
    const { access } = this.#operation
    if ((access === 'session' || access === 'device') && restriction !== undefined)
      throw restrictionError(restriction)
    if ((access === 'device' || access === 'restricted-device') && requester.deviceId === undefined)
      throw new SignalError('DEVICE_NOT_REGISTERED', 'this needs a device: register one first')
  }
}

class ReadRunner<Given extends ReadDeps> extends RequestSteps {
  readonly #read: Read<Given>
  readonly #deps: Given

  constructor(read: Read<Given>, deps: Given) {
    super(read, deps)
    this.#read = read
    this.#deps = deps
  }

  run(request: HttpRequest): HttpAnswer | Promise<HttpAnswer> {
    const requester = this.requesterOf(request)
    this.count(request, requester)
    const checked = { requester, body: undefined, query: this.readQuery(request), nowMs: this.#deps.nowMs() }
    const reply = this.#read.handle(this.#deps, new CheckedRead(request, checked))
    return reply instanceof Promise ? reply.then(late => this.answer(late)) : this.answer(reply)
  }
}

class CommandRunner<Given extends CommandDeps> extends RequestSteps {
  readonly #operation: Operation<Given>
  readonly #deps: Given
  readonly #bodyReader: BodyReader<NonNullable<OperationForm['bodySchema']>> | undefined
  readonly #keyed: KeyedRequests

  constructor(operation: Operation<Given>, deps: Given) {
    super(operation, deps)
    this.#operation = operation
    this.#deps = deps
    this.#bodyReader = operation.bodySchema && new BodyReader(operation.bodySchema)
    this.#keyed = new KeyedRequests(operation, deps)
  }

  run(request: HttpRequest): HttpAnswer | Promise<HttpAnswer> {
    const requester = this.requesterOf(request)
    // Now, since the body's memory may be gone when the handler comes to its commit.
    const idempotent = this.#keyed.requestOf(request, requester)
    // Before anything is counted or looked at: what the first request used up or did may be in the way of its repetition.
    const kept = idempotent && this.#deps.database.view(view => this.#keyed.kept(view, idempotent))
    if (kept === undefined) this.count(request, requester, this.#isPrefixKnown(request))
    const body = this.#readBody(request)
    const unknownFields = this.#deps.isDevelopment ? this.#unknownFields(body) : ''
    if (kept !== undefined) return this.answer(this.#repeated(kept, requester), unknownFields)
    const checked = {
      requester,
      body,
      query: this.readQuery(request),
      nowMs: this.#deps.nowMs(),
    }
    const reply = this.handled(request, checked, idempotent)
    return reply instanceof Promise
      ? reply.then(late => this.answer(this.#repeated(late, requester), unknownFields))
      : this.answer(reply, unknownFields)
  }

  protected handled(
    request: HttpRequest,
    checked: RequestChecks,
    idempotent: IdempotentRequest | undefined,
  ): Reply | Promise<Reply> {
    // Only a command comes here, which looks at no more of its request.
    const { handle } = this.#operation as Command<Given>
    return handle(this.#deps, new CheckedCommand(request, checked, idempotent))
  }

  /** A reply that was kept is text. */
  #repeated(reply: Reply, requester: Requester | undefined): Reply {
    const { repeat } = this.#operation
    if (repeat === undefined || requester === undefined || typeof reply.body !== 'string') return reply
    return { ...reply, body: repeat(this.#deps, requester, reply.body) }
  }

  #isPrefixKnown(request: HttpRequest): ((prefix: CountedNetwork) => boolean) | undefined {
    const { isPrefixKnown } = this.#operation
    if (isPrefixKnown === undefined) return undefined
    return prefix => isPrefixKnown(this.#deps, this.#readBody(request), prefix, this.#deps.nowMs())
  }

  #readBody({ body, contentType }: HttpRequest): unknown {
    if (this.#bodyReader === undefined) return undefined
    if (body.length === 0 && this.#operation.isBodyOptional) {
      return this.#bodyReader.read(EMPTY_OBJECT, 'application/json')
    }
    return this.#bodyReader.read(body, contentType)
  }

  #unknownFields(body: unknown): string {
    const schema = this.#operation.bodySchema
    if (schema === undefined) return ''
    const pointers = unknownMembers(schema, body).join(', ')
    return pointers.slice(0, UNKNOWN_FIELDS_CHARS_MAX).replace(/[^\x20-\x7e]/g, '?')
  }
}

class OperationRunner<Given extends Deps> extends CommandRunner<Given> {
  readonly #operation: Operation<Given>
  readonly #deps: Given
  readonly #idempotence: Idempotence

  constructor(operation: Operation<Given>, deps: Given) {
    super(operation, deps)
    this.#operation = operation
    this.#deps = deps
    this.#idempotence = new Idempotence(operation, deps, body => this.bodyText(body))
  }

  protected override handled(
    request: HttpRequest,
    checked: RequestChecks,
    idempotent: IdempotentRequest | undefined,
  ): Reply | Promise<Reply> {
    return this.#operation.handle(
      this.#deps,
      new CheckedRequest(request, checked, idempotent, this.#idempotence),
    )
  }
}

/** The findings of the checks before the handler. */
interface RequestChecks {
  readonly requester: Requester | undefined
  readonly body: unknown
  readonly query: unknown
  readonly nowMs: number
}

/**
 * What a handler is given of its request; the members are described in `OperationRequest`. Departure from a plain object
 * with all of it: most handlers look at little, and copies, closures and accessors made for each request cost a tenth of a
 * `GET user` (`bench/user.ts`).
 */
class CheckedRead implements ReadRequest<unknown, unknown, 'session'> {
  protected readonly request: HttpRequest
  readonly #checked: RequestChecks

  constructor(request: HttpRequest, checked: RequestChecks) {
    this.request = request
    this.#checked = checked
  }

  get body(): unknown {
    return this.#checked.body
  }

  get query(): unknown {
    return this.#checked.query
  }

  get params(): readonly string[] {
    return this.request.params
  }

  /** Undefined where the operation's access allows it. */
  get requester(): Requester {
    return this.#checked.requester as Requester
  }

  get requestId(): string {
    return this.request.requestId
  }

  get network(): string {
    return this.request.network
  }

  get nowMs(): number {
    return this.#checked.nowMs
  }
}

class CheckedCommand extends CheckedRead implements CommandRequest<unknown, unknown, 'session'> {
  readonly idempotent: IdempotentRequest | undefined

  constructor(request: HttpRequest, checked: RequestChecks, idempotent: IdempotentRequest | undefined) {
    super(request, checked)
    this.idempotent = idempotent
  }
}

class CheckedRequest extends CheckedCommand implements OperationRequest<unknown, unknown, 'session'> {
  readonly #idempotence: Idempotence

  constructor(
    request: HttpRequest,
    checked: RequestChecks,
    idempotent: IdempotentRequest | undefined,
    idempotence: Idempotence,
  ) {
    super(request, checked, idempotent)
    this.#idempotence = idempotence
  }

  get acceptLanguage(): string {
    return this.request.header('accept-language').slice(0, HEADER_CHARS_MAX)
  }

  get userAgent(): string {
    return this.request.header('user-agent').slice(0, HEADER_CHARS_MAX)
  }

  get idempotencyKey(): string | undefined {
    return this.request.header('idempotency-key') || undefined
  }

  get ifMatch(): string {
    return this.request.header('if-match').slice(0, HEADER_CHARS_MAX)
  }

  get commit(): OperationRequest<unknown, unknown, 'session'>['commit'] {
    return write => this.#idempotence.commit(write, this.idempotent, this.nowMs)
  }
}

function countedKey(by: 'user' | 'session', requester: Requester | undefined): string {
  return by === 'user' ? String(requester?.userId) : (requester?.sessionName ?? '')
}

const HEADERS = ['authorization', 'idempotency-key', 'accept-language', 'user-agent']
/** Operations that only read look at no other header, and each one that is copied costs a call into uWebSockets. */
const READERS_HEADERS = ['authorization']
const HEADER_CHARS_MAX = 256
const UNKNOWN_FIELDS_CHARS_MAX = 256
const EMPTY_OBJECT = Buffer.from('{}')
const JSON_TYPE = 'application/json; charset=utf-8'
