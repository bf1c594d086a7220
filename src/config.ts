/**
 * The environment, read once into one frozen `Config`: unit, default and bound of every knob an operator has
 * (contract 14). Everything wrong with it is said in one list; a variable that is not known is wrong too.
 */

import { readFileSync, realpathSync } from 'node:fs'
import { isIP } from 'node:net'
import { availableParallelism } from 'node:os'
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from 'node:path'
import { createSecureContext } from 'node:tls'

export interface Config {
  readonly isDevelopment: boolean
  /** Absolute path. */
  readonly dataFolder: string
  readonly http: Listener & {
    /** Paths of PEM files; absent: somebody in front ends TLS, or nobody does. */
    readonly tls?: { readonly certificateFile: string; readonly keyFile: string }
    /** Addresses and CIDR ranges whose X-Forwarded-For is believed. */
    readonly trustedProxies: readonly string[]
    /** Exact origins of web pages that may call the API. */
    readonly corsOrigins: readonly string[]
    /** Such as `ios/1.4.0`; platforms that are not named are served in any version. */
    readonly minClientVersions: readonly string[]
  }
  readonly grpc: Listener & {
    readonly token?: string
    readonly tls?: {
      readonly certificate: Buffer
      readonly key: Buffer
      readonly clientAuthority?: Buffer
      readonly clientPins: readonly string[]
    }
  }
  readonly admin: Listener
  /** What clients see, without a trailing slash; absent in development: the address listened on. */
  readonly publicUrl?: string
  readonly log: {
    readonly isFrozen: boolean
    /** Absolute path, outside the data directory; absent: checkpoints are recorded nowhere else. */
    readonly headFile?: string
    /** Absent in development: made at the first start. */
    readonly keys?: LogKeys
    readonly vrfThreads: number
    readonly vrfCacheEntriesMax: number
  }
  readonly areRatesLimited: boolean
  readonly logLevel: 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'silent'
}

export interface Listener {
  readonly host: string
  readonly port: number
}

export interface LogKeys {
  readonly origin: string
  /** `PRIVATE+KEY+<origin>+<id>+<base64>`. */
  readonly ktPrivateKey: string
  /** Base64 of the 32-byte scalar. */
  readonly vrfPrivateKey: string
  /** Base64, at least 32 bytes. */
  readonly secret: string
}

/** All that is wrong with the configuration, a line each. */
export class ConfigError extends Error {
  readonly problems: readonly string[]
  constructor(problems: readonly string[]) {
    super(`the configuration is not usable:\n${problems.map(problem => `  ${problem}`).join('\n')}`)
    this.name = 'ConfigError'
    this.problems = problems
  }
}

/** Throws a `ConfigError` that names every fault. */
export function readConfig(environment: NodeJS.ProcessEnv, flags: { readonly dev: boolean }): Config {
  const reader = new EnvironmentReader(environment)
  const mode = reader.oneOf(
    'CALLSIGN_MODE',
    ['production', 'development'],
    flags.dev ? 'development' : 'production',
  )
  const isDevelopment = flags.dev || mode === 'development'
  const isExposed = reader.flag('CALLSIGN_DEV_EXPOSE', '1')
  const http = reader.listener('CALLSIGN_HTTP', isDevelopment && !isExposed ? '127.0.0.1' : '0.0.0.0', 8080)
  const grpc = reader.listener('CALLSIGN_GRPC', '127.0.0.1', 50051)
  const admin = reader.listener('CALLSIGN_ADMIN', '127.0.0.1', 9090)
  const publicUrl = reader.url('CALLSIGN_PUBLIC_URL')
  const dataFolder = resolve(
    reader.text('CALLSIGN_DATA_DIR') ?? (isDevelopment ? join('data', 'dev') : 'data'),
  )
  const config: Config = {
    isDevelopment,
    dataFolder,
    http: { ...http, ...reader.httpAccess() },
    grpc: { ...grpc, ...reader.grpcAccess() },
    admin,
    ...(publicUrl === undefined ? {} : { publicUrl }),
    log: {
      isFrozen: reader.flag('CALLSIGN_LOG_FROZEN', '1'),
      ...reader.headFile(dataFolder),
      ...reader.logKeys(isDevelopment),
      vrfThreads: reader.integer('CALLSIGN_VRF_THREADS', {
        usual: Math.max(1, availableParallelism() - 1),
        min: 1,
        max: 64,
      }),
      vrfCacheEntriesMax: reader.integer('CALLSIGN_VRF_CACHE_ENTRIES', {
        usual: 100_000,
        min: 1,
        max: 10_000_000,
      }),
    },
    areRatesLimited: !reader.flag('CALLSIGN_RATE_LIMITS', 'off'),
    logLevel: reader.oneOf(
      'CALLSIGN_LOG_LEVEL',
      ['debug', 'info', 'warn', 'error', 'fatal', 'silent'],
      'info',
    ),
  }
  reader.refuseUnsafe(config, isExposed)
  reader.refuseUnknown()
  if (reader.problems.length > 0) throw new ConfigError(reader.problems)
  return Object.freeze(config)
}

