package callsign.app

import javax.crypto.Mac
import javax.crypto.spec.SecretKeySpec

/** HKDF (RFC 5869) by [hmac], such as `HmacSHA256`, without salt. */
internal fun hkdf(hmac: String, secret: ByteArray, info: ByteArray, length: Int): ByteArray =
    hkdfExpand(hmac, hkdfExtract(hmac, ByteArray(0), secret), info, length)

/** HKDF-Extract (2.2). An empty [salt] stands for zeros. */
internal fun hkdfExtract(hmac: String, salt: ByteArray, secret: ByteArray): ByteArray {
    val mac = Mac.getInstance(hmac)
    mac.init(SecretKeySpec(if (salt.isEmpty()) ByteArray(mac.macLength) else salt, hmac))
    return mac.doFinal(secret)
}

/** HKDF-Expand (2.3). */
internal fun hkdfExpand(hmac: String, pseudorandom: ByteArray, info: ByteArray, length: Int): ByteArray {
    val mac = Mac.getInstance(hmac).apply { init(SecretKeySpec(pseudorandom, hmac)) }
    var block = ByteArray(0)
    var octets = ByteArray(0)
    var counter: Byte = 1
    while (octets.size < length) {
        block = mac.doFinal(block + info + counter++)
        octets += block
    }
    return octets.copyOf(length)
}
