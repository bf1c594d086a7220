/**
 * Asks the running server for what only its operator may do. The command proves that it has the server's secret: it reads the
 * same settings as the server.
 */

import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { formatOperatorCredential } from '../../src/domain/operators/server-key.ts'
import { deriveSecrets } from '../../src/domain/secrets.ts'
import { messageOf } from '../../src/errors.ts'
import { DEVELOPMENT_KEYS_FILE } from '../../src/server/development/development-keys.ts'
import { readKeys } from '../../src/server/open-log.ts'
import { type Config, ConfigError, readConfig } from '../../src/server/settings/config.ts'
import { CommandError, type Flags, optional, UsageError } from './command.ts'

/** Flags of every command that asks the server. */
export const LINK_FLAGS = { dev: 'alone', config: 'value', url: 'value' } as const

export const LINK_USAGE = `  --dev              the development server, with its keys in its data directory
  --config FILE      the server's settings file; else its environment variables
  --url URL          where the server API is (else CALLSIGN_SERVER_API_HOST and _PORT)
`

/** Sends a request to `/server/api/v1`; resolves with the reply's body. Throws `CommandError` with the server's code and sentence. */
export type AskServer = (
  method: string,
  path: string,
  body?: object,
) => Promise<Readonly<Record<string, unknown>>>

/** Throws `CommandError` for settings that the server would not start with. */
export function askServer(flags: Flags): AskServer {
  const config = configOf(flags)
  if (config.isDevelopment && !existsSync(join(config.dataFolder, DEVELOPMENT_KEYS_FILE)))
    throw new CommandError(`no development server has run in ${config.dataFolder}: start it first`)
  const { operatorCommand } = deriveSecrets(readKeys(config).secret)
  const { host, port } = config.serverApi
  const url = optional(flags, 'url') ?? `http://${reachable(host)}:${port}`
  if (!URL.canParse(url)) throw new UsageError('--url is not an address')
  return async (method, path, body) => {
    const whole = `/server/api/v1${path}`
    const bytes = Buffer.from(body === undefined ? '' : JSON.stringify(body))
    const credential = formatOperatorCredential(
      operatorCommand,
      { method, path: whole, body: bytes },
      Date.now(),
    )
    const headers = {
      authorization: `Bearer ${credential}`,
      ...(body !== undefined && { 'content-type': 'application/json' }),
    }
    const answer = await fetch(new URL(whole, url), {
      method,
      headers,
      ...(body !== undefined && { body: bytes }),
      redirect: 'error',
      signal: AbortSignal.timeout(ANSWER_MS_MAX),
    }).catch(error => {
      const { cause } = error as Error
      throw new CommandError(
        `no server answers at ${url} (${messageOf(cause ?? error)}): start it, or say where with --url`,
      )
    })
    return membersOf(answer.status, await answer.text(), url)
  }
}

function configOf(flags: Flags): Config {
  try {
    return readConfig(process.env, { dev: flags.dev === true, config: optional(flags, 'config') })
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    throw new CommandError(`${error.message}\nName the server's settings by --config FILE, or say --dev.`)
  }
}

function membersOf(status: number, text: string, url: string): Readonly<Record<string, unknown>> {
  if (status === 204) return {}
  let members: Readonly<Record<string, unknown>>
  try {
    members = JSON.parse(text)
  } catch {
    throw new CommandError(`${url} answers ${status}, and not as the server API`)
  }
  if (status < 300) return members
  if (members.code === 'SERVER_KEY_INVALID')
    throw new CommandError(
      `the server at ${url} has another secret, or its clock differs from this machine's by more than a minute`,
    )
  const { detail = '', errors = [] } = members as {
    detail?: string
    errors?: { pointer: string; detail: string }[]
  }
  const faults = errors.map(fault => `${fault.pointer} ${fault.detail}`).join('; ')
  throw new CommandError(`${faults === '' ? detail : faults} (${members.code})`)
}

/** A server that listens on every address is reached by loopback. */
function reachable(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1'
  if (host === '::') return '[::1]'
  return host.includes(':') ? `[${host}]` : host
}

const ANSWER_MS_MAX = 30_000
