package callsign.app

import java.nio.ByteBuffer
import java.security.GeneralSecurityException
import java.security.MessageDigest
import java.util.concurrent.Callable
import java.util.concurrent.Executors
import kotlin.random.Random
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.jsonObject
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertFalse
import org.junit.jupiter.api.Assertions.assertNotEquals
import org.junit.jupiter.api.Assertions.assertNull
import org.junit.jupiter.api.Assertions.assertThrows
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test

/** The vectors of RFC 9605 and of `callsign-media-1`, and the same rules as `test/app/media/frames.test.ts`. */
class FramesTest {
    private val vectors = readVectors("media-frames")
    private val frames = vectors.objects("frames")
    private val callId = vectors.word("call_id")
    private val callKey = fromHex(vectors.word("call_key_hex"))
    private val opus = fromHex("78" + "55aa".repeat(20))

    private fun cryptorWith(vararg epochs: Int) = FrameCryptor(callId).apply {
        for (epoch in epochs) setKey(epoch, keyOf(epoch))
        epochs.firstOrNull()?.let(::useKey)
    }

    private fun keyOf(epoch: Int) = MessageDigest.getInstance("SHA-256").digest("epoch $epoch".toByteArray())

    private fun FrameCryptor.sealed(format: FrameFormat = FrameFormat.OPUS, frame: ByteArray = opus) =
        checkNotNull(seal(format, frame))

    /** The frame in hexadecimal digits, or why there is none. */
    private fun FrameCryptor.opened(octets: ByteArray, format: FrameFormat = FrameFormat.OPUS) =
        when (val outcome = open(format, octets)) {
            is OpenedFrame -> toHex(outcome.frame)
            is UnopenedFrame -> outcome.reason.wireName
        }

    private fun headerOf(frame: ByteArray) = checkNotNull(parseSFrameHeader(frame))

    private fun ByteArray.changed(at: Int, bit: Int = 0) =
        copyOf().also { it[at] = (it[at].toInt() xor (1 shl bit)).toByte() }

    @Test
    fun `headers are those of RFC 9605, appendix C1`() {
        for (case in vectors.objects("headers")) {
            val kid = case.word("kid").toULong()
            val counter = case.word("counter").toULong()
            assertEquals(case.word("header_hex"), toHex(formatSFrameHeader(kid, counter)))
        }
        val random = Random(1)
        repeat(1_000) {
            val kid = random.nextLong().toULong() shr random.nextInt(64)
            val counter = random.nextLong().toULong() shr random.nextInt(64)
            val header = formatSFrameHeader(kid, counter)
            val parsed = headerOf(header + 7)
            assertEquals(listOf(kid, counter), listOf(parsed.kid, parsed.counter))
            assertEquals(header.size, parsed.size)
            assertNull(parseSFrameHeader(header.copyOf(header.size - 1)))
        }
    }

    @Test
    fun `suite 5 gives the values of RFC 9605, appendix C3`() {
        val case = vectors.getValue("suite_5").jsonObject
        val kid = case.word("kid").toULong()
        val counter = case.word("counter").toULong()
        val key = SFrameKey.derive(fromHex(case.word("base_key_hex")), kid)
        assertEquals(case.word("sframe_salt_hex"), toHex(key.salt))
        val metadata = fromHex(case.word("metadata_hex"))
        val sealed = key.seal(kid, counter, metadata, fromHex(case.word("plain_hex")))
        assertEquals(case.word("sealed_hex"), toHex(sealed))
        val size = headerOf(sealed).size
        val behind = sealed.copyOfRange(size, sealed.size)
        assertEquals(case.word("plain_hex"), toHex(key.open(counter, sealed.copyOf(size), metadata, behind)))
        assertThrows(GeneralSecurityException::class.java) { key.open(counter + 1uL, sealed.copyOf(size), metadata, behind) }
        assertThrows(GeneralSecurityException::class.java) { key.open(counter, sealed.copyOf(size), metadata + 0, behind) }
    }

    @Test
    fun `frames of each codec are sealed and opened as their vectors say`() {
        assertEquals(FrameFormat.entries.toSet(), frames.map(::formatOf).toSet())
        for (case in frames) {
            val epoch = case.word("epoch").toInt()
            val kid = case.word("kid_hex").toULong(16)
            val counter = case.word("counter").toULong()
            val frame = fromHex(case.word("frame_hex"))
            val base = deriveMediaBase(callKey, callId, epoch)
            assertEquals(case.word("base_hex"), toHex(base))
            val key = SFrameKey.derive(base, kid)
            assertEquals(case.word("sframe_salt_hex"), toHex(key.salt))
            val sealed = checkNotNull(sealFrame(formatOf(case), key, kid, counter, frame))
            assertEquals(case.word("sealed_hex"), toHex(sealed))
            val parsed = checkNotNull(parseFrame(formatOf(case), sealed))
            assertEquals(listOf(kid, counter), listOf(parsed.kid, parsed.counter))
            assertEquals(case.word("clear_bytes").toInt(), parsed.clear.size)
            val cryptor = FrameCryptor(callId).apply { setKey(epoch, callKey) }
            assertEquals(case.word("frame_hex"), cryptor.opened(sealed, formatOf(case)))
        }
    }

