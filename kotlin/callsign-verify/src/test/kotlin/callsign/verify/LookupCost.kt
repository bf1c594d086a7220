/** The cost of one lookup's verification: see `kotlin/README.md`. Its counterpart is `test/support/lookup-cost.ts`. */
package callsign.verify

private class Asked(val claim: LookupClaim, val result: LookupResult)

fun main() {
    val log = readVectors("derived-kt-e2e")
    val vkey = log.text("log_vkey")
    val vrfPublicKey = log.text("vrf_pk_base64")
    val lookups = log.list("tlog_proofs").map { proof ->
        val entry = log.list("entries")[proof.small("index")]
        val claim = LookupClaim(entry.text("userID").toULong(), entry.text("deviceID").toULong())
        Asked(claim, LookupResult(entry.text("publicKey"), entry.text("vrfHash"), proof.text("proof")))
    }
    fun measure(rounds: Int, keysOf: () -> LogKeys): List<Double> = List(rounds) {
        val from = System.nanoTime()
        for (asked in lookups) check(verifyLookup(keysOf(), asked.claim, asked.result) is VerifiedKey)
        (System.nanoTime() - from) / 1e6 / lookups.size
    }
    val fresh = { LogKeys.ofVerifierKey(vkey, vrfPublicKey) }
    val cold = measure(1, fresh).single()
    measure(200, fresh)
    val warm = measure(100, fresh).sorted()
    val kept = fresh()
    val again = measure(100) { kept }.sorted()
    println("JVM, nothing remembered: %.2f ms (median of 100 rounds), %.2f ms in the first round".format(warm[50], cold))
    println("JVM, the same devices again: %.3f ms".format(again[50]))
}
