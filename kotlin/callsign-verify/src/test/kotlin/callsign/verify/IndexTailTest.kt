/** The entries since the newest leaf of an index: from where they are read, and which of them are believed. */
package callsign.verify

import java.io.IOException
import kotlinx.coroutines.runBlocking
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertFalse
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test

/** A log's tiles and entry bundles; a test may answer a path in another way. */
private class TiledLog(val entries: List<ByteArray>) {
    private val leaves = entries.map(::hashLeaf)
    val requests = mutableListOf<LogRequest>()
    var lie: (path: String) -> LogAnswer? = { null }

    fun checkpoint(treeSize: Int) =
        SignedCheckpoint("log.example", treeSize.toLong(), encodeBase64(naiveRoot(leaves.take(treeSize))), "")

    fun answer(path: String): LogAnswer {
        val found = PATH.matchEntire(path) ?: return notThere
        val (level, index, partial) = found.destructured
        val width = if (partial.isEmpty()) 256 else partial.toInt()
        val start = 256 * index.toInt()
        if (level == "entries") {
            if (start + width > entries.size) return notThere
            return LogAnswer(200, bundleOf(entries.subList(start, start + width)))
        }
        val nodes = (start until start + width).map { Node(8 * level.toInt(), it.toLong()) }
        return LogAnswer(200, readerOf(leaves)(nodes).fold(ByteArray(0), ByteArray::plus))
    }

    val source = LogRequests(
        "https://log.example",
        { request ->
            requests += request
            val path = request.url.removePrefix("https://log.example/")
            lie(path) ?: answer(path)
        },
        20_000,
    ).let { TailSource(it::tile, it::entries) }

    companion object {
        val notThere = LogAnswer(404, ByteArray(0))
        private val PATH = Regex("tile/([a-z0-9]+)/(\\d{3})(?:\\.p/(\\d+))?")

        fun bundleOf(entries: List<ByteArray>): ByteArray =
            entries.map { byteArrayOf((it.size shr 8).toByte(), it.size.toByte()) + it }.fold(ByteArray(0), ByteArray::plus)
    }
}

class IndexTailTest {
    private fun hashOf(number: Int) = toBase64(ByteArray(64) { number.toByte() })

    /** Entry n is of hash n mod 200. */
    private fun entriesUpTo(size: Int, key: String = "AAAA") = List(size) { "${hashOf(it % 200)}\n$key\n".toByteArray() }

    private fun read(log: TiledLog, older: Int, newer: Int, vararg others: TailSource): Fitting<IndexTail> =
        runBlocking { IndexTails(listOf(log.source) + others).read(log.checkpoint(older), log.checkpoint(newer)) }

    private fun assertRead(log: TiledLog, older: Int, newer: Int, vararg others: TailSource) {
        val read = (read(log, older, newer, *others) as Fitting.Held).value
        for (number in listOf(0, 7, 44, 199)) {
            val expected = (older until newer).filter { it % 200 == number }.map(Int::toLong)
            assertEquals(expected, read.under(hashOf(number)), "hash $number")
        }
        assertTrue(read.under(hashOf(200)).isEmpty())
    }

    @Test
    fun `each entry is found under its hash, up to the most that are read`() {
        val log = TiledLog(entriesUpTo(20 + IndexTails.ENTRIES_MAX))
        assertRead(log, 20, 20 + IndexTails.ENTRIES_MAX)
        assertRead(log, 256, 512)
        assertRead(log, 255, 257)
        assertRead(log, 0, 20)
    }

    @Test
    fun `an entry of another form is under the hash that it begins with`() {
        val odd = listOf("x\nAAAA\n", "", " \n").map { "${hashOf(7)}$it".toByteArray() }
        val log = TiledLog(entriesUpTo(20) + odd + hashOf(7).dropLast(1).toByteArray())
        assertEquals(listOf(20L, 21L, 22L), (read(log, 10, 24) as Fitting.Held).value.under(hashOf(7)))
    }

    @Test
    fun `a log that has dropped its partial bundles serves the full ones`() {
        val log = TiledLog(entriesUpTo(300))
        log.lie = { path -> if (".p/" in path) TiledLog.notThere else null }
        assertRead(log, 10, 200)
    }

