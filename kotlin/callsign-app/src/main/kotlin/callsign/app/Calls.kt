/** The calls of this device: those that ring, and the one that it is in. */
package callsign.app

import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.CoroutineStart
import kotlinx.coroutines.async
import kotlinx.coroutines.awaitAll
import kotlinx.coroutines.launch
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive
import kotlinx.serialization.json.buildJsonObject

/** An invitation, by socket or by push. Times are milliseconds since 1970. */
internal class Invitation(
    val callId: String,
    val caller: Person,
    val isVideo: Boolean,
    val isOnGoing: Boolean,
    val encryptedAESKey: String,
    val keyEpoch: Long,
    val sentAtMs: Long,
    val expiresAtMs: Long,
)

internal fun invitationOf(members: JsonObject) = Invitation(
    callId = members.needText("callId"),
    caller = Person(members.needId("callerId"), members.text("callerName").orEmpty()),
    isVideo = members.flag("isVideo"),
    isOnGoing = members.flag("isOnGoing"),
    encryptedAESKey = members.needText("encryptedAESKey"),
    keyEpoch = members.needNumber("keyEpoch"),
    sentAtMs = members.needNumber("sentAt"),
    expiresAtMs = members.needTimeMs("expiresAt"),
)

/**
 * The invitation of a push, whose members are texts. Null where the key was too long for a push: the call rings with the next
 * connection.
 */
internal fun invitationIn(members: Map<String, String>): Invitation? =
    if ("encryptedAESKey" in members) invitationOf(bodyOf(members)) else null

/** How much longer an invitation rings, by the server's clock; as long as it was meant to while that is not known. */
internal fun Server.ringsForMs(sentAtMs: Long, expiresAtMs: Long): Long {
    val ringMs = expiresAtMs - sentAtMs
    return if (isTimeKnown) minOf(ringMs, expiresAtMs - serverTimeMs()) else ringMs
}

