/** JSON objects in the app's storage, and the errors of a storage that fails. */
package callsign.app

import callsign.app.CallsignException.LocalCode
import kotlinx.coroutines.currentCoroutineContext
import kotlinx.coroutines.ensureActive
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive

/** The text under the key, if there is one. Throws `STORAGE_FAILED` where the storage can't be read. */
internal suspend fun AppStorage.readText(key: String): String? =
    guarded("The value \"$key\" could not be read from the storage.") { get(key) }

/** Null takes the text away. Throws `STORAGE_FAILED`, for example where the storage is full. */
internal suspend fun AppStorage.writeText(key: String, text: String?): Unit =
    guarded("The value \"$key\" could not be written to the storage.") { put(key, text) }

/** What [read] makes of the object under the key. Throws `STORAGE_CORRUPT` where there is another text or [read] gives null. */
internal suspend fun <Value : Any> AppStorage.read(key: String, read: (JsonObject) -> Value?): Value? {
    val text = readText(key) ?: return null
    return objectIn(text)?.let(read) ?: throw storageCorrupt(key)
}

internal suspend fun AppStorage.write(key: String, value: JsonObject?): Unit = writeText(key, value?.toString())

internal fun storageCorrupt(key: String, cause: Throwable? = null): CallsignException {
    val sentence = "The stored value \"$key\" is damaged. Remove it to start without it."
    return CallsignException(LocalCode.STORAGE_CORRUPT, sentence, cause, members = keyMember(key))
}

internal fun keyMember(key: String) = JsonObject(mapOf("key" to JsonPrimitive(key)))

private suspend fun <Value> guarded(sentence: String, act: suspend () -> Value): Value = try {
    act()
} catch (error: CallsignException) {
    throw error
} catch (cause: Exception) {
    // A time-out of the storage's own is a failure like any other.
    currentCoroutineContext().ensureActive()
    throw CallsignException(LocalCode.STORAGE_FAILED, sentence, cause)
}
