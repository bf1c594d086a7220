/**
 * Base64 as every line of the log uses it: RFC 4648 section 4, padded, canonical, and nothing else. A root hash or key
 * with a second spelling would split readers who compare text.
 */
package callsign.verify

import java.util.Base64

/** The canonical base64 of [bytes]. */
public fun encodeBase64(bytes: ByteArray): String = Base64.getEncoder().encodeToString(bytes)

/** The bytes of a base64 text. Throws `MALFORMED` unless the text is canonical. */
public fun decodeBase64(text: String): ByteArray =
    decodedOrNull(text) ?: throw malformed("text is not canonical base64")

/** Whether [decodeBase64] would take the text. The empty text is canonical: it stands for no bytes. */
internal fun isCanonicalBase64(text: String): Boolean = decodedOrNull(text) != null

/** The platform's decoder takes texts without padding and with unused bits set: those are not written back alike. */
private fun decodedOrNull(text: String): ByteArray? {
    val bytes = try {
        Base64.getDecoder().decode(text)
    } catch (_: IllegalArgumentException) {
        return null
    }
    return bytes.takeIf { encodeBase64(it) == text }
}
