package callsign.verify

import java.io.File
import kotlinx.coroutines.runBlocking
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.jsonObject
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Assumptions.assumeTrue
import org.junit.jupiter.api.Test

/**
 * Both implementations give one verdict, with one name of the check, on each case of a corpus that
 * `test/support/verdict-corpus.ts` makes: broken proofs, notes, lists and histories, and sound ones.
 */
class VerdictCorpusTest {
    @Test
    fun `the frozen corpus has the verdicts of the TypeScript client`() {
        val judged = differencesIn(File(projectRoot, "test/vectors/client-verdicts.jsonl"))
        judged.assertNoDifferences()
        assertTrue(judged.cases >= 2_000, "${judged.cases} cases")
    }

    /** Made by `node dist/test/support/verdict-corpus.js`. */
    @Test
    fun `a corpus that the environment names has them too`() {
        val path = System.getenv("CALLSIGN_CORPUS")
        assumeTrue(path != null, "CALLSIGN_CORPUS names no file")
        val judged = differencesIn(File(path))
        judged.assertNoDifferences()
        println("callsign-verify: ${judged.cases} cases of seed ${judged.seed} judged alike")
    }
}

private class Judged(val seed: String, val cases: Int, val differences: List<String>) {
    fun assertNoDifferences() {
        val told = "${differences.size} differences of $cases cases, seed $seed"
        assertEquals(emptyList<String>(), differences.take(20), told)
    }
}

private fun differencesIn(file: File): Judged {
    val bases = HashMap<String, JsonElement>()
    var judge: Judge? = null
    var seed = ""
    var cases = 0
    val differences = mutableListOf<String>()
    file.forEachLine { text ->
        val line = Json.parseToJsonElement(text)
        val verdict = line.textOrNull("verdict")
        when {
            line.find("keys") != null -> {
                seed = line.text("seed")
                judge = Judge(line["keys"].jsonObject.mapValues { keysOf(it.value) })
            }
            verdict == null -> bases["${line.text("kind")} ${line.text("name")}"] = line["value"]
            else -> {
                cases++
                val base = bases.getValue("${line.text("kind")} ${line.text("base")}")
                val own = checkNotNull(judge).verdictOn(line.text("kind"), edited(base, line.list("edits")))
                if (own != verdict) differences += "$own, not $verdict, of $text"
            }
        }
    }
    return Judged(seed, cases, differences)
}

fun keysOf(published: JsonElement): LogKeys {
    val policy = published.textOrNull("policy")
    val vrfPublicKey = published.text("vrfPublicKey")
    return if (policy != null) LogKeys.ofPolicy(policy, vrfPublicKey)
    else LogKeys.ofVerifierKey(published.text("vkey"), vrfPublicKey, published.textOrNull("indexVkey"))
}

/** The counterpart of `test/support/verdict-judges.ts`. */
private class Judge(private val keys: Map<String, LogKeys>) {
    fun verdictOn(kind: String, value: JsonElement): String = when (kind) {
        "lookup" -> lookup(value)
        "history" -> history(value)
        "checkpoint" -> checkpoint(value)
        "witnesses" -> witnesses(value)
        "comparison" -> comparison(value)
        "list" -> list(value)
        "ed25519" -> signature(value, ::ed25519Verify)
        "p256" -> signature(value, ::p256Verify)
        "keys" -> codeNameOf { keysOf(value) }
        "consistency" -> consistency(value)
        "tiles" -> tiles(value)
        "index" -> indexVerdictOn(keysIn(value), value)
        "share" -> share(value)
        "callKey" -> callKey(value)
        "code" -> result { comparisonCode(personIn(value["one"]), personIn(value)) }
        else -> error("no case is called $kind")
    }

    private fun keysIn(value: JsonElement): LogKeys = keys.getValue(value.text("keys"))

    private fun lookup(value: JsonElement): String {
        val claim = value["claim"]
        val userId = uint64OrNull(claim.text("userId")) ?: return "no id"
        val deviceId = uint64OrNull(claim.text("deviceId")) ?: return "no id"
        val asked = LookupClaim(userId, deviceId, claim.textOrNull("vrfHash"), claim.textOrNull("publicKey"))
        return when (val verdict = verifyLookup(keysIn(value), asked, value.find("result"))) {
            is VerifiedKey -> "verified ${verdict.index} of ${verdict.checkpoint.treeSize}"
            is Refusal -> verdict.check.wireName
        }
    }

