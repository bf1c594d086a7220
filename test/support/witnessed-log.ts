/** A server whose checkpoints need the cosignatures of witnesses. */

import { randomBytes } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { generateKeys } from '../../src/log/keys.ts'
import { freePort } from './free-port.ts'
import { type RunningWitness, startWitness } from './witness-process.ts'

export interface WitnessedLog {
  readonly dataFolder: string
  readonly vkey: string
  readonly vrfPublicKey: string
  /** Undefined for a log without an index. */
  readonly indexVkey: string | undefined
  readonly policyFile: string
  readonly environment: Readonly<Record<string, string>>
  /** Writes the policy: its log, the index if there is one, and these lines. */
  setPolicy(lines: string): string
}

/** The folder, the keys and the policy of a log; the policy has these `lines`. */
export function witnessedLog(
  t: Test,
  lines = 'quorum none\n',
  { hasIndex = false }: { readonly hasIndex?: boolean } = {},
): WitnessedLog {
  const folder = t.testdir()
  const keys = generateKeys('log.example/witnessed', length => randomBytes(length))
  const policyFile = join(folder, 'policy')
  const indexVkey = hasIndex ? keys.ktIndexPublicKey : undefined
  const setPolicy = (text: string) => {
    const policy = `log ${keys.ktPublicKey}\n${hasIndex ? `log ${indexVkey}\n` : ''}${text}`
    writeFileSync(policyFile, policy)
    return policy
  }
  setPolicy(lines)
  return {
    dataFolder: join(folder, 'data'),
    vkey: keys.ktPublicKey,
    vrfPublicKey: keys.vrfPublicKey,
    indexVkey,
    policyFile,
    environment: {
      CALLSIGN_ORIGIN: keys.origin,
      KT_PRIVATE_KEY: keys.ktPrivateKey,
      VRF_PRIVATE_KEY: keys.vrfPrivateKey,
      CALLSIGN_SECRET: keys.secret,
      ...(hasIndex && { KT_INDEX_PRIVATE_KEY: keys.ktIndexPrivateKey, CALLSIGN_INDEX_SECONDS: '1' }),
      CALLSIGN_WITNESS_POLICY: policyFile,
      CALLSIGN_LOG_LEVEL: 'warn',
    },
    setPolicy,
  }
}

/** A witness for the log, and its index, in a folder of its own; started again with the same name and port it goes on. */
export async function startWitnessOf(
  t: Test,
  { dataFolder, vkey, indexVkey }: WitnessedLog,
  name: string,
  port?: number,
): Promise<RunningWitness> {
  const folder = join(dataFolder, '..', name)
  mkdirSync(folder, { recursive: true })
  return await startWitness(t, {
    folder,
    name,
    logs: indexVkey === undefined ? [vkey] : [vkey, indexVkey],
    port: port ?? (await freePort()),
  })
}

/** Lines of a policy in which `threshold` of these witnesses are the quorum. */
export function quorumOf(threshold: number, witnesses: readonly RunningWitness[]): string {
  const names = witnesses.map(({ name }) => name).join(' ')
  return `${witnesses.map(({ policyLine }) => policyLine).join('')}group all-of-them ${threshold} ${names}\nquorum all-of-them\n`
}
