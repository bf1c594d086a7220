/** Trees, proofs and whole logs by their published vectors. */
package callsign.verify

import callsign.verify.LogErrorCode.PROOF_INVALID
import kotlinx.coroutines.runBlocking
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.jsonObject
import kotlinx.serialization.json.jsonPrimitive
import org.junit.jupiter.api.Assertions.assertArrayEquals
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test

/** RFC 6962, section 2.1, word for word: the root of the leaves. */
internal fun naiveRoot(leaves: List<ByteArray>): ByteArray {
    if (leaves.isEmpty()) return sha256()
    if (leaves.size == 1) return leaves.single()
    val split = Integer.highestOneBit(leaves.size - 1)
    return hashNode(naiveRoot(leaves.take(split)), naiveRoot(leaves.drop(split)))
}

/** Reads the complete subtrees of a tree with these leaves. */
internal fun readerOf(leaves: List<ByteArray>): ReadHashes = { nodes ->
    nodes.map { (level, index) ->
        val width = 1 shl level
        naiveRoot(leaves.subList(index.toInt() * width, (index.toInt() + 1) * width))
    }
}

class CertificateTransparencyVectorsTest {
    private val vectors = readVectors("merkle-ct")
    private val leaves = vectors.texts("leaves").map { hashLeaf(fromHex(it)) }

    @Test
    fun `hashes and roots are those of certificate transparency`() {
        assertEquals(vectors.text("empty_root"), toHex(EMPTY_ROOT))
        for (case in vectors.list("leaf_hash")) assertEquals(case.text("hash"), toHex(hashLeaf(case.hex("data"))))
        for (case in vectors.list("node_hash"))
            assertEquals(case.text("hash"), toHex(hashNode(case.hex("left"), case.hex("right"))))
        vectors.texts("roots").forEachIndexed { at, root ->
            assertEquals(root, toHex(rootHash(at + 1L, readerOf(leaves))))
        }
    }

    @Test
    fun `inclusion proofs lead to their roots, one of 22 hashes too`() {
        val computed = vectors["computed_here"]
        for (case in computed.list("inclusion") + vectors["inclusion_real_ct_leaf"]) {
            case.textOrNull("leaf_data")?.let { assertEquals(case.text("leaf_hash"), toHex(hashLeaf(fromHex(it)))) }
            val path = case.texts("proof").map(::fromHex)
            val root = rootFromPath(case.hex("leaf_hash"), case.number("index"), case.number("size"), path)
            assertEquals(case.text("root"), toHex(root))
        }
    }

    @Test
    fun `consistency proofs come out and verify`() {
        for (case in vectors.list("consistency") + vectors["computed_here"].list("consistency")) {
            val oldSize = case.number("size1")
            val newSize = case.number("size2")
            val proof = proveConsistency(oldSize, newSize, readerOf(leaves))
            assertEquals(case.texts("proof"), proof.map(::toHex))
            verifyConsistency(ConsistencyClaim(oldSize, case.hex("root1"), newSize, case.hex("root2"), proof))
        }
    }
}

class TransparencyDevVectorsTest {
    private val vectors = readVectors("merkle-transparency-dev")

    private fun hashes(case: JsonElement): List<ByteArray> =
        case.list("proof").map { fromBase64(it.jsonPrimitive.content) }

    @Test
    fun `the 98 inclusion probes are judged as they are there`() {
        val probes = vectors.list("inclusion")
        assertEquals(98, probes.size)
        for (case in probes) {
            val claim = InclusionClaim(
                case.base64("leafHash"),
                unsigned(case, "leafIdx"),
                unsigned(case, "treeSize"),
                hashes(case),
                case.base64("root"),
            )
            val expected = if (case.flag("wantErr")) PROOF_INVALID else null
            assertEquals(expected, codeOf { verifyInclusion(claim) }, case.text("file"))
        }
    }

    @Test
    fun `the 98 consistency probes are judged as they are there`() {
        val probes = vectors.list("consistency")
        assertEquals(98, probes.size)
        for (case in probes) {
            val claim = ConsistencyClaim(
                unsigned(case, "size1"),
                case.base64("root1"),
                unsigned(case, "size2"),
                case.base64("root2"),
                hashes(case),
            )
            val expected = if (case.flag("wantErr")) PROOF_INVALID else null
            assertEquals(expected, codeOf { verifyConsistency(claim) }, case.text("file"))
        }
    }

    /** Some are above 2^63: beyond every tree, as -1 is. */
    private fun unsigned(case: JsonElement, name: String): Long = case.text(name).toLongOrNull() ?: -1
}

class ForkVectorsTest {
    private val vectors = readVectors("consistency-forks")

    private fun sizeOf(branch: String): Long = branch.takeWhile(Char::isDigit).toLong()

    private fun rootOf(branch: String): ByteArray = vectors["roots_base64"].base64(branch)

