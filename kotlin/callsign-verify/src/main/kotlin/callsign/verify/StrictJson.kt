/** JSON of a stranger (RFC 8259). The library takes words without quotation marks, and any depth. */
package callsign.verify

import kotlinx.serialization.SerializationException
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.JsonArray
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive

/** The value; null for a text that is not JSON, or nested in more than 32 levels. */
internal fun parseJson(text: String): JsonElement? {
    if (depthOf(text) > DEPTH_MAX) return null
    return try {
        Json.parseToJsonElement(text).takeIf(::isStrict)
    } catch (_: SerializationException) {
        null
    }
}

private fun isStrict(element: JsonElement): Boolean = when (element) {
    is JsonObject -> element.values.all(::isStrict)
    is JsonArray -> element.all(::isStrict)
    is JsonPrimitive -> element.isString || WORD.matches(element.content)
}

private fun depthOf(text: String): Int {
    var depth = 0
    var deepest = 0
    var isInString = false
    var isEscaped = false
    for (character in text) {
        if (isInString) {
            isInString = isEscaped || character != '"'
            isEscaped = !isEscaped && character == '\\'
            continue
        }
        when (character) {
            '"' -> isInString = true
            '[', '{' -> deepest = maxOf(deepest, ++depth)
            ']', '}' -> depth--
        }
    }
    return deepest
}

/** No answer of a log has more than four. */
private const val DEPTH_MAX = 32
private val WORD = Regex("true|false|null|-?(0|[1-9][0-9]*)([.][0-9]+)?([eE][-+]?[0-9]+)?")
