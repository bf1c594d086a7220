/** Hashes, and integers as octets. */
package callsign.verify

import java.math.BigInteger
import java.nio.ByteBuffer
import java.nio.charset.CharacterCodingException
import java.security.MessageDigest

/** SHA-256 of the parts, one after the other: 32 octets. */
internal fun sha256(vararg parts: ByteArray): ByteArray = digest("SHA-256", parts)

/** SHA-512 of the parts, one after the other: 64 octets. */
internal fun sha512(vararg parts: ByteArray): ByteArray = digest("SHA-512", parts)

private fun digest(algorithm: String, parts: Array<out ByteArray>): ByteArray {
    val digest = MessageDigest.getInstance(algorithm)
    parts.forEach(digest::update)
    return digest.digest()
}

/** Throws `MALFORMED` for octets that are not UTF-8. */
internal fun decodeUtf8(octets: ByteArray): String = try {
    Charsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(octets)).toString()
} catch (cause: CharacterCodingException) {
    throw LogException(LogErrorCode.MALFORMED, "text is not UTF-8", cause)
}

/** The octets themselves. Throws `MALFORMED` unless there are [length] of them. */
internal fun ofLength(octets: ByteArray, length: Int): ByteArray {
    if (octets.size != length) throw malformed("${octets.size} octets where $length belong")
    return octets
}

/** The big-endian uint32 in the first four octets. */
internal fun uint32At(octets: ByteArray): UInt = ByteBuffer.wrap(octets).getInt().toUInt()

/** The big-endian uint16 from [at] on. */
internal fun uint16At(octets: ByteArray, at: Int): Int = ByteBuffer.wrap(octets).getShort(at).toInt() and 0xffff

internal fun octetsOf(value: UInt): ByteArray = ByteBuffer.allocate(4).putInt(value.toInt()).array()

/** The big-endian uint64 from [at] on. */
internal fun uint64At(octets: ByteArray, at: Int): ULong = ByteBuffer.wrap(octets).getLong(at).toULong()

/** The octets as an unsigned big-endian number. */
internal fun unsignedOf(octets: ByteArray): BigInteger = BigInteger(1, octets)

/** The octets as an unsigned little-endian number. */
internal fun unsignedOfLittleEndian(octets: ByteArray): BigInteger = BigInteger(1, octets.reversedArray())

/** The uint64 that a decimal text without sign or leading zeros spells; null for any other text. */
internal fun uint64OrNull(text: String): ULong? = if (UINT64.matches(text)) text.toULongOrNull() else null

private val UINT64 = Regex("0|[1-9][0-9]{0,19}")
