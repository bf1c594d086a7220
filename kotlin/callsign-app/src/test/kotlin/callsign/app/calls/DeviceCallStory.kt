/** Plays the stories of `test/vectors/device-calls.jsonl`, whose first line says how one is read. */
package callsign.app.calls

import callsign.app.CallsignException
import callsign.app.DeclineReason
import callsign.app.CallParticipant
import callsign.app.KeyAsk
import callsign.app.ParticipantState
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
import callsign.app.textsOrNull
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
    /** [members] are the devices that its key is for, where the story names none. */
    private class Unanswered(val act: Int, val name: String, val key: Int?, val members: List<String>)

    private var device = Device(stories.me.needId("userId"), stories.me.needId("deviceId"))
    private var nowMs = 0L

    /** Acts without an outcome so far, the oldest first. */
    private val unanswered = ArrayList<Unanswered>()

    /** How often each command was answered. */
    private val answers = LinkedHashMap<String, Int>()

    /** Keys that the shell has, by their number in the machine. */
    private val octets = LinkedHashSet<Int>()
    private val keys = ArrayList<Int>()
    private val nonces = ArrayList<Int>()
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

    /** Each with its state, those whom it does not reach, and its room and caller where the story names them; an ended one is gone with the next input. */
    val calls: List<String> get() = device.calls.map { call ->
        val people = call.record?.participants.orEmpty().mapNotNull { unreachableIn(call, it) }
        val without = people.joinToString("") { " without ${it.userId}${if (it.hasUnapprovedDevice) ", unapproved" else ""}" }
        val room = call.record?.roomId?.let { " in room $it" }.orEmpty()
        val caller = call.caller.isContact?.let { isKnown -> " by ${call.caller.name}${if (isKnown) "" else ", a stranger"}" }
        "${call.callId} ${stateIn(call.phase)}$without$room${caller.orEmpty()}"
    }

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
            "answer" -> Input.Answer(command(), callId(), said.flag("evenIfOld"))
            "accept-device" -> Input.AcceptDevice(command(), callId(), said.needText("name"))
            "decline" -> Input.Decline(command(), callId(), checkNotNull(namedOrNull<DeclineReason>(said.text("reason"))))
            "end" -> Input.End(command(), callId())
            "leave" -> Input.Leave(command(), callId())
            "invite" -> Input.SendInvite(command(), callId(), idsIn(said))
            "remove" -> Input.Remove(command(), callId(), said.needId("userId"))
            "renew" -> Input.Renew(command(), callId())
            "resend" -> Input.Resend(command(), callId())
            "use" -> Input.UseKey(command(), callId(), checkNotNull(said.number("epoch")))
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
            "restarted" -> Input.Restarted(keptBefore(said))
            "connected" -> Input.Connected(command(), said.needNumber("connection"), keptBefore(said))
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
        // The text of a set is the names in it.
        val members = (said.textsOrNull("members") ?: answered.members).distinct().sorted()
        return Input.Done(
            answered.act,
            body = said["body"] as? JsonObject ?: nothing,
            key = opened,
            from = (said["from"] as? JsonObject)?.let { Sender(it.needId("userId"), it.needId("deviceId")) },
            texts = said["texts"] as? JsonObject ?: nothing,
            text = said.text("text"),
            set = KeySet(said.text("keyMembers") ?: members.joinToString(" "), members),
            without = said.textsOrNull("without").orEmpty(),
            unlisted = said.textsOrNull("unlisted").orEmpty(),
            sealedAgoMs = said.number("sealedAgoMs") ?: 0,
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
        if (act is Act.Answered) unanswered += Unanswered(act.act, name, (act as? Act.Open)?.key, membersFor(act))
        if (act is Act.Make) octets += act.key
        if (act is Act.Wipe) octets -= act.keys.toSet()
        val body = (act as? Act.Request)?.body ?: (act as? Act.Send)?.body?.takeIf { it.isNotEmpty() }
        return if (body == null) JsonPrimitive(name) else JsonObject(mapOf(name to body))
    }

    private fun nameOf(act: Act): String = when (act) {
        is Act.Request -> "${act.method} ${act.path}" + act.nonce?.let { " with nonce ${nonceOf(it)}" }.orEmpty()
        is Act.Send -> "SEND ${act.destination}"
        is Act.Watch -> "watch ${act.callId}"
        is Act.Unwatch -> "unwatch ${act.callId}"
        is Act.Open -> {
            val from = act.from.joinToString(" ") { "${it.userId}_${it.deviceId}" }
            val (sets, change) = act.hints
            val changed = change?.let { " changed by +${it.added} -${it.removed.joinToString(" -")}" }.orEmpty()
            val set = if (sets.isEmpty()) "" else ", set ${sets.joinToString(" or ")}$changed"
            val asked = act.nonce?.let { ", nonce ${nonceOf(it)}" }.orEmpty()
            "open ${act.text}${nameOf(act.use)} from $from as key ${keyOf(act.key)}$set$asked"
        }
        is Act.Make -> "make key ${keyOf(act.key)}"
        is Act.Seal -> {
            val asked = act.nonce?.let { ", nonce $it" }.orEmpty()
            "seal key ${keyOf(act.key)}${nameOf(act.use)} for ${nameOf(act.receivers)}$asked"
        }
        is Act.Wipe -> "wipe key ${act.keys.joinToString(" ") { "${keyOf(it)}" }}"
        is Act.Keep -> {
            val leaving = act.kept.leaving.joinToString(" ").takeIf(String::isNotEmpty)
            val opened = act.kept.opened.joinToString(" and ", transform = ::nameOf).takeIf(String::isNotEmpty)
            val parts = listOfNotNull(
                act.kept.callId?.let { "call $it" },
                leaving?.let { "leaving $it" },
                opened?.let { "opened $it" },
                act.kept.accepted.joinToString(" ").takeIf(String::isNotEmpty)?.let { "accepted $it" },
            )
            "keep ${parts.joinToString().ifEmpty { "nothing" }}"
        }
        is Act.Settle -> {
            val name = commands[act.command - 1]
            answers[name] = answers.getValue(name) + 1
            listOfNotNull("settle $name", act.callId?.let { "call $it" }, act.error?.code).joinToString(": ")
        }
        is Act.Emit -> "${act.callId}: ${nameOf(act.news)}"
    }

    private fun nameOf(use: Use) = " of call ${use.callId}, epoch ${use.epoch},"

    private fun nameOf(opened: Opened): String {
        val removed = if (opened.removed.isEmpty()) "" else ", without ${opened.removed.joinToString(" ")}"
        return "${opened.callId} to epoch ${opened.epoch}${if (opened.isOver) ", over" else ""}$removed"
    }

    private fun nameOf(receivers: Receivers): String = when (receivers) {
        is Receivers.Users -> nameOf(emptyList(), receivers.userIds)
        is Receivers.Participants -> nameOf(receivers.participants, receivers.userIds)
        is Receivers.Members -> "${nameOf(receivers.participants, emptyList())} of set ${receivers.keyMembers}"
        is Receivers.Asker -> "device ${receivers.ask.userId}_${receivers.ask.deviceId} of set ${receivers.keyMembers}"
    }

    private fun nameOf(participants: List<CallParticipant>, userIds: List<ULong>): String {
        val people = participants.joinToString { "${it.userId} ${it.state.name.lowercase()}" }
        val users = userIds.joinToString(" ")
        return listOfNotNull(
            people.takeIf(String::isNotEmpty)?.let { "participants $it" },
            users.takeIf(String::isNotEmpty)?.let { "users $it" },
        ).joinToString(" and ")
    }

    /** All who have a part in the call: the story names others. */
    private fun membersFor(act: Act.Answered): List<String> {
        val own = Sender(device.userId, device.deviceId).deviceName
        return when (act) {
            is Act.Open -> {
                val record = when (val purpose = device.waiting.single { it.act == act.act }.purpose) {
                    is Purpose.CrossedOpen -> purpose.record
                    is Purpose.InvitedOpen -> purpose.record
                    is Purpose.JoinedOpen -> purpose.record
                    is Purpose.KeyUpdate -> purpose.record
                    else -> device.calls.find { it.callId == act.use.callId }?.record
                }
                val others = record?.participants.orEmpty().filter { it.state != ParticipantState.REMOVED }
                listOf(own) + act.from.map { it.deviceName } + others.map(::deviceOf)
            }
            is Act.Seal -> listOf(own) + when (val to = act.receivers) {
                is Receivers.Users -> to.userIds.map(::deviceOf)
                is Receivers.Participants -> to.userIds.map(::deviceOf) + receiversAmong(to.participants)
                is Receivers.Members -> receiversAmong(to.participants)
                is Receivers.Asker -> emptyList()
            }
            else -> emptyList()
        }
    }

    private fun receiversAmong(participants: List<CallParticipant>): List<String> = participants
        .filter { it.state in setOf(ParticipantState.JOINED, ParticipantState.INVITED, ParticipantState.RINGING) }
        .map(::deviceOf)

    private fun nonceOf(nonce: Int): Int {
        if (nonce !in nonces) nonces += nonce
        return nonces.indexOf(nonce) + 1
    }

    private fun nameOf(news: News): String = when (news) {
        News.Ringing -> "ringing"
        News.Resumed -> "resumed"
        is News.State -> "state ${news.state.name.lowercase()}"
        is News.Key -> {
            val provisional = if (news.key.isProvisional) ", provisional" else ""
            "key ${keyOf(news.key.key)} of epoch ${news.key.epoch} from ${news.key.fromUserId}$provisional"
        }
        is News.Sending -> "sends with key ${keyOf(news.key.key)}"
        is News.Participant -> {
            val person = news.participant
            val unreachable = if (person.hasUnapprovedDevice) "unreachable, unapproved" else "unreachable"
            "participant ${person.userId} ${if (person.isUnreachable) unreachable else person.state.name.lowercase()}"
        }
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

private fun keptBefore(said: JsonObject): Kept = checkNotNull(keptIn(said.getValue("kept").jsonObject))

private fun idsIn(said: JsonObject): List<ULong> =
    said.getValue("userIds").jsonArray.map { it.jsonPrimitive.content.toULong() }

/** A person has the device of ten times their number. */
private fun deviceOf(userId: ULong) = Sender(userId, 10u * userId).deviceName

private fun deviceOf(participant: CallParticipant) =
    if (participant.deviceId == null) deviceOf(participant.userId) else participant.deviceName

private fun askIn(said: JsonObject) = KeyAsk(
    said.needId("userId"),
    said.needId("deviceId"),
    said.text("displayName").orEmpty(),
    said.needText("publicKeyHash"),
    said.text("nonce"),
)

private fun failureIn(said: JsonObject): CallsignException {
    val members = said["members"] as? JsonObject ?: JsonObject(emptyMap())
    return CallsignException(said.needText("code"), said.text("message").orEmpty(), members = members)
}
