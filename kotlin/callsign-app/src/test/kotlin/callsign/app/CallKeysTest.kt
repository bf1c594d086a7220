/** Device keys and sealed call keys, by the values of docs/check/crypto.md and the vectors. */
package callsign.app

import callsign.verify.CallKeyContent
import callsign.verify.decodeBase64
import callsign.verify.encodeBase64
import callsign.verify.isSigningKey
import callsign.verify.packCallKey
import callsign.verify.readCallKey
import java.io.File
import java.math.BigInteger
import java.security.GeneralSecurityException
import java.security.InvalidKeyException
import java.security.KeyFactory
import java.security.KeyPair
import java.security.Signature
import java.security.interfaces.ECPublicKey
import java.security.spec.ECPoint
import java.security.spec.ECPrivateKeySpec
import java.security.spec.ECPublicKeySpec
import kotlinx.coroutines.runBlocking
import org.junit.jupiter.api.Assertions.assertArrayEquals
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertFalse
import org.junit.jupiter.api.Assertions.assertNotEquals
import org.junit.jupiter.api.Assertions.assertThrows
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test

private val page = File(projectRoot, "docs/check/crypto.md").readText()

private fun valueIn(row: String): String =
    checkNotNull(Regex("^\\| $row.*`([^`]+)` \\|$", RegexOption.MULTILINE).find(page)).groupValues[1]

/** A pair with this private scalar, in hexadecimal, and this point. */
internal fun pairOf(scalar: String, point: ByteArray): KeyPair {
    val parameters = (newPair().public as ECPublicKey).params
    val (x, y) = listOf(1, 33).map { BigInteger(1, point.copyOfRange(it, it + 32)) }
    val factory = KeyFactory.getInstance("EC")
    return KeyPair(
        factory.generatePublic(ECPublicKeySpec(ECPoint(x, y), parameters)),
        factory.generatePrivate(ECPrivateKeySpec(BigInteger(scalar, 16), parameters)),
    )
}

internal fun codeOf(act: suspend () -> Unit): String? = try {
    runBlocking { act() }
    null
} catch (error: CallsignException) {
    error.code
}

class CallKeysTest {
    private fun documented(userId: ULong, deviceId: ULong, row: String): OwnKeyHolder {
        val publicKey = page.substringAfter(valueIn(row)).substringAfter("public key | `").substringBefore('`')
        return OwnKeyHolder(userId, deviceId, JcaDeviceKeys(pairOf(valueIn(row), decodeBase64(publicKey)), newPair()))
    }

    private val ann = documented(1u, 11u, "sender \\| `1_11`")
    private val bob = documented(2u, 22u, "receiver \\| `2_22`")

    @Test
    fun `the values of the page come out`() {
        val opened = runBlocking { openCallKey(valueIn("sealed"), ann.holder, bob, binding) }
        val content = readCallKey(opened, origin = "log.example/kt").content
        assertArrayEquals(fromHex(valueIn("call key")), content.callKey)
        assertEquals(valueIn("time"), "${content.sealedAtMs}")
        assertEquals(valueIn("digits"), fingerprintOf(content.callKey, content.setHash, binding))
        // On the page they are registered as points.
        val registered = listOf(ann, bob).map {
            KeyHolder.of(it.holder.userId, it.holder.deviceId, encodeBase64((it.holder.key as HolderKey.P256).point))
        }
        val set = valueIn("set of both devices")
        assertEquals(set, keyMembersOf(registered))
        assertArrayEquals(hashOfSet(set), content.setHash)
        assertEquals(valueIn("its hash"), toHex(content.setHash))
    }

    @Test
    fun `a sealed key opens at its receiver, with its checkpoint`() = runBlocking {
        val content = packCallKey(CallKeyContent(makeCallKey(), ByteArray(32), 0))
        val sealed = sealCallKey(content, ann, bob.holder, binding)
        assertEquals(154, decodeBase64(sealed).size)
        assertArrayEquals(content, openCallKey(sealed, ann.holder, bob, binding))
        assertNotEquals(sealed, sealCallKey(content, ann, bob.holder, binding))

        val vector = readVectors("call-key-checkpoint")
        fun text(name: String) = vector.word(name)
        assertArrayEquals(fromHex(text("opened_hex")), openCallKey(text("sealed_base64"), ann.holder, bob, binding))
        val noted = sealCallKey(fromHex(text("opened_hex")), ann, bob.holder, binding)
        assertEquals(262, decodeBase64(noted).size)
        val read = readCallKey(openCallKey(noted, ann.holder, bob, binding), text("note").substringBefore('\n'))
        assertArrayEquals(fromHex(text("call_key_hex")), read.content.callKey)
        assertArrayEquals(fromHex(text("set_hash_hex")), read.content.setHash)
        assertEquals(text("note"), read.note)
    }