class EnvironmentReader {
  readonly problems: string[] = []
  readonly #environment: NodeJS.ProcessEnv
  readonly #known = new Set<string>()

  constructor(environment: NodeJS.ProcessEnv) {
    this.#environment = environment
  }

  /** The variable's text; undefined when it is absent or empty. */
  text(name: string): string | undefined {
    this.#known.add(name)
    return this.#environment[name] || undefined
  }

  /** A secret from the variable, or from the file that `<name>_FILE` names; its final line end is dropped. */
  secret(name: string): string | undefined {
    const path = this.text(`${name}_FILE`)
    const text = this.text(name)
    if (path === undefined) return text
    if (text !== undefined) this.problems.push(`${name} and ${name}_FILE are both set: keep one`)
    return this.#file(`${name}_FILE`, path)
      ?.toString('utf8')
      .replace(/\r?\n$/, '')
  }

  file(name: string): Buffer | undefined {
    const path = this.text(name)
    return path === undefined ? undefined : this.#file(name, path)
  }

  flag(name: string, on: string): boolean {
    const text = this.text(name)
    if (text !== undefined && text !== on)
      this.problems.push(`${name} is ${on} or not set, not ${quote(text)}`)
    return text === on
  }

  oneOf<Choice extends string>(name: string, choices: readonly Choice[], usual: Choice): Choice {
    const text = this.text(name) ?? usual
    const choice = choices.find(candidate => candidate === text)
    if (choice === undefined)
      this.problems.push(`${name} is one of ${choices.join(', ')}, not ${quote(text)}`)
    return choice ?? usual
  }

  integer(name: string, { usual, min, max }: { usual: number; min: number; max: number }): number {
    const text = this.text(name)
    if (text === undefined) return usual
    const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN
    if (value >= min && value <= max) return value
    this.problems.push(`${name} is a number from ${min} to ${max}, not ${quote(text)}`)
    return usual
  }

  listener(prefix: string, usualHost: string, usualPort: number): Listener {
    return {
      host: this.text(`${prefix}_HOST`) ?? usualHost,
      port: this.integer(`${prefix}_PORT`, { usual: usualPort, min: 0, max: 65_535 }),
    }
  }

  url(name: string): string | undefined {
    const text = this.text(name)
    if (text === undefined) return undefined
    if (!URL.canParse(text) || !/^https?:$/.test(new URL(text).protocol)) {
      this.problems.push(`${name} is an http or https address, not ${quote(text)}`)
    }
    return text.replace(/\/+$/, '')
  }

  /** A comma-separated list; what the test refuses is named with what it should be. */
  list(name: string, isGood: (item: string) => boolean, form: string): readonly string[] {
    const items = (this.text(name) ?? '').split(',').map(item => item.trim())
    const given = items.filter(item => item !== '')
    for (const item of given) {
      if (!isGood(item)) this.problems.push(`${name} is a list of ${form}, not ${quote(item)}`)
    }
    return given
  }

