/** Plays the stories of `test/vectors/device-calls.jsonl`, whose first line says how one is read. */
package callsign.app.calls

import callsign.app.CallsignException
import callsign.app.DeclineReason
import callsign.app.KeyAsk
import callsign.app.KeyBinding
import callsign.app.endingOf
import callsign.app.flag
import callsign.app.namedOrNull
import callsign.app.needId
import callsign.app.needNumber
import callsign.app.needText
import callsign.app.number
import callsign.app.objects
import callsign.app.projectRoot
import callsign.app.text
import java.io.File
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.JsonArray
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive
import kotlinx.serialization.json.jsonArray
import kotlinx.serialization.json.jsonObject
import kotlinx.serialization.json.jsonPrimitive

internal class Stories(lines: List<JsonObject>) {
    val me: JsonObject = lines.first { "me" in it }.getValue("me").jsonObject
    val all = lines.filter { "name" in it }
    val situations = lines.filter { "situation" in it }.associateBy { it.needText("situation") }
}

internal fun readStories(): Stories {
    val values = HashMap<String, JsonObject>()
    val lines = File(projectRoot, "test/vectors/device-calls.jsonl").readLines().map { line ->
        val said = expanded(Json.parseToJsonElement(line), values).jsonObject
        said.text("value")?.let { values[it] = said.getValue("is").jsonObject }
        said
    }
    return Stories(lines)
}

/** `like` names a value, and the members beside it take the place of its own. */
private fun expanded(said: JsonElement, values: Map<String, JsonObject>): JsonElement = when (said) {
    is JsonArray -> JsonArray(said.map { expanded(it, values) })
    is JsonObject -> {
        val like = said.text("like")?.let { values.getValue(it) }.orEmpty()
        JsonObject(like + said.filterKeys { it != "like" }.mapValues { expanded(it.value, values) })
    }
    else -> said
}

internal typealias Decide = (before: Device, input: Input, nowMs: Long) -> Decision

internal class StoryPlayer(private val stories: Stories, private val decide: Decide = ::decide) {
    private class Unanswered(val act: Int, val name: String, val key: Int?)

    private var device = Device(stories.me.needId("userId"), stories.me.needId("deviceId"))
    private var nowMs = 0L

    /** Acts without an outcome so far, the oldest first. */
    private val unanswered = ArrayList<Unanswered>()

    /** How often each command was answered. */
    private val answers = LinkedHashMap<String, Int>()

    /** Keys that the shell has, by their number in the machine. */
    private val octets = LinkedHashSet<Int>()
    private val keys = ArrayList<Int>()
    private val commands = ArrayList<String>()

    /** Plays a situation, whose acts no story looks at. */
    fun begin(situation: String) {
        val given = stories.situations.getValue(situation)
        given.text("given")?.let(::begin)
        given.objects("steps").forEach(::play)
    }

    /** Gives the acts, told. */
    fun play(step: JsonObject): List<JsonElement> {
        nowMs = step.number("at") ?: nowMs
        return play(inputOf(step.getValue("in").jsonObject))
    }

    private fun play(input: Input): List<JsonElement> {
        val decision = decide(device, input, nowMs)
        device = decision.device
        return decision.acts.map(::told)
    }

    /** Each with its state; an ended one is gone with the next input. */
    val calls: List<String> get() = device.calls.map { "${it.callId} ${stateIn(it.phase)}" }

    val nextMs: Long? get() = nextDeadlineMs(device)

    /** Left after a story, when nothing should be. */
    val rest: String get() {
        val notAnsweredOnce = answers.filterValues { it != 1 }.keys
        return "calls $calls, next $nextMs, not answered once $notAnsweredOnce, keys $octets"
    }

    /** A person gives up all that goes on, and no request is answered any more: nothing is left, and nothing waits. */
    fun leaveAll() {
        for (call in device.calls)
            if (call.phase is Phase.RingingIn) play(Input.Decline(commanded("decline"), call.callId, DeclineReason.DECLINED))
            else if (call.isPresent) play(Input.Leave(commanded("leave"), call.callId))
        play(Input.Close(endingOf("left")))
        play(Input.Time)
        repeat(100) {
            val last = unanswered.removeLastOrNull() ?: return
            play(Input.Failed(last.act, CallsignException("OFFLINE", "")))
        }
    }

