/** The drill's command line. */

import { type Flags, given, optional, secret, UsageError } from '../support/command.ts'

export const USAGE = `usage: callsign drill --node NAME=URL,OPERATORS_URL[,GRPC] --node ... [options]

Lets nodes of a staging cluster fail while clients use them, and checks that the clients lose nothing: who is the writer, how
long changes are refused, whether reads go on, and each call, key and message that was acknowledged.

  --node NAME=URL,OPERATORS_URL[,GRPC]
                      a node: its name in commands, its address for clients, its operators' port, and host:port (or
                      https://host:port) of gRPC; once for each node
  --drills NAMES      writer, other, stop, pause, slow, cut-in, cut-out, postgres, promote, separated by commas; unless
                      given writer, other, stop, postgres, and the rest where its command is given
  --kill COMMAND      kills a node outright, such as 'docker kill {node}'
  --stop COMMAND      stops a node in order, such as 'docker stop {node}'
  --start COMMAND     starts it again, where no supervisor does
  --pause COMMAND     lets no process of a node run, such as 'docker pause {node}'
  --resume COMMAND    lets them run again
  --slow COMMAND      makes a node's network slow, such as 'ssh {node} tc qdisc add dev eth0 root netem delay 400ms'
  --cut COMMAND       loses all packets to a node from the other nodes and PostgreSQL, where {direction} is in, or
                      from it to them, where it is out
  --mend COMMAND      undoes --slow and --cut
  --restart-postgres COMMAND
  --promote COMMAND   makes PostgreSQL's standby the primary, and keeps the old primary from the nodes
  --staging ORIGIN    the cluster's CALLSIGN_ORIGIN: confirms that it is not production. Asked for unless all nodes are on
                      this machine and without clients
  --writer-within S   seconds until another node writes, and takes the first change (6)
  --pace-within S     seconds that half of the changes may take at the other nodes while a node's network is slow (1)
  --back-within S     seconds until a node that failed serves again (120)
  --json              prints lines of JSON: drill, check, ok, detail, seconds

A shell runs the commands, with the node's name for {node} and in DRILL_NODE, and without settings and secrets of Callsign in
their environment. Without a command the drill asks for the act and waits.

CALLSIGN_TEST_IDENTIFIERS, or the file that CALLSIGN_TEST_IDENTIFIERS_FILE names, has two or more of the cluster's test
identifiers with their codes; CALLSIGN_GRPC_TOKEN the token of gRPC.

Exit code: 0 all checks hold, 1 one does not, 2 the drills could not begin.
`

export const FLAGS = {
  node: 'values',
  drills: 'value',
  kill: 'value',
  stop: 'value',
  start: 'value',
  pause: 'value',
  resume: 'value',
  slow: 'value',
  cut: 'value',
  mend: 'value',
  'restart-postgres': 'value',
  promote: 'value',
  staging: 'value',
  'writer-within': 'value',
  'pace-within': 'value',
  'back-within': 'value',
  json: 'alone',
} as const

const DRILLS = [
  'writer',
  'other',
  'stop',
  'pause',
  'slow',
  'cut-in',
  'cut-out',
  'postgres',
  'promote',
] as const
export type DrillName = (typeof DRILLS)[number]

export interface NodeAddresses {
  readonly name: string
  /** `http://host:port` */
  readonly url: string
  readonly operatorsUrl: string
  readonly grpc: GrpcAddress | undefined
}

export interface GrpcAddress {
  /** `host:port` */
  readonly address: string
  readonly isTls: boolean
}

export interface TestIdentifier {
  readonly identifier: string
  readonly code: string
}

/** The operator's commands; undefined for steps done by hand. */
export interface Commands {
  readonly kill: string | undefined
  readonly stop: string | undefined
  readonly start: string | undefined
  readonly pause: string | undefined
  readonly resume: string | undefined
  readonly slow: string | undefined
  readonly cut: string | undefined
  readonly mend: string | undefined
  readonly restartPostgres: string | undefined
  readonly promote: string | undefined
}

export interface Settings {
  readonly nodes: readonly NodeAddresses[]
  readonly drills: readonly DrillName[]
  readonly commands: Commands
  readonly stagingOrigin: string | undefined
  readonly identifiers: readonly TestIdentifier[]
  readonly grpcToken: string | undefined
  readonly writerWithinMs: number
  readonly paceWithinMs: number
  readonly backWithinMs: number
  readonly isJson: boolean
}

