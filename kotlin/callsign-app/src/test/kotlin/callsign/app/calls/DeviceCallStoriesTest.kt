package callsign.app.calls

import callsign.app.CallsignException
import callsign.app.hasCode
import callsign.app.needText
import callsign.app.objects
import callsign.app.text
import kotlinx.serialization.json.JsonArray
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.DynamicTest
import org.junit.jupiter.api.DynamicTest.dynamicTest
import org.junit.jupiter.api.TestFactory

/** The calls of a device by the stories that `@callsign/sdk/app` plays too. */
class DeviceCallStoriesTest {
    private val stories = readStories()

    @TestFactory
    fun `the acts of each story are as listed, and it ends where a person can leave`(): List<DynamicTest> =
        stories.all.map { story -> dynamicTest(story.needText("name")) { play(story, ::decide) } }

    /** As `test/support/device-bugs.ts` has them. */
    @TestFactory
    fun `a mistake made on purpose is told by a story`(): List<DynamicTest> = MISTAKES.map { (name, mistake) ->
        dynamicTest(name) { assertTrue(stories.all.any { isTold(it, mistake) }) }
    }

    private fun isTold(story: JsonObject, mistake: Decide): Boolean = try {
        play(story, mistake)
        false
    } catch (_: AssertionError) {
        true
    } catch (_: IllegalStateException) {
        // An act that the story goes on with is missing.
        true
    }

    private fun play(story: JsonObject, decide: Decide) {
        val player = StoryPlayer(stories, decide)
        story.text("given")?.let(player::begin)
        for ((at, step) in story.objects("steps").withIndex()) {
            val listed = step["acts"] ?: JsonArray(emptyList())
            assertEquals(listed, JsonArray(player.play(step)), "step $at: ${step["in"]}")
        }
        assertEquals(story["calls"], JsonArray(player.calls.map(::JsonPrimitive)))
        assertEquals(story["next"], JsonPrimitive(player.nextMs))
        player.leaveAll()
        assertEquals("calls [], next null, not answered once [], keys []", player.rest)
    }

    private companion object {
        val MISTAKES: List<Pair<String, Decide>> = listOf(
            "a moved call kept" to unheard("call_moved"),
            "an answer elsewhere overlooked" to unheard("call_answered_elsewhere"),
            "a new key overlooked" to unheard("key_update"),
            "asks for the key not heard" to unheard("participant_request_rejoin"),
            "a topic that is not heard" to { before, input, nowMs ->
                if (input is Input.Topic) Decision(before, emptyList()) else decide(before, input, nowMs)
            },
            "a wrong epoch" to acts { _, act -> listOf(if (isRequest(act, "keys")) withEpoch0(act as Act.Request) else act) },
            "a leave that is not sent" to acts { _, act -> if (isRequest(act, "leave")) emptyList() else listOf(act) },
            "nothing is kept" to acts { _, act -> listOf(act).filter { it !is Act.Keep } },
            "a key that is wiped too soon" to acts { _, act ->
                val key = ((act as? Act.Emit)?.news as? News.Key)?.key?.key
                if (key == null) listOf(act) else listOf(act, Act.Wipe(listOf(key)))
            },
            "keys that are never wiped" to acts { _, act -> listOf(act).filter { it !is Act.Wipe } },
            "a message settled twice" to acts { input, act ->
                if (act is Act.Settle && isQueued(input, "call_cancelled")) listOf(act, act) else listOf(act)
            },
            "a message never settled" to acts { input, act ->
                if (act is Act.Settle && isQueued(input, "call_missed")) emptyList() else listOf(act)
            },
            "a ring without an end" to changed {
                val phase = it.phase
                if (phase is Phase.RingingIn) it.copy(phase = Phase.RingingIn(phase.rings.copy(untilMs = Long.MAX_VALUE))) else it
            },
            "an ask that is not repeated" to changed {
                val phase = it.phase
                if (phase is Phase.Asking && phase.ask is Ask.Pausing) it.copy(phase = phase.asking(Ask.Returning)) else it
            },
            "the call of the other of two overlooked" to { before, input, nowMs ->
                val isCrossed = input is Input.Failed && input.failure.hasCode("CALL_CROSSED")
                decide(before, if (isCrossed) Input.Failed(input.act, CallsignException("CALL_NOT_FOUND", "")) else input, nowMs)
            },
            "a connection that is not told" to acts { input, act ->
                if (input is Input.Connected && act is Act.Request) emptyList() else listOf(act)
            },
        )

        /** The message is settled, and does nothing. */
        fun unheard(type: String): Decide = { before, input, nowMs ->
            if (isQueued(input, type)) Decision(before, listOf(Act.Settle((input as Input.Queue).command, null, null)))
            else decide(before, input, nowMs)
        }

        fun acts(become: (Input, Act) -> List<Act>): Decide = { before, input, nowMs ->
            val (device, acts) = decide(before, input, nowMs)
            Decision(device, acts.flatMap { become(input, it) })
        }

        fun changed(become: (DeviceCall) -> DeviceCall): Decide = { before, input, nowMs ->
            val (device, acts) = decide(before, input, nowMs)
            Decision(device.copy(calls = device.calls.map(become)), acts)
        }

        fun isQueued(input: Input, type: String) = input is Input.Queue && input.event.text("type") == type

        fun isRequest(act: Act, name: String) = act is Act.Request && act.path.endsWith("/$name")

        fun withEpoch0(act: Act.Request) =
            act.copy(body = JsonObject(checkNotNull(act.body) + ("epoch" to JsonPrimitive(0))))
    }
}
