/**
 * The logs that a witness cosigns for: a policy (c2sp.org/tlog-policy), with its `log` lines, or a list of the witness
 * network, `logs/v0`. That list also names logs with an origin that differs from their key's name.
 */

import { SignalError } from '../../src/errors.ts'
import { indexOriginOf } from '../../src/log/index-leaf.ts'
import { formatVerifierKey, parseVerifierKey, type VerifierKey } from '../../src/log/note.ts'
import { parsePolicy } from '../../src/log/policy.ts'

/** The keys of each log, by its origin. */
export type WitnessedLogs = ReadonlyMap<string, readonly VerifierKey[]>

/** Throws `MALFORMED` or `KEY_INVALID` for a file of neither form, and for one without a log. */
export function parseLogList(text: string): WitnessedLogs {
  const listed = LIST_START.test(text) ? networkList(text) : parsePolicy(text).logs.map(ofOwnName)
  const logs = new Map<string, VerifierKey[]>()
  for (const { origin, key } of listed) {
    const keys = logs.get(origin) ?? []
    if (keys.some(each => formatVerifierKey(each) === formatVerifierKey(key)))
      throw malformed(`log ${origin} is there twice with one key`)
    logs.set(origin, [...keys, key])
  }
  if (logs.size === 0) throw malformed('there is no log in it')
  return logs
}

/** A log and the index beside it, each with the prefix that its files are read at. */
export interface IndexedLog {
  readonly log: ReadableLog
  readonly index: ReadableLog
}

interface ReadableLog {
  readonly origin: string
  readonly url: URL
  readonly verifiers: readonly VerifierKey[]
}

/**
 * The logs of a policy that have a line for their index, too. One of both lines has an address: the log's prefix, or the
 * index's, which ends in `/index`.
 */
export function parseIndexedLogs(text: string): readonly IndexedLog[] {
  if (LIST_START.test(text)) return []
  const { logs } = parsePolicy(text)
  const linesOf = (origin: string) => logs.filter(({ key }) => key.name === origin)
  const origins = [...new Set(logs.map(({ key }) => key.name))]
  return origins.flatMap(origin => {
    const [ofLog, ofIndex] = [linesOf(origin), linesOf(indexOriginOf(origin))]
    const indexUrl = addressIn(ofIndex) ?? besideOf(addressIn(ofLog))
    if (ofIndex.length === 0 || indexUrl === undefined) return []
    const url = addressIn(ofLog) ?? indexUrl.replace(/\/index$/, '')
    const [keys, indexKeys] = [ofLog, ofIndex].map(lines => lines.map(({ key }) => key))
    return {
      log: { origin, url: prefixOf(url), verifiers: keys! },
      index: { origin: indexOriginOf(origin), url: prefixOf(indexUrl), verifiers: indexKeys! },
    }
  })
}

function addressIn(lines: readonly { readonly url: string | undefined }[]): string | undefined {
  return lines.find(({ url }) => url !== undefined)?.url?.replace(/\/+$/, '')
}

function besideOf(url: string | undefined): string | undefined {
  return url === undefined ? undefined : `${url}/index`
}

function prefixOf(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url !== undefined && /^https?:$/.test(url.protocol)) return url
  throw malformed(`${text} is not the http or https prefix of a log`)
}

interface ListedLog {
  readonly origin: string
  readonly key: VerifierKey
}

function networkList(text: string): ListedLog[] {
  const logs: ListedLog[] = []
  for (const [at, line] of text.split('\n').entries()) {
    const [keyword, ...rest] = line.trim().split(' ')
    if (keyword === 'vkey') logs.push(ofOwnName({ key: parseVerifierKey(rest.join(' ')) }))
    else if (keyword === 'origin') {
      const log = logs.pop()
      if (log === undefined || rest.length === 0) throw malformed(`line ${at + 1}: origin of no log`)
      logs.push({ ...log, origin: rest.join(' ') })
    } else if (!OTHER_LINES.test(line)) throw malformed(`line ${at + 1} is none of a log list`)
  }
  return logs
}

function ofOwnName({ key }: { readonly key: VerifierKey }): ListedLog {
  return { origin: key.name, key }
}

function malformed(reason: string): SignalError {
  return new SignalError('MALFORMED', `log list: ${reason}`)
}

const LIST_START = /^(?:\s*(?:#.*)?\n)*logs\/v0\s*(?:\n|$)/
/** Queries a day, contacts and later additions say nothing of keys. */
const OTHER_LINES = /^\s*(?:#.*|logs\/v0|[a-z]+ .*)?\s*$/