  httpAccess(): Omit<Config['http'], keyof Listener> {
    const certificate = this.file('CALLSIGN_TLS_CERT')
    const key = this.file('CALLSIGN_TLS_KEY')
    const [certificateFile, keyFile] = [this.text('CALLSIGN_TLS_CERT'), this.text('CALLSIGN_TLS_KEY')]
    if ((certificateFile === undefined) !== (keyFile === undefined)) {
      this.problems.push('CALLSIGN_TLS_CERT and CALLSIGN_TLS_KEY are set together or not at all')
    }
    if (certificate !== undefined && key !== undefined && !isKeyPair(certificate, key)) {
      this.problems.push('CALLSIGN_TLS_CERT and CALLSIGN_TLS_KEY are not a certificate and its key (PEM)')
    }
    return {
      ...(certificateFile === undefined || keyFile === undefined
        ? {}
        : { tls: { certificateFile, keyFile } }),
      trustedProxies: this.list(
        'CALLSIGN_TRUSTED_PROXIES',
        isAddressRange,
        'addresses and ranges such as 10.0.0.0/8',
      ),
      corsOrigins: this.list('CALLSIGN_CORS_ORIGINS', isOrigin, 'origins such as https://app.example.org'),
      minClientVersions: this.list(
        'CALLSIGN_MIN_CLIENT_VERSION',
        text => /^[a-z][a-z0-9-]*\/\d{1,9}\.\d{1,9}\.\d{1,9}$/.test(text),
        'versions such as ios/1.4.0',
      ),
    }
  }

  headFile(dataFolder: string): Pick<Config['log'], 'headFile'> {
    const text = this.text('CALLSIGN_LOG_HEAD_FILE')
    if (text === undefined) return {}
    const headFile = resolve(text)
    if (isInside(headFile, dataFolder)) {
      this.problems.push(
        `CALLSIGN_LOG_HEAD_FILE ${headFile} is inside the data directory ${dataFolder}: it has to stay when that is put back to an older copy`,
      )
    }
    return { headFile }
  }

  grpcAccess(): Pick<Config['grpc'], 'token' | 'tls'> {
    const token = this.secret('CALLSIGN_GRPC_TOKEN')
    const certificate = this.file('CALLSIGN_GRPC_TLS_CERT')
    const key = this.file('CALLSIGN_GRPC_TLS_KEY')
    const clientAuthority = this.file('CALLSIGN_GRPC_TLS_CLIENT_CA')
    const clientPins = this.text('CALLSIGN_GRPC_TLS_CLIENT_PINS')?.split(',') ?? []
    if ((certificate === undefined) !== (key === undefined)) {
      this.problems.push('CALLSIGN_GRPC_TLS_CERT and CALLSIGN_GRPC_TLS_KEY are set together or not at all')
    }
    if (clientAuthority !== undefined && certificate === undefined) {
      this.problems.push('CALLSIGN_GRPC_TLS_CLIENT_CA needs CALLSIGN_GRPC_TLS_CERT and CALLSIGN_GRPC_TLS_KEY')
    }
    if (clientPins.length > 0 && clientAuthority === undefined) {
      this.problems.push('CALLSIGN_GRPC_TLS_CLIENT_PINS needs CALLSIGN_GRPC_TLS_CLIENT_CA')
    }
    const tls =
      certificate === undefined || key === undefined
        ? undefined
        : { certificate, key, clientPins, ...(clientAuthority === undefined ? {} : { clientAuthority }) }
    return { ...(token === undefined ? {} : { token }), ...(tls === undefined ? {} : { tls }) }
  }

  /** The keys of the log: all or, in development, none. What production lacks is named. */
  logKeys(isDevelopment: boolean): { keys?: LogKeys } {
    const keys = {
      origin: this.text('CALLSIGN_ORIGIN'),
      ktPrivateKey: this.secret('KT_PRIVATE_KEY'),
      vrfPrivateKey: this.secret('VRF_PRIVATE_KEY'),
      secret: this.secret('CALLSIGN_SECRET'),
    }
    // Public keys are for auditors and clients; a server that gets them from the same file ignores them.
    this.text('KT_PUBLIC_KEY')
    this.text('VRF_PUBLIC_KEY')
    const names = {
      origin: 'CALLSIGN_ORIGIN',
      ktPrivateKey: 'KT_PRIVATE_KEY',
      vrfPrivateKey: 'VRF_PRIVATE_KEY',
      secret: 'CALLSIGN_SECRET',
    }
    const { origin, ktPrivateKey, vrfPrivateKey, secret } = keys
    if (
      origin !== undefined &&
      ktPrivateKey !== undefined &&
      vrfPrivateKey !== undefined &&
      secret !== undefined
    ) {
      if (Buffer.from(secret, 'base64').length < SECRET_BYTES_MIN) {
        this.problems.push(`CALLSIGN_SECRET is base64 of at least ${SECRET_BYTES_MIN} bytes`)
      }
      return { keys: { origin, ktPrivateKey, vrfPrivateKey, secret } }
    }
    const missing = Object.entries(keys).filter(([, value]) => value === undefined)
    if (isDevelopment && missing.length === Object.keys(keys).length) return {}
    for (const [name] of missing) {
      this.problems.push(
        `${names[name as keyof typeof names]} is missing; \`node dist/scripts/keygen.js --origin O\` makes the keys`,
      )
    }
    return {}
  }

