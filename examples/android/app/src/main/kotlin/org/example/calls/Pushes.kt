package org.example.calls

import android.util.Log
import callsign.app.CallsignException
import callsign.app.PushAction
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
            app.me.onPush(message.data, message.wasLowered)
        } catch (error: CallsignException) {
            Log.w("calls", error.code, error)
            return@runBlocking
        }
        withContext(Dispatchers.Main) { show(action) }
    }

    private fun show(action: PushAction) {
        when (action) {
            is PushAction.Ringing -> app.phone.ring(action.call, action.forMs)
            is PushAction.StopRinging -> app.phone.stop(action)
            is PushAction.Notice -> app.phone.notifications.tell(action)
            is PushAction.Over, PushAction.Nothing -> return
        }
    }
}

/** Android has made less of it than the server asked for: it does so for apps whose pushes often showed nothing. */
private val RemoteMessage.wasLowered: Boolean
    get() = originalPriority == RemoteMessage.PRIORITY_HIGH && priority != RemoteMessage.PRIORITY_HIGH
