/**
 * `--serve PORT`: tells what the auditor has verified, to people as a page and to programs as notes (c2sp.org/signed-note) signed by its own
 * key. Any client may ask, so requests, times and connections are bounded.
 */

import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { messageOf, SignalError } from '../../src/errors.ts'
import { encodeBase64 } from '../../src/log/base64.ts'
import { formatVerifierKey, parseSignerKey, readNote, type SignerKey, signNote } from '../../src/log/note.ts'
import { makeKeyFile } from '../support/key-file.ts'
import { sendText, textServer } from '../support/text-server.ts'
import type { AuditView } from './auditor.ts'
import { unchecked } from './finding.ts'
import type { SignedHead } from './history.ts'
import type { IndexView } from './index-audit.ts'
import { statusPage } from './status-page.ts'
import { isVrfHash } from './watch.ts'

export interface AuditServerOptions {
  readonly port: number
  readonly host: string
  readonly key: SignerKey
  readonly view: AuditView
  readonly nowMs: () => number
}

export class AuditServer {
  readonly #server: Server
  readonly #options: AuditServerOptions

  private constructor(options: AuditServerOptions) {
    this.#options = options
    this.#server = textServer(LIMITS, (request, response) => this.#answer(request, response))
  }

  /** Throws `AuditFailure` where it can't listen. */
  static async listen(options: AuditServerOptions): Promise<AuditServer> {
    const { port, host } = options
    const audits = new AuditServer(options)
    try {
      audits.#server.listen(port, host)
      await once(audits.#server, 'listening')
      return audits
    } catch (error) {
      throw unchecked('serve', `can't listen on port ${port} of ${host}: ${messageOf(error)}`)
    }
  }

  get url(): string {
    const { address, family, port } = this.#server.address() as AddressInfo
    return `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`
  }

  close(): void {
    this.#server.close()
    this.#server.closeAllConnections()
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const { method, url = '' } = request
    if (method !== 'GET' && method !== 'HEAD')
      return sendText(response, 405, 'only GET\n', { allow: 'GET, HEAD', connection: 'close' })
    if (url.length > URL_CHARS_MAX) return sendText(response, 414, 'the address is too long\n')
    const { view } = this.#options
    const [path, query] = url.split('?', 2)
    const evidence = /^\/evidence\/(\d{1,3})$/.exec(path!)
    if (path === '/') return this.#page(response)
    if (path === '/metrics') return sendText(response, 200, metricsOf(view))
    if (path === '/checkpoint') return this.#checkpoint(response, view.held)
    if (path === '/index/checkpoint' && view.index !== undefined)
      return this.#checkpoint(response, view.index.held)
    if (path === '/newest') return this.#newest(response, new URLSearchParams(query))
    if (evidence !== null) return this.#evidence(response, Number(evidence[1]))
    sendText(response, 404, 'nothing is here\n')
  }

  #page(response: ServerResponse): void {
    const { view, key, nowMs } = this.#options
    const page = statusPage(view, { vkey: formatVerifierKey(key), nowMs: nowMs() })
    sendText(response, 200, page, {
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'",
    })
  }

  /** The log's own note with the auditor's signature at its end: a reader who knows only the log's key can open it, too. */
  #checkpoint(response: ServerResponse, held: SignedHead | undefined): void {
    const { key } = this.#options
    if (held === undefined) return sendText(response, 503, NOT_YET)
    const { note } = held
    const { text } = readNote(note)
    sendText(response, 200, note + signNote(text, [key]).slice(text.length + 1))
  }

  #newest(response: ServerResponse, query: URLSearchParams): void {
    const { view, key } = this.#options
    const hash = hashIn(query)
    if (hash === undefined) return sendText(response, 400, 'hash is not a VRF hash in base64\n')
    if (view.indexed === undefined) return sendText(response, 503, NOT_YET)
    const { treeSize, rootHash } = view.indexed
    const lines = [
      'callsign newest v1',
      view.origin,
      treeSize,
      encodeBase64(rootHash),
      hash,
      view.newest(hash) ?? 'none',
      Math.floor(view.indexedAtMs / 1_000),
    ]
    sendText(response, 200, signNote(`${lines.join('\n')}\n`, [key]))
  }

  #evidence(response: ServerResponse, at: number): void {
    const text = this.#options.view.evidence[at]
    if (text === undefined) return sendText(response, 404, 'nothing is here\n')
    sendText(response, 200, text, { 'content-type': 'application/json' })
  }
}

/** In Prometheus' text format. */
function metricsOf({ round, held, evidence, index }: AuditView): string {
  const { verdict, alarm, endedAtMs } = round ?? { verdict: 2, alarm: undefined, endedAtMs: 0 }
  const gauges: readonly Gauge[] = [
    ['verdict', 'What the last look came to, as the exit code says it', verdict],
    ['alarm', '1 while the log has shown nothing newer for too long', alarm === undefined ? 0 : 1],
    ['proven', 'Files of evidence that prove a contradiction', evidence.length],
    ['tree_size', 'Entries in the newest tree that holds', held?.treeSize ?? 0],
    ['look_ended_seconds', 'When the last look ended, POSIX time', endedAtMs / 1_000],
    ...(index === undefined ? [] : indexGauges(index)),
  ]
  return gauges
    .map(([name, help, value]) => {
      const metric = `callsign_audit_${name}`
      return `# HELP ${metric} ${help}\n# TYPE ${metric} gauge\n${metric} ${value}\n`
    })
    .join('')
}

type Gauge = readonly [name: string, help: string, value: number]

function indexGauges({ leaves, entries }: IndexView): readonly Gauge[] {
  return [
    ['index_leaves', 'Leaves of the index that have the root of the rebuilt map', leaves],
    ['index_entries', 'Entries of the log in the rebuilt map', entries],
  ]
}

/** The auditor's own key, made at the first start. Throws `AuditFailure`. */
export function readOwnKey(path: string, name: string | undefined): SignerKey {
  try {
    makeKeyFile(path, name ?? DEFAULT_NAME)
  } catch (error) {
    throw unchecked('serve', `the key can't be made in ${path}: ${messageOf(error)}`)
  }
  const key = keyIn(path)
  if (name !== undefined && name !== key.name) throw unchecked('serve', `${path} has a key of another name`)
  return key
}

function keyIn(path: string): SignerKey {
  try {
    return parseSignerKey(readFileSync(path, 'utf8').trim())
  } catch (error) {
    if (error instanceof SignalError || (error instanceof Error && 'code' in error))
      throw unchecked('serve', `${path} has no key of this program's: ${messageOf(error)}`)
    throw error
  }
}

/** Addresses spell plus signs and slashes in several ways. */
function hashIn(query: URLSearchParams): string | undefined {
  const text = query.get('hash')?.replaceAll(/[ -]/g, '+').replaceAll('_', '/').replace(/=*$/, '==')
  return text !== undefined && isVrfHash(text) ? text : undefined
}

const NOT_YET = 'no tree has been verified yet\n'
const DEFAULT_NAME = 'auditor'
const URL_CHARS_MAX = 1_024
const LIMITS = { connectionsMax: 256, keepAliveTimeout: 5_000 }