    @Test
    fun `lookups of one answer read the tail once, and one from another tree reads its own`() = runBlocking {
        val log = TiledLog(entriesUpTo(40))
        val tails = IndexTails(listOf(log.source))
        repeat(3) { assertTrue(tails.read(log.checkpoint(10), log.checkpoint(39)) is Fitting.Held) }
        assertTrue(tails.read(log.checkpoint(10), log.checkpoint(40)) is Fitting.Held)
        val bundles = log.requests.map { it.url.substringAfter("example/") }.filter { "entries" in it }
        assertEquals(listOf("tile/entries/000.p/39", "tile/entries/000.p/40"), bundles)
    }

    @Test
    fun `entries that do not lead from the one root to the other are not believed, and another source may have the right ones`() {
        val log = TiledLog(entriesUpTo(300))
        val honest = TiledLog(entriesUpTo(300)).source
        val other = TiledLog(entriesUpTo(300, "BBBB"))
        val swapped = entriesUpTo(300).toMutableList().also { it[30] = entriesUpTo(301)[300] }
        fun instead(change: (LogAnswer) -> LogAnswer): (String) -> LogAnswer? =
            { path -> if ("entries" in path) change(log.answer(path)) else null }
        val lies = mapOf<String, (String) -> LogAnswer?>(
            "another log" to other::answer,
            "the entries of another log" to { if ("entries" in it) other.answer(it) else null },
            "the tiles of another log" to { if ("entries" in it) null else other.answer(it) },
            "an entry in place of another" to { if ("entries" in it) TiledLog(swapped).answer(it) else null },
            "an octet too few" to instead { LogAnswer(200, it.body.copyOf(it.body.size - 1)) },
            "half a length more" to instead { LogAnswer(200, it.body + 0) },
            "an entry more" to instead { LogAnswer(200, it.body + byteArrayOf(0, 0)) },
            "nothing" to instead { LogAnswer(200, ByteArray(0)) },
            "another status" to instead { TiledLog.notThere },
            "no network" to instead { throw IOException("no network") },
        )
        for ((name, lie) in lies) {
            log.lie = lie
            assertEquals(Check.TILES, (read(log, 10, 300) as Fitting.Open).unanswered.check, name)
            assertRead(log, 10, 300, honest)
        }
        log.lie = { null }
        // From a root that is none of this log.
        val foreign = runBlocking { IndexTails(listOf(log.source)).read(other.checkpoint(10), log.checkpoint(300)) }
        assertEquals(Check.TILES, (foreign as Fitting.Open).unanswered.check)
    }

    @Test
    fun `no bundle may have more octets than entries have`() {
        val log = TiledLog(entriesUpTo(300))
        assertRead(log, 10, 300)
        val bounds = log.requests.filter { "entries" in it.url }.associate { it.url.substringAfter("entries/") to it.answerOctetsMax }
        assertEquals(mapOf("000" to 256 * 1_116, "001.p/44" to 44 * 1_116), bounds)
        log.lie = { path -> if ("entries" in path) LogAnswer(200, ByteArray(256 * 1_116 + 1)) else null }
        val lost = (read(log, 10, 300) as Fitting.Open).unanswered
        assertTrue("more than 285696" in lost.detail, lost.detail)
    }
}

class IndexKeysTest {
    private val vectors = readVectors("index-lookups")["keys"]
    private val plain = vectors["plain"]
    private val vrfPublicKey = plain.text("vrfPublicKey")
    private val logLine = "log ${plain.text("vkey")}\n"
    private val indexLine = "log ${plain.text("indexVkey")}\n"

    @Test
    fun `an index is known by its key, and demanded where a policy names it`() {
        assertEquals(null, LogKeys.ofVerifierKey(plain.text("vkey"), vrfPublicKey).index)
        assertFalse(checkNotNull(keysOf(plain).index).isDemanded)
        val witnessed = LogKeys.ofPolicy("$indexLine${logLine}quorum none\n", vrfPublicKey)
        assertEquals("log.example/kt", witnessed.origin)
        assertEquals("log.example/kt", witnessed.name)
        val index = checkNotNull(witnessed.index)
        assertEquals("log.example/kt/index" to null, index.log.origin to index.log.quorum)
        assertTrue(index.isDemanded && !index.isRebuilt)
    }

