/** The VRF, its group, and device lists with their signatures, by the vectors. */
package callsign.verify

import callsign.verify.LogErrorCode.KEY_INVALID
import callsign.verify.LogErrorCode.MALFORMED
import callsign.verify.LogErrorCode.PROOF_INVALID
import cafe.cryptography.curve25519.Constants
import cafe.cryptography.curve25519.RistrettoElement
import kotlinx.coroutines.runBlocking
import kotlinx.serialization.json.jsonArray
import kotlinx.serialization.json.jsonObject
import kotlinx.serialization.json.jsonPrimitive
import org.junit.jupiter.api.Assertions.assertArrayEquals
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertFalse
import org.junit.jupiter.api.Assertions.assertNull
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test

class RistrettoVectorsTest {
    private val vectors = readVectors("ristretto255")

    private fun hexOf(element: RistrettoElement): String = toHex(element.compress().toByteArray())

    @Test
    fun `the multiples of the generator come out, and come back`() {
        var sum = RistrettoElement.IDENTITY
        for (hex in vectors.texts("generator_multiples_hex")) {
            assertEquals(hex, hexOf(sum))
            assertEquals(hex, elementOrNull(fromHex(hex))?.let(::hexOf))
            sum = sum.add(Constants.RISTRETTO_GENERATOR)
        }
    }

    @Test
    fun `the 29 invalid encodings are none`() {
        val invalid = vectors["invalid_encodings_hex"].jsonObject.values.flatMap { it.jsonArray }
        assertEquals(29, invalid.size)
        for (hex in invalid) assertNull(elementOrNull(fromHex(hex.jsonPrimitive.content)), "$hex")
        for (size in listOf(0, 31, 33)) assertNull(elementOrNull(ByteArray(size)))
    }

    @Test
    fun `64 octets are mapped to the elements of the RFC`() {
        val cases = vectors.list("derive_from_sha512") + vectors.list("derive_from_bytes")
        assertEquals(11, cases.size)
        for (case in cases) {
            val element = RistrettoElement.fromUniformBytes(case.hex("uniform_bytes_hex"))
            assertEquals(case.text("element_hex"), hexOf(element))
        }
    }
}

class VrfVectorsTest {
    private val published = readVectors("vrf-r255")
    private val derived = readVectors("derived-vrf-r255")

    @Test
    fun `published and derived proofs verify, those of Go too`() {
        val cases = published.list("published") + published["go_generated_verify_only"].list("cases") +
            derived.list("valid")
        assertTrue(cases.size >= 17, "${cases.size}")
        for (case in cases)
            assertEquals(case.text("beta"), toHex(verifyVrf(case.hex("pk"), case.hex("alpha"), case.hex("pi"))))
    }

    @Test
    fun `each invalid proof or key of the vectors is refused`() {
        for (case in derived.list("invalid")) {
            val id = case.text("id")
            val expected = if (id == "pk-noncanonical" || id == "identity-pk") KEY_INVALID else PROOF_INVALID
            assertEquals(expected, codeOf { verifyVrf(case.hex("pk"), case.hex("alpha"), case.hex("pi")) }, id)
        }
    }

    @Test
    fun `a proof with any one octet changed is refused`() {
        val case = published.list("published").first()
        val proof = case.hex("pi")
        for (at in proof.indices) {
            val changed = proof.copyOf()
            changed[at] = (changed[at].toInt() xor (1 shl at % 8)).toByte()
            assertEquals(PROOF_INVALID, codeOf { verifyVrf(case.hex("pk"), case.hex("alpha"), changed) }, "octet $at")
        }
    }

    @Test
    fun `a public key is parsed from the base64 of an element other than the identity only`() {
        val case = published.list("published").first()
        val good = toBase64(case.hex("pk"))
        assertEquals(case.text("pk"), toHex(parseVrfPublicKey(good)))
        for (text in listOf("", "AAAA", "!", good.dropLast(1), toBase64(ByteArray(32)), "$good\n"))
            assertEquals(KEY_INVALID, codeOf { parseVrfPublicKey(text) }, text)
    }

    @Test
    fun `the input is the decimal user and device id joined by an underscore`() {
        assertEquals("1_11", String(vrfInput(1u, 11u)))
        val largest = "18446744073709551615"
        assertEquals("${largest}_$largest", String(vrfInput(ULong.MAX_VALUE, ULong.MAX_VALUE)))
    }
}

