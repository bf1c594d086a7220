package org.example.calls

import android.net.Uri
import android.telecom.DisconnectCause
import android.util.Log
import androidx.core.telecom.CallAttributesCompat
import androidx.core.telecom.CallControlResult
import androidx.core.telecom.CallControlScope
import androidx.core.telecom.CallException
import androidx.core.telecom.CallsManager
import callsign.app.DeclineReason
import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.currentCoroutineContext
import kotlinx.coroutines.ensureActive
import kotlinx.coroutines.launch
import kotlinx.coroutines.withTimeoutOrNull

/** A call as the system's Telecom knows it, so that its phone, a headset, a watch and a car work together with the app. */
class TelecomCall(
    private val app: CallsApp,
    private val callId: String,
    private val name: String,
    private val isIncoming: Boolean,
    isVideo: Boolean,
) {
    private val type = if (isVideo) CallAttributesCompat.CALL_TYPE_VIDEO_CALL else CallAttributesCompat.CALL_TYPE_AUDIO_CALL
    private val direction =
        if (isIncoming) CallAttributesCompat.DIRECTION_INCOMING else CallAttributesCompat.DIRECTION_OUTGOING

    /** Null where Telecom does not have the call: the app goes on without it. */
    private val control = CompletableDeferred<CallControlScope?>()
    private var isAnswered = false

    /** Returns once the call has ended. No call is put on hold: two would have one microphone. */
    suspend fun run(telecom: CallsManager?) {
        val address = Uri.fromParts("callsign", callId, null)
        try {
            telecom?.addCall(
                CallAttributesCompat(name, address, direction, type, callCapabilities = 0),
                onAnswer = { answeredOutside() },
                onDisconnect = { app.phone.hangUp(callId) },
                onSetActive = {},
                onSetInactive = {},
            ) { control.complete(this) }
        } catch (error: RuntimeException) {
            currentCoroutineContext().ensureActive()
            Log.w("calls", error)
            if (error is CallException && error.code in OTHER_CALL) app.phone.hangUp(callId, DeclineReason.BUSY)
        } finally {
            control.complete(null)
        }
    }

    /** False where Telecom has another call that cannot be put on hold. */
    suspend fun activate(): Boolean {
        val control = controlled()
        if (control == null || isAnswered) return true
        isAnswered = true
        val result = if (isIncoming) control.answer(type) else control.setActive()
        if (result is CallControlResult.Error) isAnswered = false
        return isAnswered
    }

    /** [cause] is `LOCAL`, `REMOTE`, `REJECTED` or `MISSED`: Telecom takes no others. */
    fun end(cause: Int) {
        app.scope.launch { controlled()?.disconnect(DisconnectCause(cause)) }
    }

    /** By a headset, a watch or a car. */
    private fun answeredOutside() {
        isAnswered = true
        app.phone.answer(callId)
    }

    private suspend fun controlled() = withTimeoutOrNull(TELECOM_MS) { control.await() }

    private companion object {
        const val TELECOM_MS = 5_000L
        val OTHER_CALL = setOf(
            CallException.ERROR_CANNOT_HOLD_CURRENT_ACTIVE_CALL,
            CallException.ERROR_CALL_NOT_PERMITTED_AT_PRESENT_TIME,
        )
    }
}