internal class Calls(
    private val scope: CoroutineScope,
    operations: Operations,
    private val server: Server,
    private val session: Session,
    connection: Connection,
    private val exchange: KeyExchange,
    private val device: RegisteredDevice,
    private val storage: AppStorage,
    private val onResumed: (Call) -> Unit,
    private val onChanged: () -> Unit,
) {
    private val userId = device.userId
    private val live = LinkedHashMap<String, LiveCall>()

    /** When calls ended here, by the server's clock, the oldest first: an older invitation does not ring again. */
    private val endedAtMs = LinkedHashMap<String, Long>()
    private var isClosing = false
    private var closings = 0

    /** Completes when the call of before a restart is there again, if there is one. */
    private val restored = CompletableDeferred<Unit>()
    private val presentKey = "call.$userId"
    private val callDeps = CallDeps(
        scope = scope,
        operations = operations,
        server = server,
        session = session,
        connection = connection,
        exchange = exchange,
        userId = userId,
        deviceId = device.deviceId,
        keepPresent = { callId -> storage.write(presentKey, bodyOf(mapOf("callId" to callId))) },
        leaveOther = ::leaveOther,
        onChanged = onChanged,
        onEnded = ::onEnded,
    )

    val all: List<Call> get() = live.values.toList()

    /** Throws unless every device of every callee verifies. */
    suspend fun start(userIds: List<ULong>, isVideo: Boolean, roomId: Long?): Call {
        val key = makeCallKey()
        val closingsBefore = closings
        val record = withFreshDevices {
            val body = buildJsonObject {
                put("calleeIds", idsOf(userIds))
                put("encryptedAESKeys", exchange.sealForUsers(key, userIds))
                put("isVideo", JsonPrimitive(isVideo))
                roomId?.let { put("roomId", JsonPrimitive(it)) }
            }
            callRecordOf(session.ask("POST", "call/start", body))
        }
        val call = add(factsOf(record), record.person(userId), CallState.RINGING)
        if (closings == closingsBefore) {
            call.enter(record, call.own(key))
        } else {
            call.close(CallEnding.LEFT)
            call.endForAll()
        }
        return call
    }

    /** Brings the user's call to this device: from another device, or one that they had left or missed. */
    suspend fun join(callId: String): Call {
        val record = callRecordOf(session.ask("GET", "call/$callId"))
        val invitedBy = record.participant(userId)?.invitedBy ?: record.initiatorId
        val call = live[callId] ?: add(factsOf(record), record.person(invitedBy), CallState.JOINING)
        call.join()
        return call
    }

    /** After each connection: what rings, and the call that this device was in. */
    suspend fun onConnected() {
        try {
            session.ask("GET", "call/pending").members("items").map(::callRecordOf).forEach(::onPending)
            val refreshing = live.values.toList().map { scope.async(start = CoroutineStart.UNDISPATCHED) { it.onConnected() } }
            refreshing.awaitAll()
            resume()
        } finally {
            restored.complete(Unit)
        }
    }

    suspend fun onMessage(event: JsonObject) {
        if (event.text("type") == "call_invitation") {
            onInvitation(invitationOf(event))
            return
        }
        val callId = event.text("callId") ?: return
        // Such as another device that asks for the key, after a restart of both.
        if (live[callId]?.isPresent != true) restored.await()
        val call = live[callId] ?: return
        try {
            call.onMessage(event)
        } catch (error: CallsignException) {
            if (error.code != "CALL_ENDED") throw error
            call.closeSoon()
        }
    }

    /** Gives the call, null where it has rung out. */
    fun onInvitation(invitation: Invitation): Call? {
        val callId = invitation.callId
        val forMs = server.ringsForMs(invitation.sentAtMs, invitation.expiresAtMs)
        val known = live[callId]
        if (known != null || forMs <= 0 || hasEnded(callId, invitation.sentAtMs)) return known
        val facts = CallFacts(callId, invitation.isVideo, invitation.isOnGoing)
        val call = add(facts, invitation.caller, CallState.RINGING, invitation.sentAtMs)
        call.ring(invitation.encryptedAESKey, invitation.keyEpoch, forMs)
        return call
    }

    /** Told by push. */
    fun onCancelled(callId: String, reason: CallEnding) {
        val call = live[callId] ?: return
        if (!call.isPresent) call.close(reason)
    }

    /** The session has ended, the app is closed, or another installation goes on: the next start asks the server. */
    fun closeAll(reason: CallEnding) {
        isClosing = true
        closings++
        for (call in live.values.toList()) call.close(reason)
        isClosing = false
    }

    /** A call that rang before the app was there. */
    private fun onPending(record: CallRecord) {
        val own = record.participant(userId) ?: return
        val sealed = record.encryptedAESKey ?: return
        if (record.callId in live || hasEnded(record.callId, own.invitedAtMs)) return
        add(factsOf(record), record.person(own.invitedBy), CallState.RINGING, own.invitedAtMs)
            .ring(sealed, record.keyEpoch, record.ringTimeoutMs)
    }

    private fun add(facts: CallFacts, caller: Person, initial: CallState, invitedAtMs: Long = 0): LiveCall {
        val call = LiveCall(callDeps, facts, caller, initial, invitedAtMs)
        live[facts.callId] = call
        onChanged()
        return call
    }

    /** The app was in a call when it ended. */
    private suspend fun resume() {
        val callId = storage.read(presentKey) { it.text("callId") } ?: return
        if (callId in live) return
        val record = try {
            callRecordOf(session.ask("GET", "call/$callId"))
        } catch (error: CallsignException) {
            if (!error.hasCode("CALL_ENDED", "CALL_NOT_FOUND", "NOT_PARTICIPANT")) throw error
            null
        }
        val own = record?.participant(userId)
        val isIn = own?.deviceId == device.deviceId && own.state in setOf(ParticipantState.JOINED, ParticipantState.LOST)
        // Another connection may have been faster.
        if (callId in live) return
        if (record == null || own == null || isOver(record.status) || !isIn) return forgetPresent()
        val call = add(factsOf(record), record.person(own.invitedBy), CallState.REJOINING)
        onResumed(call)
        call.resume(record)
    }

    private suspend fun leaveOther(call: LiveCall) {
        for (other in live.values.toList()) {
            if (other === call || !other.isPresent) continue
            if (other.state.value == CallState.RINGING) other.endForAll() else other.leaveHere()
        }
    }

    /** Since the invitation of this time. The server may not have heard of it yet. */
    private fun hasEnded(callId: String, invitedAtMs: Long) = invitedAtMs <= (endedAtMs[callId] ?: 0)

    private fun onEnded(call: LiveCall) {
        live.remove(call.callId)
        // The call may ring again when this installation comes back.
        if (isClosing) return
        // By this clock the invitation may not have been made yet.
        endedAtMs[call.callId] = maxOf(call.invitedAtMs, server.serverTimeMs())
        if (endedAtMs.size > ENDED_MAX) endedAtMs.remove(endedAtMs.keys.first())
        scope.launch {
            try {
                forgetPresent()
            } catch (_: CallsignException) {
                // The next start finds that the call has ended.
            }
        }
    }

    private suspend fun forgetPresent() {
        if (live.values.none { it.isPresent }) storage.write(presentKey, null)
    }

    private fun factsOf(record: CallRecord) = CallFacts(record.callId, record.isVideo, record.isOnGoing)

    private companion object {
        const val ENDED_MAX = 100
    }
}
