/** Reads `test/vectors`, which every implementation of this project is tested by. */
package callsign.app

import java.io.File
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.jsonArray
import kotlinx.serialization.json.jsonObject

/** The folder that holds `package.json`: the nearest above the working directory. */
val projectRoot: File =
    generateSequence(File("").absoluteFile, File::getParentFile).first { File(it, "test/vectors").isDirectory }

fun readVectors(name: String): JsonObject =
    Json.parseToJsonElement(File(projectRoot, "test/vectors/$name.json").readText()).jsonObject

fun JsonObject.objects(name: String): List<JsonObject> = getValue(name).jsonArray.map { it.jsonObject }

fun JsonObject.word(name: String): String = checkNotNull(text(name)) { "no $name" }

fun fromHex(hex: String): ByteArray = hex.chunked(2).map { it.toInt(16).toByte() }.toByteArray()

fun toHex(octets: ByteArray): String = octets.joinToString("") { "%02x".format(it) }

/** The use of the sealed keys in docs/check/crypto.md. */
val binding = KeyBinding("6117204471893025", 1)
