/** Call keys for RSA-2048 devices: sealed here, and opened with the platform's provider alone. */
package callsign.app

import callsign.verify.decodeBase64
import callsign.verify.encodeBase64
import java.math.BigInteger
import java.nio.ByteBuffer
import java.security.GeneralSecurityException
import java.security.KeyFactory
import java.security.KeyPairGenerator
import java.security.PrivateKey
import java.security.Signature
import java.security.spec.MGF1ParameterSpec
import java.security.spec.PKCS8EncodedKeySpec
import java.security.spec.X509EncodedKeySpec
import javax.crypto.Cipher
import javax.crypto.Mac
import javax.crypto.spec.GCMParameterSpec
import javax.crypto.spec.OAEPParameterSpec
import javax.crypto.spec.PSource
import javax.crypto.spec.SecretKeySpec
import kotlinx.coroutines.runBlocking
import org.junit.jupiter.api.Assertions.assertArrayEquals
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertNotNull
import org.junit.jupiter.api.Assertions.assertNull
import org.junit.jupiter.api.Assertions.assertThrows
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test

class RsaSealTest {
    private val ann = OwnKeyHolder(1u, 11u, JcaDeviceKeys.generate())
    private val pair = KeyPairGenerator.getInstance("RSA").apply { initialize(2048) }.generateKeyPair()
    private val spki = pair.public.encoded
    private val info = infoOf(binding.epoch.toInt())

    @Test
    fun `an RSA device opens what is sealed for it, in either encoding of its key`() {
        val content = ByteArray(180) { 7 }
        for (publicKey in listOf(spki, spki.copyOfRange(24, spki.size))) {
            val sealed = sealedFor(publicKey, content)
            assertEquals(1 + 256 + 180 + 16 + 64, decodeBase64(sealed).size)
            val opened = openForRsa(decodeBase64(sealed), pair.private, publicKey, info, decodeBase64(ann.keys.signingKey))
            assertArrayEquals(content, opened)
        }
    }

    @Test
    fun `it opens for no other use, and with no bit changed`() {
        val sealed = decodeBase64(sealedFor(spki, makeCallKey()))
        fun opening(octets: ByteArray = sealed, info: ByteArray = this.info, key: String = ann.keys.signingKey) {
            openForRsa(octets, pair.private, spki, info, decodeBase64(key))
        }
        opening()
        assertThrows(GeneralSecurityException::class.java) { opening(info = infoOf(epoch = 2)) }
        assertThrows(GeneralSecurityException::class.java) { opening(key = JcaDeviceKeys.generate().signingKey) }
        for (at in listOf(0, 1, 256, 257, sealed.size - 81, sealed.size - 65)) {
            val changed = sealed.copyOf().also { it[at] = (it[at].toInt() xor 1).toByte() }
            assertThrows(GeneralSecurityException::class.java, { opening(changed) }, "octet $at")
        }
    }

    @Test
    fun `signatures have the lower s`() = repeat(16) {
        val signature = decodeBase64(sealedFor(spki, makeCallKey())).takeLast(32).toByteArray()
        assertTrue(BigInteger(1, signature) <= P256_ORDER.shiftRight(1))
    }

    @Test
    fun `a device of P-256 refuses the form, and an RSA device seals nothing`() {
        val bob = OwnKeyHolder(2u, 22u, JcaDeviceKeys.generate())
        val sealed = sealedFor(spki, makeCallKey())
        assertEquals("CALL_KEY_INVALID", codeOf { openCallKey(sealed, ann.holder, bob, binding) })
        val rsaKeys = object : DeviceKeys by ann.keys {
            override val publicKey = encodeBase64(spki)
        }
        val own = OwnKeyHolder(3u, 33u, rsaKeys)
        for (to in listOf(ann.holder, KeyHolder.of(2u, 22u, encodeBase64(spki))))
            assertEquals("KEY_UNSUPPORTED", codeOf { sealCallKey(makeCallKey(), own, to, binding) })
    }