class DeviceListVectorsTest {
    private val vectors = readVectors("device-list")
    private val byName = vectors.list("lists").associate { it.text("name") to it.hex("hex") }

    private fun listOf(name: String): ByteArray = byName[name] ?: fromHex(name)

    @Test
    fun `lists are read, and come out again octet by octet`() {
        for (case in vectors.list("lists")) {
            val list = parseDeviceList(case.hex("hex"))
            assertEquals(case.text("hex"), toHex(encodeDeviceList(list)))
            assertEquals(case.text("sha256"), toHex(deviceListHash(case.hex("hex"))))
            assertEquals(case.text("user_id"), "${list.userId}")
            assertEquals(case.number("seq"), list.seq)
            assertEquals(case.texts("device_ids"), list.devices.map { "${it.deviceId}" })
            assertEquals(case.text("signer_device_id"), "${list.signerDeviceId}")
        }
    }

    @Test
    fun `each list is judged as the vectors say`() {
        for (case in vectors.list("judged")) {
            val previous = case.textOrNull("previous")?.let(::listOf)
            val judged = judgeDeviceList(case.text("user_id").toULong(), previous, listOf(case.text("next")))
            val (verdict, reason) = when (judged) {
                is TakenList -> judged.kind.wireName to null
                is RefusedList -> "refused" to judged.reason.wireName
            }
            assertEquals(case.text("verdict") to case.textOrNull("reason"), verdict to reason, case.text("name"))
        }
    }

    @Test
    fun `a damaged list of before is an error of its keeper, not a verdict on the next list`() {
        val (before, next) = listOf(listOf("first"), listOf("second adds the tablet"))
        val userId = parseDeviceList(next).userId
        val damaged = before.copyOf().also { it[0] = 0 }
        for (previous in listOf(damaged, before.drop(1).toByteArray(), ByteArray(0)))
            assertEquals(MALFORMED, codeOf { judgeDeviceList(userId, previous, next) })
        assertTrue(judgeDeviceList(userId, damaged, next.copyOf().also { it[0] = 0 }) is RefusedList)
    }

    @Test
    fun `with any octet changed, a list is refused`() {
        for (case in vectors.list("judged").take(6)) {
            val octets = listOf(case.text("next"))
            val previous = case.textOrNull("previous")?.let(::listOf)
            for (at in octets.indices) {
                val changed = octets.copyOf()
                changed[at] = (changed[at].toInt() xor (1 + at % 255)).toByte()
                val judged = judgeDeviceList(case.text("user_id").toULong(), previous, changed)
                assertTrue(judged is RefusedList, "octet $at of ${case.text("name")}")
            }
        }
    }

    @Test
    fun `the higher s of a signature becomes the lower one`() {
        val low = listOf("second adds the tablet").takeLast(64).toByteArray()
        val high = vectors.list("judged").first { it.textOrNull("reason") == "high-s" }.hex("next")
        assertArrayEquals(low, withLowS(high.takeLast(64).toByteArray()))
        assertArrayEquals(low, withLowS(low))
    }

    @Test
    fun `the octets to sign are those of the list, and the list has the signature that was made`() = runBlocking {
        val octets = listOf("second adds the tablet")
        val list = parseDeviceList(octets)
        val next = NextDeviceList(
            list.userId,
            list.devices.reversed(),
            list.signerDeviceId,
            list.createdAtMs,
            listOf("first"),
        )
        val signed = signDeviceList(next) { toSign ->
            assertArrayEquals(octets.copyOf(octets.size - 64), toSign)
            list.signature
        }
        assertArrayEquals(octets, signed)
        val strange = NextDeviceList(list.userId, list.devices, 5u, list.createdAtMs, null)
        assertEquals(MALFORMED, codeOf { runBlocking { signDeviceList(strange) { list.signature } } })
    }
}

class CallKeyVectorsTest {
    private val vector = readVectors("call-key-checkpoint")
    private val verifier = parseVerifierKey(vector.text("vkey"))
    private val vrfKey = readVectors("derived-kt-e2e").text("vrf_pk_base64")

    private fun contentOf(
        callKey: ByteArray = vector.hex("call_key_hex"),
        setHash: ByteArray = vector.hex("set_hash_hex"),
        sealedAtMs: Long = 0,
    ) = CallKeyContent(callKey, setHash, sealedAtMs)

