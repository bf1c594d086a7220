/**
 * The logs that a witness cosigns for: a policy (c2sp.org/tlog-policy), with its `log` lines, or a list of the witness
 * network, `logs/v0`. That list also names logs with an origin that differs from their key's name.
 */

import { SignalError } from '../../src/errors.ts'
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
