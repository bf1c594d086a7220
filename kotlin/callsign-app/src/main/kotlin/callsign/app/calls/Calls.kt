/**
 * The calls of this device: those that ring, and the one that it is in. `DeviceCalls.kt` decides; this carries out its acts one
 * after the other, and gives it what comes of them.
 */
package callsign.app.calls

import callsign.app.AppStorage
import callsign.app.Call
import callsign.app.CallEnding
import callsign.app.CallEvent
import callsign.app.CallsignException
import callsign.app.Connection
import callsign.app.EpochKey
import callsign.app.KeyBinding
import callsign.app.KeyExchange
import callsign.app.Names
import callsign.app.Operations
import callsign.app.Person
import callsign.app.RegisteredDevice
import callsign.app.Server
import callsign.app.Session
import callsign.app.Without
import callsign.app.answerInvalid
import callsign.app.bodyOf
import callsign.app.flag
import callsign.app.asCallsign
import callsign.app.hasCode
import callsign.app.idsOf
import callsign.app.members
import callsign.app.needNumber
import callsign.app.needText
import callsign.app.offline
import callsign.app.randomId
import callsign.app.read
import callsign.app.signedOut
import callsign.app.text
import callsign.app.textsOrNull
import callsign.app.write
import callsign.verify.decodeBase64
import callsign.verify.encodeBase64
import java.security.SecureRandom
import kotlin.math.abs
import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.CoroutineStart
import kotlinx.coroutines.Job
import kotlinx.coroutines.currentCoroutineContext
import kotlinx.coroutines.delay
import kotlinx.coroutines.ensureActive
import kotlinx.coroutines.launch
import kotlinx.serialization.json.JsonArray
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive
import kotlinx.serialization.json.buildJsonObject

