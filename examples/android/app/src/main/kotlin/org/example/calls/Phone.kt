package org.example.calls

import android.app.Notification
import android.app.NotificationManager
import android.content.Intent
import android.content.pm.PackageManager
import android.os.Build
import android.telecom.DisconnectCause
import androidx.core.telecom.CallsManager
import callsign.android.CallNotifications
import callsign.android.CallsignChannels
import callsign.app.Call
import callsign.app.CallEnding
import callsign.app.CallState
import callsign.app.DeclineReason
import callsign.app.PushAction
import callsign.app.PushedCall
import callsign.app.StopReason
import kotlinx.coroutines.delay
import kotlinx.coroutines.flow.first
import kotlinx.coroutines.launch
import kotlinx.coroutines.withTimeoutOrNull

/** Shows calls to the person and to the system: a notification rings, and Telecom knows each call. For the main thread. */
class Phone(private val app: CallsApp) {
    private class Shown(val name: String, val isContact: Boolean, val telecom: TelecomCall) {
        var isFollowed = false
    }

    private val screens = Screens(app)
    val notifications = CallNotifications(app, ICON, screens)

    /** Null where there is no Telecom, as on some tablets. */
    private val telecom = if (hasTelecom()) CallsManager(app) else null
    private val shown = HashMap<String, Shown>()

    fun register() {
        CallsignChannels.create(app)
        telecom?.registerAppWithTelecom(CallsManager.CAPABILITY_SUPPORTS_VIDEO_CALLING)
    }

    /** By push: the call itself may come later, by the socket. */
    fun ring(call: PushedCall, forMs: Long) {
        if (!begin(call.callId, call.callerName, call.isContact, isIncoming = true, call.isVideo)) return
        notifications.ring(call.callId, call.callerName, call.isContact, forMs)
        app.scope.launch {
            delay(forMs)
            if (callOf(call.callId) == null) stop(call.callId, CallEnding.MISSED)
        }
    }

    /** By push or socket, whichever was first. */
    fun ring(call: Call) {
        val isContact = call.caller.isContact != false
        if (begin(call.callId, call.caller.name, isContact, isIncoming = true, call.isVideo))
            notifications.ring(call.callId, call.caller.name, isContact, RINGS_MS)
        follow(call)
    }

    /** A call that this user has begun. */
    fun place(call: Call, name: String) {
        begin(call.callId, name, isContact = true, isIncoming = false, call.isVideo)
        follow(call)
        app.startActivity(screens.callScreen(call.callId).addFlags(Intent.FLAG_ACTIVITY_NEW_TASK))
    }

    /** By push. */
    fun stop(action: PushAction.StopRinging) {
        if (callOf(action.callId)?.state?.value == CallState.ACTIVE) return
        notifications.stop(action.callId, action.shows)
        val cause = when (action.reason) {
            StopReason.ANSWERED_ELSEWHERE, StopReason.ENDED -> DisconnectCause.REMOTE
            StopReason.DECLINED_ELSEWHERE -> DisconnectCause.REJECTED
            StopReason.CANCELLED -> DisconnectCause.MISSED
        }
        shown.remove(action.callId)?.telecom?.end(cause)
    }

    /** What the app has to say while it may be behind another. */
    fun tell(sentence: String) {
        val notification = Notification.Builder(app, CallsignChannels.ACCOUNT)
            .setSmallIcon(ICON)
            .setContentText(sentence)
            .setContentIntent(screens.home())
            .setAutoCancel(true)
        app.getSystemService(NotificationManager::class.java).notify(sentence, 0, notification.build())
    }

    fun ongoing(callId: String): Notification {
        val entry = shown[callId]
        return notifications.ongoing(callId, entry?.name.orEmpty(), entry?.isContact != false)
    }

    /** A screen asks about keys in [answer]; without one it is only said. */
    fun answer(callId: String, answer: suspend (Call) -> Unit = { it.answer() }) {
        app.start(::tell) {
            if (shown[callId]?.telecom?.activate() == false) return@start tell("Another call can't be put on hold")
            notifications.cancel(callId)
            val call = awaitCall(callId)
            if (call == null) stop(callId, CallEnding.UNKNOWN) else answer(call)
        }
    }