    @Test
    fun `a change of any octet is noticed, but for the parameter sets before a slice`() {
        for (case in frames) {
            val format = formatOf(case)
            val sealed = fromHex(case.word("sealed_hex"))
            val cryptor = FrameCryptor(callId).apply { setKey(case.word("epoch").toInt(), callKey) }
            val from = if (format == FrameFormat.H264) case.word("clear_bytes").toInt() - 3 else 0
            for (at in from until minOf(sealed.size, 150)) {
                assertTrue(cryptor.open(format, sealed.changed(at, at % 8)) is UnopenedFrame, "octet $at")
                assertTrue(cryptor.open(format, sealed.copyOf(at)) is UnopenedFrame, "cut at $at")
            }
            assertEquals(case.word("frame_hex"), cryptor.opened(sealed, format), "the forged ones have left no trace")
        }
        val slice = frames.first { formatOf(it) == FrameFormat.H264 && it.word("clear_bytes").toInt() > 20 }
        val cryptor = FrameCryptor(callId).apply { setKey(slice.word("epoch").toInt(), callKey) }
        val shorter = fromHex(slice.word("sealed_hex").replaceFirst("0000000168", "00000168"))
        assertTrue(cryptor.open(FrameFormat.H264, shorter) is OpenedFrame, "a start code of three octets")
    }

    @Test
    fun `a frame that its codec does not make is not sent, for it would be all clear`() {
        val cryptor = cryptorWith(1)
        assertNull(cryptor.seal(FrameFormat.VP8, fromHex("100200")), "a key frame of VP8 without its size")
        assertNull(cryptor.seal(FrameFormat.VP8, fromHex("3102")))
        assertNull(cryptor.seal(FrameFormat.H264, fromHex("000000016742001f8c8d40501e90")), "no slice")
        assertNull(cryptor.seal(FrameFormat.H264, fromHex("00000001419a")))
        for (format in FrameFormat.entries) {
            for (frame in listOf("", "80", "31", "e1000000000000000000"))
                assertEquals("malformed", cryptor.opened(fromHex(frame), format))
        }
    }

    @Test
    fun `a slice stays one NAL unit, and random ones come back as they were`() {
        val seed = Random.nextInt()
        val random = Random(seed)
        val starts = listOf("419a24", "410100", "410000").map(::fromHex)
        repeat(20_000) {
            val start = starts.random(random)
            val nal = ByteArray(random.nextInt(60)) { if (random.nextBoolean()) random.nextInt(4).toByte() else random.nextInt().toByte() }
            val escaped = escapeNal(nal, start)
            assertEquals(toHex(nal), toHex(unescapeNal(escaped, start)), "seed $seed")
            assertFalse(hasStartCode(start.drop(1) + escaped.toList()), "seed $seed")
        }
        val (ann, bob) = listOf(cryptorWith(1), cryptorWith(1))
        for (size in 0 until 300) {
            val frame = fromHex("00000001410000") + ByteArray(size)
            val sealed = ann.sealed(FrameFormat.H264, frame)
            assertFalse(hasStartCode(sealed.drop(5)))
            assertEquals(toHex(frame), bob.opened(sealed, FrameFormat.H264))
        }
    }

    private fun hasStartCode(octets: List<Byte>) =
        octets.windowed(3).any { (first, second, third) -> first.toInt() == 0 && second.toInt() == 0 && third in 0..2 }

    @Test
    fun `senders with one key never share key and nonce`() {
        val senders = List(20) { cryptorWith(1) }
        val headers = senders.flatMap { listOf(headerOf(it.sealed()), headerOf(it.sealed())) }
        assertEquals(senders.size, headers.map { it.kid }.toSet().size)
        assertEquals(headers.size, headers.map { it.kid to it.counter }.toSet().size)
        assertTrue(headers.all { it.kid shr 48 == 1uL })
    }

    @Test
    fun `the counter never goes back, also between threads`() {
        val ann = cryptorWith(1, 2)
        val first = headerOf(ann.sealed())
        ann.useKey(1)
        ann.setKey(1, keyOf(1))
        val second = headerOf(ann.sealed())
        assertEquals(first.kid to first.counter + 1uL, second.kid to second.counter)
        ann.useKey(2)
        val third = headerOf(ann.sealed())
        assertEquals(first.kid + (1uL shl 48) to first.counter + 2uL, third.kid to third.counter)
        val threads = Executors.newFixedThreadPool(4)
        val counters = threads.invokeAll(List(400) { Callable { headerOf(ann.sealed()).counter } }).map { it.get() }
        threads.shutdown()
        assertEquals(400, counters.toSet().size)
        assertEquals(first.counter + 3uL, counters.min())
    }

