/** Reads `test/vectors`, which every implementation of this project is tested by. */
package callsign.verify

import java.io.File
import java.util.Base64
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.JsonArray
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonNull
import kotlinx.serialization.json.boolean
import kotlinx.serialization.json.int
import kotlinx.serialization.json.jsonArray
import kotlinx.serialization.json.jsonObject
import kotlinx.serialization.json.jsonPrimitive
import kotlinx.serialization.json.long

/** The folder that holds `package.json`: the nearest above the working directory. */
val projectRoot: File =
    generateSequence(File("").absoluteFile, File::getParentFile).first { File(it, "test/vectors").isDirectory }

fun readVectors(name: String): JsonElement =
    Json.parseToJsonElement(File(projectRoot, "test/vectors/$name.json").readText())

operator fun JsonElement.get(name: String): JsonElement = jsonObject.getValue(name)

fun JsonElement.find(name: String): JsonElement? = jsonObject[name]?.takeIf { it !is JsonNull }

fun JsonElement.list(name: String): List<JsonElement> = (find(name) as JsonArray?).orEmpty()

fun JsonElement.text(name: String): String = get(name).jsonPrimitive.content

fun JsonElement.textOrNull(name: String): String? = find(name)?.jsonPrimitive?.content

fun JsonElement.number(name: String): Long = get(name).jsonPrimitive.long

fun JsonElement.small(name: String): Int = get(name).jsonPrimitive.int

fun JsonElement.flag(name: String): Boolean = get(name).jsonPrimitive.boolean

fun JsonElement.hex(name: String): ByteArray = fromHex(text(name))

fun JsonElement.base64(name: String): ByteArray = fromBase64(text(name))

fun JsonElement.texts(name: String): List<String> = get(name).jsonArray.map { it.jsonPrimitive.content }

fun fromHex(hex: String): ByteArray = hex.chunked(2).map { it.toInt(16).toByte() }.toByteArray()

fun toHex(octets: ByteArray): String = octets.joinToString("") { "%02x".format(it) }

/** The platform's decoder, not the one under test. */
fun fromBase64(text: String): ByteArray = Base64.getDecoder().decode(text)

fun toBase64(octets: ByteArray): String = Base64.getEncoder().encodeToString(octets)

/** The code that [act] fails with; null where it does not fail. */
fun codeOf(act: () -> Unit): LogErrorCode? = try {
    act()
    null
} catch (error: LogException) {
    error.code
}
