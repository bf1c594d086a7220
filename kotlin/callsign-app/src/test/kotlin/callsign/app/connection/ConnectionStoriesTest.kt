package callsign.app.connection

import callsign.app.projectRoot
import callsign.app.text
import java.io.File
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive
import kotlinx.serialization.json.contentOrNull
import kotlinx.serialization.json.jsonArray
import kotlinx.serialization.json.jsonPrimitive
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test

class ConnectionStoriesTest {
    private val lines = storyLines(File(projectRoot, "test/vectors/device-connection.jsonl").readText())
    private val situations = lines.filter { "situation" in it }.associateBy { checkNotNull(it.text("situation")) }
    private val stories = lines.filter { "name" in it && isPlayed(it) }

    @Test
    fun `the acts of each story are as listed, and it ends where a person can leave`() {
        val failed = stories.mapNotNull { story ->
            try {
                play(story)
                null
            } catch (error: Throwable) {
                "${story.text("name")}: ${error.message}"
            }
        }
        assertEquals(emptyList<String>(), failed)
        assertTrue(stories.size > 100)
    }

    private fun play(story: JsonObject) {
        val player = StoryPlayer(situations)
        player.begin(story)
        for (step in story.steps()) {
            val acts = player.play(step)
            assertEquals(step["acts"]?.jsonArray.orEmpty().map { it.jsonPrimitive.content }, acts, "${step["in"]}")
        }
        val next = (story["next"] as? JsonPrimitive)?.contentOrNull?.toLong()
        assertEquals(listOf(story.text("phase"), next), listOf(player.phase, player.nextMs))
        assertEquals(emptyList<Any>(), player.leave())
    }

    /** Kotlin has no tabs. */
    private fun isPlayed(line: JsonObject): Boolean {
        val only = line["only"]?.jsonArray ?: return true
        return only.any { it.jsonPrimitive.content == "kotlin" }
    }
}
