/** Reads the conformance cases of `cases.txt`, which says at its head how they are written. */

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { PROJECT_ROOT } from '../support/vectors.ts'
import type { Case, Outcome } from './case.ts'

const LINES = readFileSync(join(PROJECT_ROOT, 'test/stomp/cases.txt'), 'utf8').split('\n')

export const CASES: readonly Case[] = LINES.filter(line => /^[A-Z]-/.test(line)).map(parseCase)

function parseCase(line: string): Case {
  const [beginning = '', input = '', answer = ''] = repeated(line).split(' | ')
  const [, id, session] = /^(\S+) [MSC] (.+)$/.exec(beginning) ?? []
  if (id === undefined || session === undefined) throw new Error(`no case: ${line}`)
  const begins = { id, session, input }
  if (answer.startsWith('story: ')) return { kind: 'story', ...begins }
  const [word, ...redelivered] = answer.split(' ')
  if (word === 'again') return { kind: 'wire', ...begins, required: [{ kind: 'silence' }], redelivered }
  const outcomes = answer.split(' + ').filter(outcome => outcome !== '')
  return { kind: 'wire', ...begins, required: outcomes.map(parseOutcome) }
}

/** `⟪a#×2⟫` is `a0a1`. */
function repeated(line: string): string {
  return line.replaceAll(/⟪([^⟪⟫]*)×(\d+)⟫/gu, (_, text: string, times: string) =>
    Array.from({ length: Number(times) }, (_, at) => text.replaceAll('#', String(at))).join(''),
  )
}

function parseOutcome(text: string): Outcome {
  if (text === 'silence') return { kind: 'silence' }
  const [, code] = /^close (\d+)$/.exec(text) ?? []
  if (code !== undefined) return { kind: 'closed', code: Number(code) }
  const [, command, headers = '', body, rest = ''] =
    /^(MESSAGE|RECEIPT|CONNECTED|ERROR)((?:⏎[^⏎]+?)*?)(?:⏎⏎(.*)␀)?( \(text\)| \(binary\)| [\d/]+(?: by session)?)?$/u.exec(
      text,
    ) ?? []
  if (command === undefined) throw new Error(`no outcome: ${text}`)
  const named = headers.split('⏎').slice(1)
  const expected = {
    lines: named.filter(line => !line.startsWith('-')),
    without: named.filter(line => line.startsWith('-')).map(line => line.slice(1)),
  }
  if (command === 'ERROR') {
    const close = rest.match(/\d+/g)?.map(Number) ?? []
    return { kind: 'refused', ...expected, close, by: rest.endsWith('by session') ? 'session' : 'codec' }
  }
  const [destination] = expected.lines.filter(isDestination).map(line => line.slice('destination:'.length))
  return {
    kind: command.toLowerCase() as 'message' | 'receipt' | 'connected',
    ...expected,
    lines: expected.lines.filter(line => !isDestination(line)),
    ...(destination !== undefined && { destination }),
    ...(body !== undefined && { body }),
    ...(rest !== '' && { isBinary: rest === ' (binary)' }),
  }
}

function isDestination(line: string): boolean {
  return line.startsWith('destination:')
}
