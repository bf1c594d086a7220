/** Pushes that Apple and Google can't read (docs/build/push.md), and the key that this device opens them with. */
package callsign.app

import callsign.verify.LogException
import callsign.verify.decodeBase64
import callsign.verify.encodeBase64
import java.nio.charset.CharacterCodingException
import java.security.GeneralSecurityException
import java.security.SecureRandom
import javax.crypto.Cipher
import javax.crypto.Mac
import javax.crypto.spec.GCMParameterSpec
import javax.crypto.spec.SecretKeySpec
import kotlinx.serialization.json.JsonNull
import kotlinx.serialization.json.JsonPrimitive

/** The key of the user's pushes on this device, base64 as the server has it; null where none was made. */
internal suspend fun pushKeyOf(storage: AppStorage, userId: ULong): String? =
    storage.read(storedName(userId)) { kept -> kept.text("pushKey")?.takeIf { octetsIn(it)?.size == KEY_OCTETS } }

/** Likewise, made where there is none: kept before any server has it. */
internal suspend fun makePushKey(storage: AppStorage, userId: ULong): String {
    pushKeyOf(storage, userId)?.let { return it }
    val pushKey = encodeBase64(ByteArray(KEY_OCTETS).also(SecureRandom()::nextBytes))
    storage.write(storedName(userId), bodyOf(mapOf("pushKey" to pushKey)))
    return pushKey
}

/** The members in a push, as texts. Null for one that was not sealed with the key for this device. */
internal fun openPush(pushKey: String, deviceId: ULong, sealed: String): Map<String, String>? {
    val octets = octetsIn(sealed)?.takeIf { it.size >= NONCE_OCTETS + GCM_TAG_OCTETS } ?: return null
    val hmac = Mac.getInstance("HmacSHA256").apply { init(SecretKeySpec(decodeBase64(pushKey), "HmacSHA256")) }
    val cipher = Cipher.getInstance("AES/GCM/NoPadding").apply {
        val key = SecretKeySpec(hmac.doFinal(PURPOSE.toByteArray()), "AES")
        init(Cipher.DECRYPT_MODE, key, GCMParameterSpec(8 * GCM_TAG_OCTETS, octets, 0, NONCE_OCTETS))
        updateAAD("$PURPOSE\n$deviceId".toByteArray())
    }
    val text = try {
        val padded = cipher.doFinal(octets, NONCE_OCTETS, octets.size - NONCE_OCTETS)
        padded.decodeToString(0, padded.indexOfLast { it != ZERO } + 1, throwOnInvalidSequence = true)
    } catch (_: GeneralSecurityException) {
        return null
    } catch (_: CharacterCodingException) {
        return null
    }
    val members = objectIn(text) ?: return null
    return members.filterValues { it is JsonPrimitive && it != JsonNull }.mapValues { (_, value) -> (value as JsonPrimitive).content }
}

private fun octetsIn(base64: String): ByteArray? = try {
    decodeBase64(base64)
} catch (_: LogException) {
    null
}

private fun storedName(userId: ULong) = "push-key.$userId"

private const val PURPOSE = "callsign sealed push v1"
private const val ZERO: Byte = 0
private const val KEY_OCTETS = 32
private const val NONCE_OCTETS = 12
private const val GCM_TAG_OCTETS = 16