    @Test
    fun `without a key nothing is sent, and nothing opened`() {
        val (ann, bob) = listOf(cryptorWith(1), cryptorWith())
        assertNull(bob.seal(FrameFormat.OPUS, opus))
        assertFalse(bob.useKey(1))
        val frame = ann.sealed()
        assertEquals("no-key", bob.opened(frame))
        bob.setKey(1, keyOf(7))
        assertEquals("not-authentic", bob.opened(frame))
        bob.setKey(1, keyOf(1))
        assertEquals(toHex(opus), bob.opened(frame))
        assertFalse(ann.useKey(null))
        assertNull(ann.seal(FrameFormat.OPUS, opus))
        assertTrue(ann.useKey(1))
        ann.dropKey(1)
        assertNull(ann.seal(FrameFormat.OPUS, opus))
        val other = FrameCryptor("42").apply { setKey(1, keyOf(1)) }
        assertEquals("not-authentic", other.opened(frame), "the key of another call")
        val unheld = cryptorWith().apply { setKey(65_536, keyOf(1)) }
        assertFalse(unheld.useKey(65_536), "KIDs have no room for the epoch")
    }

    @Test
    fun `a rotation loses no frame, and an epoch that was dropped is opened no more`() {
        val (ann, bob) = listOf(cryptorWith(1), cryptorWith(1))
        val before = ann.sealed()
        for (each in listOf(ann, bob)) each.setKey(2, keyOf(2))
        val late = ann.sealed()
        ann.useKey(2)
        val after = ann.sealed()
        for (frame in listOf(before, after, late)) assertEquals(toHex(opus), bob.opened(frame))
        val last = ann.sealed()
        bob.dropKey(2)
        assertEquals("no-key", bob.opened(last))
        for (epoch in 3..6) bob.setKey(epoch, keyOf(epoch))
        assertEquals("no-key", bob.opened(cryptorWith(1).sealed()), "four are held, the newest")
    }

    @Test
    fun `a frame is opened once, in any order within the window`() {
        val (ann, bob) = listOf(cryptorWith(1), cryptorWith(1))
        val sealed = List(1_100) { ann.sealed() }
        fun last(number: Int) = bob.opened(sealed[sealed.size - number])
        assertEquals(toHex(opus), last(1))
        assertEquals("replayed", last(1))
        assertEquals(toHex(opus), last(1_024))
        assertEquals("replayed", last(1_024))
        assertEquals("replayed", last(1_025), "too old to tell")
        assertEquals(toHex(opus), last(500))
        bob.setKey(1, keyOf(1))
        assertEquals("replayed", last(500), "the key was sent again")
        val newest = ReplayWindow()
        val highest = ULong.MAX_VALUE - 1uL
        assertEquals(listOf(true, false, false), listOf(highest, highest, 5uL).map(newest::add))
    }

    @Test
    fun `an app whose own frames come back takes another KID, and opens none of them`() {
        val (ann, bob) = listOf(cryptorWith(1), cryptorWith(1))
        val frame = ann.sealed()
        assertEquals("not-authentic", ann.opened(frame.changed(frame.size - 1)))
        assertEquals(headerOf(frame).kid, headerOf(ann.sealed()).kid, "a forged one changes nothing")
        assertEquals("reflected", ann.opened(frame))
        val next = ann.sealed()
        assertNotEquals(headerOf(frame).kid, headerOf(next).kid)
        assertEquals(toHex(opus), bob.opened(next))
        repeat(10) { assertEquals("reflected", ann.opened(ann.sealed())) }
        assertEquals(headerOf(ann.sealed()).kid, headerOf(ann.sealed()).kid, "not for ever")
    }

    @Test
    fun `the senders of an epoch are bounded, and forged ones do not count`() {
        val bob = cryptorWith(1)
        val first = cryptorWith(1)
        assertEquals(toHex(opus), bob.opened(first.sealed()))
        val frame = cryptorWith(1).sealed()
        repeat(4_100) { number ->
            // The last four octets of the KID, behind the header's first octet and the epoch.
            bob.open(FrameFormat.OPUS, frame.copyOf().also { ByteBuffer.wrap(it).putInt(4, number) })
        }
        fun fills() = (bob.open(FrameFormat.OPUS, cryptorWith(1).sealed()) as OpenedFrame).fillsEpoch
        repeat(4_094) { assertFalse(fills()) }
        assertTrue(fills(), "the last one")
        assertEquals("too-many-senders", bob.opened(cryptorWith(1).sealed()))
        assertEquals(toHex(opus), bob.opened(first.sealed()), "those known go on")
    }

    @Test
    fun `a sender's old key opens its frames until five seconds after its first with the new one`() {
        var nowMs = 1_000L
        val bob = FrameCryptor(callId) { nowMs }
        for (epoch in 1..2) bob.setKey(epoch, keyOf(epoch))
        val (ann, cid) = List(2) { cryptorWith(1, 2).apply { useKey(1) } }
        val late = List(2) { ann.sealed() }
        ann.useKey(2)
        assertEquals(toHex(opus), bob.opened(ann.sealed()))
        nowMs += 4_999
        assertEquals(toHex(opus), bob.opened(late[0]))
        nowMs += 1
        assertEquals("replayed", bob.opened(late[1]))
        assertEquals(toHex(opus), bob.opened(cid.sealed()), "who has not switched is heard")
    }

    private fun formatOf(case: JsonObject) = FrameFormat.valueOf(case.word("format").uppercase())
}
