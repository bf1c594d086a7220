/**
 * The settings, read once into one frozen `Config`: unit, default and bound of every knob an operator has
 * (contract 14). Everything wrong with it is said in one list; a variable that is not known is wrong too.
 */

import { availableParallelism } from 'node:os'
import { join, resolve } from 'node:path'
import type { Rates } from '../../domain/rates.ts'
import { type ApplicationConfig, readApplicationConfig } from './application-config.ts'
import { EnvironmentReader, type Listener, PORTS, type Setting } from './environment.ts'
import { type GrpcAccess, readGrpcAccess } from './grpc-settings.ts'
import { type LogKeys, type PublicKeys, readKeySettings } from './key-settings.ts'
import { type NodeConfig, readNodeSettings } from './node-settings.ts'
import { readRates } from './rate-settings.ts'
import { isAddressRange, isInside, isKeyPair, isOrigin, isSha256 } from './setting-forms.ts'
import { readSettingsFile } from './settings-file.ts'
import { readWitnessSettings, type WitnessConfig } from './witness-settings.ts'

export type { Listener } from './environment.ts'
export type { LogKeys } from './key-settings.ts'

export interface Config {
  readonly isDevelopment: boolean
  /** Topics and queues of any name, to try things with: in development, and where a benchmark has them in production. */
  readonly hasTestTopics: boolean
  /** Development for phones on the same network, too. */
  readonly isExposed: boolean
  /** The machine's address there, where it has one. */
  readonly lanAddress?: string
  /** Absolute path. */
  readonly dataFolder: string
  /** Whether a development server starts a Janus of its own, if it is to. */
  readonly developmentJanus: 'auto' | 'off'
  readonly http: Listener & {
    /** Paths of PEM files; absent: a proxy ends TLS, or there is none. */
    readonly tls?: { readonly certificateFile: string; readonly keyFile: string }
    /** Addresses and CIDR ranges of proxies with a trusted X-Forwarded-For. */
    readonly trustedProxies: readonly string[]
    /** Exact origins of web pages that may call the API. */
    readonly corsOrigins: readonly string[]
    /** Such as `ios/1.4.0`; platforms that are not named are served in any version. */
    readonly minClientVersions: readonly string[]
  }
  readonly grpc: Listener & GrpcAccess
  readonly admin: Listener
  /** For the operator's backend, and the operators' page. */
  readonly serverApi: Listener & {
    /** Whether the public port has it, too. */
    readonly isPublic: boolean
  }
  /** Absent: the server is one machine. */
  readonly node?: NodeConfig
  /** Processes beside this one that serve the HTTP port; with none it serves the port itself. */
  readonly fronts: number
  /** On loopback; absent: STOMP is spoken over WebSocket only. */
  readonly stompTcpPort?: number
  /** The address for clients, without a trailing slash; absent in development: the address listened on. */
  readonly publicUrl?: string
  readonly log: {
    readonly isFrozen: boolean
    /** Absolute path, outside the data directory; absent: checkpoints are recorded nowhere else. */
    readonly headFile?: string
    /** Absent in development: made at the first start. */
    readonly keys?: LogKeys
    readonly publicKeys: PublicKeys
    /** Absent: checkpoints are shown as the log has signed them. */
    readonly witnesses?: WitnessConfig
    /** The least time between two leaves of the index. */
    readonly indexSeconds: number
    readonly vrfThreads: number
    readonly vrfCacheEntriesMax: number
  }
  readonly application: ApplicationConfig
  /** A sentence for each file of secrets that other users of the machine may read. */
  readonly openFiles: readonly string[]
  /** SHA-256 of native binaries beyond those of this version, in hexadecimal. */
  readonly nativeBinaries: readonly string[]
  /** Absent where no rate counts, in development. */
  readonly rateLimits?: Rates
  readonly logLevel: 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'silent'
}

/** All that is wrong with the configuration, a line each. */
export class ConfigError extends Error {
  readonly problems: readonly string[]
  constructor(problems: readonly string[], options?: ErrorOptions) {
    super(`the configuration is not usable:\n${problems.map(problem => `  ${problem}`).join('\n')}`, options)
    this.name = 'ConfigError'
    this.problems = problems
  }
}

/** Choices of the command line, and facts about the machine. */
export interface StartFlags {
  readonly dev: boolean
  /** Path of the settings file. */
  readonly config?: string | undefined
  /** Phones on the same network are to be served. */
  readonly lan?: boolean
  /** By which they reach this machine; undefined where it is on no network. */
  readonly lanAddress?: string | undefined
}