    private fun history(value: JsonElement): String {
        val claim = value["claim"]
        val userId = uint64OrNull(claim.text("userId")) ?: return "no id"
        val deviceId = uint64OrNull(claim.text("deviceId")) ?: return "no id"
        val asked = HistoryClaim(userId, deviceId, claim.text("vrfHash"))
        return when (val verdict = verifyKeyHistory(keysIn(value), asked, value.find("history"))) {
            is VerifiedHistory -> "verified ${verdict.entries.joinToString(" ") { "${it.index}" }}"
            is Refusal -> verdict.check.wireName
        }
    }

    private fun checkpoint(value: JsonElement): String =
        when (val verdict = verifyCheckpoint(keysIn(value), value.text("note"))) {
            is VerifiedCheckpoint -> "verified ${verdict.checkpoint.treeSize} ${verdict.checkpoint.rootHash}"
            is Refusal -> verdict.check.wireName
        }

    private fun witnesses(value: JsonElement): String {
        val verdict = verifyWitnesses(keysIn(value), value.text("note"), value.number("nowMs"), value.number("maxAgeMs"))
        return when (verdict) {
            is Witnessed -> "witnessed ${verdict.atMs ?: "by none"}"
            is Refusal -> verdict.check.wireName
        }
    }

    private fun comparison(value: JsonElement): String {
        val (known, seen) = listOf("known", "seen").map { verifyCheckpoint(keysIn(value), value.text(it)) }
        if (known !is VerifiedCheckpoint || seen !is VerifiedCheckpoint) return "not two checkpoints"
        return when (val verdict = compareCheckpoints(known.checkpoint, seen.checkpoint)) {
            is SizeComparison -> verdict.name.lowercase()
            is Refusal -> verdict.check.wireName
        }
    }

    private fun list(value: JsonElement): String {
        val previous = value.textOrNull("previous")?.let(::fromHex)
        return when (val verdict = judgeDeviceList(value.text("userId").toULong(), previous, value.hex("next"))) {
            is TakenList -> verdict.kind.wireName
            is RefusedList -> verdict.reason.wireName
        }
    }

    private fun signature(value: JsonElement, verify: (ByteArray, ByteArray, ByteArray) -> Boolean): String {
        val holds = verify(value.hex("publicKey"), value.hex("message"), value.hex("signature"))
        return if (holds) "holds" else "does not hold"
    }

    private fun consistency(value: JsonElement): String = codeNameOf {
        verifyConsistency(
            ConsistencyClaim(
                value.number("oldSize"),
                decodeBase64(value.text("oldRoot")),
                value.number("newSize"),
                decodeBase64(value.text("newRoot")),
                value.texts("proof").map(::decodeBase64),
            ),
        )
    }

    private fun tiles(value: JsonElement): String = result {
        val (older, newer) = listOf("older", "newer").map { name ->
            val head = value[name]
            decodeBase64(head.text("rootHash"))
            SignedCheckpoint("", head.number("treeSize"), head.text("rootHash"), "")
        }
        val served = value["tiles"]
        val fetchTile = FetchTile { tile -> fromHex(served.textOrNull(formatTilePath(tile)).orEmpty()) }
        when (val found = runBlocking { consistencyFromTiles(fetchTile, older, newer) }) {
            is TileConsistency.Consistent -> "consistent"
            is TileConsistency.Inconsistent -> found.check.wireName
        }
    }

    private fun share(value: JsonElement): String = result {
        val shared = readShareFragment(value.text("fragment"), value.text("origin"))
        val index = shared?.indexNote?.let { " $it" }.orEmpty()
        if (shared == null) "nothing" else "${shared.person.userId} ${shared.person.listHash} ${shared.note ?: "-"}$index"
    }

    private fun callKey(value: JsonElement): String = result {
        val read = readCallKey(value.hex("opened"), value.text("origin"))
        val (callKey, setHash) = read.content.run { toHex(callKey) to toHex(setHash) }
        "$callKey $setHash ${read.content.sealedAtMs} ${read.note ?: "-"}"
    }

    private fun personIn(value: JsonElement) = ListedPerson(value.text("userId").toULong(), value.text("listHash"))

    private fun codeNameOf(act: () -> Unit): String = codeOf(act)?.name ?: "none"

    private fun result(act: () -> String): String = try {
        act()
    } catch (error: LogException) {
        error.code.name
    }
}
