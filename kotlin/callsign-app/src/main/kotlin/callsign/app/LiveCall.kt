/** One call of this device, from the first ring to its end. Its keys are made or opened here and never stored. */
package callsign.app

import callsign.app.CallsignException.LocalCode
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.CoroutineStart
import kotlinx.coroutines.Deferred
import kotlinx.coroutines.Job
import kotlinx.coroutines.async
import kotlinx.coroutines.channels.BufferOverflow
import kotlinx.coroutines.delay
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.MutableSharedFlow
import kotlinx.coroutines.flow.MutableStateFlow
import kotlinx.coroutines.flow.StateFlow
import kotlinx.coroutines.flow.asStateFlow
import kotlinx.coroutines.flow.onSubscription
import kotlinx.coroutines.flow.transformWhile
import kotlinx.coroutines.launch
import kotlinx.serialization.json.JsonObject

internal class CallDeps(
    /** Where calls act by themselves, one step at a time; it ends with the session. */
    val scope: CoroutineScope,
    /** Where what the app asks for is carried out to its end. */
    val operations: Operations,
    val server: Server,
    val session: Session,
    val connection: Connection,
    val exchange: KeyExchange,
    val userId: ULong,
    val deviceId: ULong,
    /** Notes the call that this device is in, for the next start. */
    val keepPresent: suspend (callId: String) -> Unit,
    /** Leaves the other call that this device is in. */
    val leaveOther: suspend (call: LiveCall) -> Unit,
    val onChanged: () -> Unit,
    val onEnded: (call: LiveCall) -> Unit,
)

/** Members that never change. */
internal class CallFacts(val callId: String, val isVideo: Boolean, val isOnGoing: Boolean)

/** A key that came sealed for this device. [opened] fails when it does not open, or its sender does not verify. */
private class SealedKey(val epoch: Long, val sealed: String, val opened: Deferred<OpenedKey>)

/** An answer of the server under way, which may be older than what the topic tells before it arrives. */
private class Reading {
    val told = ArrayList<JsonObject>()
}

