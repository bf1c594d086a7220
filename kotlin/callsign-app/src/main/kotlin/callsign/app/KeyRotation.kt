/** The keys that this device makes in one call: at its start, when their time has run out, and after a participant has left. */
package callsign.app

import kotlinx.coroutines.Job
import kotlinx.coroutines.delay
import kotlinx.coroutines.launch
import kotlinx.serialization.json.JsonPrimitive
import kotlinx.serialization.json.buildJsonObject

internal class KeyRotation(private val deps: CallDeps, private val call: LiveCall) {
    private var timer: Job? = null

    /** The host makes a new key after so long. Later, where it can't be made then. */
    fun plan(afterMs: Long) = plan(afterMs, "rotation")

    /** A little later, for several who leave at once. */
    fun planAfterLeaving() = plan(AFTER_LEAVING_MS, "leave")

    fun stop() {
        timer?.cancel()
    }

    suspend fun renew() {
        try {
            renew("rotation")
        } catch (error: CallsignException) {
            // The others may have it; then this device needs another one with them.
            plan(AFTER_LEAVING_MS)
            throw error
        }
    }

    private suspend fun renew(reason: String) {
        val made = makeCallKey()
        withFreshDevices {
            val record = call.read()
            val epoch = record.keyEpoch + 1
            send(record, epoch, made, reason)
            if (!call.isClosed) {
                call.hold(epoch, call.own(made))
                plan(record.keyRotationMs)
            }
        }
    }

    suspend fun resend() = withFreshDevices {
        val held = call.assertKey()
        send(call.read(), held.epoch, held.key, "emergency")
    }

    private suspend fun send(record: CallRecord, epoch: Long, key: ByteArray, reason: String) {
        val sealed = deps.exchange.sealForCall(key, record)
        val body = buildJsonObject {
            put("epoch", JsonPrimitive(epoch))
            put("reason", JsonPrimitive(reason))
            put("encryptedAESKeys", sealed)
        }
        deps.session.request("POST", "${call.path}/keys", body)
    }

    private fun plan(afterMs: Long, reason: String) {
        timer?.cancel()
        timer = deps.scope.launch {
            delay(afterMs)
            // From here on, a new timer does not break it off.
            deps.scope.launch { rotate(afterMs, reason) }
        }
    }

    private suspend fun rotate(afterMs: Long, reason: String) {
        val others = call.participants.value.filter { it.userId != deps.userId }
        val hasOthers = others.any { it.state == ParticipantState.JOINED }
        try {
            if (call.isHost && call.state.value == CallState.ACTIVE && hasOthers) return renew(reason)
        } catch (error: CallsignException) {
            call.report(error)
        }
        if (!call.isClosed) plan(minOf(2 * afterMs, AGAIN_MS), reason)
    }

    private companion object {
        const val AFTER_LEAVING_MS = 5_000L
        const val AGAIN_MS = 60_000L
    }
}