    private fun inputOf(said: JsonObject): Input {
        val on = said.needText("on")
        fun callId() = said.needText("callId")
        fun command() = commanded(on)
        return when (on) {
            "start" -> {
                val options = said.getValue("options").jsonObject
                Input.StartCall(command(), callId(), idsIn(said), StartOptions(options.flag("isVideo"), options.number("roomId")))
            }
            "join" -> Input.Join(command(), callId())
            "answer" -> Input.Answer(command(), callId())
            "decline" -> Input.Decline(command(), callId(), checkNotNull(namedOrNull<DeclineReason>(said.text("reason"))))
            "end" -> Input.End(command(), callId())
            "leave" -> Input.Leave(command(), callId())
            "invite" -> Input.SendInvite(command(), callId(), idsIn(said))
            "remove" -> Input.Remove(command(), callId(), said.needId("userId"))
            "renew" -> Input.Renew(command(), callId())
            "resend" -> Input.Resend(command(), callId())
            "ask" -> Input.AskForKey(command(), callId(), said.text("userId")?.toULong())
            "grant" -> Input.Grant(command(), callId(), askIn(said.getValue("ask").jsonObject))
            "close" -> Input.Close(endingOf(said.text("reason")))
            "invited" -> Input.Invited(invitationOf(said.getValue("invitation").jsonObject))
            "cancelled" -> Input.Cancelled(callId(), endingOf(said.text("reason")))
            "queue" -> {
                val event = said.getValue("event").jsonObject
                Input.Queue(commanded(event.needText("type")), event)
            }
            "topic" -> Input.Topic(callId(), said.getValue("event").jsonObject)
            "done" -> doneOf(said)
            "failed" -> Input.Failed(answered(said).act, failureIn(said.getValue("failure").jsonObject))
            "time" -> Input.Time
            "restarted" -> Input.Restarted(keptIn(said))
            "connected" -> Input.Connected(command(), said.needNumber("connection"), keptIn(said))
            "disconnected" -> Input.Disconnected
            "clock" -> Input.SetClock(Clock(said.needNumber("aheadMs"), said.flag("isKnown")))
            else -> error("no input is named $on")
        }
    }

    private fun doneOf(said: JsonObject): Input.Done {
        val answered = answered(said)
        val opened = said.number("key")?.let { keys[it.toInt() - 1] } ?: answered.key
        opened?.let(octets::add)
        val nothing = JsonObject(emptyMap())
        return Input.Done(
            answered.act,
            body = said["body"] as? JsonObject ?: nothing,
            key = opened,
            from = (said["from"] as? JsonObject)?.let { Sender(it.needId("userId"), it.needId("deviceId")) },
            texts = said["texts"] as? JsonObject ?: nothing,
            text = said.text("text"),
        )
    }

    private fun answered(said: JsonObject): Unanswered {
        val at = unanswered.indexOfLast { it.name.startsWith(said.needText("of")) }
        check(at >= 0) { "nothing unanswered begins with ${said["of"]}" }
        return unanswered.removeAt(at)
    }

    private fun commanded(name: String): Int {
        val count = commands.count { it.substringBefore(' ') == name }
        commands += if (count == 0) name else "$name ${count + 1}"
        answers[commands.last()] = 0
        return commands.size
    }

    private fun told(act: Act): JsonElement {
        val name = nameOf(act)
        if (act is Act.Answered) unanswered += Unanswered(act.act, name, (act as? Act.Open)?.key)
        if (act is Act.Make) octets += act.key
        if (act is Act.Wipe) octets -= act.keys.toSet()
        val body = (act as? Act.Request)?.body
        return if (body == null) JsonPrimitive(name) else JsonObject(mapOf(name to body))
    }