    @Test
    fun `a key is opened by the device it was sealed for, as coming from the one that sealed it`() {
        val eve = OwnKeyHolder(3u, 33u, JcaDeviceKeys.generate())
        val sealed = runBlocking { sealCallKey(makeCallKey(), ann, bob.holder, binding) }
        val octets = decodeBase64(sealed)
        fun opening(
            text: String = sealed,
            from: KeyHolder = ann.holder,
            to: OwnKeyHolder = bob,
            use: KeyBinding = binding,
        ): suspend () -> Unit = { openCallKey(text, from, to, use) }
        fun withEnc(enc: ByteArray) = encodeBase64(octets.copyOf(1) + enc + octets.drop(66))
        val off = octets.copyOfRange(1, 66).also { it[64] = (it[64].toInt() xor 1).toByte() }
        val wrong = mapOf(
            "for another call" to opening(use = KeyBinding("7", 1)),
            "for another epoch" to opening(use = KeyBinding(binding.callId, 2)),
            "for an ask" to opening(use = KeyBinding(binding.callId, 1, ByteArray(16).also { it[15] = 1 })),
            "for a call without an id" to opening(use = KeyBinding("", 1)),
            "for the call with another spelling" to opening(use = KeyBinding("0${binding.callId}", 1)),
            "for the call with a sign" to opening(use = KeyBinding("+${binding.callId}", 1)),
            "for an epoch with the same four octets" to opening(use = KeyBinding(binding.callId, (1L shl 32) + 1)),
            "from another device" to opening(from = eve.holder),
            "for another device" to opening(to = eve),
            "for another user" to opening(to = OwnKeyHolder(3u, 22u, bob.keys)),
            "for another device's name" to opening(to = OwnKeyHolder(2u, 3u, bob.keys)),
            "from another user" to opening(from = KeyHolder.of(2u, 11u, ann.keys.publicKey)),
            "from another device's name" to opening(from = KeyHolder.of(1u, 2u, ann.keys.publicKey)),
            "to its own sender" to opening(to = ann),
            "of form 1" to opening(encodeBase64(byteArrayOf(1) + octets.drop(1))),
            "of form 1, which had no number" to opening(encodeBase64(octets.copyOfRange(1, octets.size))),
            "by a point off the curve" to opening(withEnc(off)),
            "by zeros for a point" to opening(withEnc(ByteArray(65))),
            "by infinity for a point" to opening(withEnc(ByteArray(1))),
            "from a sender off the curve" to opening(from = KeyHolder.of(1u, 11u, encodeBase64(off))),
            "an octet longer" to opening(encodeBase64(octets + 0)),
            "no base64" to opening("?"),
            "empty" to opening(""),
        )
        for ((what, open) in wrong) assertEquals("CALL_KEY_INVALID", codeOf(open), what)
        for (bit in 0 until 8 * octets.size) {
            val changed = octets.copyOf().also { it[bit / 8] = (it[bit / 8].toInt() xor (1 shl bit % 8)).toByte() }
            assertEquals("CALL_KEY_INVALID", codeOf(opening(encodeBase64(changed))), "bit $bit")
        }
        for (length in octets.indices)
            assertEquals("CALL_KEY_INVALID", codeOf(opening(encodeBase64(octets.copyOf(length)))), "$length octets")
    }

    @Test
    fun `the answer to an ask opens with the nonce of the ask alone`() = runBlocking {
        val content = makeCallKey()
        val nonces = listOf(ByteArray(16) { it.toByte() }, ByteArray(16) { 1 }, null)
        fun use(nonce: ByteArray?) = KeyBinding(binding.callId, binding.epoch, nonce)
        val sealed = sealCallKey(content, ann, bob.holder, use(nonces[0]))
        assertArrayEquals(content, openCallKey(sealed, ann.holder, bob, use(nonces[0])))
        for (nonce in nonces.drop(1))
            assertEquals("CALL_KEY_INVALID", codeOf { openCallKey(sealed, ann.holder, bob, use(nonce)) })
    }

