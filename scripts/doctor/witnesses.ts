/** Witnesses: whether each of the policy can be reached and knows this log, and whether enough do. */

import { post } from '../../src/delivery/http-post.ts'
import { formatAddCheckpoint } from '../../src/log/add-checkpoint.ts'
import { signCheckpoint } from '../../src/log/checkpoint.ts'
import { EMPTY_ROOT } from '../../src/log/hash.ts'
import { formatVerifierKey, parseSignerKey, type SignerKey } from '../../src/log/note.ts'
import { type QuorumMember, quorumSeconds } from '../../src/log/policy.ts'
import type { AskedWitness, WitnessConfig } from '../../src/server/settings/witness-settings.ts'
import { type Check, type Finding, fails, off, ok } from './finding.ts'

export const checkWitnesses: Check = async ({ config }) => {
  const { witnesses: policy, keys } = config.log
  if (policy === undefined)
    return [off('witnesses', 'set CALLSIGN_WITNESS_POLICY, so that other operators vouch for the log')]
  if (keys === undefined)
    return [off('witnesses', 'only a server with keys in its settings is known to them')]
  const { ktPrivateKey, ktIndexPrivateKey: index } = keys
  const { quorum, rebuilders = quorum } = policy
  return await Promise.all([
    judge('witnesses', policy, quorum, parseSignerKey(ktPrivateKey)),
    ...(index === undefined ? [] : [judge('index witnesses', policy, rebuilders, parseSignerKey(index))]),
  ])
}

/** Whether enough of the policy's witnesses cosign what that key signs. */
async function judge(
  check: string,
  { witnesses }: WitnessConfig,
  quorum: QuorumMember,
  signer: SignerKey,
): Promise<Finding> {
  const faults = new Map<string, string>()
  await Promise.all(
    witnesses.map(async witness => {
      const fault = await faultOf(witness, signer)
      if (fault !== undefined) faults.set(witness.name, `${witness.name} ${fault}`)
    }),
  )
  const hasQuorum = quorumSeconds(quorum, ({ name }) => (faults.has(name) ? undefined : 0)) !== undefined
  const said = [`${witnesses.length - faults.size} of ${witnesses.length} answer`, ...faults.values()]
  return hasQuorum ? ok(check, said.join('; ')) : fails(check, `no quorum: ${said.join('; ')}`)
}

/** Asks for what a witness that knows the log refuses as malformed, so that nothing is cosigned. */
async function faultOf({ url }: AskedWitness, signer: SignerKey): Promise<string | undefined> {
  const note = signCheckpoint({ treeSize: 0, rootHash: EMPTY_ROOT }, signer)
  const answer = await post({
    url: `${url}/add-checkpoint`,
    headers: { 'content-type': 'text/plain; charset=utf-8' },
    body: formatAddCheckpoint({ oldSize: 1, proof: [], note }),
    timeoutMs: ANSWER_MS_MAX,
    answerBytesMax: 0,
  })
  if (answer.kind === 'failed')
    return `can't be reached (${answer.reason}): look at its address, or ask its operator`
  switch (answer.status) {
    case 400:
    case 409:
      return undefined
    case 403:
    case 404:
      return `does not know this log (${answer.status}): ask its operator to add ${formatVerifierKey(signer)}`
    default:
      return `answers with status ${answer.status}: look at its address, or ask its operator`
  }
}

const ANSWER_MS_MAX = 5_000