internal class LiveCall(
    private val deps: CallDeps,
    facts: CallFacts,
    override val caller: Person,
    initial: CallState,
    /** By the server's clock; zero where it does not ring here. */
    val invitedAtMs: Long,
) : Call {
    override val callId = facts.callId
    override val isVideo = facts.isVideo
    override val isOnGoing = facts.isOnGoing
    override val isIncoming = caller.userId != deps.userId
    private val epochKeys = EpochKeys(callId)
    private val rejoining = Rejoining(deps, this)
    private val rotation = KeyRotation(deps, this)
    private val states = MutableStateFlow(initial)
    private val people = MutableStateFlow<List<CallParticipant>>(emptyList())
    private val newest = MutableStateFlow<EpochKey?>(null)
    private val news = MutableSharedFlow<CallEvent>(extraBufferCapacity = 64, onBufferOverflow = BufferOverflow.DROP_OLDEST)

    @Volatile
    private var record: CallRecord? = null

    /** From `media_ready`, which may come before the reply to `join` that does not have it yet. */
    @Volatile
    private var admission: CallGateway? = null

    /** While it rings here. */
    private var invited: SealedKey? = null

    /** Once for all who ask at the same time. */
    private var joining: Deferred<Unit>? = null

    /** The server may have this device in the call. */
    private var mayBeIn = false

    /** Why it would have rung no more while it was answered here. */
    private var rungOut: CallEnding? = null
    private var ringTimer: Job? = null
    private var reasonTimer: Job? = null
    private var unwatch: (() -> Unit)? = null
    private var isWatching = false
    private val readings = ArrayList<Reading>()

    override val state: StateFlow<CallState> = states.asStateFlow()
    override val participants: StateFlow<List<CallParticipant>> = people.asStateFlow()
    override val key: StateFlow<EpochKey?> = newest.asStateFlow()
    override val keys: List<EpochKey> get() = epochKeys.all
    override val self: CallParticipant? get() = record?.participant(deps.userId)
    override val hostUserId: ULong? get() = record?.hostUserId
    override val isHost: Boolean get() = hostUserId == deps.userId
    override val roomId: Long? get() = record?.roomId
    override val startedAtMs: Long? get() = record?.startedAtMs
    override val media: CallGateway?
        get() = record?.media?.let { if (it.state == "pending") admission ?: it else it }

    @Volatile
    override var isVerified: Boolean? = null
        private set

    @Volatile
    override var ending: CallEnding? = null
        private set

    override val events: Flow<CallEvent> = news
        .onSubscription { ending?.let { emit(CallEvent.Ended(it)) } }
        .transformWhile { event ->
            emit(event)
            event !is CallEvent.Ended
        }

    /** Whether this device takes part, or wants to come back. */
    val isPresent: Boolean get() = !isClosed && !(isIncoming && states.value == CallState.RINGING)

    /** The beginning of the paths of its operations. */
    val path get() = "call/$callId"

    override suspend fun answer() = deps.operations.run { answerHere() }

    override suspend fun decline(reason: DeclineReason) = deps.operations.run { declineHere(reason) }

    override suspend fun end() = deps.operations.run { endForAll() }

    override suspend fun leave() = deps.operations.run { leaveHere() }

    override suspend fun invite(userIds: List<ULong>) = deps.operations.run {
        val record = withTopic {
            withFreshDevices {
                val sealed = deps.exchange.sealForUsers(assertKey().key, userIds)
                val body = JsonObject(mapOf("calleeIds" to idsOf(userIds), "encryptedAESKeys" to sealed))
                callRecordOf(post("invite", body))
            }
        }
        show(record)
    }

    override suspend fun remove(userId: ULong): Unit = deps.operations.run {
        deps.session.request("POST", "$path/remove", bodyOf(mapOf("userId" to "$userId")))
    }

    override suspend fun renewKey() = deps.operations.run { rotation.renew() }

    override suspend fun resendKey() = deps.operations.run { rotation.resend() }

    override suspend fun grantKey(ask: KeyAsk) = deps.operations.run { rejoining.grant(ask) }

    /** Rings here with the key of an invitation, [ringsForMs] longer. */
    fun ring(sealed: String, epoch: Long, ringsForMs: Long) {
        if (invited != null || isClosed) return
        ringTimer = deps.scope.launch {
            delay(ringsForMs)
            if (states.value == CallState.RINGING) deps.scope.launch { quietly { declineHere(DeclineReason.TIMEOUT) } }
        }
        invite(epoch, sealed) { openInvitation(sealed) }
        // The caller's screen can say so; that it rings does not hang on it.
        deps.scope.launch { quietly { deps.connection.send("/app/call/$callId/ringing", JsonObject(emptyMap())) } }
    }

    /** Comes in without ringing: from another device of the user, or back. */
    suspend fun join() {
        if (record != null) return
        joinOnce {
            try {
                enterJoined(joined())
            } catch (error: CallsignException) {
                if (states.value == CallState.JOINING) close(CallEnding.UNKNOWN)
                throw error
            }
        }
    }

    /** Goes on with a call that this device is in, or was before a restart. */
    suspend fun resume(record: CallRecord) {
        if (record.status == "active") return rejoining.ask(record)
        // The key that was sent is gone with the app, and no other device has it.
        deps.session.request("POST", "$path/end")
        close(CallEnding.KEY_LOST)
    }

    /** With its key, the call goes on here. */
    suspend fun enter(record: CallRecord, opened: OpenedKey, epoch: Long = record.keyEpoch) {
        begin(record, if (record.status == "ringing") CallState.RINGING else CallState.ACTIVE)
        if (!isClosed) hold(epoch, opened)
    }

    /** Shows the call as one that this device is in. */
    suspend fun begin(record: CallRecord, state: CallState) {
        // Without it the next start does not know of the call; this one does.
        reporting(::report) { deps.keepPresent(callId) }
        if (isClosed) return
        take(record)
        setState(state)
        rotation.plan(record.keyRotationMs)
        // The topic may have told of changes since the record was made.
        deps.scope.launch { if (isWatching) refresh() else watch() }
    }

    /** After each connection. */
    suspend fun onConnected() {
        refresh()
        rejoining.askAgain()
    }

    /** Events of the topic that this device has missed are in the record. */
    suspend fun refresh() {
        // While it joins, the server may not have this device in the call yet.
        if (!isPresent || record == null) return
        deps.scope.launch { watch() }
        try {
            show(withTopic(::read))
        } catch (error: CallsignException) {
            if (error.hasCode("CALL_ENDED", "CALL_NOT_FOUND", "NOT_PARTICIPANT")) closeSoon() else report(error)
        }
    }

    /** A message of this device's queue. */
    suspend fun onMessage(event: JsonObject) {
        when (event.text("type")) {
            "call_cancelled" -> close(CallEnding.CANCELLED)
            "call_missed" -> onRungOut(CallEnding.MISSED)
            "call_answered_elsewhere" -> onRungOut(endingOf("${event.text("reason")}_elsewhere"))
            "call_moved" -> close(CallEnding.MOVED)
            "call_ended" -> close(endingOf(event.text("endReason")))
            "media_ready" -> onMediaReady(gatewayOf(event.member("media")))
            "participant_request_rejoin" -> rejoining.onAsked(event)
            "participant_accept_rejoin" -> rejoining.onGranted(event)
            "key_update" -> onKeyUpdate(event)
        }
    }

    /** Ends it for this device: keys are wiped. */
    fun close(reason: CallEnding) {
        if (isClosed) return
        ringTimer?.cancel()
        rotation.stop()
        reasonTimer?.cancel()
        rejoining.stop()
        unwatch?.invoke()
        invited = null
        newest.value = null
        epochKeys.wipe()
        ending = reason
        // An app that draws at the end of a call finds it gone from `calls`.
        deps.onEnded(this)
        setState(CallState.ENDED)
        tell(CallEvent.Ended(reason))
    }

    /**
     * The queue says why it has ended, if it reaches this device; a moment later the call ends without a reason. A connection that
     * comes back meanwhile has as long: [refresh] calls this again.
     */
    fun closeSoon() {
        if (isClosed) return
        val connectedAtMs = deps.connection.connectedAtMs
        reasonTimer?.cancel()
        reasonTimer = deps.scope.launch {
            delay(REASON_WAIT_MS)
            if (connectedAtMs == null || deps.connection.connectedAtMs != connectedAtMs) delay(RECONNECTION_WAIT_MS)
            close(CallEnding.UNKNOWN)
        }
    }

    fun setState(state: CallState) {
        if (!isClosed && states.value != state) {
            states.value = state
            tell(CallEvent.StateChanged(state))
        }
        deps.onChanged()
    }

    fun askApp(ask: KeyAsk) = tell(CallEvent.KeyAsked(ask))

    fun report(error: Throwable) {
        if (isClosed) return
        // The answer was faster than the message that says why.
        if (error.hasCode("CALL_ENDED")) return closeSoon()
        tell(CallEvent.Failed(asCallsign(error)))
    }

    /** A key that was made here. */
    fun own(key: ByteArray) = OpenedKey(key, deps.userId, deps.deviceId)

    suspend fun read(): CallRecord = callRecordOf(deps.session.ask("GET", path))

    suspend fun makeNewKey() = rotation.renew()

    suspend fun endForAll() {
        val record = callRecordOf(post("end", null))
        close(record.endReason?.let(::endingOf) ?: CallEnding.HANGUP)
    }

    suspend fun leaveHere() {
        deps.session.request("POST", "$path/leave")
        close(CallEnding.LEFT)
    }

    val isClosed get() = states.value == CallState.ENDED

    private suspend fun joinOnce(join: suspend () -> Unit) {
        setState(CallState.JOINING)
        val first = joining ?: deps.operations.scope.async {
            try {
                join()
            } finally {
                joining = null
            }
        }
        joining = first
        first.await()
    }

    private suspend fun answerHere() {
        val answered = assertRinging()
        joinOnce { answer(answered) }
    }

    private suspend fun answer(answered: SealedKey) {
        try {
            val opened = try {
                answered.opened.await()
            } catch (_: CallsignException) {
                // The log may not have been reachable when it began to ring.
                invite(answered.epoch, answered.sealed) { openInvitation(answered.sealed) }.opened.await()
            }
            val record = postJoin()
            ringTimer?.cancel()
            // It may have been renewed while it rang.
            val renewed = invited ?: answered
            invited = null
            if (record.keyEpoch == answered.epoch) return enter(record, opened)
            enterJoined(record, renewed.takeIf { it.epoch == record.keyEpoch }?.opened)
        } catch (error: CallsignException) {
            rungOut?.let(::close)
            if (error.hasCode("CALL_ENDED", "CALL_NOT_ACTIVE")) closeSoon()
            mayBeIn = false
            if (states.value == CallState.JOINING) setState(CallState.RINGING)
            throw error
        }
    }

    /** Where this device asks to join, the answer says whether the call is here. */
    private fun onRungOut(reason: CallEnding) {
        if (isPresent && (mayBeIn || states.value != CallState.JOINING)) rungOut = reason else close(reason)
    }

    private suspend fun declineHere(reason: DeclineReason) {
        assertRinging()
        close(if (reason == DeclineReason.TIMEOUT) CallEnding.MISSED else CallEnding.DECLINED)
        deps.session.request("POST", "$path/decline", bodyOf(mapOf("reason" to reason.name.lowercase())))
    }

    private fun assertRinging(): SealedKey =
        invited?.takeIf { states.value == CallState.RINGING }
            ?: throw CallsignException("CALL_NOT_ACTIVE", "The call does not ring here.")

    fun assertKey(): EpochKey =
        epochKeys.newest ?: throw CallsignException(LocalCode.KEY_MISSING, "This device does not have the call's key yet.")

    private suspend fun post(operation: String, body: JsonObject?): JsonObject =
        deps.session.ask("POST", "$path/$operation", body)

    private suspend fun openInvitation(sealed: String): OpenedKey =
        deps.exchange.openFromAny(read(), sealed, caller.userId)

    private fun invite(epoch: Long, sealed: String, open: suspend () -> OpenedKey): SealedKey {
        val key = SealedKey(epoch, sealed, deps.operations.scope.async { open() })
        invited = key
        deps.scope.launch {
            val error = try {
                key.opened.await()
                null
            } catch (failed: CallsignException) {
                failed
            }
            if (invited === key && error?.code != "CALL_ENDED") {
                isVerified = error == null
                deps.onChanged()
            }
            error?.let(::report)
        }
        return key
    }

    /** With the key that came for this device, or else with one that it asks for. */
    private suspend fun enterJoined(record: CallRecord, renewed: Deferred<OpenedKey>? = null) {
        val sealed = record.encryptedAESKey
        val opened = try {
            renewed?.await() ?: sealed?.let { deps.exchange.openFromAny(record, it) }
        } catch (error: CallsignException) {
            // Another device may give the key in a way that can be verified.
            report(error)
            null
        }
        if (opened == null) rejoining.ask(record) else enter(record, opened)
    }

    private suspend fun joined(): CallRecord = try {
        postJoin()
    } catch (error: CallsignException) {
        if (error.code == "REJOIN_REQUIRED") read() else throw error
    }

    /** Leaves the call that this device is in for it, also one that the app knows nothing of. */
    private suspend fun postJoin(): CallRecord {
        assertGoesOn()
        deps.leaveOther(this)
        assertGoesOn()
        mayBeIn = true
        val record = try {
            callRecordOf(post("join", null))
        } catch (error: CallsignException) {
            if (error.code != "ALREADY_IN_CALL") throw error
            deps.session.request("POST", "call/${error.members.needText("callId")}/leave")
            callRecordOf(post("join", null))
        }
        // Else it would be shown as a participant.
        if (isClosed) deps.session.request("POST", "$path/leave")
        assertGoesOn()
        return record
    }

    private fun assertGoesOn() {
        if (isClosed) throw CallsignException("CALL_NOT_ACTIVE", "The call has ended here.")
    }

    /** Subscribes to the call's topic, then reads the call: earlier events are in the record, later ones arrive. */
    private suspend fun watch() {
        if (isWatching) return
        isWatching = true
        try {
            val stop = deps.connection.watch("/topic/call.$callId", ::onTopic)
            if (isClosed) return stop()
            unwatch = stop
            refresh()
        } catch (error: CallsignException) {
            isWatching = false
            report(error)
        }
    }

    private suspend fun withTopic(answer: suspend () -> CallRecord): CallRecord {
        val reading = Reading()
        readings += reading
        try {
            val record = answer()
            return reading.told.fold(record, CallRecord::changedBy)
        } finally {
            readings -= reading
        }
    }

    private fun take(record: CallRecord) {
        this.record = record
        people.value = record.participants
    }

    private suspend fun show(record: CallRecord) {
        if (isClosed) return
        if (isOver(record.status)) return close(endingOf(record.endReason))
        take(record)
        when {
            self?.state == ParticipantState.REMOVED -> close(CallEnding.REMOVED)
            self?.state == ParticipantState.LEFT && !rejoining.isAsking -> close(CallEnding.LEFT)
            // The network was away for longer than the server waits.
            self?.state == ParticipantState.LOST && states.value == CallState.ACTIVE ->
                deps.scope.launch(start = CoroutineStart.UNDISPATCHED) { rejoining.ask(record) }
            states.value == CallState.RINGING && record.status == "active" -> setState(CallState.ACTIVE)
            else -> deps.onChanged()
        }
    }

    private fun onTopic(event: JsonObject) {
        val present = record
        if (isClosed || present == null) return
        for (reading in readings) reading.told += event
        take(present.changedBy(event))
        if (event.text("type") == "host_changed") deps.scope.launch { rejoining.onHostChanged() }
        if ("participant" in event) onParticipant(participantOf(event.member("participant")))
        else if (event.text("type") == "call_status" && isOver(event.needText("status"))) closeSoon()
        deps.onChanged()
    }

    private fun onParticipant(participant: CallParticipant) {
        val userId = participant.userId
        tell(CallEvent.ParticipantChanged(participant))
        if (states.value == CallState.RINGING && participant.state == ParticipantState.JOINED) {
            record = record?.copy(startedAtMs = deps.server.serverTimeMs())
            setState(CallState.ACTIVE)
        }
        if (userId != deps.userId && participant.state in GONE) rotation.planAfterLeaving()
        if (userId == deps.userId && participant.state == ParticipantState.REMOVED) close(CallEnding.REMOVED)
    }

    private fun onMediaReady(gateway: CallGateway) {
        admission = gateway
        tell(CallEvent.MediaReady(gateway))
    }

    fun hold(epoch: Long, opened: OpenedKey) {
        val held = epochKeys.hold(epoch, opened.key) ?: return
        newest.value = held
        tell(CallEvent.KeyChanged(held.epoch, held.fingerprint, opened.userId))
        deps.onChanged()
    }

    private suspend fun onKeyUpdate(event: JsonObject) {
        val epoch = event.needNumber("epoch")
        val sealed = event.needText("encryptedAESKey")
        val from = event.needId("fromUserId")
        val open = suspend { deps.exchange.open(sealed, from, event.needId("fromDeviceId")) }
        // It still rings here: the invitation's key is not good any more.
        if (!isPresent) {
            if (!isClosed) invite(epoch, sealed, open)
            return
        }
        val opened = try {
            open()
        } catch (error: CallsignException) {
            report(error)
            null
        }
        if (isClosed) return
        // Another device may give the key in a way that can be verified.
        if (opened == null) return joining?.await() ?: rejoining.ask(read())
        if (rejoining.isAsking) rejoining.comeBack(epoch, opened) else hold(epoch, opened)
    }

    private fun tell(event: CallEvent) {
        news.tryEmit(event)
    }

    private suspend fun quietly(act: suspend () -> Unit) {
        try {
            act()
        } catch (_: CallsignException) {
            // The server finds out by itself.
        }
    }

    private companion object {
        val GONE = setOf(ParticipantState.LEFT, ParticipantState.LOST, ParticipantState.REMOVED)
        const val REASON_WAIT_MS = 2_000L
        const val RECONNECTION_WAIT_MS = 30_000L
    }
}

internal fun endingOf(reason: String?): CallEnding = namedOrNull<CallEnding>(reason) ?: CallEnding.UNKNOWN
