/** `audit explain FILE`: says what an evidence file proves, without a network. */

import { readFileSync, statSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { messageOf } from '../../src/errors.ts'
import { parseVerifierKey } from '../../src/log/note.ts'
import { UsageError } from '../support/command.ts'
import { EVIDENCE_LENGTH_MAX, judgeEvidence } from './evidence.ts'

/** The exit code: 0 where it proves a contradiction, 1 where it does not. Throws `UsageError`. */
export function explain(argv: readonly string[], write: (text: string) => void): 0 | 1 {
  const { file, vkey } = readArguments(argv)
  const known = vkey?.map(parseKey)
  const { kind, lines } = judgeEvidence(readEvidence(file), known)
  write(`${lines.join('\n')}\n`)
  return kind === 'proven' ? 0 : 1
}

function readArguments(argv: readonly string[]): {
  readonly file: string
  readonly vkey: readonly string[] | undefined
} {
  try {
    const options = { vkey: { type: 'string', multiple: true } } as const
    const { values, positionals } = parseArgs({ args: [...argv], options, allowPositionals: true })
    const [file, second] = positionals
    if (file !== undefined && second === undefined) return { file, vkey: values.vkey }
  } catch (error) {
    throw new UsageError(messageOf(error))
  }
  throw new UsageError('explain takes one file')
}

function parseKey(vkey: string) {
  try {
    return parseVerifierKey(vkey)
  } catch (error) {
    throw new UsageError(`--vkey: ${messageOf(error)}`)
  }
}

function readEvidence(file: string): string {
  try {
    if (statSync(file).size > EVIDENCE_LENGTH_MAX) throw new UsageError(`${file} is too large to be evidence`)
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw error instanceof UsageError ? error : new UsageError(`${file} can't be read: ${messageOf(error)}`)
  }
}