    @Test
    fun `every checkpoint opens and has the root of its branch`() {
        val verifiers = listOf(parseVerifierKey(vectors.text("log_vkey")))
        for ((branch, note) in vectors["checkpoints"].jsonObject) {
            val checkpoint = parseCheckpoint(openNote(note.jsonPrimitive.content, verifiers).text)
            assertEquals(sizeOf(branch), checkpoint.treeSize)
            assertArrayEquals(rootOf(branch), checkpoint.rootHash)
        }
    }

    @Test
    fun `a proof within a branch holds, one across branches does not`() {
        for (case in vectors.list("consistency")) {
            val first = case.text("first")
            val second = case.text("second")
            val proof = case.texts("proof").map(::fromBase64)
            val claim = ConsistencyClaim(sizeOf(first), rootOf(first), sizeOf(second), rootOf(second), proof)
            assertEquals(case.flag("ok"), codeOf { verifyConsistency(claim) } == null, "$first to $second")
        }
        assertTrue(vectors.list("consistency").any { !it.flag("ok") })
    }
}

class GoldenLogVectorsTest {
    private val golden = readVectors("tessera-golden-log")
    private val leaves = golden.texts("leaf_hashes_base64").map(::fromBase64)
    private val verifiers = listOf(parseVerifierKey(golden.text("vkey")))
    private val heads = golden.texts("checkpoints").map { note ->
        val checkpoint = parseCheckpoint(openNote(note, verifiers).text)
        SignedCheckpoint(checkpoint.origin, checkpoint.treeSize, encodeBase64(checkpoint.rootHash), note)
    }

    @Test
    fun `the checkpoints of every size open and have the root of its entries`() {
        assertEquals(golden.texts("entries_utf8").map { toBase64(hashLeaf(it.toByteArray())) }, leaves.map(::toBase64))
        heads.forEachIndexed { size, head ->
            assertEquals(size.toLong(), head.treeSize)
            assertEquals(toBase64(naiveRoot(leaves.take(size))), head.rootHash)
        }
    }

    @Test
    fun `each of its trees is found to begin with every earlier one, by its tiles`() = runBlocking {
        val tiles = golden["resources"]
        val fetchTile = FetchTile { tile -> tiles.hex("/${formatTilePath(tile)}") }
        for (older in heads) {
            for (newer in heads.drop(older.treeSize.toInt())) {
                val found = consistencyFromTiles(fetchTile, older, newer)
                assertEquals(TileConsistency.Consistent, found, "${older.treeSize} to ${newer.treeSize}")
            }
        }
    }
}

class DerivedLogVectorsTest {
    private val log = readVectors("derived-kt-e2e")
    private val entries = log.list("entries")
    private val keys = LogKeys.ofVerifierKey(log.text("log_vkey"), log.text("vrf_pk_base64"))

    @Test
    fun `its entries have their leaf hashes, and its consistency proofs come out`() {
        val leaves = entries.map { entry ->
            val octets = formatEntry(entry.base64("vrfHash"), entry.text("publicKey"))
            assertEquals(log.small("entry_bytes_length"), octets.size)
            hashLeaf(octets).also { assertEquals(entry.text("leaf_hash_base64"), toBase64(it)) }
        }
        for (case in log.list("consistency")) {
            val proof = proveConsistency(case.number("first"), case.number("second"), readerOf(leaves))
            assertEquals(case.texts("proof_base64"), proof.map(::toBase64))
        }
    }

    @Test
    fun `its checkpoints verify, one with the cosignatures of its witnesses`() {
        for ((size, note) in log["checkpoints"].jsonObject) {
            val verdict = verifyCheckpoint(keys, note.jsonPrimitive.content)
            assertEquals(size.toLong(), (verdict as VerifiedCheckpoint).checkpoint.treeSize)
        }
        val lines = log.list("witnesses").mapIndexed { at, witness -> "witness w$at ${witness.text("cosignature_vkey")}\n" }
        val names = lines.indices.joinToString(" ") { "w$it" }
        val policy = "log ${log.text("log_vkey")}\n${lines.joinToString("")}group all-of all $names\nquorum all-of\n"
        val witnessed = LogKeys.ofPolicy(policy, log.text("vrf_pk_base64"))
        val verdict = verifyWitnesses(witnessed, log.text("cosigned_checkpoint"), nowMs = 0)
        assertEquals(Witnessed(1_000 * log.list("witnesses").minOf { it.number("time") }), verdict)
    }

    @Test
    fun `its lookup results verify`() {
        val proofs = log.list("tlog_proofs")
        assertTrue(proofs.size >= 13)
        for (case in proofs) {
            val entry = entries[case.small("index")]
            val publicKey = entry.text("publicKey")
            val vrfHash = entry.text("vrfHash")
            val userId = entry.text("userID").toULong()
            val claim = LookupClaim(userId, entry.text("deviceID").toULong(), vrfHash, publicKey)
            val verdict = verifyLookup(keys, claim, LookupResult(publicKey, vrfHash, case.text("proof")))
            val verified = verdict as VerifiedKey
            assertEquals(case.number("index") to case.number("size"), verified.index to verified.checkpoint.treeSize)
        }
    }
}
