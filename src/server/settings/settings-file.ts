/** The settings file of `--config`: the names of the environment's variables, as lines `NAME=value` or as one JSON object. */

import { readFileSync } from 'node:fs'
import { parseEnv } from 'node:util'

export interface SettingsFile {
  readonly values: Readonly<Record<string, string>>
  /** Why there are no values, a sentence. */
  readonly problem?: string
}

export function readSettingsFile(path: string): SettingsFile {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    const reason = error instanceof Error && 'code' in error ? error.code : 'unknown reason'
    return { values: {}, problem: `--config ${path} can't be read (${reason})` }
  }
  if (!text.trimStart().startsWith('{')) return { values: definedOf(parseEnv(text)) }
  try {
    const members: Record<string, unknown> = JSON.parse(text)
    const texts = Object.entries(members).map(([name, value]) => [name, textOf(value)] as const)
    return { values: Object.fromEntries(texts) }
  } catch {
    // Not the parser's message: it quotes the text, which may hold a secret.
    return { values: {}, problem: `--config ${path} begins as JSON and is none` }
  }
}

/** A value as the environment would have it: a list of texts by commas, true as `1`, other lists and objects as JSON. */
function textOf(value: unknown): string {
  if (typeof value === 'string') return value
  if (value === null || value === false) return ''
  if (value === true) return '1'
  if (Array.isArray(value) && value.every(item => typeof item === 'string')) return value.join(',')
  return JSON.stringify(value)
}

function definedOf(values: NodeJS.Dict<string>): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(values).map(([name, value = '']) => [name, value]))
}