/** All of it runs in the scope of [operations], which outlasts the session: what was decided is carried out. */
internal class Calls(
    private val operations: Operations,
    private val server: Server,
    private val session: Session,
    private val connection: Connection,
    private val exchange: KeyExchange,
    private val names: Names,
    registered: RegisteredDevice,
    private val storage: AppStorage,
    /** What [readKept] gives. */
    kept: Kept,
    private val onResumed: (Call) -> Unit,
    private val onChanged: () -> Unit,
    private val onLeftOut: OnLeftOut,
) : CallShell {
    override val userId = registered.userId
    private var device = decide(Device(userId, registered.deviceId), Input.Restarted(kept), monotonicMs()).device
    private var live = emptyMap<String, LiveCall>()
    private val keys = CallKeys()
    private val nonces = HashMap<Int, ByteArray>()
    private val commands = HashMap<Int, CompletableDeferred<LiveCall?>>()
    private var commandCount = 0
    private val unwatches = HashMap<String, () -> Unit>()

    /** They came while another one was carried out. */
    private val inputs = ArrayDeque<Input>()
    private var isBusy = false
    private var timer: Job? = null

    /** The last value is the one that stays. */
    private var keeping: Job? = null

    val all: List<Call> get() = live.values.toList()

    /** Throws unless every device of every callee verifies. */
    suspend fun start(people: List<ULong>, options: StartOptions, without: Without): Call =
        leaveOut(people, without) { userIds ->
            checkNotNull(ask { Input.StartCall(it, "${randomId()}", userIds, options) })
        }

    override suspend fun <Value> leaveOut(people: List<ULong>, without: Without, ask: suspend (List<ULong>) -> Value): Value =
        if (without == Without.LEAVE_OUT) leavingOut(people, onLeftOut, ask) else ask(people)

    /** Brings the user's call to this device: from another device, or one that they had left or missed. */
    suspend fun join(callId: String): Call = checkNotNull(ask { Input.Join(it, callId) })

    override suspend fun ask(inputOf: (command: Int) -> Input.Commanded): LiveCall? = operations.run {
        val command = ++commandCount
        val answer = CompletableDeferred<LiveCall?>()
        commands[command] = answer
        take(inputOf(command))
        answer.await()
    }

    override fun keysOf(call: DeviceCall): List<EpochKey> =
        if (call.phase is Phase.Ended) emptyList() else call.key.held.map { keys.epochKey(call.callId, it) }

    override fun named(person: Person): Person = names.of(person)

    /** People of calls may have other names now. */
    fun onNames() {
        for (call in live.values) call.onNames()
    }

    /** After each connection: what rings, and the call that this device was in. */
    suspend fun onConnected() {
        val kept = newestKept()
        val connectedAtMs = connection.connectedAtMs ?: throw offline()
        ask { Input.Connected(it, connectedAtMs, kept) }
    }

    /** A call may be left while the storage is read. */
    private suspend fun newestKept(): Kept {
        while (true) {
            val before = keeping
            before?.join()
            val kept = readKept(storage, userId)
            if (keeping === before) return kept
        }
    }

    fun onDisconnected() {
        if (device.connection != null) take(Input.Disconnected)
    }

    suspend fun onMessage(event: JsonObject) {
        try {
            ask { Input.Queue(it, event) }
        } catch (error: CallsignException) {
            if (!error.hasCode("CALL_ENDED")) throw error
        }
    }

    fun onInvitation(invitation: Invitation) = take(Input.Invited(invitation))

    /** Told by push. */
    fun onCancelled(callId: String, reason: CallEnding) = take(Input.Cancelled(callId, reason))

    /** The session has ended, the app is closed, or another installation goes on: the next start asks the server. */
    fun closeAll(reason: CallEnding) = take(Input.Close(reason))

    /** One input at a time, each with all its acts. */
    private fun take(input: Input) {
        inputs += input
        if (isBusy) return
        isBusy = true
        try {
            while (true) step(inputs.removeFirstOrNull() ?: break)
        } finally {
            isBusy = false
            wakeInTime()
        }
    }

    private fun step(input: Input) {
        val nowMs = monotonicMs()
        val clock = Clock(server.serverTimeMs() - nowMs, server.isTimeKnown)
        if (clock.isKnown != device.clock.isKnown || abs(clock.aheadMs - device.clock.aheadMs) > CLOCK_TOLERANCE_MS)
            device = decide(device, Input.SetClock(clock), nowMs).device
        val before = device
        val (decided, acts) = decideSafely(input, nowMs)
        device = decided
        val shown = decided.calls.associate { it.callId to (live[it.callId] ?: LiveCall(this, it)) }
        live = shown.filterKeys { callId -> decided.calls.any { it.callId == callId && it.phase !is Phase.Ended } }
        // An app that draws at the end of a call finds it gone from `calls`.
        if (decided.calls != before.calls) onChanged()
        for (call in decided.calls) shown.getValue(call.callId).become(call)
        for (act in acts) carryOut(act, shown)
    }

    /** A server that tells nonsense fails the request or the command that it answers, and nothing else. */
    private fun decideSafely(input: Input, nowMs: Long): Decision = try {
        decide(device, input, nowMs)
    } catch (cause: Exception) {
        val failure = answerInvalid(cause)
        when (input) {
            is Input.Done -> decide(device, Input.Failed(input.act, failure), nowMs)
            is Input.Commanded -> Decision(device, listOf(Act.Settle(input.command, null, failure)))
            is Input.Topic -> Decision(device, listOf(Act.Emit(input.callId, News.Failed(failure))))
            else -> Decision(device, emptyList())
        }
    }

    private fun carryOut(act: Act, shown: Map<String, LiveCall>) {
        when (act) {
            is Act.Request -> answer(act) {
                // Another user may have signed in since.
                if (session.userId != userId) throw signedOut()
                val asked = act.nonce?.let { bodyOf(mapOf("nonce" to encodeBase64(nonceOf(it)))) }
                val body = session.request(act.method, act.path, asked ?: act.body) as? JsonObject
                Input.Done(act.act, body ?: JsonObject(emptyMap()))
            }
            is Act.Send -> begin {
                try {
                    connection.send(act.destination, act.body)
                } catch (_: CallsignException) {
                    // That it rings does not hang on it.
                }
            }
            is Act.Watch -> answer(act) {
                val unwatch = connection.watch("/topic/call.${act.callId}") { take(Input.Topic(act.callId, it)) }
                // The call was left and joined again while the first watch was under way.
                unwatches.put(act.callId, unwatch)?.invoke()
                Input.Done(act.act)
            }
            is Act.Unwatch -> unwatches.remove(act.callId)?.invoke()
            is Act.Open -> answer(act) {
                val binding = bindingOf(act.use, act.nonce?.let(::nonceOf))
                val opened = exchange.open(act.text, act.from, binding, act.hints)
                val key = keys.put(act.key, opened.key, binding, opened.keyMembers)
                Input.Done(
                    act.act,
                    key = key,
                    from = opened.from,
                    set = KeySet(opened.keyMembers, opened.members),
                    unlisted = opened.unlisted,
                    sealedAgoMs = System.currentTimeMillis() - opened.sealedAtMs,
                )
            }
            is Act.Make -> keys.make(act.key)
            is Act.Seal -> {
                val key = keys.copyOf(act.key)
                answer(act) { sealed(act, key) }
            }
            is Act.Wipe -> act.keys.forEach(keys::wipe)
            is Act.Settle -> {
                val waiting = commands.remove(act.command)
                if (act.error != null) waiting?.completeExceptionally(act.error)
                else waiting?.complete(act.callId?.let(shown::get))
            }
            is Act.Keep -> keep(act.kept)
            is Act.Emit -> shown[act.callId]?.let { tell(it, act.news) }
        }
    }

    private fun answer(act: Act.Answered, carryOut: suspend () -> Input.Done) = begin {
        val outcome = try {
            carryOut()
        } catch (error: Exception) {
            // A time-out of the app's own, such as in its keys, is a failure like any other.
            currentCoroutineContext().ensureActive()
            Input.Failed(act.act, asCallsign(error))
        }
        take(outcome)
    }

    private suspend fun sealed(act: Act.Seal, key: ByteArray): Input.Done {
        val binding = bindingOf(act.use, act.nonce?.let(::decodeBase64))
        val sealed = when (val to = act.receivers) {
            is Receivers.Users -> exchange.sealForUsers(key, to.userIds, binding)
            is Receivers.Participants -> exchange.sealForCall(key, to.participants, to.userIds, binding)
            is Receivers.Members -> exchange.sealAgain(key, to.keyMembers, to.participants, binding)
            is Receivers.Asker ->
                return Input.Done(act.act, text = exchange.sealForDevice(key, to.keyMembers, to.ask, binding))
        }
        keys.bind(key, binding, sealed.keyMembers)
        val set = KeySet(sealed.keyMembers, sealed.members)
        return Input.Done(act.act, texts = sealed.texts, set = set, without = sealed.without)
    }

    private fun bindingOf(use: Use, nonce: ByteArray?) = KeyBinding(use.callId, use.epoch, nonce)

    /** Random octets that stay the same for as long as this app runs. */
    private fun nonceOf(number: Int): ByteArray =
        nonces.getOrPut(number) { ByteArray(NONCE_OCTETS).also(SecureRandom()::nextBytes) }

    private fun keep(kept: Kept) {
        val before = keeping
        val members = buildJsonObject {
            kept.callId?.let { put("callId", JsonPrimitive(it)) }
            if (kept.leaving.isNotEmpty()) put("leaving", JsonArray(kept.leaving.map(::JsonPrimitive)))
            if (kept.opened.isNotEmpty()) put("opened", JsonArray(kept.opened.map(::membersOf)))
            if (kept.accepted.isNotEmpty()) put("accepted", JsonArray(kept.accepted.map(::JsonPrimitive)))
        }
        keeping = begin {
            before?.join()
            try {
                storage.write(keptKey(userId), members.takeIf { it.isNotEmpty() })
            } catch (error: CallsignException) {
                // The next start does not know of the call, or finds that it has ended.
                kept.callId?.let(live::get)?.tell(CallEvent.Failed(error))
            }
        }
    }

    private fun tell(call: LiveCall, news: News) = when (news) {
        // It is among the calls, which `ringing` looks through.
        News.Ringing -> Unit
        News.Resumed -> onResumed(call)
        is News.State -> call.tell(CallEvent.StateChanged(news.state))
        is News.Key -> {
            val held = keys.epochKey(call.callId, news.key)
            call.tell(CallEvent.KeyChanged(held.epoch, held.fingerprint, news.key.fromUserId))
        }
        is News.Sending -> call.tell(CallEvent.SendingChanged(news.key.epoch))
        is News.Participant -> call.tell(CallEvent.ParticipantChanged(named(news.participant)))
        is News.Media -> call.tell(CallEvent.MediaReady(news.gateway))
        is News.KeyAsked -> call.tell(CallEvent.KeyAsked(news.ask))
        is News.Failed -> call.tell(CallEvent.Failed(news.failure))
    }

    private fun wakeInTime() {
        timer?.cancel()
        val atMs = nextDeadlineMs(device) ?: return
        timer = operations.scope.launch {
            delay(atMs - monotonicMs())
            take(Input.Time)
        }
    }

    private fun begin(act: suspend () -> Unit): Job =
        operations.scope.launch(start = CoroutineStart.UNDISPATCHED) { act() }

    private companion object {
        const val NONCE_OCTETS = 16

        /** The two clocks of a device run apart by less. */
        const val CLOCK_TOLERANCE_MS = 100

        fun monotonicMs(): Long = System.nanoTime() / 1_000_000
    }
}