    private fun nameOf(act: Act): String = when (act) {
        is Act.Request -> "${act.method} ${act.path}"
        is Act.Send -> "SEND ${act.destination}"
        is Act.Watch -> "watch ${act.callId}"
        is Act.Unwatch -> "unwatch ${act.callId}"
        is Act.Open -> {
            val from = act.from.joinToString(" ") { "${it.userId}_${it.deviceId}" }
            "open ${act.text}${nameOf(act.binding)} from $from as key ${keyOf(act.key)}"
        }
        is Act.Make -> "make key ${keyOf(act.key)}"
        is Act.Seal -> "seal key ${keyOf(act.key)}${nameOf(act.binding)} for ${nameOf(act.receivers)}"
        is Act.Wipe -> "wipe key ${act.keys.joinToString(" ") { "${keyOf(it)}" }}"
        is Act.Keep -> {
            val leaving = act.kept.leaving.joinToString(" ").takeIf(String::isNotEmpty)
            val parts = listOfNotNull(act.kept.callId?.let { "call $it" }, leaving?.let { "leaving $it" })
            "keep ${parts.joinToString().ifEmpty { "nothing" }}"
        }
        is Act.Settle -> {
            val name = commands[act.command - 1]
            answers[name] = answers.getValue(name) + 1
            listOfNotNull("settle $name", act.callId?.let { "call $it" }, act.error?.code).joinToString(": ")
        }
        is Act.Emit -> "${act.callId}: ${nameOf(act.news)}"
    }

    private fun nameOf(binding: KeyBinding) = " of call ${binding.callId}, epoch ${binding.epoch},"

    private fun nameOf(receivers: Receivers): String = when (receivers) {
        is Receivers.Users -> "users ${receivers.userIds.joinToString(" ")}"
        is Receivers.Participants ->
            "participants ${receivers.participants.joinToString { "${it.userId} ${it.state.name.lowercase()}" }}"
        is Receivers.Asker -> "device ${receivers.ask.userId}_${receivers.ask.deviceId}"
    }

    private fun nameOf(news: News): String = when (news) {
        News.Ringing -> "ringing"
        News.Resumed -> "resumed"
        is News.State -> "state ${news.state.name.lowercase()}"
        is News.Key -> "key ${keyOf(news.key.key)} of epoch ${news.key.epoch} from ${news.key.fromUserId}"
        is News.Sending -> "sends with key ${keyOf(news.key.key)}"
        is News.Participant -> "participant ${news.participant.userId} ${news.participant.state.name.lowercase()}"
        is News.Media -> "media ${news.gateway.state}"
        is News.KeyAsked -> "key-asked ${news.ask.userId}_${news.ask.deviceId}"
        is News.Failed -> "error ${news.failure.code}"
    }

    /** Keys are numbered as they first appear. */
    private fun keyOf(key: Int): Int {
        if (key !in keys) keys += key
        return keys.indexOf(key) + 1
    }
}

private fun stateIn(phase: Phase): String = when (phase) {
    is Phase.RingingIn -> "ringing in"
    Phase.RingingOut -> "ringing out"
    is Phase.Entering -> phase.step.name.lowercase()
    Phase.Active -> "active"
    is Phase.Rejoining -> "rejoining"
    is Phase.Keyless -> "keyless"
    is Phase.Ended -> "ended"
}

private fun idsIn(said: JsonObject): List<ULong> =
    said.getValue("userIds").jsonArray.map { it.jsonPrimitive.content.toULong() }

private fun keptIn(said: JsonObject): Kept {
    val kept = said.getValue("kept").jsonObject
    return Kept(kept.text("callId"), (kept["leaving"] as? JsonArray).orEmpty().map { it.jsonPrimitive.content })
}

private fun askIn(said: JsonObject) =
    KeyAsk(said.needId("userId"), said.needId("deviceId"), said.text("displayName").orEmpty(), said.needText("publicKeyHash"))

private fun failureIn(said: JsonObject): CallsignException {
    val members = said["members"] as? JsonObject ?: JsonObject(emptyMap())
    return CallsignException(said.needText("code"), said.text("message").orEmpty(), members = members)
}
