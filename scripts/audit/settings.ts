/** The auditor's command line and environment. */

import { readFileSync } from 'node:fs'
import { type CheckpointKeys, parseCheckpointKeys } from '../../src/client/log-keys.ts'
import { messageOf } from '../../src/errors.ts'
import { isKeyName, type VerifierKey } from '../../src/log/note.ts'
import type { QuorumMember } from '../../src/log/policy.ts'
import { parseVrfPublicKey } from '../../src/log/vrf-verify.ts'
import { given, parseOptions, UsageError } from '../support/command.ts'

export const USAGE = `usage: callsign audit --url URL --vkey KEY|--policy FILE --state FILE [options]
       callsign audit explain FILE [--vkey KEY]

Fetches every entry and tile of the log at URL, computes its tree anew, and compares it with what the log has signed,
now and at earlier runs. Prints a line per check: JSON unless at a terminal.

  --url URL            the log's prefix: URL/checkpoint is its signed tree head
  --vkey KEY           the log's verifier key (else KT_PUBLIC_KEY)
  --policy FILE        in place of --vkey: a policy (c2sp.org/tlog-policy) with the log's key, and witnesses of whom a
                       quorum must have cosigned its checkpoint
  --index              also audit the log's index at URL/index: rebuild its map, and compare each leaf of its output log
  --index-vkey KEY     the index's verifier key (else KT_INDEX_PUBLIC_KEY, or its line in --policy)
  --state FILE         remembers the checkpoints that hold; the next run goes on from the last of them
  --vrf-key KEY        the log's VRF key in base64 (else VRF_PUBLIC_KEY); needed for --proofs
  --proofs FILE        also check results of the API, one {userID, deviceID, publicKey, vrfHash, proof} per line
  --notes FILE         also compare signed notes and evidence files of users with the log; can be given again
  --watch FILE         report new entries under these VRF hashes: one in base64 a line, with a label behind it
  --gossip URL         also compare with the log as it is shown under another prefix; can be given again
  --mirror URL         also ask there for tiles that the log does not show; can be given again
  --serve PORT         with --follow: a page that shows green or red, GET /metrics, and GET /checkpoint and
                       GET /newest?hash=, signed by the auditor's own key in STATE.key, which is made at the first
                       start. After the log was caught, goes on serving until SIGTERM
  --serve-host ADDRESS 127.0.0.1 unless given
  --name NAME          the name of a new key
  --follow SECONDS     go on, with a pause of SECONDS, until the log cheats or SIGTERM
  --max-age SECONDS    alarm when there was no new checkpoint for so long, with --policy none that the quorum has seen,
                       or when the newest tree could not be read for so long (a day unless given)

Exit code: 0 all holds, 1 the log's signatures prove that it cheats, 2 not everything could be checked,
3 an older tree than the log has signed, or files that are not those it signed, as a cache may have: look again.
`

export interface ServeSettings {
  readonly port: number
  readonly host: string
  readonly name: string | undefined
}

export interface Settings {
  readonly url: URL
  readonly verifiers: readonly VerifierKey[]
  readonly quorum: QuorumMember | undefined
  readonly index: CheckpointKeys | undefined
  readonly vrfPublicKey: Uint8Array | undefined
  readonly stateFile: string
  readonly gossip: readonly URL[]
  readonly mirrors: readonly URL[]
  readonly proofsFile: string | undefined
  readonly notesFiles: readonly string[]
  readonly watchFile: string | undefined
  readonly followMs: number | undefined
  readonly serve: ServeSettings | undefined
  readonly maxAgeMs: number | undefined
}

/** The settings, or undefined when only the usage was asked for. Throws `UsageError`. */
export function readSettings(
  argv: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
): Settings | undefined {
  const values = parseOptions(OPTIONS, argv)
  if (values.help) return undefined
  const vrfKey = values['vrf-key'] ?? environment.VRF_PUBLIC_KEY
  if (values.proofs !== undefined && !vrfKey)
    throw new UsageError('--proofs needs --vrf-key or VRF_PUBLIC_KEY')
  return {
    url: prefix('--url', given('--url', values.url)),
    ...readLogKeys(values, environment),
    vrfPublicKey: vrfKey ? checked('--vrf-key', () => parseVrfPublicKey(vrfKey)) : undefined,
    stateFile: given('--state', values.state),
    gossip: (values.gossip ?? []).map(url => prefix('--gossip', url)),
    mirrors: (values.mirror ?? []).map(url => prefix('--mirror', url)),
    proofsFile: values.proofs,
    notesFiles: values.notes ?? [],
    watchFile: values.watch,
    followMs: milliseconds('--follow', values.follow, PAUSE_SECONDS_MAX),
    serve: readServe(values),
    maxAgeMs: milliseconds('--max-age', values['max-age'], AGE_SECONDS_MAX),
  }
}

