/** Reads the settings of a node of several: the ledger that they share, and how nodes reach each other. */

import { hostname } from 'node:os'
import type { NodeTls } from '../../fronts/link/node-sockets.ts'
import type { KeptBy } from '../../store/postgres/durability.ts'
import { type EnvironmentReader, PORTS } from './environment.ts'
import { hasCertificates, isKeyPair } from './setting-forms.ts'

/** This node of several that share one ledger of changes. */
export interface NodeConfig {
  /** With its password. */
  readonly databaseUrl: string
  readonly databaseKeptBy: KeptBy
  /** No other node has it. */
  readonly name: string
  /** Where other nodes reach it. */
  readonly host: string
  readonly port: number
  /** Absent: all nodes are on this machine. */
  readonly tls?: NodeTls
}

/** Undefined where the server is one machine. */
export function readNodeSettings(reader: EnvironmentReader): NodeConfig | undefined {
  const databaseUrl = reader.secret(
    'CALLSIGN_DATABASE_URL',
    'PostgreSQL address such as postgres://user:password@host/database',
  )
  const databaseKeptBy = reader.oneOf(
    'CALLSIGN_DATABASE_KEPT_BY',
    ['standbys', 'storage', 'disk'],
    'standbys',
  )
  const host = reader.text('CALLSIGN_NODE_HOST', 'address or name')
  const port = reader.integer('CALLSIGN_NODE_PORT', { usual: 7070, ...PORTS })
  const name = reader.formed(
    'CALLSIGN_NODE_NAME',
    isName,
    'a name of letters, digits, dots and dashes, such as node-1',
    "the machine's name",
  )
  const tls = readTls(reader)
  if (databaseUrl === undefined) {
    if (host !== undefined) reader.problems.push('CALLSIGN_NODE_HOST needs CALLSIGN_DATABASE_URL')
    return undefined
  }
  if (!isPostgresUrl(databaseUrl)) {
    // Its text may have a password.
    reader.problems.push('CALLSIGN_DATABASE_URL is an address such as postgres://user:password@host/database')
  }
  if (host === undefined) {
    reader.problems.push(
      'CALLSIGN_DATABASE_URL needs CALLSIGN_NODE_HOST, by which other nodes reach this one',
    )
    return undefined
  }
  if (tls === undefined && !LOOPBACK.test(host)) {
    reader.problems.push(
      `CALLSIGN_NODE_HOST ${host} is not loopback: set CALLSIGN_NODE_TLS_CERT, CALLSIGN_NODE_TLS_KEY and CALLSIGN_NODE_TLS_CA`,
    )
  }
  return { databaseUrl, databaseKeptBy, host, port, name: name ?? hostname(), ...(tls && { tls }) }
}

function readTls(reader: EnvironmentReader): NodeTls | undefined {
  const certificate = reader.file('CALLSIGN_NODE_TLS_CERT')
  const key = reader.keyFile('CALLSIGN_NODE_TLS_KEY')
  const authority = reader.file('CALLSIGN_NODE_TLS_CA')
  if (certificate === undefined || key === undefined || authority === undefined) {
    if ((certificate ?? key ?? authority) !== undefined) {
      reader.problems.push(
        'CALLSIGN_NODE_TLS_CERT, CALLSIGN_NODE_TLS_KEY and CALLSIGN_NODE_TLS_CA are set together or not at all',
      )
    }
    return undefined
  }
  if (!isKeyPair(certificate, key)) {
    reader.problems.push(
      'CALLSIGN_NODE_TLS_CERT and CALLSIGN_NODE_TLS_KEY are not a certificate and its key (PEM)',
    )
  }
  if (!hasCertificates(authority)) {
    reader.problems.push('CALLSIGN_NODE_TLS_CA names a file without a certificate (PEM)')
  }
  return { certificate, key, authority }
}

function isName(text: string): boolean {
  return /^[A-Za-z0-9][A-Za-z0-9.-]{0,62}$/.test(text)
}

function isPostgresUrl(text: string): boolean {
  return URL.canParse(text) && /^postgres(ql)?:$/.test(new URL(text).protocol)
}

const LOOPBACK = /^(localhost|127\.\d+\.\d+\.\d+|::1)$/