    @Test
    fun `key, hash, time and checkpoint come out as the vector has them, and go in again`() {
        val read = readCallKey(vector.hex("opened_hex"), verifier.name)
        val content = read.content
        assertEquals(vector.text("call_key_hex"), toHex(content.callKey))
        assertEquals(vector.text("set_hash_hex"), toHex(content.setHash))
        assertEquals(vector.number("sealed_at_ms"), content.sealedAtMs)
        assertEquals(vector.text("note"), read.note)
        val verdict = verifyCheckpoint(LogKeys.ofVerifierKey(vector.text("vkey"), vrfKey), vector.text("note"))
        val checkpoint = (verdict as VerifiedCheckpoint).checkpoint
        assertEquals(vector.text("opened_hex"), toHex(packCallKey(content, checkpoint)))
        val without = readCallKey(packCallKey(content), verifier.name)
        assertEquals(content.sealedAtMs to null, without.content.sealedAtMs to without.note)
    }

    @Test
    fun `another length, and a time that not all can hold, are refused`() {
        val opened = vector.hex("opened_hex")
        val lengths = opened.indices.map(opened::copyOf) + listOf(opened + 0)
        val taken = lengths.filter { codeOf { readCallKey(it, verifier.name) } != MALFORMED }
        assertEquals(listOf(72), taken.map { it.size })
        val latest = (1L shl 53) - 1
        assertEquals(latest, readCallKey(packCallKey(contentOf(sealedAtMs = latest)), verifier.name).content.sealedAtMs)
        for (octet in listOf(0x20, 0x80)) {
            val late = opened.copyOf().also { it[65] = octet.toByte() }
            assertEquals(MALFORMED, codeOf { readCallKey(late, verifier.name) }, "$octet in the second octet")
            val later = opened.copyOf().also { it[64] = octet.toByte() }
            assertEquals(MALFORMED, codeOf { readCallKey(later, verifier.name) }, "$octet in the first octet")
        }
        val wrong = listOf(
            contentOf(callKey = ByteArray(31)),
            contentOf(setHash = ByteArray(33)),
            contentOf(sealedAtMs = -1),
            contentOf(sealedAtMs = latest + 1),
        )
        for (content in wrong) assertEquals(MALFORMED, codeOf { packCallKey(content) })
    }
}

class SigningMessageVectorsTest {
    private val vectors = readVectors("signing-messages")
    private val key = vectors.hex("signing_key")
    private val signed = listOf("possession", "sign_in", "answer", "step_up").flatMap(vectors::list)

    @Test
    fun `messages have the octets of the vectors`() {
        val possessions = vectors.list("possession").map { possessionMessage(it.hex("challenge")) }
        val signIns = vectors.list("sign_in").map { signInMessage(it.hex("challenge_id")) }
        val answers = vectors.list("answer").map {
            signInAnswerMessage(it.text("user_id").toULong(), it.hex("id"), it.flag("approve"))
        }
        val stepUps = vectors.list("step_up").map { stepUpMessage(it.text("user_id").toULong(), it.hex("proof")) }
        assertEquals(signed.map { it.text("message") }, (possessions + signIns + answers + stepUps).map(::toHex))
    }

    @Test
    fun `a challenge or id of another length is refused`() {
        assertEquals(MALFORMED, codeOf { possessionMessage(ByteArray(31)) })
        assertEquals(MALFORMED, codeOf { signInMessage(ByteArray(17)) })
        assertEquals(MALFORMED, codeOf { signInAnswerMessage(1u, ByteArray(15), true) })
        assertEquals(MALFORMED, codeOf { stepUpMessage(1u, ByteArray(33)) })
    }

    @Test
    fun `each signature holds for its own message alone`() {
        for (case in signed) {
            val taken = signed.filter { p256Verify(key, case.hex("message"), it.hex("signature")) }
            assertEquals(listOf(case), taken)
        }
    }

    @Test
    fun `a signature with an octet changed, in it, its message or its key, is refused`() {
        val case = signed.first()
        val parts = listOf(key, case.hex("message"), case.hex("signature"))
        for ((part, octets) in parts.withIndex()) {
            for (at in octets.indices) {
                val changed = parts.map(ByteArray::copyOf)
                changed[part][at] = (octets[at].toInt() xor 1).toByte()
                assertFalse(p256Verify(changed[0], changed[1], changed[2]), "octet $at of part $part")
            }
        }
        assertFalse(p256Verify(parts[0].copyOf(64), parts[1], parts[2]))
        assertFalse(p256Verify(ByteArray(65), parts[1], parts[2]))
        assertFalse(p256Verify(parts[0], parts[1], ByteArray(64)))
    }
}
