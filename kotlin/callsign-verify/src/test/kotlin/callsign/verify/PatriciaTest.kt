/** Proofs in the index's tree: by the vectors of another implementation, and against a tree that is hashed as the words say. */
package callsign.verify

import callsign.verify.LogErrorCode.PROOF_INVALID
import java.io.ByteArrayOutputStream
import java.util.Random
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.jsonArray
import kotlinx.serialization.json.jsonPrimitive
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertNull
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test

private class KeyValue(val key: ByteArray, val value: ByteArray)

/** The hash of the tree with these pairs, all of different keys. */
private fun naiveHash(pairs: List<KeyValue>): ByteArray {
    if (pairs.isEmpty()) return EMPTY_ROOT
    if (pairs.size == 1) return patriciaLeafHash(pairs.single().key, pairs.single().value)
    val bit = partingOf(pairs)
    val (left, right) = pairs.partition { keyBit(it.key, bit) == 0 }
    return patriciaNodeHash(bit, naiveHash(left), naiveHash(right))
}

/** The proof of the key's value, or of its absence. */
private fun naiveProof(pairs: List<KeyValue>, key: ByteArray): ByteArray {
    if (pairs.isEmpty()) return ByteArray(0)
    val steps = ArrayDeque<ByteArray>()
    var left = pairs
    while (left.size > 1) {
        val bit = partingOf(left)
        val (near, far) = left.partition { keyBit(it.key, bit) == keyBit(key, bit) }
        steps.addFirst(varintOf(bit) + naiveHash(far))
        left = near
    }
    val end = left.single()
    val path = steps.fold(ByteArray(0), ByteArray::plus)
    if (end.key.contentEquals(key)) return path
    return varintOf(end.key.size.toLong()) + end.key + varintOf(end.value.size.toLong()) + end.value + path
}

private fun partingOf(pairs: List<KeyValue>): Long {
    val first = pairs.first().key
    return (0L..Long.MAX_VALUE).first { bit -> pairs.any { keyBit(it.key, bit) != keyBit(first, bit) } }
}

private fun varintOf(value: Long): ByteArray {
    val octets = ByteArrayOutputStream()
    var rest = value
    while (rest >= 0x80) {
        octets.write((rest and 0x7f or 0x80).toInt())
        rest = rest shr 7
    }
    octets.write(rest.toInt())
    return octets.toByteArray()
}

private fun codeOfClaim(root: ByteArray, key: ByteArray, value: ByteArray?, proof: ByteArray): LogErrorCode? =
    codeOf { verifyPatricia(PatriciaClaim(root, key, value, proof)) }

class PatriciaVectorsTest {
    private fun pairOf(pair: JsonElement): KeyValue {
        val (key, value) = pair.jsonArray.map { fromHex(it.jsonPrimitive.content) }
        return KeyValue(key, value)
    }

    @Test
    fun `the hashes of 32 trees come out`() {
        val cases = readVectors("mpt-treehash").list("cases")
        assertEquals(32, cases.size)
        for (case in cases) assertEquals(case.text("hash"), toHex(naiveHash(case.list("pairs").map(::pairOf))))
    }

    @Test
    fun `103 proofs are judged as they are there`() {
        val cases = readVectors("mpt-verify").list("cases")
        assertEquals(103, cases.size)
        for ((at, case) in cases.withIndex()) {
            val value = case.textOrNull("val")?.let(::fromHex)
            val code = codeOfClaim(case.hex("snap"), case.hex("key"), value, case.hex("proof"))
            assertEquals(if (case.flag("ok")) null else PROOF_INVALID, code, "case $at")
        }
    }
}

class PatriciaTreesTest {
    private val random = Random(SEED)

    /** Keys that share long beginnings, and keys of several lengths. */
    private fun keyIn(shape: Int): ByteArray {
        val length = if (shape % 2 == 0) 4 else random.nextInt(5)
        return ByteArray(length) { if (shape < 2) random.nextInt(2).toByte() else random.nextInt(256).toByte() }
    }

    private fun treeIn(shape: Int): List<KeyValue> {
        val keys = List(random.nextInt(20)) { keyIn(shape) }.distinctBy(::toHex)
        return keys.map { key -> KeyValue(key, ByteArray(random.nextInt(3)).also(random::nextBytes)) }
    }

    @Test
    fun `whatever a random tree holds is proved, and what it does not hold is proved absent`() {
        repeat(200) { at ->
            val pairs = treeIn(at % 4)
            val root = naiveHash(pairs)
            for (pair in pairs) {
                val proof = naiveProof(pairs, pair.key)
                assertNull(codeOfClaim(root, pair.key, pair.value, proof), "tree $at")
                assertEquals(PROOF_INVALID, codeOfClaim(root, pair.key, pair.value + 1, proof), "tree $at")
                assertEquals(PROOF_INVALID, codeOfClaim(root, pair.key, null, proof), "tree $at")
            }
            val absent = keyIn(at % 4).takeUnless { key -> pairs.any { it.key.contentEquals(key) } } ?: return@repeat
            val proof = naiveProof(pairs, absent)
            assertNull(codeOfClaim(root, absent, null, proof), "tree $at")
            assertEquals(PROOF_INVALID, codeOfClaim(root, absent, ByteArray(1), proof), "tree $at")
        }
    }