interface KeyOptions {
  readonly vkey?: string | undefined
  readonly policy?: string | undefined
  readonly index?: boolean | undefined
  readonly 'index-vkey'?: string | undefined
}

/** A policy names the log once, or several times with one origin while it changes its key; and its index alike. */
function readLogKeys(
  { vkey, policy, index: isIndexed = false, 'index-vkey': indexVkey }: KeyOptions,
  { KT_PUBLIC_KEY, KT_INDEX_PUBLIC_KEY }: Readonly<Record<string, string | undefined>>,
): Pick<Settings, 'verifiers' | 'quorum' | 'index'> {
  if (indexVkey !== undefined && !isIndexed) throw new UsageError('--index-vkey needs --index')
  if (policy !== undefined && vkey !== undefined)
    throw new UsageError('--policy has the key of the log, and takes the place of --vkey')
  if (policy !== undefined && indexVkey !== undefined)
    throw new UsageError('--policy has the key of the index, and takes the place of --index-vkey')
  const keys = policy === undefined ? keysOfFlags() : keysOfPolicy(policy)
  if (isIndexed && keys.index === undefined)
    throw new UsageError(`--policy ${policy} does not name the index`)
  return { verifiers: keys.verifiers, quorum: keys.quorum, index: isIndexed ? keys.index : undefined }

  function keysOfFlags(): Keys {
    const text = given('--vkey, --policy or KT_PUBLIC_KEY', vkey ?? KT_PUBLIC_KEY)
    const log = checked('--vkey', () => parseCheckpointKeys({ vkey: text }))
    if (!isIndexed) return log
    const ofIndex = given('--index-vkey or KT_INDEX_PUBLIC_KEY', indexVkey ?? KT_INDEX_PUBLIC_KEY)
    return checked('--index-vkey', () => parseCheckpointKeys({ vkey: text, indexVkey: ofIndex }))
  }
}

type Keys = ReturnType<typeof parseCheckpointKeys>

function keysOfPolicy(file: string): Keys {
  return checked(`--policy ${file}`, () => parseCheckpointKeys({ policy: readFileSync(file, 'utf8') }))
}

function readServe(values: Readonly<Record<string, unknown>>): ServeSettings | undefined {
  const {
    serve,
    follow,
    name,
    'serve-host': host = '127.0.0.1',
  } = values as Record<string, string | undefined>
  if (serve === undefined) return undefined
  const port = /^\d{1,5}$/.test(serve) ? Number(serve) : Number.NaN
  if (!(port <= 65_535)) throw new UsageError(`--serve ${serve} is not a port`)
  if (follow === undefined) throw new UsageError('--serve needs --follow')
  if (name !== undefined && !isKeyName(name)) throw new UsageError(`--name ${name} has spaces or plus signs`)
  return { port, host, name }
}

function checked<Value>(name: string, read: () => Value): Value {
  try {
    return read()
  } catch (error) {
    throw error instanceof UsageError ? error : new UsageError(`${name}: ${messageOf(error)}`)
  }
}

function prefix(name: string, text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (
    url === undefined ||
    !/^https?:$/.test(url.protocol) ||
    url.search + url.hash + url.username + url.password !== ''
  ) {
    throw new UsageError(`${name} ${text} is not the http or https prefix of a log`)
  }
  return url
}

function milliseconds(name: string, text: string | undefined, secondsMax: number): number | undefined {
  if (text === undefined) return undefined
  const seconds = /^\d+(?:\.\d+)?$/.test(text) ? Number(text) : 0
  if (seconds > 0 && seconds <= secondsMax) return seconds * 1000
  throw new UsageError(`${name} ${text} is not a number of seconds up to ${secondsMax}`)
}

const OPTIONS = {
  url: { type: 'string' },
  vkey: { type: 'string' },
  index: { type: 'boolean' },
  'index-vkey': { type: 'string' },
  policy: { type: 'string' },
  'vrf-key': { type: 'string' },
  state: { type: 'string' },
  gossip: { type: 'string', multiple: true },
  mirror: { type: 'string', multiple: true },
  proofs: { type: 'string' },
  notes: { type: 'string', multiple: true },
  watch: { type: 'string' },
  follow: { type: 'string' },
  serve: { type: 'string' },
  'serve-host': { type: 'string' },
  name: { type: 'string' },
  'max-age': { type: 'string' },
  help: { type: 'boolean' },
} as const
/** Timers take no more than 24 days. */
const PAUSE_SECONDS_MAX = 2_000_000
const AGE_SECONDS_MAX = 1_000_000_000
