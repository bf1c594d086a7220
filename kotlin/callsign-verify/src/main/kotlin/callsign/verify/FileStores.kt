/** Stores of one file for each log or contact, in a folder that the app keeps for them. */
package callsign.verify

import java.io.File
import kotlinx.serialization.json.JsonArray
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive
import kotlinx.serialization.json.buildJsonObject

/**
 * Keeps checkpoints in [folder], which it makes. A crash or power cut leaves the old state or the new one. `get` throws
 * `MALFORMED` for a damaged file. Exclude the folder from backups: it belongs to this installation.
 */
public class FileCheckpointStore(folder: File) : CheckpointStore {
    private val files = JsonFiles(folder)

    override suspend fun get(origin: String): KeptCheckpoint? = files.read(origin)?.let(::keptCheckpointOf)

    override suspend fun put(kept: KeptCheckpoint): Unit = files.write(kept.checkpoint.origin, jsonOf(kept))
}

/** Keeps what is known of contacts in [folder], as [FileCheckpointStore] keeps checkpoints. */
public class FileKnownUserStore(folder: File) : KnownUserStore {
    private val files = JsonFiles(folder)

    override suspend fun get(userId: String): KnownUser? = files.read(userId)?.let(::knownUserOf)

    override suspend fun put(known: KnownUser): Unit = files.write(known.userId, jsonOf(known))
}

/** A text for a store of the app's own. */
public fun formatKeptCheckpoint(kept: KeptCheckpoint): String = jsonOf(kept).toString()

/** Reads what [formatKeptCheckpoint] gave. Throws `MALFORMED` for another text. */
public fun parseKeptCheckpoint(text: String): KeptCheckpoint = keptCheckpointOf(objectIn(text))

/** A text for a store of the app's own. */
public fun formatKnownUser(known: KnownUser): String = jsonOf(known).toString()

/** Reads what [formatKnownUser] gave. Throws `MALFORMED` for another text. */
public fun parseKnownUser(text: String): KnownUser = knownUserOf(objectIn(text))

private fun objectIn(text: String): JsonObject = parseJson(text) as? JsonObject ?: throw damaged()

private fun keptCheckpointOf(members: JsonObject): KeptCheckpoint {
    val checkpoint = SignedCheckpoint(
        members.text("origin"),
        members.number("treeSize"),
        members.text("rootHash"),
        members.text("note"),
    )
    val pending = members.list("pending").map { textOf(it) ?: throw damaged() }
    return KeptCheckpoint(checkpoint, pending, members["openSinceMs"]?.let { members.number("openSinceMs") })
}

private fun jsonOf(kept: KeptCheckpoint): JsonObject = buildJsonObject {
    put("origin", JsonPrimitive(kept.checkpoint.origin))
    put("treeSize", JsonPrimitive(kept.checkpoint.treeSize))
    put("rootHash", JsonPrimitive(kept.checkpoint.rootHash))
    put("note", JsonPrimitive(kept.checkpoint.note))
    put("pending", JsonArray(kept.pending.map(::JsonPrimitive)))
    kept.openSinceMs?.let { put("openSinceMs", JsonPrimitive(it)) }
}

private fun knownUserOf(members: JsonObject) = KnownUser(
    members.text("userId"),
    members.list("devices").map { (it as? JsonObject ?: throw damaged()).toKnownDevice() },
    (members["list"] as? JsonObject)?.toKnownList(),
    members.list("events").map { (it as? JsonObject ?: throw damaged()).toEvent() },
    members["question"]?.let { (it as? JsonObject ?: throw damaged()).toQuestion() },
)

private fun jsonOf(known: KnownUser): JsonObject = buildJsonObject {
    put("userId", JsonPrimitive(known.userId))
    put("devices", JsonArray(known.devices.map(::jsonOf)))
    known.list?.let { put("list", jsonOf(it)) }
    put("events", JsonArray(known.events.map(::jsonOf)))
    known.question?.let { put("question", jsonOf(it)) }
}

private fun jsonOf(question: KeyQuestion): JsonObject = buildJsonObject {
    put("kind", JsonPrimitive(question.kind.wireName))
    put("listHash", JsonPrimitive(question.listHash))
}

private fun jsonOf(device: KnownDevice): JsonObject = buildJsonObject {
    put("deviceId", JsonPrimitive(device.deviceId))
    put("keyHash", JsonPrimitive(device.keyHash))
}

private fun jsonOf(list: KnownList): JsonObject = buildJsonObject {
    put("list", JsonPrimitive(list.list))
    put("vrfHash", JsonPrimitive(list.vrfHash))
    put("index", JsonPrimitive(list.index))
    put("sinceIndex", JsonPrimitive(list.sinceIndex))
    put("sinceSeq", JsonPrimitive(list.sinceSeq))
}

private fun jsonOf(event: DeviceEvent): JsonObject = buildJsonObject {
    put("kind", JsonPrimitive(event.kind.wireName))
    event.deviceId?.let { put("deviceId", JsonPrimitive(it)) }
}

private fun JsonObject.toQuestion(): KeyQuestion {
    val kind = text("kind")
    return KeyQuestion(KeyQuestion.Kind.entries.find { it.wireName == kind } ?: throw damaged(), text("listHash"))
}

private fun JsonObject.toKnownDevice() = KnownDevice(text("deviceId"), text("keyHash"))

private fun JsonObject.toKnownList() =
    KnownList(text("list"), text("vrfHash"), number("index"), number("sinceIndex"), number("sinceSeq"))

private fun JsonObject.toEvent(): DeviceEvent {
    val kind = text("kind")
    val known = DeviceEvent.Kind.entries.find { it.wireName == kind } ?: throw damaged()
    return DeviceEvent(known, textOf(this["deviceId"]))
}

/** One JSON file for each name. */
private class JsonFiles(folder: File) {
    private val files = AtomicFiles(folder)

    suspend fun read(name: String): JsonObject? {
        val octets = files.read(fileOf(name)) ?: return null
        return objectIn(String(octets))
    }

    suspend fun write(name: String, members: JsonObject) = files.write(fileOf(name), members.toString().toByteArray())

    /** Origins hold characters that no file name can. */
    private fun fileOf(name: String): String =
        sha256(name.toByteArray()).joinToString("") { "%02x".format(it) } + ".json"
}

private fun JsonObject.text(name: String): String = textOf(this[name]) ?: throw damaged()

private fun JsonObject.number(name: String): Long =
    (this[name] as? JsonPrimitive)?.content?.toLongOrNull() ?: throw damaged()

private fun JsonObject.list(name: String): List<JsonElement> = this[name] as? JsonArray ?: throw damaged()

private fun damaged(): LogException = malformed("a file of the store is damaged")
