package callsign.app

import javax.crypto.Mac
import javax.crypto.spec.SecretKeySpec

/** HKDF (RFC 5869) by [hmac], such as `HmacSHA256`, without salt, which stands for zeros. */
internal fun hkdf(hmac: String, secret: ByteArray, info: ByteArray, length: Int): ByteArray {
    val mac = Mac.getInstance(hmac)
    fun authenticated(key: ByteArray, message: ByteArray): ByteArray {
        mac.init(SecretKeySpec(key, hmac))
        return mac.doFinal(message)
    }
    val pseudorandom = authenticated(ByteArray(mac.macLength), secret)
    var block = ByteArray(0)
    var octets = ByteArray(0)
    var counter: Byte = 1
    while (octets.size < length) {
        block = authenticated(pseudorandom, block + info + counter++)
        octets += block
    }
    return octets.copyOf(length)
}
