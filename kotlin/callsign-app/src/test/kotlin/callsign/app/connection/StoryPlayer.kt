package callsign.app.connection

import callsign.app.text
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.JsonArray
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.jsonArray
import kotlinx.serialization.json.jsonObject

/** Plays stories of `test/vectors/device-connection.jsonl`, whose first line says how one is read. */
internal class StoryPlayer(private val situations: Map<String, JsonObject>) {
    private class Unanswered(val act: Int, val name: String)

    private var connection = DeviceConnection()
    private var nowMs = 0L
    private val unanswered = mutableListOf<Unanswered>()
    private val commands = mutableListOf<String>()
    private val sockets = mutableListOf<Int>()
    private val answered = mutableListOf<String>()

    val phase: String get() = connection.phase.javaClass.simpleName.lowercase()
    val nextMs: Long? get() = nextDeadlineMs(connection)

    fun begin(story: JsonObject) {
        val situation = situations[story.text("given") ?: return] ?: error("no situation ${story.text("given")}")
        begin(situation)
        situation.steps().forEach(::play)
    }

    /** Returns the acts, told; none of steps that are repeated. */
    fun play(step: JsonObject): List<String> {
        val times = step.text("times")?.toInt() ?: return playOnce(step)
        for (count in 1..times) {
            val numbered = Json.parseToJsonElement("${step.getValue("steps")}".replace("#", "$count"))
            numbered.jsonArray.forEach { playOnce(it.jsonObject) }
        }
        return emptyList()
    }

    /** Disconnects and lets every act fail. Returns the rest, which should be nothing. */
    fun leave(): List<Any> {
        playOnce(Json.parseToJsonElement("""{"in":{"on":"disconnect"}}""").jsonObject)
        val failed = """{"in":{"on":"failed","of":"","failure":{"code":"OFFLINE"}}}"""
        while (unanswered.isNotEmpty()) playOnce(Json.parseToJsonElement(failed).jsonObject)
        val left = connection.watches + connection.waiting + connection.queues.flatMap { it.waiting }
        val notOnce = commands.filter { name -> answered.count { it == name } != 1 }
        return left + notOnce + listOf(phase).filter { it != "off" } + listOfNotNull(nextMs)
    }

    private fun playOnce(step: JsonObject): List<String> {
        nowMs = step.text("at")?.toLong() ?: nowMs
        val random = step.text("random")?.toDouble() ?: 0.5
        val decision = decide(connection, inputOf(step.getValue("in").jsonObject), nowMs, random)
        connection = decision.connection
        return decision.acts.map(::told)
    }

    private fun inputOf(said: JsonObject): Input = when (val on = said.text("on")) {
        "connect" -> Input.Connect
        "disconnect" -> Input.Disconnect(command(on))
        "watch" -> Input.Watch(command(on), said.word("destination"))
        "unwatch" -> Input.Unwatch(said.word("watch"))
        "send" -> Input.Send(command(on), said.word("destination"), said.word("body"))
        "online" -> Input.Online
        "over" -> Input.Over
        "connected" -> Input.Connected(socket(said), said.text("device"), said.word("serverMs").toLong())
        "message" -> Input.Message(socket(said), said.word("subscription"), said.text("ack"), said.getValue("event"))
        "closed" -> {
            val retryAfterMs = said.word("retryAfterMs").toLong()
            Input.Closed(socket(said), said.word("code").toInt(), said.word("reason"), retryAfterMs, failureIn(said))
        }
        "done" -> Input.Done(answer(said), said.text("token"), said.text("recovered"))
        "failed" -> Input.Failed(answer(said), checkNotNull(failureIn(said)))
        "time" -> Input.Time
        else -> error("no input $on")
    }

    private fun failureIn(said: JsonObject): Failure? = said["failure"]?.jsonObject?.let { Failure(it.word("code")) }

    private fun socket(said: JsonObject): Int = sockets[said.word("socket").toInt() - 1]

    private fun answer(said: JsonObject): Int {
        val at = unanswered.indexOfLast { it.name.startsWith(said.word("of")) }
        check(at >= 0) { "nothing unanswered begins with ${said.text("of")}" }
        return unanswered.removeAt(at).act
    }

    private fun command(on: String): Int {
        val count = commands.count { it.substringBefore(' ') == on }
        commands += if (count == 0) on else "$on ${count + 1}"
        return commands.size
    }

    private fun told(act: Act): String {
        if (act is Act.Open) sockets += act.socket
        val name = nameOf(act)
        if (act is Act.Asking) unanswered += Unanswered(act.act, name)
        return name
    }

    private fun nameOf(act: Act): String = when (act) {
        is Act.Token -> "token"
        is Act.Register -> "register"
        is Act.Renew -> "renew ${act.token}"
        is Act.EndSession -> "end session ${act.failure.code}"
        is Act.Trouble -> "trouble ${act.failure.code}"
        is Act.HearTime -> "hear time ${act.serverMs}"
        is Act.Open -> "open ${numberOf(act.socket)} with ${act.token}"
        is Act.Request -> {
            val frame = frameOf(act.socket, act.command, act.headers)
            if (act.body.isEmpty()) frame else "$frame ${act.body}"
        }
        is Act.Tell -> "${frameOf(act.socket, act.command, act.headers)}, no receipt"
        is Act.Disconnect -> "disconnect ${numberOf(act.socket)}"
        is Act.Abandon -> "abandon ${numberOf(act.socket)}"
        is Act.Handle -> "handle ${act.event.text("eventId")}"
        is Act.Topic -> "${act.watch} hears ${act.event}"
        is Act.Settle -> {
            val name = commands[act.command - 1]
            answered += name
            listOfNotNull("settle $name", act.watch, act.error?.code).joinToString(": ")
        }
        is Act.State -> "state ${act.state.name.lowercase()}, failures ${act.failures}"
        is Act.Ready -> if (act.mayHaveMissed) "ready, may have missed events" else "ready, has missed nothing"
    }

    private fun frameOf(socket: Int, command: String, headers: Map<String, String>): String {
        val lines = headers.map { (name, value) -> "$name:$value" }
        return "${numberOf(socket)}: ${(listOf(command) + lines).joinToString(" ")}"
    }

    private fun numberOf(socket: Int) = sockets.indexOf(socket) + 1

    private fun JsonObject.word(name: String) = checkNotNull(text(name)) { "no $name in $this" }
}

internal fun JsonObject.steps(): List<JsonObject> = getValue("steps").jsonArray.map { it.jsonObject }

/** The lines of a file of stories: `like` stands for the value of that name, and members beside it take the place of its own. */
internal fun storyLines(text: String): List<JsonObject> {
    val values = HashMap<String, JsonObject>()
    return text.trim().lines().map { line ->
        val said = expanded(Json.parseToJsonElement(line), values).jsonObject
        said.text("value")?.let { values[it] = said.getValue("is").jsonObject }
        said
    }
}

private fun expanded(said: JsonElement, values: Map<String, JsonObject>): JsonElement = when (said) {
    is JsonArray -> JsonArray(said.map { expanded(it, values) })
    is JsonObject -> {
        val like = said.text("like")?.let { checkNotNull(values[it]) { "no value $it" } }.orEmpty()
        JsonObject(like + said.filterKeys { it != "like" }.mapValues { (_, value) -> expanded(value, values) })
    }
    else -> said
}
