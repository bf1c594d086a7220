package callsign.verify

import java.io.File
import java.io.IOException
import kotlinx.coroutines.awaitCancellation
import kotlinx.coroutines.runBlocking
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.jsonArray
import kotlinx.serialization.json.jsonPrimitive
import kotlinx.serialization.json.long
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Assumptions.assumeTrue
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.io.TempDir

/**
 * Both implementations ask a log the same questions and make the same of its answers, step by step with what they remember:
 * stories of `test/support/verdict-stories.ts`, in which logs fork, lie and fall silent. Both stores are files here.
 */
class StoriesTest {
    @TempDir
    lateinit var folder: File

    @Test
    fun `the frozen stories end as in the TypeScript client`() {
        val told = tell(File(projectRoot, "test/vectors/client-stories.jsonl"))
        assertTrue(told >= 14, "$told stories")
    }

    /** `test/support/lying-stories.ts` says what each lie is, and how it is found out. */
    @Test
    fun `a server that lies is found out as in the TypeScript client`() {
        val told = tell(File(projectRoot, "test/vectors/client-lies.jsonl"))
        assertTrue(told >= 28, "$told lies")
    }

    /** `test/support/index-stories.ts` says what each lie about the index is. */
    @Test
    fun `an index that lies, or a server that lies about it, is found out as in the TypeScript client`() {
        val told = tell(File(projectRoot, "test/vectors/client-index.jsonl"))
        assertTrue(told >= 21, "$told stories")
    }

    /** `test/support/cache-stories.ts` says who lies in each, and that only servers leave evidence. */
    @Test
    fun `a cache that is late or lies is told apart from a server that lies as in the TypeScript client`() {
        val told = tell(File(projectRoot, "test/vectors/client-caches.jsonl"))
        assertTrue(told >= 29, "$told cases")
    }

    /** Made by `node dist/test/support/verdict-stories.js`. */
    @Test
    fun `stories that the environment names do so too`() {
        val path = System.getenv("CALLSIGN_STORIES")
        assumeTrue(path != null, "CALLSIGN_STORIES names no file")
        println("callsign-verify: ${tell(File(path))} stories ended alike")
    }

    private fun tell(file: File): Int {
        val lines = file.readLines().map(Json::parseToJsonElement)
        val head = lines.first()
        val plain = keysOf(head["keys"])
        for ((at, line) in lines.drop(1).withIndex()) {
            val policy = line.textOrNull("policy")
            val keys = if (policy == null) plain else LogKeys.ofPolicy(policy, head["keys"].text("vrfPublicKey"))
            val story = Story(keys, File(folder, "${file.name} $at"), line)
            line.list("steps").forEachIndexed { number, step ->
                val outcome = runBlocking { story.step(step) }
                val place = "seed ${head.text("seed")}, story ${line.text("story")}, step $number"
                assertEquals(step.text("outcome"), outcome, place)
            }
        }
        return lines.size - 1
    }
}

/** [options] has what the app is made with besides the keys. */
private class Story(private val keys: LogKeys, folder: File, private val options: JsonElement) {
    private val checkpoints = FileCheckpointStore(File(folder, "checkpoints"))
    private val users = FileKnownUserStore(File(folder, "users"))
    private var exchanges: List<JsonElement> = emptyList()
    private var nowMs = 1_790_000_000_000
    private var client = newClient()
    private var contacts = ContactDevices(client, users, ::lists)

    private fun newClient() = LogClient(
        keys,
        "https://log.example",
        checkpoints,
        ::answer,
        options.find("timeoutMs")?.let { options.number("timeoutMs") } ?: 20_000,
        options.find("maxAgeMs")?.let { options.number("maxAgeMs") },
        { nowMs },
        options.textOrNull("mirror"),
        CompletenessDemand.entries.find { it.wireName == options.textOrNull("completeness") },
        options.find("maxIndexAgeMs")?.let { options.number("maxIndexAgeMs") },
    )

    private suspend fun answer(request: LogRequest): LogAnswer {
        val path = request.url.removePrefix("https://log.example/")
        val found = exchanges.find { it.text("path") == path && it.textOrNull("body") == request.body }
            ?: error("the other client did not ask for $path ${request.body}")
        if (found.find("isLate") != null) awaitCancellation()
        if (found.find("status") == null) throw IOException("no network")
        return LogAnswer(found.small("status"), found.base64("answer"))
    }

    private suspend fun lists(userId: String, after: Long?): List<String> {
        val path = "user/device-lists?userId=$userId${after?.let { "&after=$it" }.orEmpty()}"
        val answer = answer(LogRequest("https://log.example/$path", null, 1 shl 20))
        return Json.parseToJsonElement(answer.body.decodeToString()).jsonArray.map { it.jsonPrimitive.content }
    }

    suspend fun step(step: JsonElement): String {
        exchanges = step.list("exchanges")
        val outcome = try {
            act(step.text("act"), step["given"])
        } catch (error: LogException) {
            "rejected ${error.code}"
        }
        return outcome + memory()
    }

