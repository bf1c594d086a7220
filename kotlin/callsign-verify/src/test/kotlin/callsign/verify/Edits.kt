/** The edits of a corpus, as `test/support/verdict-edits.ts` defines them. */
package callsign.verify

import kotlinx.serialization.json.JsonArray
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive
import kotlinx.serialization.json.int
import kotlinx.serialization.json.jsonArray
import kotlinx.serialization.json.jsonPrimitive

fun edited(value: JsonElement, edits: List<JsonElement>): JsonElement = edits.fold(value) { now, edit ->
    changedAt(now, edit["at"].jsonArray) { changed(it, edit) } ?: error("the whole value is taken out")
}

/** Replaces the value at the path; null takes it out. */
private fun changedAt(
    value: JsonElement?,
    path: List<JsonElement>,
    change: (JsonElement?) -> JsonElement?,
): JsonElement? {
    val step = path.firstOrNull()?.jsonPrimitive ?: return change(value)
    val rest = path.drop(1)
    if (value is JsonArray) {
        val at = step.int
        val changed = changedAt(value.getOrNull(at), rest, change)
        return JsonArray(value.take(at) + listOfNotNull(changed) + value.drop(at + 1))
    }
    val members = value as JsonObject
    val changed = changedAt(members[step.content], rest, change)
    return JsonObject(if (changed == null) members - step.content else members + (step.content to changed))
}

private fun changed(value: JsonElement?, edit: JsonElement): JsonElement? {
    val members = edit as JsonObject
    if ("unset" in members) return null
    members["set"]?.let { return it }
    val (from, removed, inserted) = edit.list("cut").map(JsonElement::jsonPrimitive)
    val text = checkNotNull(value).jsonPrimitive.content
    val start = minOf(from.int, text.length)
    val end = minOf(start + removed.int, text.length)
    return JsonPrimitive(text.substring(0, start) + inserted.content + text.substring(end))
}
