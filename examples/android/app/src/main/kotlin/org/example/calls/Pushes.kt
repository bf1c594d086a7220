package org.example.calls

import android.telecom.DisconnectCause
import android.util.Log
import callsign.app.CallsignException
import callsign.app.PushAction
import callsign.app.StopReason
import com.google.firebase.messaging.FirebaseMessagingService
import com.google.firebase.messaging.RemoteMessage
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.withContext

class Pushes : FirebaseMessagingService() {
    override fun onNewToken(token: String) {
        app.start { if (app.me.resume() != null) app.me.devices.putFcmToken(token) }
    }

    /** Firebase keeps the phone awake until it has returned. */
    override fun onMessageReceived(message: RemoteMessage): Unit = runBlocking {
        val action = try {
            app.me.onPush(message.data)
        } catch (error: CallsignException) {
            Log.w("calls", error.code, error)
            return@runBlocking
        }
        withContext(Dispatchers.Main) { show(action) }
    }

    private fun show(action: PushAction) {
        when (action) {
            is PushAction.Ringing -> app.phone.ring(action.call, action.forMs)
            is PushAction.StopRinging -> app.phone.stop(action.callId, causeOf(action.reason))
            is PushAction.Notice -> sentenceOf(action)?.let(app.phone::tell)
            is PushAction.Over, PushAction.Nothing -> return
        }
    }

    private fun causeOf(reason: StopReason) = when (reason) {
        StopReason.ANSWERED_ELSEWHERE -> DisconnectCause.ANSWERED_ELSEWHERE
        StopReason.DECLINED_ELSEWHERE -> DisconnectCause.REJECTED
        StopReason.CANCELLED -> DisconnectCause.MISSED
        StopReason.ENDED -> DisconnectCause.REMOTE
    }

    /** Of a type that the app does not know, nothing is shown. */
    private fun sentenceOf(notice: PushAction.Notice) = when (notice.type) {
        "missed_call" -> {
            val name = shownName(notice.members["callerName"].orEmpty(), notice.members["isContact"] == "true")
            "Missed call from $name"
        }
        "newFriendRequested" -> "A person wants to be your contact"
        "acceptFriendRequested" -> "A person is your contact now"
        "device_added" -> "A new device has signed in as you"
        "device_list_reset" -> "Your devices were started over. If that was not you, change your sign-in"
        "device_push_lost" -> "Calls do not wake one of your devices any more"
        "session_started" -> "Someone signed in as you with ${notice.members["userAgent"]}"
        "session_ending" -> "This device is signed out in two weeks unless you sign in again"
        "session_revoked" -> "A device was signed out"
        "sign_in_waiting" -> "Someone wants to sign in as you: approve or refuse it"
        "login_method_lost" -> "An address of yours opens another account now"
        else -> null
    }
}