  refuseUnsafe(config: Config, isExposed: boolean): void {
    const { grpc, isDevelopment } = config
    if (!isLoopback(grpc.host) && grpc.token === undefined && grpc.tls?.clientAuthority === undefined) {
      this.problems.push(
        `CALLSIGN_GRPC_HOST ${grpc.host} is not loopback: set CALLSIGN_GRPC_TOKEN or CALLSIGN_GRPC_TLS_CLIENT_CA`,
      )
    }
    if (isDevelopment && !isExposed) {
      for (const [name, { host }] of Object.entries({ HTTP: config.http, GRPC: grpc, ADMIN: config.admin })) {
        if (isLoopback(host)) continue
        this.problems.push(
          `CALLSIGN_${name}_HOST ${host}: development stays on loopback, unless CALLSIGN_DEV_EXPOSE=1`,
        )
      }
    }
    if (!isDevelopment && !config.areRatesLimited) {
      this.problems.push('CALLSIGN_RATE_LIMITS=off works in development only')
    }
    if (!isDevelopment && isExposed) this.problems.push('CALLSIGN_DEV_EXPOSE works in development only')
    if (!isDevelopment && config.publicUrl === undefined) {
      this.problems.push('CALLSIGN_PUBLIC_URL is missing: the address that clients see')
    }
  }

  refuseUnknown(): void {
    for (const name of Object.keys(this.#environment)) {
      if (name.startsWith('CALLSIGN_') && !this.#known.has(name)) {
        this.problems.push(`${name} is not a setting of this version`)
      }
    }
  }

  #file(name: string, path: string): Buffer | undefined {
    try {
      return readFileSync(path)
    } catch (error) {
      // Not the path: it may be the secret itself, put there instead of the name of its file.
      const reason = error instanceof Error && 'code' in error ? error.code : 'unknown reason'
      this.problems.push(`${name}: can't read the file that it names (${reason})`)
      return undefined
    }
  }
}

/** True for an address that only this machine can reach. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127\.\d+\.\d+\.\d+$/.test(host)
}

function isKeyPair(certificate: Buffer, key: Buffer): boolean {
  try {
    createSecureContext({ cert: certificate, key })
    return true
  } catch {
    return false
  }
}

/** `192.0.2.1`, `10.0.0.0/8`, `2001:db8::/32`. */
function isAddressRange(text: string): boolean {
  const [address = '', prefix = '0', ...rest] = text.split('/')
  const version = address.includes('%') ? 0 : isIP(address)
  const bits = version === 4 ? 32 : 128
  return rest.length === 0 && version !== 0 && /^\d{1,3}$/.test(prefix) && Number(prefix) <= bits
}

/** As browsers send it: no path, no default port; also the own schemes of apps that are web pages. */
function isOrigin(text: string): boolean {
  if (!URL.canParse(text)) return false
  const { protocol, host } = new URL(text)
  return host !== '' && text === `${protocol}//${host}`
}

/** Whether a path leads into a folder, also by symbolic links. */
function isInside(path: string, folder: string): boolean {
  const way = relative(withoutLinks(folder), withoutLinks(path))
  return !isAbsolute(way) && way !== '..' && !way.startsWith(`..${sep}`)
}

/** The path with symbolic links followed, as far as it exists. */
function withoutLinks(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    const parent = dirname(path)
    return parent === path ? path : join(withoutLinks(parent), basename(path))
  }
}

/** Enough of a wrong value to recognise it; it may be a secret in the wrong place. */
function quote(text: string): string {
  return text.length <= 20 ? JSON.stringify(text) : `a text of ${text.length} characters`
}

const SECRET_BYTES_MIN = 32