    @Test
    fun `members called rebuilders are the index's quorum, and the log's stays what it is`() {
        val rebuilt = keysOf(vectors["rebuilt"])
        val index = checkNotNull(rebuilt.index)
        assertEquals("two" to "rebuilders", rebuilt.quorum?.name to index.log.quorum?.name)
        assertTrue(index.isRebuilt)
        val witnessed = checkNotNull(keysOf(vectors["witnessed"]).index)
        assertEquals("two" to false, witnessed.log.quorum?.name to witnessed.isRebuilt)
    }

    @Test
    fun `the key of another log's index is none of this one`() {
        val (vkey, indexVkey) = plain.text("vkey") to plain.text("indexVkey")
        assertEquals(LogErrorCode.KEY_INVALID, codeOf { LogKeys.ofVerifierKey(vkey, vrfPublicKey, vkey) })
        assertEquals(LogErrorCode.KEY_INVALID, codeOf { LogKeys.ofVerifierKey(indexVkey, vrfPublicKey, indexVkey) })
        val further = vkeyOf("log.example/kt/index/index", ByteArray(32) { 1 })
        val policy = "$logLine${indexLine}log $further\nquorum none\n"
        assertEquals(LogErrorCode.KEY_INVALID, codeOf { LogKeys.ofPolicy(policy, vrfPublicKey) })
    }
}

private fun vkeyOf(name: String, publicKey: ByteArray): String =
    "$name+${hexId(keyIdOf(name, ED25519_TYPE, publicKey))}+${encodeBase64(byteArrayOf(ED25519_TYPE.toByte()) + publicKey)}"

class BegunAnewTest {
    private val vectors = readVectors("index-lookups")
    private val first = vectors.list("cases")[0]
    private val old = keysOf(vectors["keys"]["plain"])
    private val new = keysOf(vectors["keys"]["otherKey"])
    private val index = checkNotNull(new.index)
    private val proof = verifyIndex(old, checkNotNull(old.index), first.text("vrfHash"), first["proof"], first.number("nowMs"), 1)

    private fun kept(checkpoint: SignedCheckpoint) =
        MemoryCheckpointStore().also { runBlocking { it.put(KeptCheckpoint(checkpoint, listOf(checkpoint.note), 1)) } }

    private fun pinOf(store: CheckpointStore, keys: LogKeys = index.log, mayBegin: Boolean = true) =
        CheckpointPin(keys, store, emptyList(), null, mayBegin)

    @Test
    fun `a kept checkpoint of another key alone counts as none, and demands all the same`() = runBlocking {
        val store = kept(proof.output)
        val pin = pinOf(store)
        assertEquals(null to true, pin.highest() to pin.hasSeen())
        val logPin = CheckpointPin(new, MemoryCheckpointStore(), emptyList(), null)
        val check = IndexCheck(new, index, CompletenessDemand.WHEN_OFFERED, 1, { 0 }, logPin, pin, IndexTails(emptyList()))
        assertEquals(Check.COMPLETENESS, (check.absent(1u, 0u, null) as Refusal).check)
        val anew = proof.output.copy(treeSize = 1)
        assertEquals(Acceptance.Accepted, pin.accept(anew, 2))
        assertEquals(KeptCheckpoint(anew), store.get(index.log.origin))
    }

    @Test
    fun `one that a present key is said to have signed has to hold, and the log itself begins once`() {
        val read = { pin: CheckpointPin -> codeOf { runBlocking { pin.highest() } } }
        assertEquals(LogErrorCode.MALFORMED, read(pinOf(kept(proof.output), mayBegin = false)))
        val (text, line) = proof.output.note.split("\n\n")
        val forged = proof.output.copy(note = "${text}1\n\n$line")
        assertEquals(LogErrorCode.MALFORMED, read(pinOf(kept(forged), checkNotNull(old.index).log)))
        assertEquals(LogErrorCode.MALFORMED, read(pinOf(kept(forged.copy(note = "no note")))))
    }
}