/** Throws a `ConfigError` that names every fault. */
export function readConfig(environment: NodeJS.ProcessEnv, flags: StartFlags): Config {
  const file = flags.config === undefined ? undefined : readSettingsFile(flags.config)
  const reader = new EnvironmentReader({ environment, ...(file && { file: file.values }) })
  if (file?.problem !== undefined) reader.problems.push(file.problem)
  const config = read(reader, flags)
  if (flags.config !== undefined) reader.noteSettingsFile(flags.config)
  reader.refuseUnknown()
  if (reader.problems.length > 0) throw new ConfigError(reader.problems)
  return Object.freeze(config)
}

/** Every setting there is, as reading them finds them. */
export function listSettings(): readonly Setting[] {
  const reader = new EnvironmentReader({ environment: {} })
  read(reader, { dev: false })
  return reader.settings
}

function read(reader: EnvironmentReader, flags: StartFlags): Config {
  const mode = reader.oneOf(
    'CALLSIGN_MODE',
    ['production', 'development'],
    flags.dev ? 'development' : 'production',
  )
  const isDevelopment = flags.dev || mode === 'development'
  const isExposed = reader.flag('CALLSIGN_DEV_EXPOSE', '1', '1, in development only') || flags.lan === true
  const lanAddress = isDevelopment && isExposed ? flags.lanAddress : undefined
  const usualHost = isDevelopment && !isExposed ? '127.0.0.1' : (lanAddress ?? '0.0.0.0')
  const http = reader.listener('CALLSIGN_HTTP', usualHost, 8080, '0.0.0.0, in development 127.0.0.1')
  const grpc = reader.listener('CALLSIGN_GRPC', '127.0.0.1', 50051)
  const admin = reader.listener('CALLSIGN_ADMIN', '127.0.0.1', 9090)
  const serverApi = {
    ...reader.listener('CALLSIGN_SERVER_API', '127.0.0.1', 9070),
    isPublic: reader.flag('CALLSIGN_SERVER_API', 'public'),
  }
  const publicUrl = readPublicUrl(reader)
  const dataFolder = resolve(
    reader.text('CALLSIGN_DATA_DIR', 'path of a folder', 'data, in development data/dev') ??
      (isDevelopment ? join('data', 'dev') : 'data'),
  )
  const node = readNodeSettings(reader)
  const config: Config = {
    isDevelopment,
    hasTestTopics: isDevelopment,
    isExposed: isDevelopment && isExposed && !isLoopback(http.host),
    ...(lanAddress === undefined ? {} : { lanAddress }),
    dataFolder,
    developmentJanus: reader.oneOf('CALLSIGN_DEV_JANUS', ['auto', 'off'], 'auto'),
    http: { ...http, ...httpAccess(reader) },
    grpc: { ...grpc, ...readGrpcAccess(reader) },
    admin,
    serverApi,
    fronts: reader.integer('CALLSIGN_FRONTS', {
      usual: isDevelopment ? 0 : Math.min(availableParallelism() - 1, USUAL_FRONTS_MAX),
      usualText: 'one less than cores, at most 8, in development 0',
      min: 0,
      max: 64,
      unit: 'processes',
    }),
    ...stompTcp(reader),
    ...(node === undefined ? {} : { node }),
    ...(publicUrl === undefined ? {} : { publicUrl }),
    log: {
      isFrozen: reader.flag('CALLSIGN_LOG_FROZEN', '1'),
      ...headFile(reader, dataFolder),
      ...keysAndWitnesses(reader, isDevelopment),
      indexSeconds: reader.integer('CALLSIGN_INDEX_SECONDS', {
        usual: 10,
        min: 1,
        max: 3_600,
        unit: 'seconds',
      }),
      vrfThreads: reader.integer('CALLSIGN_VRF_THREADS', {
        usual: Math.max(1, availableParallelism() - 1),
        usualText: 'one less than cores',
        min: 1,
        max: 64,
        unit: 'threads',
      }),
      vrfCacheEntriesMax: reader.integer('CALLSIGN_VRF_CACHE_ENTRIES', {
        usual: 100_000,
        min: 1,
        max: 10_000_000,
        unit: 'entries',
      }),
    },
    application: readApplicationConfig(reader, isDevelopment),
    openFiles: reader.openFiles,
    nativeBinaries: reader.list(
      'CALLSIGN_NATIVE_HASHES',
      isSha256,
      'SHA-256 values of native binaries, 64 hexadecimal digits each',
    ),
    ...rateLimits(reader),
    logLevel: reader.oneOf(
      'CALLSIGN_LOG_LEVEL',
      ['debug', 'info', 'warn', 'error', 'fatal', 'silent'],
      'info',
    ),
  }
  refuseUnsafe(reader, config, isExposed)
  if (flags.lan === true) refuseLan(reader, config)
  refuseSharedPorts(reader, config)
  return config
}

