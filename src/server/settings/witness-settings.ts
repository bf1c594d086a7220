/** Reads the policy of witnesses: whose cosignatures a checkpoint needs before anyone sees it. */

import { SignalError } from '../../errors.ts'
import { indexOriginOf } from '../../log/index-leaf.ts'
import { formatVerifierKey, parseSignerKey, type VerifierKey } from '../../log/note.ts'
import { type Policy, parsePolicy, type QuorumMember, type Witness } from '../../log/policy.ts'
import type { EnvironmentReader } from './environment.ts'
import type { LogKeys } from './key-settings.ts'

export interface WitnessConfig {
  /** As clients get it. */
  readonly policyText: string
  readonly logs: Policy['logs']
  readonly quorum: QuorumMember
  /** Whose cosignatures a checkpoint of the index needs, where the policy names them: they rebuild it. */
  readonly rebuilders: Policy['rebuilders']
  readonly witnesses: readonly AskedWitness[]
}

export type AskedWitness = Witness & { readonly url: string }

/** Undefined where no witness is asked. */
export function readWitnessSettings(
  reader: EnvironmentReader,
  keys: LogKeys | undefined,
): WitnessConfig | undefined {
  const policyText = reader.file(POLICY, 'path of a policy (c2sp.org/tlog-policy)')?.toString('utf8')
  if (policyText === undefined) return undefined
  try {
    const config = readPolicy(policyText)
    const fault = keys && policyFault(config, signersOf(keys))
    if (fault === undefined) return config
    reader.problems.push(fault)
  } catch (error) {
    if (!(error instanceof SignalError)) throw error
    // A key of the log that can't be read is named elsewhere.
    if (error.code !== 'KEY_INVALID') reader.problems.push(`${POLICY}: ${error.message}`)
  }
  return undefined
}

function signersOf({ ktPrivateKey, ktIndexPrivateKey: index }: LogKeys): PolicyKeys {
  return { signer: parseSignerKey(ktPrivateKey), ...(index && { indexSigner: parseSignerKey(index) }) }
}

/** The keys that a policy has to name. */
interface PolicyKeys {
  readonly signer: VerifierKey
  /** Absent where the log has no index. */
  readonly indexSigner?: VerifierKey
}

/** Why this policy is not one of the log with these keys; undefined where it is. */
export function policyFault(
  { logs }: WitnessConfig,
  { signer, indexSigner }: PolicyKeys,
): string | undefined {
  const keys = logs.map(({ key }) => key)
  const lineOf = (key: VerifierKey) => `\`log ${formatVerifierKey(key)}\``
  const isNamed = (key: VerifierKey) => keys.some(each => formatVerifierKey(each) === formatVerifierKey(key))
  if (!isNamed(signer)) return `${POLICY} has no line ${lineOf(signer)}, which is this server's log`
  if (indexSigner !== undefined) {
    if (isNamed(indexSigner)) return undefined
    return `${POLICY} has no line ${lineOf(indexSigner)}, which is the index of this server's log: add it below that of the log, and ask the witnesses to add it`
  }
  const other = keys.find(({ name }) => name === indexOriginOf(signer.name))
  if (other === undefined) return undefined
  return `${POLICY} names an index with ${lineOf(other)}, and this server has none, so apps with this policy would refuse its answers: set KT_INDEX_PRIVATE_KEY, or take the line out`
}

function readPolicy(policyText: string): WitnessConfig {
  const { logs, quorum, rebuilders, witnesses } = parsePolicy(policyText)
  if (quorum === undefined)
    throw new SignalError('MALFORMED', 'it asks for no quorum: without witnesses, leave the setting out')
  const asked = witnesses.map(witness => {
    const { name, url = '' } = witness
    if (URL.canParse(url) && /^https?:$/.test(new URL(url).protocol))
      return { ...witness, url: url.replace(/\/+$/, '') }
    throw new SignalError('MALFORMED', `witness ${name} has no http or https address to ask it at`)
  })
  return { policyText, logs, quorum, rebuilders, witnesses: asked }
}

const POLICY = 'CALLSIGN_WITNESS_POLICY'
