/** Shared by the operators' commands: long flags, one usage text, and an exit code for the outcome. */

import { readFileSync } from 'node:fs'
import { type ParseArgsConfig, parseArgs } from 'node:util'
import { messageOf, SignalError } from '../../src/errors.ts'
import { endWithReader } from './broken-pipe.ts'

/** Wrong usage: said with the usage text, exit 2. */
export class UsageError extends Error {}

/** The command could not do what it was asked for, for a reason that its message says whole. */
export class CommandError extends Error {}

/** The flags as they were given: texts, a list for those that may be repeated, and true for those without a value. */
export type Flags = Readonly<Record<string, string | readonly string[] | boolean | undefined>>

export interface Command {
  readonly name: string
  readonly usage: string
  /** The flags it takes: with a value, with one value or several, or without. */
  readonly flags: Readonly<Record<string, 'value' | 'values' | 'alone'>>
  /** The name of the argument that stands without a flag. */
  readonly operand?: string
  /** Resolves with the exit code. */
  readonly run: (flags: Flags) => Promise<number>
}

/**
 * Runs a command and sets the exit code of the process: its own, 1 when the log does not hold (`CHECKPOINT_INVALID`),
 * 2 for whatever else kept it from ending. `--help` prints the usage.
 */
export async function runCommand(command: Command): Promise<void> {
  endWithReader()
  try {
    const flags = readFlags(command)
    if (flags.help === true) process.stdout.write(command.usage)
    else process.exitCode = await command.run(flags)
  } catch (error) {
    process.exitCode = error instanceof SignalError && error.code === 'CHECKPOINT_INVALID' ? 1 : 2
    process.stderr.write(`${command.name}: ${sentenceOf(error)}\n`)
    if (error instanceof UsageError) process.stderr.write(`\n${command.usage}`)
  }
}

/** The value of a flag, or of an environment variable that stands for it. Throws `UsageError` when there is neither. */
export function required(flags: Flags, name: string, variable?: string): string {
  return given(`--${name}`, optional(flags, name) ?? (variable && process.env[variable]))
}

/** The value of a setting that is `called` so. Throws `UsageError` when it has none. */
export function given(called: string, value: string | undefined): string {
  if (!value) throw new UsageError(`${called} is missing`)
  return value
}

export function optional(flags: Flags, name: string): string | undefined {
  const value = flags[name]
  return typeof value === 'string' ? value : undefined
}

/** A secret from its variable, or from the file that `<name>_FILE` names. */
export function secret(name: string): string | undefined {
  const path = process.env[`${name}_FILE`]
  const text = process.env[name] || (path && readFileSync(path, 'utf8').replace(/\r?\n$/, ''))
  return text || undefined
}

/** A command line's values for these options of `parseArgs`. Throws `UsageError` for an unknown one. */
export function parseOptions<const Options extends NonNullable<ParseArgsConfig['options']>>(
  options: Options,
  argv: readonly string[] = process.argv.slice(2),
): ReturnType<typeof parseArgs<{ args: string[]; options: Options }>>['values'] {
  try {
    return parseArgs({ args: [...argv], options }).values
  } catch (error) {
    throw new UsageError(messageOf(error))
  }
}

function readFlags({ flags, operand }: Command): Flags {
  const options = Object.entries(flags).map(
    ([name, kind]) =>
      [name, { type: kind === 'alone' ? 'boolean' : 'string', multiple: kind === 'values' }] as const,
  )
  const argv = process.argv.slice(2)
  // It stands first, or nowhere.
  const first = operand !== undefined && argv[0]?.startsWith('-') === false ? argv.shift() : undefined
  const parsed = parseOptions({ ...Object.fromEntries(options), help: { type: 'boolean' } }, argv) as Flags
  return first === undefined ? parsed : { ...parsed, [operand!]: first }
}

function sentenceOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const isExpected =
    [UsageError, CommandError, SignalError].some(kind => error instanceof kind) || 'syscall' in error
  return isExpected ? error.message : (error.stack ?? error.message)
}
