/**
 * Imports of users: a file with a user on each line, answered line by line while it is written. A line at fault stops no other.
 * A hundred lines share a change, and their answers leave once it is durable: an import that breaks off has done all that it
 * answered. Sent again, it changes nothing twice.
 */

import Type, { type Static } from 'typebox'
import type { UserId } from '../../domain/ids.ts'
import { readUserRef, type UserRef } from '../../domain/operators/user-ref.ts'
import { SignalError } from '../../errors.ts'
import { BODY_BYTES_MAX } from '../../limits.ts'
import { invalidMember, SchemaCheck } from '../../schema/check.ts'
import { formatJson } from '../../schema/json.ts'
import { parseJson } from '../../schema/lossless.ts'
import { type UserImportAnswer, UserImportLine } from '../../schema/server-user.ts'
import type { Change } from '../../store/engine/store.ts'
import type { SaidOfUser } from '../../store/operators/server-users.ts'
import {
  type ServerOperation,
  type ServerRequest,
  serverOperationWithBytes,
} from '../table/server-operation.ts'
import type { ServerApiDeps } from './deps.ts'
import { readSaid } from './said-of-user.ts'

type Deps = Pick<ServerApiDeps, 'addresses' | 'database' | 'nowMs' | 'serverKeys' | 'serverUsers'>
type ImportRequest = ServerRequest<Uint8Array, undefined>
type Answer = Static<typeof UserImportAnswer>

const MEDIA_TYPE = 'application/x-ndjson'

export const USER_IMPORTS: readonly ServerOperation<Deps>[] = [
  serverOperationWithBytes(MEDIA_TYPE, {
    id: 'importUsers',
    method: 'POST',
    path: '/server/api/v1/user-imports',
    tag: 'users',
    scope: 'users',
    summary:
      'Make or change many users: a line of JSON each, as `PUT users/{ref}` with `ref`; answered line by line',
    replies: {
      200: Type.String({
        contentMediaType: MEDIA_TYPE,
        description:
          'For each line, in their order: `{"line":1,"status":"created","userId":"..."}`, `changed`, `unchanged`, or ' +
          '`{"line":2,"status":"refused","code":"...","detail":"..."}`',
      }),
    },
    codes: ['VALIDATION_FAILED', 'OVERLOADED'],
    bodyBytesMax: 8 * 1024 * 1024,
    handle(deps: Deps, request) {
      const lines = linesOf(request.body)
      return { status: 200, contentType: MEDIA_TYPE, body: answersTo(deps, request, lines) }
    },
  }),
]

/** The file's lines; the last one needs no line feed. Throws `VALIDATION_FAILED`. */
function linesOf(file: Uint8Array): Uint8Array[] {
  const lines: Uint8Array[] = []
  for (let from = 0; from < file.length; ) {
    if (lines.length === LINES_MAX)
      throw invalidMember('', 'MAX_ITEMS', `has more than ${LINES_MAX} lines: send the rest by itself`)
    const feed = file.indexOf(LINE_FEED, from)
    const to = feed === -1 ? file.length : feed
    lines.push(file.subarray(from, to))
    from = to + 1
  }
  return lines
}

/** The answers to each portion, once it is durable. */
async function* answersTo(
  deps: Deps,
  request: ImportRequest,
  lines: readonly Uint8Array[],
): AsyncGenerator<Uint8Array, void> {
  const answered = new Map<UserId, number>()
  for (let at = 0; at < lines.length; at += PORTION_LINES) {
    // A client that reads slowly takes minutes, in which the key may be revoked.
    deps.serverKeys.current(request.holder.keyId, deps.nowMs())
    const portion = lines
      .slice(at, at + PORTION_LINES)
      .flatMap((line, index) => readLine(deps, line, at + index + 1))
    const answers = await writePortion(deps, request, portion, answered)
    for (const { userId, line } of answers) if (userId !== undefined) answered.set(userId as UserId, line)
    if (answers.length > 0)
      yield Buffer.from(answers.map(answer => `${formatJson(answer, 'string')}\n`).join(''))
  }
}

type ReadLine =
  | { readonly line: number; readonly ref: UserRef; readonly said: SaidOfUser }
  | { readonly line: number; readonly refusal: SignalError }

/** Nothing for an empty line. */
function readLine(deps: Deps, bytes: Uint8Array, line: number): ReadLine[] {
  if (bytes.every(octet => BLANKS.has(octet))) return []
  try {
    if (bytes.length > BODY_BYTES_MAX)
      throw new SignalError('BODY_TOO_LARGE', `the line has more than ${BODY_BYTES_MAX} bytes`)
    const body = LINE.check(parseJson(bytes, 'the line'))
    const ref = readUserRef(body.ref)
    return [{ line, ref, said: readSaid(deps, ref, body) }]
  } catch (error) {
    if (!(error instanceof SignalError)) throw error
    return [{ line, refusal: error }]
  }
}

/** One change. It may run more than once, so what it learns stays within it. */
function writePortion(
  { database, serverUsers }: Deps,
  request: ImportRequest,
  portion: readonly ReadLine[],
  answered: ReadonlyMap<UserId, number>,
): Promise<Answer[]> {
  return database.change(change => {
    const lineOf = new Map(answered)
    const answers = portion.map(read => {
      if ('refusal' in read) return refused(read.line, read.refusal)
      const answer = writeLine(change, serverUsers, read, lineOf)
      if (answer.userId !== undefined) lineOf.set(answer.userId as UserId, read.line)
      return answer
    })
    const count = answers.filter(({ status }) => status === 'created' || status === 'changed').length
    if (count > 0) request.audit(change, `users:${count}`)
    return answers
  }, request.nowMs)
}

/** A line at fault leaves nothing behind. */
function writeLine(
  change: Change,
  serverUsers: Deps['serverUsers'],
  { line, ref, said }: Exclude<ReadLine, { refusal: SignalError }>,
  lineOf: ReadonlyMap<UserId, number>,
): Answer {
  try {
    return change.attempt(() => {
      const { userId, outcome } = serverUsers.put(change, ref, said)
      const earlier = lineOf.get(userId)
      if (earlier !== undefined)
        throw invalidMember('/ref', 'DUPLICATE', `is of the user of line ${earlier}`, 'the line')
      return { line, status: outcome, userId }
    })
  } catch (error) {
    if (!(error instanceof SignalError)) throw error
    return refused(line, error)
  }
}

function refused(line: number, { code, message }: SignalError): Answer {
  return { line, status: 'refused', code, detail: message }
}

const LINE = new SchemaCheck(UserImportLine, 'the line')
const LINES_MAX = 10_000
const PORTION_LINES = 100
const LINE_FEED = 10
/** Blank, tab, carriage return. */
const BLANKS: ReadonlySet<number> = new Set([32, 9, 13])