    private suspend fun act(act: String, given: JsonElement): String = when (act) {
        "lookUp" -> {
            val (userId, deviceId) = listOf("userId", "deviceId").map { given.text(it).toULong() }
            val device = DeviceToLookUp(userId, deviceId, given.text("vrfHash"))
            client.lookUpAll(listOf(device)).joinToString("; ", transform = ::lookupText)
        }
        "checkOwnKeys" -> {
            val (userId, deviceId) = listOf("userId", "deviceId").map { given.text(it).toULong() }
            ownKeysText(client.checkOwnKeys(OwnDevice(userId, deviceId, given.text("vrfHash"), given.texts("publicKeys"))))
        }
        "refresh" -> headText(client.refreshCheckpoint())
        "compareWith" -> headText(client.compareWith(given.jsonPrimitive.content))
        "plantPending" -> {
            val pending = given.jsonArray.map { it.jsonPrimitive.content }
            checkpoints.get(keys.origin)?.let { checkpoints.put(it.copy(pending = pending)) }
            ""
        }
        "wait" -> {
            nowMs += given.jsonPrimitive.long * 3_600_000
            ""
        }
        "restart" -> {
            client = newClient()
            contacts = ContactDevices(client, users, ::lists)
            ""
        }
        "checkOwnList" -> ownKeysText(contacts.checkOwnList(given.jsonPrimitive.content))
        "verifyShared" -> {
            val user = namedUser(given["user"])
            devicesText(contacts.verifyShared(user, ListedPerson(user.userId.toULong(), given.text("listHash"))))
        }
        "accept" -> contacts.accept("7", given.jsonPrimitive.content)?.let(::questionText) ?: "accepted"
        "verify" -> devicesText(contacts.verify(namedUser(given)))
        "verifyAndShow" -> {
            val user = namedUser(given)
            val outcome = contacts.verify(user)
            contacts.shown(user.userId, (outcome as? VerifiedDevices)?.events.orEmpty())
            devicesText(outcome)
        }
        else -> error("no act is called $act")
    }

    private suspend fun memory(): String {
        val kept = checkpoints.get(keys.origin)
        val known = users.get("7")
        val pending = kept?.pending.orEmpty().joinToString(" ", transform = ::sizeIn)
        val list = known?.list?.let { ", list ${it.index} since ${it.sinceIndex} ${it.sinceSeq}" }.orEmpty()
        val events = known?.let { ", ${eventsText(it.events)}${questionText(it.question)}" }.orEmpty()
        val index = checkpoints.get("${keys.origin}/index")?.let { ", index ${it.checkpoint.treeSize}" }.orEmpty()
        return " | ${kept?.checkpoint?.treeSize ?: "none"}, pending $pending$index$list$events"
    }
}

private fun namedUser(user: JsonElement) = NamedUser(
    user.text("userId"),
    user.list("devices").map {
        NamedDevice(it.text("deviceId"), it.text("keyAlgorithm"), it.text("publicKey"), it.text("publicKeyHash"))
    },
    user.textOrNull("deviceList"),
    user.textOrNull("deviceListHash"),
    user.find("absent")?.let { AbsentList(it.text("vrfHash"), it.text("vrfProof"), it.find("indexProof")?.toString()) },
)

private fun refusalText(refusal: Refusal): String = "refused at ${refusal.check.wireName}${evidenceText(refusal.evidence)}"

private fun unansweredText(unanswered: Unanswered): String =
    "unanswered ${unanswered.status ?: "-"} ${unanswered.code ?: "-"}${unanswered.check?.let { " at ${it.wireName}" }.orEmpty()}"

private fun evidenceText(evidence: Evidence?): String =
    if (evidence == null) "" else " by ${sizeIn(evidence.known)} and ${sizeIn(evidence.seen)}"

private fun lookupText(outcome: LookupOutcome): String = when (outcome) {
    is VerifiedKey ->
        "verified ${outcome.index} of ${outcome.checkpoint.treeSize}" +
            if (outcome.completeness == Completeness.Unindexed) "" else ", ${completenessText(outcome.completeness)}"
    is Refusal -> refusalText(outcome)
    is Unanswered -> unansweredText(outcome)
}

private fun headText(outcome: CheckpointOutcome): String = when (outcome) {
    is VerifiedCheckpoint -> "verified ${outcome.checkpoint.treeSize}"
    is Refusal -> refusalText(outcome)
    is Unanswered -> unansweredText(outcome)
}

private fun ownKeysText(outcome: OwnKeysOutcome): String = when (outcome) {
    is Refusal -> refusalText(outcome)
    is Unanswered -> unansweredText(outcome)
    is OwnKeysReport -> {
        fun leaves(keys: List<LoggedKey>) = keys.joinToString(" ") { "${it.index}" }
        val entries = leaves(outcome.entries)
        when (val own = outcome.ownKeys) {
            is OwnKeys.Clean -> "clean, $entries"
            is OwnKeys.Alert ->
                "alert, foreign ${leaves(own.foreign)}, missing ${own.missing.joinToString(" ")}, " +
                    "outdated ${leaves(own.outdated)}, $entries"
        }
    }
}

private fun devicesText(outcome: DevicesOutcome): String = when (outcome) {
    is Refusal -> refusalText(outcome)
    is Unanswered -> unansweredText(outcome)
    is VerifiedDevices -> {
        val devices = outcome.devices.joinToString(" ") { "${it.device.deviceId}${if (it.signingKey == null) "" else "+"}" }
        val proof = if (outcome.isProved) "proved" else "unproved"
        val complete = outcome.complete.takeIf { it != Completeness.Kind.UNINDEXED }?.let { ", complete ${it.wireName} $proof" }
        "verified by ${outcome.basis.wireName}: $devices${complete.orEmpty()}; ${eventsText(outcome.events)}${questionText(outcome.question)}"
    }
}

private fun questionText(question: KeyQuestion?): String =
    if (question == null) "" else ", asks ${question.kind.wireName} ${question.listHash}"

private fun eventsText(events: List<DeviceEvent>): String =
    "events ${events.joinToString(" ") { "${it.kind.wireName}:${it.deviceId ?: "all"}" }}"

/** The second line of a note is its tree size. */
private fun sizeIn(note: String): String = note.split('\n').getOrElse(1) { note }
