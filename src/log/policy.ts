/**
 * Policies (c2sp.org/tlog-policy): a text file that names a log and the witnesses whose cosignatures an app or an auditor
 * asks for. Comments stand on lines of their own, and no key stands there twice.
 */
import { SignalError } from '../errors.ts'
import { parseWitnessKey } from './cosignature.ts'
import { parseDecimal } from './decimal.ts'
import { parseVerifierKey, type VerifierKey } from './note.ts'

export interface Witness {
  readonly kind: 'witness'
  /** As the policy calls it; cosignatures carry the name of the key. */
  readonly name: string
  readonly key: VerifierKey
  readonly url: string | undefined
}

/** So many of the members have to agree. */
export interface WitnessGroup {
  readonly kind: 'group'
  readonly name: string
  readonly threshold: number
  readonly members: readonly QuorumMember[]
}

export type QuorumMember = Witness | WitnessGroup

export interface Policy {
  readonly logs: readonly { readonly key: VerifierKey; readonly url: string | undefined }[]
  readonly witnesses: readonly Witness[]
  /** Undefined where the policy asks for none. */
  readonly quorum: QuorumMember | undefined
  /** The member named `rebuilders`, if any: witnesses that rebuild an index before cosigning it. Our own convention. */
  readonly rebuilders: QuorumMember | undefined
}

/** Reads a policy. Throws `MALFORMED`, with the number of the line, for what the specification does not allow. */
export function parsePolicy(text: string): Policy {
  if (text.length > POLICY_LENGTH_MAX) throw new SignalError('MALFORMED', 'policy is too long')
  const reader = new PolicyReader()
  for (const [at, line] of text.split('\n').entries()) {
    const words = line.split(/[ \t]+/).filter(word => word !== '')
    if (words.length === 0 || words[0]!.startsWith('#')) continue
    try {
      reader.read(words)
    } catch (error) {
      if (!(error instanceof SignalError)) throw error
      throw new SignalError('MALFORMED', `policy, line ${at + 1}: ${error.message}`)
    }
  }
  return reader.policy
}

/**
 * The newest time at which the quorum had cosigned, by the time of each witness's cosignature: as old as its member that
 * counts last. Undefined without a quorum.
 */
export function quorumSeconds(
  quorum: QuorumMember,
  secondsOf: (witness: Witness) => number | undefined,
): number | undefined {
  if (quorum.kind === 'witness') return secondsOf(quorum)
  const newestFirst = quorum.members
    .map(member => quorumSeconds(member, secondsOf))
    .filter(seconds => seconds !== undefined)
    .sort((one, other) => other - one)
  return newestFirst[quorum.threshold - 1]
}

class PolicyReader {
  readonly #logs: Policy['logs'][number][] = []
  readonly #witnesses: Witness[] = []
  readonly #members = new Map<string, QuorumMember>()
  readonly #taken = new Set<string>()
  readonly #keys = new Set<string>()
  #quorum: { readonly member: QuorumMember | undefined } | undefined

  get policy(): Policy {
    if (this.#quorum === undefined) throw malformed('policy has no quorum line')
    const rebuilders = this.#members.get(REBUILDERS)
    return { logs: this.#logs, witnesses: this.#witnesses, quorum: this.#quorum.member, rebuilders }
  }

  read([keyword, ...words]: readonly string[]): void {
    switch (keyword) {
      case 'log':
        return this.#readLog(words)
      case 'witness':
        return this.#readWitness(words)
      case 'group':
        return this.#readGroup(words)
      case 'quorum':
        return this.#readQuorum(words)
      default:
        throw malformed('starts with none of log, witness, group and quorum')
    }
  }

  #readLog([vkey, url, ...more]: readonly string[]): void {
    if (vkey === undefined || more.length > 0) throw malformed('a log is `log VKEY [URL]`')
    this.#logs.push({ key: this.#once(parseVerifierKey(vkey)), url })
  }

  #readWitness([name, vkey, url, ...more]: readonly string[]): void {
    if (name === undefined || vkey === undefined || more.length > 0)
      throw malformed('a witness is `witness NAME VKEY [URL]`')
    const witness: Witness = { kind: 'witness', name, key: this.#once(parseWitnessKey(vkey)), url }
    this.#define(witness)
    this.#witnesses.push(witness)
  }

  #readGroup([name, threshold, ...names]: readonly string[]): void {
    if (name === undefined || threshold === undefined || names.length === 0)
      throw malformed('a group is `group NAME all|any|NUMBER MEMBER...`')
    const members = names.map(each => {
      const member = this.#known(each)
      if (this.#taken.has(each)) throw malformed(`${each} is a member already`)
      this.#taken.add(each)
      return member
    })
    this.#define({ kind: 'group', name, threshold: thresholdOf(threshold, members.length), members })
  }

  #readQuorum([name, ...more]: readonly string[]): void {
    if (name === undefined || more.length > 0) throw malformed('a quorum is `quorum NAME|none`')
    if (this.#quorum !== undefined) throw malformed('there is a quorum already')
    this.#quorum = { member: name === 'none' ? undefined : this.#known(name) }
  }

  #define(member: QuorumMember): void {
    if (RESERVED.has(member.name)) throw malformed(`${member.name} can not be a name`)
    if (this.#members.has(member.name)) throw malformed(`${member.name} is there already`)
    this.#members.set(member.name, member)
  }

  #known(name: string): QuorumMember {
    const member = this.#members.get(name)
    if (member === undefined) throw malformed(`no line before this one has ${name}`)
    return member
  }

  #once(key: VerifierKey): VerifierKey {
    const bytes = key.publicKey.join()
    if (this.#keys.has(bytes)) throw malformed('the key is there already')
    this.#keys.add(bytes)
    return key
  }
}

function thresholdOf(text: string, members: number): number {
  if (text === 'all') return members
  if (text === 'any') return 1
  const threshold = parseDecimal(text)
  if (threshold < 1 || threshold > members) throw malformed(`${text} of ${members} members can not agree`)
  return threshold
}

function malformed(reason: string): SignalError {
  return new SignalError('MALFORMED', reason)
}

const REBUILDERS = 'rebuilders'
const RESERVED: ReadonlySet<string> = new Set(['all', 'any', 'none'])
/** Room for some hundred witnesses. */
const POLICY_LENGTH_MAX = 65_536