    @Test
    fun `no proof with a changed bit, an octet more or an octet less holds`() {
        repeat(60) { at ->
            val pairs = treeIn(at % 4)
            val root = naiveHash(pairs)
            val key = pairs.firstOrNull()?.key ?: keyIn(0)
            val absent = keyIn(at % 4)
            val claims = listOf(key, absent).distinctBy(::toHex)
            for (claimed in claims) {
                val value = pairs.find { it.key.contentEquals(claimed) }?.value
                val proof = naiveProof(pairs, claimed)
                val changed = List(8 * proof.size) { bit ->
                    proof.clone().also { it[bit / 8] = (it[bit / 8].toInt() xor (1 shl bit % 8)).toByte() }
                }
                val longer = listOf(proof + 0, byteArrayOf(0) + proof)
                val shorter = if (proof.isEmpty()) emptyList() else listOf(proof.copyOf(proof.size - 1))
                for (other in changed + longer + shorter)
                    assertEquals(PROOF_INVALID, codeOfClaim(root, claimed, value, other), "tree $at: ${toHex(other)}")
            }
        }
    }

    @Test
    fun `the empty tree has no key, and no other tree is proved by nothing`() {
        assertNull(codeOfClaim(EMPTY_ROOT, ByteArray(32), null, ByteArray(0)))
        val root = naiveHash(listOf(KeyValue(ByteArray(32), ByteArray(32))))
        assertEquals(PROOF_INVALID, codeOfClaim(root, ByteArray(32) { 1 }, null, ByteArray(0)))
        assertEquals(PROOF_INVALID, codeOfClaim(EMPTY_ROOT, ByteArray(32), ByteArray(32), ByteArray(0)))
    }

    @Test
    fun `lengths and bits that no proof has are refused at once`() {
        val endless = ByteArray(70) { -1 }
        assertEquals(PROOF_INVALID, codeOfClaim(EMPTY_ROOT, ByteArray(32), null, endless))
        assertEquals(PROOF_INVALID, codeOfClaim(EMPTY_ROOT, ByteArray(32), ByteArray(32), endless))
        val huge = varintOf(1L shl 48) + ByteArray(40)
        assertEquals(PROOF_INVALID, codeOfClaim(EMPTY_ROOT, ByteArray(32), null, huge))
        assertEquals(PROOF_INVALID, codeOfClaim(EMPTY_ROOT, ByteArray(32), ByteArray(32), huge))
    }

    private companion object {
        const val SEED = 52L
    }
}

class IndexLeafTest {
    private val root = ByteArray(32) { (7 * it).toByte() }
    private val numbers = root.joinToString(",") { "${it.toInt() and 0xff}" }
    private val note = "log.example\n1\n\u2014 x\n"

    private fun leaf(input: String = toBase64(note.toByteArray()), root: String = numbers) =
        """{"input_log_cp":"$input","index_root":[$root]}"""

    @Test
    fun `a leaf is read as an index writes it`() {
        val read = parseIndexLeaf(leaf().toByteArray())
        assertEquals(note, read.inputCheckpoint)
        assertEquals(numbers, read.root.joinToString(",") { "${it.toInt() and 0xff}" })
    }

    @Test
    fun `no other octets are a leaf`() {
        val cases = listOf(
            "",
            "{}",
            leaf() + "\n",
            leaf().replace(":[", ": ["),
            leaf(root = "$numbers,0"),
            leaf(root = numbers.substringBeforeLast(',')),
            leaf(root = numbers.replaceFirst("0", "00")),
            leaf(root = numbers.replaceFirst("0", "256")),
            leaf(root = numbers.replaceFirst("0", "99999999999")),
            leaf(input = "AA"),
            leaf(input = toBase64(byteArrayOf(-1))),
            leaf(input = "A".repeat(65_536)),
        )
        for (text in cases) assertEquals(LogErrorCode.MALFORMED, codeOf { parseIndexLeaf(text.toByteArray()) }, text.take(100))
    }

    @Test
    fun `keys and values are hashes of texts and numbers`() {
        assertEquals(toHex(sha256("abc".toByteArray())), toHex(indexKeyOf("abc")))
        assertEquals(toHex(sha256(fromHex("0000000000000001" + "001fffffffffffff"))), toHex(indexValueOf(listOf(1, SAFE_MAX))))
        assertTrue(indexOriginOf("log.example") == "log.example/index")
    }
}
