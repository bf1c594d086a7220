/**
 * The cost of one lookup's verification, with nothing remembered: `node dist/test/support/lookup-cost.js`. The program of
 * `kotlin/` measures the same lookups.
 */
import { clientBuilds } from './client-builds.ts'
import { readVectors } from './vectors.ts'

interface WholeLog {
  readonly log_vkey: string
  readonly vrf_pk_base64: string
  readonly entries: readonly { userID: string; deviceID: string; publicKey: string; vrfHash: string }[]
  readonly tlog_proofs: readonly { index: number; proof: string }[]
}

const log = readVectors<WholeLog>('derived-kt-e2e')
const published = { vkey: log.log_vkey, vrfPublicKey: log.vrf_pk_base64 }

for (const [build, { parseLogKeys, verifyLookup }] of await clientBuilds()) {
  const round = () => {
    for (const { index, proof } of log.tlog_proofs) {
      const { userID: userId, deviceID: deviceId, publicKey, vrfHash } = log.entries[index]!
      const verdict = verifyLookup(
        parseLogKeys(published),
        { userId, deviceId },
        { publicKey, vrfHash, proof },
      )
      if (verdict.kind !== 'verified') throw new Error(verdict.detail)
    }
  }
  const ms = Array.from({ length: 60 }, () => {
    const from = performance.now()
    round()
    return (performance.now() - from) / log.tlog_proofs.length
  })
  const measured = ms.slice(20).sort((one, other) => one - other)
  console.log(`${build}: ${measured[20]!.toFixed(2)} ms (median of 40 rounds)`)
}