/** An address to listen on, with the settings that name it, that of the port last. */
export interface NamedListener extends Listener {
  readonly settings: readonly string[]
}

export interface NamedListeners {
  readonly http: NamedListener
  readonly grpc: NamedListener
  readonly admin: NamedListener
  readonly serverApi: NamedListener
  readonly stompTcp?: NamedListener
}

/** Every address that a server with this configuration listens on. */
export function listenersOf({ http, grpc, admin, serverApi, stompTcpPort }: Config): NamedListeners {
  const named = (prefix: string, { host, port }: Listener): NamedListener => {
    return { host, port, settings: [`${prefix}_HOST`, `${prefix}_PORT`] }
  }
  const stompTcp = { host: '127.0.0.1', settings: ['CALLSIGN_STOMP_TCP_PORT'] }
  return {
    http: named('CALLSIGN_HTTP', http),
    grpc: named('CALLSIGN_GRPC', grpc),
    admin: named('CALLSIGN_ADMIN', admin),
    serverApi: named('CALLSIGN_SERVER_API', serverApi),
    ...(stompTcpPort === undefined ? {} : { stompTcp: { ...stompTcp, port: stompTcpPort } }),
  }
}

function readPublicUrl(reader: EnvironmentReader): string | undefined {
  const publicUrl = reader.url('CALLSIGN_PUBLIC_URL')
  if (publicUrl !== undefined && /[?#]/.test(publicUrl)) {
    reader.problems.push('CALLSIGN_PUBLIC_URL has no query and no fragment: paths are put behind it')
  }
  return publicUrl
}

function httpAccess(reader: EnvironmentReader): Omit<Config['http'], keyof Listener> {
  const certificate = reader.file('CALLSIGN_TLS_CERT')
  const key = reader.keyFile('CALLSIGN_TLS_KEY')
  const [certificateFile, keyFile] = [reader.text('CALLSIGN_TLS_CERT'), reader.text('CALLSIGN_TLS_KEY')]
  if ((certificateFile === undefined) !== (keyFile === undefined)) {
    reader.problems.push('CALLSIGN_TLS_CERT and CALLSIGN_TLS_KEY are set together or not at all')
  }
  if (certificate !== undefined && key !== undefined && !isKeyPair(certificate, key)) {
    reader.problems.push('CALLSIGN_TLS_CERT and CALLSIGN_TLS_KEY are not a certificate and its key (PEM)')
  }
  return {
    ...(certificateFile === undefined || keyFile === undefined ? {} : { tls: { certificateFile, keyFile } }),
    trustedProxies: reader.list(
      'CALLSIGN_TRUSTED_PROXIES',
      isAddressRange,
      'addresses and ranges such as 10.0.0.0/8',
    ),
    corsOrigins: reader.list('CALLSIGN_CORS_ORIGINS', isOrigin, 'origins such as https://app.example.org'),
    minClientVersions: reader.list(
      'CALLSIGN_MIN_CLIENT_VERSION',
      text => /^[a-z][a-z0-9-]*\/\d{1,9}\.\d{1,9}\.\d{1,9}$/.test(text),
      'versions such as ios/1.4.0',
    ),
  }
}

function stompTcp(reader: EnvironmentReader): Pick<Config, 'stompTcpPort'> {
  const stompTcpPort = reader.optionalInteger('CALLSIGN_STOMP_TCP_PORT', PORTS)
  return stompTcpPort === undefined ? {} : { stompTcpPort }
}

function headFile(reader: EnvironmentReader, dataFolder: string): Pick<Config['log'], 'headFile'> {
  const text = reader.text('CALLSIGN_LOG_HEAD_FILE', 'path of a file')
  if (text === undefined) return {}
  const headFile = resolve(text)
  if (isInside(headFile, dataFolder)) {
    reader.problems.push(
      `CALLSIGN_LOG_HEAD_FILE ${headFile} is inside the data directory ${dataFolder}: it has to stay when that is put back to an older copy`,
    )
  }
  return { headFile }
}

function keysAndWitnesses(
  reader: EnvironmentReader,
  isDevelopment: boolean,
): Pick<Config['log'], 'keys' | 'publicKeys' | 'witnesses'> {
  const keys = readKeySettings(reader, isDevelopment)
  const witnesses = readWitnessSettings(reader, keys.keys)
  return { ...keys, ...(witnesses && { witnesses }) }
}

/** A phone would find nothing there. */
function refuseLan(reader: EnvironmentReader, { isDevelopment, http, lanAddress }: Config): void {
  if (!isDevelopment) reader.problems.push('--lan works in development only')
  else if (isLoopback(http.host)) {
    reader.problems.push(`CALLSIGN_HTTP_HOST ${http.host} is this machine alone: leave it out with --lan`)
  } else if (lanAddress === undefined && reader.text('CALLSIGN_HTTP_HOST') === undefined) {
    reader.problems.push(
      '--lan: this machine has no address on a network; connect it, or name one in CALLSIGN_HTTP_HOST',
    )
  }
}

function rateLimits(reader: EnvironmentReader): Pick<Config, 'rateLimits'> {
  const isOff = reader.flag('CALLSIGN_RATE_LIMITS', 'off', 'off, in development only')
  const rates = readRates(reader)
  return isOff ? {} : { rateLimits: rates }
}

function refuseUnsafe(reader: EnvironmentReader, config: Config, isExposed: boolean): void {
  const { grpc, isDevelopment } = config
  if (!isLoopback(grpc.host) && grpc.token === undefined && grpc.tls?.clientAuthority === undefined) {
    reader.problems.push(
      `CALLSIGN_GRPC_HOST ${grpc.host} is not loopback: set CALLSIGN_GRPC_TOKEN or CALLSIGN_GRPC_TLS_CLIENT_CA`,
    )
  }
  if (isDevelopment && !isExposed) {
    const ports = { HTTP: config.http, GRPC: grpc, ADMIN: config.admin, SERVER_API: config.serverApi }
    for (const [name, { host }] of Object.entries(ports)) {
      if (isLoopback(host)) continue
      reader.problems.push(
        `CALLSIGN_${name}_HOST ${host}: development stays on loopback, unless --lan or CALLSIGN_DEV_EXPOSE=1`,
      )
    }
  }
  if (!isDevelopment && config.rateLimits === undefined) {
    reader.problems.push('CALLSIGN_RATE_LIMITS=off works in development only')
  }
  const { apple } = config.application
  if (!isDevelopment && apple !== undefined && apple.privateKey === undefined) {
    reader.problems.push('CALLSIGN_APPLE_PRIVATE_KEY is missing: authorization codes have to be exchanged')
  }
  for (const address of providerAddresses(config.application)) {
    if (isSafeAddress(address)) continue
    reader.problems.push(
      `${address}: keys of an identity provider come by https, or whoever is on the way signs in as anybody`,
    )
  }
  if (!isDevelopment && reader.text('CALLSIGN_DEV_EXPOSE') !== undefined) {
    reader.problems.push('CALLSIGN_DEV_EXPOSE works in development only')
  }
  if (!isDevelopment && config.publicUrl === undefined) {
    reader.problems.push('CALLSIGN_PUBLIC_URL is missing: the address that clients see')
  }
}

/** The second of two servers on one port would fail only when it listens, and be told that another program has it. */
function refuseSharedPorts(reader: EnvironmentReader, config: Config): void {
  const listeners: NamedListener[] = Object.values(listenersOf(config))
  for (const [at, one] of listeners.entries()) {
    const other = listeners.slice(at + 1).find(each => isShared(one, each))
    if (other === undefined) continue
    reader.problems.push(
      `${one.settings.at(-1)} and ${other.settings.at(-1)} are both ${one.port}: each needs a port of its own`,
    )
  }
}

function isShared(one: Listener, other: Listener): boolean {
  if (one.port !== other.port || one.port === 0) return false
  const hosts = [one, other].map(({ host }) => (host === 'localhost' ? '127.0.0.1' : host))
  return hosts[0] === hosts[1] || hosts.some(host => host === '0.0.0.0' || host === '::')
}

/** True for an address that only this machine can reach. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127\.\d+\.\d+\.\d+$/.test(host)
}

/** Where keys and tokens of identity providers come from. */
function providerAddresses({ providers, apple }: ApplicationConfig): readonly string[] {
  const { issuer, jwksUri, tokenUrl, revokeUrl } = apple ?? {}
  const all = [
    issuer,
    jwksUri,
    tokenUrl,
    revokeUrl,
    ...providers.flatMap(each => [each.issuer, each.jwksUri]),
  ]
  return all.filter(address => address !== undefined)
}

/** Whether nobody else can answer in its place; a stand-in on this machine needs no certificate. */
function isSafeAddress(address: string): boolean {
  // Malformed addresses have been named already.
  if (!URL.canParse(address)) return true
  const { protocol, hostname } = new URL(address)
  return protocol === 'https:' || isLoopback(hostname.replace(/^\[|\]$/g, ''))
}

/** A container that gets a share of a large machine sees all of its cores, and each front takes memory. */
const USUAL_FRONTS_MAX = 8
