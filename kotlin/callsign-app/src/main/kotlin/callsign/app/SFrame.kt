/**
 * SFrame (RFC 9605) with cipher suite 5, AES_256_GCM_SHA512_128: headers, keys, and one frame sealed or opened.
 * [FrameCryptor] decides which keys and counters are used.
 */
package callsign.app

import java.math.BigInteger
import java.nio.ByteBuffer
import javax.crypto.Cipher
import javax.crypto.spec.GCMParameterSpec
import javax.crypto.spec.SecretKeySpec

/** [size] is the number of the header's octets. */
internal class SFrameHeader(val kid: ULong, val counter: ULong, val size: Int)

/** The key of 32 octets and the salt of 12 of one KID. */
internal class SFrameKey private constructor(private val key: ByteArray, val salt: ByteArray) {
    /** Gives header, ciphertext and tag (section 4.4.3). A KID and counter may be used once only. */
    fun seal(kid: ULong, counter: ULong, metadata: ByteArray, plain: ByteArray): ByteArray {
        val header = formatSFrameHeader(kid, counter)
        return header + cipher(Cipher.ENCRYPT_MODE, counter, header + metadata).doFinal(plain)
    }

    /**
     * Opens ciphertext and tag behind the octets of [header] (section 4.4.4). Throws `GeneralSecurityException` unless all of it is
     * authentic.
     */
    fun open(counter: ULong, header: ByteArray, metadata: ByteArray, sealed: ByteArray): ByteArray =
        cipher(Cipher.DECRYPT_MODE, counter, header + metadata).doFinal(sealed)

    private fun cipher(mode: Int, counter: ULong, authenticated: ByteArray): Cipher {
        val nonce = ByteBuffer.allocate(NONCE_OCTETS).putInt(0).putLong(counter.toLong()).array()
        for (at in nonce.indices) nonce[at] = (nonce[at].toInt() xor salt[at].toInt()).toByte()
        return Cipher.getInstance("AES/GCM/NoPadding").apply {
            init(mode, SecretKeySpec(key, "AES"), GCMParameterSpec(8 * TAG_OCTETS, nonce))
            updateAAD(authenticated)
        }
    }

    companion object {
        /** Section 4.4.2. */
        fun derive(baseKey: ByteArray, kid: ULong): SFrameKey {
            fun derived(purpose: String, size: Int): ByteArray {
                val label = "SFrame 1.0 Secret $purpose ".toByteArray()
                val info = ByteBuffer.allocate(label.size + 10).put(label).putLong(kid.toLong()).putShort(SUITE)
                return hkdf("HmacSHA512", baseKey, info.array(), size)
            }
            return SFrameKey(derived("key", KEY_OCTETS), derived("salt", NONCE_OCTETS))
        }
    }
}

/** Section 4.3: values below 8 are in the first octet, larger ones follow it in as few octets as they need. */
internal fun formatSFrameHeader(kid: ULong, counter: ULong): ByteArray {
    val kidOctets = minimal(kid)
    val counterOctets = minimal(counter)
    val config = (fieldOf(kid, kidOctets) shl 4) or fieldOf(counter, counterOctets)
    var header = byteArrayOf(config.toByte())
    if (kid >= 8u) header += kidOctets
    if (counter >= 8u) header += counterOctets
    return header
}

/** Null when the octets end within the header. */
internal fun parseSFrameHeader(octets: ByteArray): SFrameHeader? {
    if (octets.isEmpty()) return null
    var size = 1
    fun read(field: Int): ULong {
        if (field < 8) return field.toULong()
        val from = size
        size += (field and 7) + 1
        return (from until minOf(size, octets.size)).fold(0uL) { sum, at -> (sum shl 8) or octets[at].toUByte().toULong() }
    }
    val config = octets[0].toInt() and 0xff
    val kid = read(config shr 4)
    val counter = read(config and 15)
    return if (size <= octets.size) SFrameHeader(kid, counter, size) else null
}

private fun fieldOf(value: ULong, octets: ByteArray): Int = if (value < 8u) value.toInt() else 8 or (octets.size - 1)

/** Big-endian, without leading zeros; one octet at least. */
private fun minimal(value: ULong): ByteArray {
    val octets = BigInteger("$value").toByteArray()
    return if (octets.size > 1 && octets[0].toInt() == 0) octets.copyOfRange(1, octets.size) else octets
}

internal const val TAG_OCTETS: Int = 16
private const val KEY_OCTETS = 32
private const val NONCE_OCTETS = 12
private const val SUITE: Short = 5
