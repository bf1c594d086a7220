/**
 * Destinations and their meaning (contract 7.2, 14), by name alone; permission is for the caller to check. Names
 * follow Spring's conventions, with the aliases that clients of that family write.
 */

/** The operations of a call that may be sent over STOMP; each has a twin among the HTTP operations. */
export type CallCommandName = 'accept-rejoin' | 'keys' | 'ringing' | 'decline' | 'leave'

export type Destination =
  /** A queue of the device's own inbox: `calls`, `contacts`, `account`, or `dev.` and a name. */
  | { readonly kind: 'queue'; readonly queue: string }
  | { readonly kind: 'errors' }
  /** `callId` is a uint64, decimal. */
  | { readonly kind: 'call-topic'; readonly callId: string }
  | { readonly kind: 'call-command'; readonly callId: string; readonly command: CallCommandName }
  | { readonly kind: 'dev-topic'; readonly name: string }

/** Another user's destination, or a pattern: the same fault whether it exists or not. */
export type DestinationFault = 'unknown' | 'foreign' | 'wildcard'

export interface DestinationReader {
  /** The reader's id in decimal. */
  readonly userId: string
  /** Whether there are topics and queues to try things with. */
  readonly hasTestTopics: boolean
}

/** A destination's meaning to one user. Taken as it is, never trimmed or decoded. */
export function parseDestination(text: string, reader: DestinationReader): Destination | DestinationFault {
  const own = OWN_QUEUES.get(text)
  if (own !== undefined) return own
  if (WILDCARD.test(text)) return 'wildcard'
  const [empty, root, ...rest] = text.split('/')
  if (empty !== '' || root === undefined) return 'unknown'
  switch (root) {
    case 'user':
      return userDestination(rest, reader)
    case 'queue':
      return rest.length === 1 ? queueNamed(rest[0]!, reader) : 'unknown'
    case 'topic':
      return topicDestination(rest, reader)
    case 'app':
      return appDestination(rest)
    default:
      return 'unknown'
  }
}

/** `/user/queue/x`, or with one's own id before the queue. */
function userDestination(rest: readonly string[], reader: DestinationReader): Destination | DestinationFault {
  const isNamed = rest[0] !== 'queue'
  const [root, name, ...more] = isNamed ? rest.slice(1) : rest
  if (root !== 'queue' || name === undefined || more.length > 0) return 'unknown'
  if (isNamed && rest[0] !== reader.userId) return 'foreign'
  return queueNamed(name, reader)
}

function queueNamed(name: string, { hasTestTopics }: DestinationReader): Destination | DestinationFault {
  switch (name) {
    case 'calls':
    case 'contacts':
    case 'account':
      return { kind: 'queue', queue: name }
    case 'signalling':
      return { kind: 'queue', queue: 'calls' }
    case 'errors':
      return { kind: 'errors' }
    default:
      return hasTestTopics && hasTestTopicsName(name) ? { kind: 'queue', queue: name } : 'unknown'
  }
}

/** `/topic/call.x`, `/topic/call/x`, `/topic/dev.x`, and `/topic/user.x`, which is another name of one's own calls. */
function topicDestination(
  rest: readonly string[],
  reader: DestinationReader,
): Destination | DestinationFault {
  const [name = '', id] = rest
  if (name === 'call' && rest.length === 2) return callTopic(id!)
  if (rest.length !== 1) return 'unknown'
  if (name.startsWith('call.')) return callTopic(name.slice('call.'.length))
  if (name.startsWith('user.')) {
    return name.slice('user.'.length) === reader.userId ? { kind: 'queue', queue: 'calls' } : 'foreign'
  }
  return reader.hasTestTopics && hasTestTopicsName(name) ? { kind: 'dev-topic', name } : 'unknown'
}

function callTopic(callId: string): Destination | DestinationFault {
  return isCallId(callId) ? { kind: 'call-topic', callId } : 'unknown'
}

function appDestination(rest: readonly string[]): Destination | DestinationFault {
  const [root, callId = '', command = '', ...more] = rest
  const isCommand = root === 'call' && isCallId(callId) && isCallCommand(command) && more.length === 0
  return isCommand ? { kind: 'call-command', callId, command } : 'unknown'
}

function isCallId(text: string): boolean {
  // With equally many digits, the greater text is the greater number.
  return CALL_ID.test(text) && (text.length < UINT64_MAX.length || text <= UINT64_MAX)
}

function isCallCommand(name: string): name is CallCommandName {
  return COMMANDS.has(name)
}

function hasTestTopicsName(name: string): boolean {
  return DEVELOPMENT_NAME.test(name)
}

/** Nearly every subscription names one of these; parsing such a name takes as long as the rest of a SUBSCRIBE. */
const OWN_QUEUES: ReadonlyMap<string, Destination> = new Map(
  ['calls', 'contacts', 'account'].map(queue => [`/user/queue/${queue}`, { kind: 'queue', queue }]),
)
const COMMANDS: ReadonlySet<string> = new Set<CallCommandName>([
  'accept-rejoin',
  'keys',
  'ringing',
  'decline',
  'leave',
])
/** As brokers have them: `*` one word, `#` and `>` any number. */
const WILDCARD = /[*#>]/
const UINT64_MAX = '18446744073709551615'
const CALL_ID = /^(?:0|[1-9][0-9]{0,19})$/
const DEVELOPMENT_NAME = /^dev\.[^/\p{C}]{1,128}$/u