/** What was noted for this start. Throws as [read]. */
internal suspend fun readKept(storage: AppStorage, userId: ULong): Kept =
    storage.read(keptKey(userId), ::keptIn) ?: Kept()

/** Null for members of another form. */
internal fun keptIn(members: JsonObject): Kept? = try {
    val opened = if ("opened" in members) members.members("opened").map(::openedIn) else emptyList()
    val (leaving, accepted) = listOf("leaving", "accepted").map { members.textsOrNull(it).orEmpty() }
    Kept(members.text("callId"), leaving, opened, accepted)
} catch (_: CallsignException) {
    null
}

private fun openedIn(members: JsonObject) = Opened(
    callId = members.needText("callId"),
    epoch = members.needNumber("epoch"),
    isOver = members.flag("isOver"),
    removed = members.textsOrNull("removed").orEmpty().map { it.toULongOrNull() ?: throw answerInvalid() },
)

private fun membersOf(opened: Opened) = buildJsonObject {
    put("callId", JsonPrimitive(opened.callId))
    put("epoch", JsonPrimitive(opened.epoch))
    if (opened.isOver) put("isOver", JsonPrimitive(true))
    if (opened.removed.isNotEmpty()) put("removed", idsOf(opened.removed))
}

private fun keptKey(userId: ULong) = "call.$userId"
