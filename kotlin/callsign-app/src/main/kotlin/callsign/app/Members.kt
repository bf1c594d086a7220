/** The server's JSON, read member by member. A member that is missing, or of another form, is `ANSWER_INVALID`. */
package callsign.app

import java.time.Instant
import java.time.format.DateTimeParseException
import java.util.Base64
import kotlinx.serialization.SerializationException
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.JsonArray
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive
import kotlinx.serialization.json.contentOrNull

/** The text of a member, of a number too: some operators' servers send ids as numbers. */
internal fun JsonObject.text(name: String): String? = (this[name] as? JsonPrimitive)?.contentOrNull

internal fun JsonObject.number(name: String): Long? = text(name)?.toLongOrNull()

internal fun JsonObject.flag(name: String): Boolean = text(name) == "true"

internal fun JsonObject.needText(name: String): String = text(name) ?: throw answerInvalid()

internal fun JsonObject.needNumber(name: String): Long = number(name) ?: throw answerInvalid()

internal fun JsonObject.needId(name: String): ULong = needText(name).toULongOrNull() ?: throw answerInvalid()

internal fun JsonObject.member(name: String): JsonObject = this[name] as? JsonObject ?: throw answerInvalid()

internal fun JsonObject.members(name: String): List<JsonObject> =
    (this[name] as? JsonArray)?.map { it as? JsonObject ?: throw answerInvalid() } ?: throw answerInvalid()

/** The whole numbers of a list; none where there is no list. */
internal fun JsonObject.numbers(name: String): List<Long> =
    (this[name] as? JsonArray).orEmpty().mapNotNull { (it as? JsonPrimitive)?.contentOrNull?.toLongOrNull() }

internal fun JsonObject.texts(name: String): List<String> =
    (this[name] as? JsonArray)?.map { (it as? JsonPrimitive)?.contentOrNull ?: throw answerInvalid() } ?: throw answerInvalid()

/** Null where there is no such member. */
internal fun JsonObject.textsOrNull(name: String): List<String>? = if (name in this) texts(name) else null

/** POSIX time in milliseconds of a time as RFC 3339 writes it. */
internal fun JsonObject.needTimeMs(name: String): Long = timeMsOf(needText(name))

internal fun timeMsOf(text: String): Long = try {
    Instant.parse(text).toEpochMilli()
} catch (cause: DateTimeParseException) {
    throw answerInvalid(cause)
} catch (cause: ArithmeticException) {
    throw answerInvalid(cause)
}

/** A duration in milliseconds, of a number of seconds. One that is too long for sums with the time is cut. */
internal fun JsonObject.needDurationMs(name: String): Long {
    val seconds = text(name)?.toDoubleOrNull() ?: throw answerInvalid()
    return (1_000 * seconds.coerceIn(0.0, DURATION_S_MAX)).toLong()
}

private const val DURATION_S_MAX = 1e9

/** Null for a text that is no JSON object. */
internal fun objectIn(text: String): JsonObject? = try {
    Json.parseToJsonElement(text) as? JsonObject
} catch (_: SerializationException) {
    null
}

/** The member of an enumeration that the server names in small letters; null for one that this version does not know. */
internal inline fun <reified Name : Enum<Name>> namedOrNull(text: String?): Name? =
    enumValues<Name>().find { it.name.equals(text, ignoreCase = true) }

/** The sixteen octets of a session's, a challenge's or a waiting sign-in's id, which is base64url; null for another text. */
internal fun octetsOfId(id: String): ByteArray? = try {
    Base64.getUrlDecoder().decode(id).takeIf { it.size == ID_OCTETS }
} catch (_: IllegalArgumentException) {
    null
}

private const val ID_OCTETS = 16

internal fun idsOf(userIds: Collection<ULong>): JsonElement = JsonArray(userIds.map { JsonPrimitive("$it") })