    /** After a push without the key, the call comes with the connection. Null where it does not. */
    suspend fun awaitCall(callId: String): Call? = withTimeoutOrNull(CONNECTED_WITHIN_MS) {
        app.me.calls.first { callOf(callId) != null }
        callOf(callId)
    }

    /** Declines what rings, and leaves or ends the rest. */
    fun hangUp(callId: String, reason: DeclineReason = DeclineReason.DECLINED) {
        val isOn = callOf(callId)?.state?.value != CallState.RINGING
        stop(callId, if (isOn) CallEnding.LEFT else CallEnding.DECLINED)
        app.start(::tell) {
            val call = awaitCall(callId)
            when {
                call == null -> return@start
                call.isIncoming && call.state.value == CallState.RINGING -> call.decline(reason)
                call.isHost || call.participants.value.size <= 2 -> call.end()
                else -> call.leave()
            }
        }
    }

    fun callOf(callId: String): Call? = app.me.calls.value.find { it.callId == callId }

    /** False where it is shown already. */
    private fun begin(callId: String, name: String, isContact: Boolean, isIncoming: Boolean, isVideo: Boolean): Boolean {
        if (callId in shown) return false
        val call = TelecomCall(app, callId, notifications.shownName(name, isContact), isIncoming, isVideo)
        shown[callId] = Shown(name, isContact, call)
        app.scope.launch { call.run(telecom) }
        return true
    }

    private fun follow(call: Call) {
        val entry = shown[call.callId] ?: return
        if (entry.isFollowed) return
        entry.isFollowed = true
        app.scope.launch {
            var wasActive = false
            call.state.first { state ->
                if (state == CallState.ACTIVE && !wasActive) {
                    wasActive = true
                    begun(call, entry)
                }
                state == CallState.ENDED
            }
            OngoingCall.stop(app)
            // A call that was on, or that this user had begun, was not missed.
            stop(call.callId, if (wasActive || !call.isIncoming) CallEnding.HANGUP else call.ending)
        }
    }

    private suspend fun begun(call: Call, entry: Shown) {
        notifications.cancel(call.callId)
        OngoingCall.start(app, call.callId)
        if (!entry.telecom.activate()) {
            tell("Another call can't be put on hold")
            hangUp(call.callId)
        }
    }

    private fun stop(callId: String, ending: CallEnding?) {
        val entry = shown.remove(callId) ?: return
        entry.telecom.end(causeOf(ending))
        when (ending) {
            CallEnding.CANCELLED, CallEnding.MISSED, CallEnding.UNANSWERED ->
                notifications.missed(callId, entry.name, entry.isContact)
            CallEnding.ANSWERED_ELSEWHERE -> notifications.quiet(callId, StopReason.ANSWERED_ELSEWHERE)
            CallEnding.DECLINED_ELSEWHERE -> notifications.quiet(callId, StopReason.DECLINED_ELSEWHERE)
            else -> notifications.cancel(callId)
        }
    }

    private fun causeOf(ending: CallEnding?) = when (ending) {
        CallEnding.CANCELLED, CallEnding.MISSED, CallEnding.UNANSWERED -> DisconnectCause.MISSED
        CallEnding.DECLINED, CallEnding.DECLINED_ELSEWHERE -> DisconnectCause.REJECTED
        CallEnding.LEFT -> DisconnectCause.LOCAL
        else -> DisconnectCause.REMOTE
    }

    private fun hasTelecom(): Boolean {
        @Suppress("DEPRECATION")
        val feature =
            if (Build.VERSION.SDK_INT < Build.VERSION_CODES.TIRAMISU) PackageManager.FEATURE_CONNECTION_SERVICE
            else PackageManager.FEATURE_TELECOM
        return app.packageManager.hasSystemFeature(feature)
    }

    private companion object {
        const val ICON = android.R.drawable.sym_action_call
        const val CONNECTED_WITHIN_MS = 10_000L

        /** At the longest: the SDK knows when it ends, but Android may end the app before. */
        const val RINGS_MS = 120_000L
    }
}