    @Test
    fun `a key that is nearly one of RSA-2048 is none`() {
        assertNotNull(rsaSpkiOf(spki))
        val exponent3 = spki.copyOf().also { it[it.size - 1] = 3 }
        val nearly = listOf(exponent3, spki.copyOfRange(1, spki.size), spki.copyOf(spki.size - 1), ByteArray(270), ByteArray(0))
        for (octets in nearly) assertNull(rsaSpkiOf(octets))
    }

    @Test
    fun `what the TypeScript has sealed opens`() {
        val vector = readVectors("call-key-rsa")
        fun octets(name: String) = decodeBase64(vector.word("${name}_base64"))
        val privateKey = KeyFactory.getInstance("RSA").generatePrivate(PKCS8EncodedKeySpec(octets("private_key_pkcs8")))
        assertArrayEquals(fromHex(vector.word("info_hex")), info)
        val opened = openForRsa(octets("sealed"), privateKey, octets("public_key"), info, octets("signing_key"))
        assertEquals(vector.word("opened_hex"), toHex(opened))
    }

    private fun sealedFor(publicKey: ByteArray, content: ByteArray): String =
        runBlocking { sealCallKey(content, ann, KeyHolder.of(2u, 22u, encodeBase64(publicKey)), binding) }

    /** The `info` of docs/check/crypto.md, from 1_11 to 2_22. */
    private fun infoOf(epoch: Int): ByteArray {
        val info = ByteBuffer.allocate(81).put("callsign call key v2\n".toByteArray())
        info.putLong(binding.callId.toLong()).putInt(epoch)
        for (id in listOf(1L, 11L, 2L, 22L)) info.putLong(id)
        return info.array()
    }

    private fun openForRsa(
        octets: ByteArray,
        privateKey: PrivateKey,
        publicKey: ByteArray,
        info: ByteArray,
        signingKey: ByteArray,
    ): ByteArray {
        val sealed = octets.copyOf(octets.size - 64)
        if (octets[0] != 3.toByte()) throw GeneralSecurityException("another form")
        val prefix = decodeBase64("MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgA=")
        val verifier = Signature.getInstance("SHA256withECDSAinP1363Format")
        verifier.initVerify(KeyFactory.getInstance("EC").generatePublic(X509EncodedKeySpec(prefix + signingKey)))
        verifier.update("callsign call key rsa signature v2\n".toByteArray() + info + sealed)
        if (!verifier.verify(octets.copyOfRange(sealed.size, octets.size))) throw GeneralSecurityException("not signed")

        val oaep = Cipher.getInstance("RSA/ECB/OAEPPadding")
        val padding = OAEPParameterSpec("SHA-256", "MGF1", MGF1ParameterSpec.SHA256, PSource.PSpecified.DEFAULT)
        oaep.init(Cipher.DECRYPT_MODE, privateKey, padding)
        val secret = oaep.doFinal(sealed, 1, 256)
        val use = "callsign call key rsa v2\n".toByteArray() + info + sha256(publicKey) + signingKey
        // HKDF (RFC 5869) without salt, two blocks.
        val pseudorandom = hmac(ByteArray(32), secret)
        val first = hmac(pseudorandom, use + 1)
        val derived = first + hmac(pseudorandom, first + use + 2)
        val gcm = Cipher.getInstance("AES/GCM/NoPadding")
        gcm.init(Cipher.DECRYPT_MODE, SecretKeySpec(derived.copyOf(32), "AES"), GCMParameterSpec(128, derived.copyOfRange(32, 44)))
        return gcm.doFinal(sealed, 257, sealed.size - 257)
    }

    private fun hmac(key: ByteArray, data: ByteArray): ByteArray =
        Mac.getInstance("HmacSHA256").apply { init(SecretKeySpec(key, "HmacSHA256")) }.doFinal(data)

    private companion object {
        val P256_ORDER = BigInteger("ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551", 16)
    }
}
