package callsign.verify

import kotlinx.serialization.json.JsonArray
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.jsonObject
import kotlinx.serialization.json.jsonPrimitive
import kotlinx.serialization.json.long
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test

/** Single lookups in an index, each with the verdict that `test/support/index-lookups.ts` wrote beside it. */
class IndexLookupsTest {
    private val vectors = readVectors("index-lookups")

    @Test
    fun `every lookup in the index has the verdict of the TypeScript client`() {
        val keys = vectors["keys"].jsonObject.mapValues { keysOf(it.value) }
        val cases = vectors.list("cases")
        assertTrue(cases.size >= 118, "${cases.size} cases")
        for (case in cases) assertEquals(case.text("verdict"), indexVerdictOn(keys.getValue(case.text("keys")), case), case.text("name"))
    }
}

/** The verdict on one lookup, as `test/support/index-lookups.ts` words it. */
internal fun indexVerdictOn(keys: LogKeys, case: JsonElement): String {
    val index = checkNotNull(keys.index)
    val proof = case.jsonObject["proof"]
    val found = try {
        verifyIndex(keys, index, case.text("vrfHash"), proof, case.number("nowMs"), case.number("maxIndexAgeMs"))
    } catch (failed: CheckFailed) {
        return "refused at ${failed.refusal.check.wireName}"
    }
    val tail = (case["tail"] as? JsonArray)?.map { it.jsonPrimitive.long }
    val shown = case.find("shown")?.let { ShownEntry(it.number("index"), it.number("treeSize")) }
    return when (val judged = judgeCompleteness(found, index.isRebuilt, tail, shown)) {
        is Fitting.Refused -> "refused at ${judged.refusal.check.wireName}"
        is Fitting.Open -> "unanswered at ${judged.unanswered.check?.wireName}"
        is Fitting.Held -> completenessText(judged.value)
    }
}

internal fun completenessText(completeness: Completeness): String {
    if (completeness !is Completeness.Complete) return completeness.kind.wireName
    val age = completeness.indexAgeMs ?: "unknown"
    val proof = if (completeness.isProved) "proved" else "unproved"
    return "complete [${completeness.indexes.joinToString(",")}] age $age $proof"
}