    @Test
    fun `digits are of key, set, call and epoch`() {
        fun digits(key: Int = 0, hash: Int = 0, callId: String = "1", epoch: Long = 1) =
            fingerprintOf(ByteArray(32) { key.toByte() }, ByteArray(32) { hash.toByte() }, KeyBinding(callId, epoch))
        val all = setOf(digits(), digits(key = 1), digits(hash = 1), digits(callId = "2"), digits(epoch = 2))
        assertEquals(5, all.size)
        for (each in all) assertTrue(Regex("([0-9]{5} ){5}[0-9]{5}").matches(each), each)
        for (epoch in listOf(0L, 65_536L, -1L))
            assertThrows(GeneralSecurityException::class.java, { digits(epoch = epoch) }, "epoch $epoch")
    }

    @Test
    fun `a receiver without a point of P-256 is sealed for by none`() {
        for (publicKey in listOf("", "?", "AAAA"))
            assertEquals("KEY_UNSUPPORTED", codeOf { KeyHolder.of(1u, 2u, publicKey) }, publicKey)
        val untouched = object : DeviceKeys by ann.keys {
            override suspend fun agree(point: ByteArray): ByteArray = error("the key was used")
        }
        val off = decodeBase64(bob.keys.publicKey).also { it[it.size - 1] = (it[it.size - 1].toInt() xor 1).toByte() }
        for (point in listOf(off, ByteArray(65), ByteArray(65).also { it[0] = 4 })) {
            val strange = KeyHolder.of(2u, 22u, encodeBase64(point))
            val sealing = suspend { sealCallKey(makeCallKey(), OwnKeyHolder(1u, 11u, untouched), strange, binding) }
            assertEquals("KEY_UNSUPPORTED", codeOf { sealing() }, toHex(point))
        }
    }
}

class DeviceKeysTest {
    private val keys = JcaDeviceKeys.generate()

    @Test
    fun `two devices agree on a secret, and on none with a point off the curve`() = runBlocking {
        val other = JcaDeviceKeys.generate()
        fun pointIn(of: DeviceKeys) = decodeBase64(of.publicKey).takeLast(POINT_OCTETS).toByteArray()
        assertEquals(91, decodeBase64(keys.publicKey).size)
        assertArrayEquals(keys.agree(pointIn(other)), other.agree(pointIn(keys)))
        val off = pointIn(other).also { it[64] = (it[64].toInt() xor 1).toByte() }
        for (point in listOf(off, ByteArray(65), ByteArray(0), off.copyOf(64)))
            assertThrows(InvalidKeyException::class.java) { runBlocking { keys.agree(point) } }
    }

    @Test
    fun `signatures are r and s, and verify`() = runBlocking {
        val message = "message".toByteArray()
        assertTrue(isSigningKey(decodeBase64(keys.signingKey)))
        val signed = mutableSetOf<String>()
        repeat(200) {
            val signature = keys.sign(message)
            assertEquals(64, signature.size)
            signed += encodeBase64(signature)
            assertTrue(verifies(signature, message))
        }
        assertEquals(200, signed.size)
        assertFalse(verifies(keys.sign("another".toByteArray()), message))
    }

    @Test
    fun `keys come back from what was exported, and from nothing else`() = runBlocking {
        val exported = checkNotNull(keys.export())
        val again = JcaDeviceKeys.import(exported)
        assertEquals(keys.publicKey to keys.signingKey, again.publicKey to again.signingKey)
        assertTrue(verifies(again.sign("message".toByteArray()), "message".toByteArray()))
        val (agreement, signing, privateAgreement, privateSigning) = exported.split(' ')
        val wrong = listOf(
            "",
            "?",
            "AAAA AAAA AAAA AAAA",
            exported.substringBeforeLast(' '),
            "$agreement $signing $privateSigning $privateAgreement",
            "$signing $signing $privateAgreement $privateSigning",
        )
        for (text in wrong) assertEquals("STORAGE_CORRUPT", codeOf { JcaDeviceKeys.import(text) }, text.take(20))
    }

    private fun verifies(signature: ByteArray, message: ByteArray): Boolean {
        val point = decodeBase64(keys.signingKey)
        val parameters = (newPair().public as ECPublicKey).params
        val (x, y) = listOf(1, 33).map { BigInteger(1, point.copyOfRange(it, it + 32)) }
        val publicKey = KeyFactory.getInstance("EC").generatePublic(ECPublicKeySpec(ECPoint(x, y), parameters))
        return Signature.getInstance("SHA256withECDSAinP1363Format").run {
            initVerify(publicKey)
            update(message)
            verify(signature)
        }
    }
}
