/** Reads the policy of witnesses: whose cosignatures a checkpoint needs before anyone sees it. */

import { SignalError } from '../../errors.ts'
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
    const fault = keys && policyFault(config, parseSignerKey(keys.ktPrivateKey))
    if (fault === undefined) return config
    reader.problems.push(fault)
  } catch (error) {
    if (!(error instanceof SignalError)) throw error
    // A key of the log that can't be read is named elsewhere.
    if (error.code !== 'KEY_INVALID') reader.problems.push(`${POLICY}: ${error.message}`)
  }
  return undefined
}

/** Why this policy is not one of the log with that key; undefined where it is. */
export function policyFault({ logs }: WitnessConfig, verifier: VerifierKey): string | undefined {
  const vkey = formatVerifierKey(verifier)
  if (logs.some(({ key }) => formatVerifierKey(key) === vkey)) return undefined
  return `${POLICY} has no line \`log ${vkey}\`, which is this server's log`
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
