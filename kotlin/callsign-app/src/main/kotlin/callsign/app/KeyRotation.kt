/** The keys that this device makes in one call: at its start, when their time has run out, and after a participant has left. */
package callsign.app

import kotlinx.coroutines.Job
import kotlinx.coroutines.delay
import kotlinx.coroutines.launch
import kotlinx.serialization.json.JsonPrimitive
import kotlinx.serialization.json.buildJsonObject

internal class KeyRotation(private val deps: CallDeps, private val call: LiveCall) {
    private var timer: Job? = null

    /** The host makes a new key after so long. */
    fun plan(afterMs: Long) = plan(afterMs, "rotation")

    /** A little later, for several who leave at once. */
    fun planAfterLeaving() = plan(AFTER_LEAVING_MS, "leave")

    fun stop() {
        timer?.cancel()
    }

    suspend fun renew(reason: String = "rotation") {
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
            val others = call.participants.value.filter { it.userId != deps.userId }
            val hasOthers = others.any { it.state == ParticipantState.JOINED }
            if (call.isHost && call.state.value == CallState.ACTIVE && hasOthers)
                // From here on, a new timer does not break it off.
                deps.scope.launch { reporting(call::report) { renew(reason) } }
        }
    }

    private companion object {
        const val AFTER_LEAVING_MS = 5_000L
    }
}
