/**
 * A call whose key is gone, with a restart or a long loss of the network: this device asks those in the call, comes back with
 * the first key that opens, and makes another one when no device has it. It also answers such asks.
 */
package callsign.app

import kotlinx.coroutines.Job
import kotlinx.coroutines.delay
import kotlinx.coroutines.launch
import kotlinx.serialization.json.JsonObject

internal class Rejoining(private val deps: CallDeps, private val call: LiveCall) {
    private var timer: Job? = null
    private var isReturning = false

    /** Users who asked for the key while this device did not have it either. */
    private val askers = HashSet<ULong>()

    val isAsking: Boolean get() = call.state.value == CallState.REJOINING || call.state.value == CallState.KEYLESS

    suspend fun ask(record: CallRecord) {
        call.begin(record, CallState.REJOINING)
        askAgain()
    }

    /** Without a key it is asked for again after the next connection, and after a while. */
    suspend fun askAgain(): Unit = attempt {
        val reply = deps.session.ask("POST", "${call.path}/request-rejoin")
        after(1_000 * reply.needNumber("expiresIn")) { attempt(::onNobodyGrants) }
        giveUpWhenAllAsk()
    }

    /** Those who had the key may all be gone. */
    suspend fun onHostChanged() {
        if (call.state.value == CallState.KEYLESS) attempt(::onNobodyGrants)
    }

    /**
     * A device of a participant has no key: it gets the key once it verifies. One that is not the device which they had joined
     * with waits until the person here says so: a server could have made it up.
     */
    suspend fun onAsked(event: JsonObject) {
        if (!call.isPresent) return
        val ask = KeyAsk(
            event.needId("userId"),
            event.needId("deviceId"),
            event.text("displayName").orEmpty(),
            event.needText("publicKeyHash"),
        )
        if (call.key.value == null) {
            askers += ask.userId
            return giveUpWhenAllAsk()
        }
        val asker = call.read().participant(ask.userId) ?: return
        if (asker.state == ParticipantState.REMOVED) return
        if (asker.deviceId == ask.deviceId) grant(ask) else call.askApp(ask)
    }

    suspend fun grant(ask: KeyAsk) {
        val held = call.key.value ?: return
        val sealed = deps.exchange.sealForDevice(held.key, ask.userId, ask.deviceId, ask.publicKeyHash)
        val answer = mapOf(
            "requesterUserId" to "${ask.userId}",
            "requesterDeviceId" to "${ask.deviceId}",
            "encryptedAESKey" to sealed,
        )
        deps.session.request("POST", "${call.path}/accept-rejoin", bodyOf(answer))
    }

    /** Takes the first answer that opens. */
    suspend fun onGranted(event: JsonObject) {
        if (!isAsking) return
        val from = event.needId("fromUserId")
        val opened = deps.exchange.open(event.needText("encryptedAESKey"), from, event.needId("fromDeviceId"))
        if (isAsking) comeBack(event.needNumber("keyEpoch"), opened)
    }

    /** Into the call, with the key that this device was given. */
    suspend fun comeBack(epoch: Long, opened: OpenedKey) {
        val record = callRecordOf(deps.session.ask("POST", "${call.path}/rejoin"))
        // It was sent before this device was lost, and the others have another one since.
        if (epoch < record.keyEpoch) return ask(record)
        stop()
        call.enter(record, opened, epoch)
    }

    fun stop() {
        timer?.cancel()
        askers.clear()
    }

    private suspend fun attempt(act: suspend () -> Unit) {
        if (!isAsking) return
        try {
            act()
        } catch (error: CallsignException) {
            if (error.hasCode("NO_ACTIVE_PARTICIPANT")) return attempt(::returnWithNewKey)
            if (error.hasCode("CALL_ENDED", "CALL_NOT_FOUND", "NOT_PARTICIPANT")) return call.closeSoon()
            call.report(error)
            after(AGAIN_MS, ::askAgain)
        }
    }

    private fun after(ms: Long, act: suspend () -> Unit) {
        timer?.cancel()
        if (!isAsking) return
        timer = deps.scope.launch {
            delay(ms)
            // From here on, a new timer does not break it off.
            deps.scope.launch { act() }
        }
    }

    private suspend fun onNobodyGrants() {
        call.setState(CallState.KEYLESS)
        if (call.isHost) returnWithNewKey() else after(AGAIN_MS, ::askAgain)
    }

    /** No device has the key any more: the host makes another one, once for all that say so. */
    private suspend fun returnWithNewKey() {
        if (isReturning) return
        isReturning = true
        try {
            makeKey()
        } finally {
            isReturning = false
        }
    }

    private suspend fun makeKey() {
        val record = callRecordOf(deps.session.ask("POST", "${call.path}/rejoin"))
        if (record.hostUserId != deps.userId) {
            call.setState(CallState.KEYLESS)
            return after(AGAIN_MS, ::askAgain)
        }
        stop()
        call.makeNewKey()
        call.begin(record, CallState.ACTIVE)
    }

    /** When all other devices ask too, none will answer: waiting is pointless. */
    private suspend fun giveUpWhenAllAsk() {
        if (!isAsking) return
        val others = call.participants.value.filter { it.state == ParticipantState.JOINED && it.userId != deps.userId }
        if (others.all { it.userId in askers }) attempt(::onNobodyGrants)
    }

    private companion object {
        const val AGAIN_MS = 30_000L
    }
}