/** Throws `UsageError`. */
export function readSettings(flags: Flags): Settings {
  const texts = Array.isArray(flags.node) ? (flags.node as readonly string[]) : []
  const nodes = texts.map(readNode)
  if (nodes.length < 2) throw new UsageError('--node is missing: a drill needs two nodes or more')
  if (nodes.length > NODES_MAX) throw new UsageError(`--node: at most ${NODES_MAX}`)
  for (const member of ['name', 'url', 'operatorsUrl'] as const) {
    const values = nodes.map(node => node[member])
    const twice = values.find((value, at) => values.indexOf(value) < at)
    if (twice !== undefined) throw new UsageError(`--node: ${twice} is given twice`)
  }
  const commands = readCommands(flags)
  return {
    nodes,
    drills: readDrills(optional(flags, 'drills'), commands),
    commands,
    stagingOrigin: optional(flags, 'staging'),
    identifiers: readIdentifiers(),
    grpcToken: secret('CALLSIGN_GRPC_TOKEN'),
    writerWithinMs: milliseconds(flags, 'writer-within', 6),
    paceWithinMs: milliseconds(flags, 'pace-within', 1),
    backWithinMs: milliseconds(flags, 'back-within', 120),
    isJson: flags.json === true,
  }
}

function readNode(text: string): NodeAddresses {
  const [, name, list] = /^([A-Za-z0-9][A-Za-z0-9.-]{0,62})=(.+)$/.exec(text) ?? []
  const [url, operatorsUrl, grpc, ...more] = list?.split(',') ?? []
  if (name === undefined || url === undefined || operatorsUrl === undefined || more.length > 0) {
    throw new UsageError(`--node ${text} is not NAME=URL,OPERATORS_URL or NAME=URL,OPERATORS_URL,GRPC`)
  }
  return {
    name,
    url: readUrl(url),
    operatorsUrl: readUrl(operatorsUrl),
    grpc: grpc === undefined ? undefined : readGrpc(grpc),
  }
}

function readUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.pathname !== '/' || url.username !== '') {
    throw new UsageError(`--node: ${text} is not an http or https address without a path`)
  }
  return url.origin
}

function readGrpc(text: string): GrpcAddress {
  const [, scheme, address] = /^(https?:\/\/)?([^/\s@]+:\d{1,5})\/?$/.exec(text) ?? []
  if (address === undefined) throw new UsageError(`--node: ${text} is not host:port of gRPC`)
  return { address, isTls: scheme === 'https://' }
}

/** Throws `UsageError`, also for a command without the one that undoes it. */
function readCommands(flags: Flags): Commands {
  for (const [act, undo] of UNDONE_BY) {
    if (optional(flags, act) !== undefined && optional(flags, undo) === undefined) {
      throw new UsageError(`--${act} needs --${undo}, which undoes it`)
    }
  }
  return {
    kill: optional(flags, 'kill'),
    stop: optional(flags, 'stop'),
    start: optional(flags, 'start'),
    pause: optional(flags, 'pause'),
    resume: optional(flags, 'resume'),
    slow: optional(flags, 'slow'),
    cut: optional(flags, 'cut'),
    mend: optional(flags, 'mend'),
    restartPostgres: optional(flags, 'restart-postgres'),
    promote: optional(flags, 'promote'),
  }
}

function readDrills(text: string | undefined, { pause, slow, cut, promote }: Commands): readonly DrillName[] {
  if (text === undefined) {
    // An operator without these has no such network, or no standby.
    const given: Partial<Record<DrillName, string | undefined>> = {
      pause,
      slow,
      'cut-in': cut,
      'cut-out': cut,
      promote,
    }
    return DRILLS.filter(name => !(name in given) || given[name] !== undefined)
  }
  return text.split(',').map(name => {
    const drill = DRILLS.find(each => each === name.trim())
    if (drill === undefined) throw new UsageError(`--drills: ${name} is none of ${DRILLS.join(', ')}`)
    return drill
  })
}

/** An error never quotes the setting: it has codes. */
function readIdentifiers(): readonly TestIdentifier[] {
  const name = 'CALLSIGN_TEST_IDENTIFIERS'
  const text = given(name, secret(name))
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    value = undefined
  }
  const isMap = typeof value === 'object' && value !== null && !Array.isArray(value)
  const entries = isMap ? Object.entries(value as Record<string, unknown>) : []
  if (!isMap || entries.some(([, code]) => typeof code !== 'string')) {
    throw new UsageError(`${name} is not a JSON object of identifiers and their codes`)
  }
  if (entries.length < 2) throw new UsageError(`${name} has to have two identifiers or more`)
  // Pairs call one another.
  const count = Math.min(PEOPLE_MAX, entries.length - (entries.length % 2))
  return entries.slice(0, count).map(([identifier, code]) => ({ identifier, code: code as string }))
}

function milliseconds(flags: Flags, name: string, usual: number): number {
  const text = optional(flags, name) ?? `${usual}`
  const seconds = /^\d+(?:\.\d+)?$/.test(text) ? Number(text) : Number.NaN
  if (seconds > 0 && seconds <= SECONDS_MAX) return seconds * 1_000
  throw new UsageError(`--${name} ${text} is not a number of seconds up to ${SECONDS_MAX}`)
}

const UNDONE_BY = [
  ['pause', 'resume'],
  ['slow', 'mend'],
  ['cut', 'mend'],
] as const
const NODES_MAX = 16
const PEOPLE_MAX = 4
const SECONDS_MAX = 3_600
