package org.example.calls

import android.app.Notification
import android.app.NotificationChannel
import android.app.NotificationManager
import android.app.PendingIntent
import android.app.Person
import android.content.ComponentName
import android.content.Intent
import android.net.Uri
import android.os.Build
import android.os.Bundle
import android.telecom.DisconnectCause
import android.telecom.PhoneAccount
import android.telecom.PhoneAccountHandle
import android.telecom.TelecomManager
import callsign.app.Call
import callsign.app.CallEnding
import callsign.app.CallState
import callsign.app.DeclineReason
import callsign.app.PushedCall
import kotlinx.coroutines.delay
import kotlinx.coroutines.flow.first
import kotlinx.coroutines.launch
import kotlinx.coroutines.withTimeoutOrNull

/** A stranger may have any name, that of a contact too. */
fun shownName(name: String, isContact: Boolean?): String = if (isContact == false) "$name (not a contact)" else name

/** Shows calls to the system: Telecom knows each one, and a notification rings. For the main thread. */
class Phone(private val app: CallsApp) {
    private class Shown(val name: String) {
        var connection: CallConnection? = null
        var isFollowed = false
    }

    private val telecom = app.getSystemService(TelecomManager::class.java)
    private val notifications = app.getSystemService(NotificationManager::class.java)
    private val account = PhoneAccountHandle(ComponentName(app, CallConnections::class.java), "calls")
    private val shown = HashMap<String, Shown>()

    fun register() {
        val ringing = NotificationChannel(RINGING, "Incoming calls", NotificationManager.IMPORTANCE_HIGH)
        val news = NotificationChannel(NEWS, "Calls and contacts", NotificationManager.IMPORTANCE_DEFAULT)
        notifications.createNotificationChannels(listOf(ringing, news))
        val phoneAccount = PhoneAccount.builder(account, "Calls").setCapabilities(PhoneAccount.CAPABILITY_SELF_MANAGED)
        telecom.registerPhoneAccount(phoneAccount.build())
    }

    /** By push: the call itself may come later, by the socket. */
    fun ring(call: PushedCall, forMs: Long) {
        if (!begin(call.callId, shownName(call.callerName, call.isContact))) return
        app.scope.launch {
            delay(forMs)
            if (callOf(call.callId) == null) stop(call.callId, DisconnectCause.MISSED)
        }
    }

    /** By push or socket, whichever was first. */
    fun ring(call: Call) {
        begin(call.callId, shownName(call.caller.name, call.caller.isContact))
        follow(call)
    }

    /** A call that this user has begun. */
    fun place(call: Call, name: String) {
        shown[call.callId] = Shown(name)
        val extras = Bundle().apply {
            putParcelable(TelecomManager.EXTRA_PHONE_ACCOUNT_HANDLE, account)
            putBundle(TelecomManager.EXTRA_OUTGOING_CALL_EXTRAS, extrasOf(call.callId))
        }
        telecom.placeCall(Uri.fromParts(SCHEME, call.callId, null), extras)
        follow(call)
        app.startActivity(screen(call.callId).addFlags(Intent.FLAG_ACTIVITY_NEW_TASK))
    }

    fun stop(callId: String, cause: Int) {
        notifications.cancel(callId, RINGING_ID)
        shown.remove(callId)?.connection?.close(cause)
    }

    fun tell(sentence: String) {
        val notification = Notification.Builder(app, NEWS)
            .setSmallIcon(ICON)
            .setContentText(sentence)
            .setContentIntent(activity(Intent(app, MainActivity::class.java)))
            .setAutoCancel(true)
        notifications.notify(sentence, NEWS_ID, notification.build())
    }

    /** Telecom asks for it. Null once the call has ended. */
    fun connectionFor(callId: String, isIncoming: Boolean): CallConnection? {
        val entry = shown[callId] ?: return null
        return CallConnection(app, callId, entry.name).apply {
            entry.connection = this
            when {
                callOf(callId)?.state?.value == CallState.ACTIVE -> setActive()
                isIncoming -> setRinging()
                else -> setDialing()
            }
        }
    }

    /** Telecom lets it ring. */
    fun showRinging(callId: String) {
        val name = shown[callId]?.name ?: return
        val notification = Notification.Builder(app, RINGING)
            .setSmallIcon(ICON)
            .setCategory(Notification.CATEGORY_CALL)
            .setFullScreenIntent(activity(screen(callId)), true)
            .setOngoing(true)
        styled(notification, name, activity(screen(callId).setAction(ANSWER)), hangUp(callId))
        notifications.notify(callId, RINGING_ID, notification.build())
    }

    fun ongoing(callId: String): Notification {
        val notification = Notification.Builder(app, NEWS).setSmallIcon(ICON).setContentIntent(activity(screen(callId)))
        styled(notification, shown[callId]?.name.orEmpty(), null, hangUp(callId))
        return notification.build()
    }

    /** A screen asks about keys in [answer]; without one it is only said. */
    fun answer(callId: String, answer: suspend (Call) -> Unit = { it.answer() }) {
        notifications.cancel(callId, RINGING_ID)
        app.start(::tell) {
            val call = awaitCall(callId)
            if (call == null) stop(callId, DisconnectCause.ERROR) else answer(call)
        }
    }

    /** After a push without the key, the call comes with the connection. Null where it does not. */
    suspend fun awaitCall(callId: String): Call? = withTimeoutOrNull(CONNECTED_WITHIN_MS) {
        app.me.calls.first { callOf(callId) != null }
        callOf(callId)
    }

    /** Declines what rings, and leaves or ends the rest. */
    fun hangUp(callId: String, reason: DeclineReason = DeclineReason.DECLINED) {
        val call = callOf(callId)
        stop(callId, if (call?.state?.value == CallState.RINGING) DisconnectCause.REJECTED else DisconnectCause.LOCAL)
        app.start(::tell) {
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
    private fun begin(callId: String, name: String): Boolean {
        if (callId in shown) return false
        shown[callId] = Shown(name)
        val extras = Bundle().apply { putBundle(TelecomManager.EXTRA_INCOMING_CALL_EXTRAS, extrasOf(callId)) }
        telecom.addNewIncomingCall(account, extras)
        return true
    }

    private fun follow(call: Call) {
        val entry = shown[call.callId] ?: return
        if (entry.isFollowed) return
        entry.isFollowed = true
        app.scope.launch {
            call.state.first { state ->
                if (state == CallState.ACTIVE) {
                    notifications.cancel(call.callId, RINGING_ID)
                    entry.connection?.setActive()
                    OngoingCall.start(app, call.callId)
                }
                state == CallState.ENDED
            }
            OngoingCall.stop(app)
            stop(call.callId, causeOf(call.ending))
        }
    }

    private fun causeOf(ending: CallEnding?) = when (ending) {
        CallEnding.ANSWERED_ELSEWHERE -> DisconnectCause.ANSWERED_ELSEWHERE
        CallEnding.CANCELLED, CallEnding.MISSED, CallEnding.UNANSWERED -> DisconnectCause.MISSED
        CallEnding.DECLINED, CallEnding.DECLINED_ELSEWHERE -> DisconnectCause.REJECTED
        CallEnding.LEFT -> DisconnectCause.LOCAL
        else -> DisconnectCause.REMOTE
    }

    private fun styled(notification: Notification.Builder, name: String, answer: PendingIntent?, hangUp: PendingIntent) {
        if (Build.VERSION.SDK_INT >= Build.VERSION_CODES.S) {
            val person = Person.Builder().setName(name.ifEmpty { "Call" }).setImportant(true).build()
            notification.style = when (answer) {
                null -> Notification.CallStyle.forOngoingCall(person, hangUp)
                else -> Notification.CallStyle.forIncomingCall(person, hangUp, answer)
            }
            return
        }
        notification.setContentTitle(name)
        if (answer != null) notification.addAction(Notification.Action.Builder(null, "Answer", answer).build())
        notification.addAction(Notification.Action.Builder(null, "Hang up", hangUp).build())
    }

    private fun extrasOf(callId: String) = Bundle().apply { putString(CALL_ID, callId) }

    /** The data tells the intents of two calls apart. */
    private fun screen(callId: String) = Intent(app, CallActivity::class.java).setData(Uri.fromParts(SCHEME, callId, null))

    private fun activity(intent: Intent) = PendingIntent.getActivity(app, 0, intent, FLAGS)

    private fun hangUp(callId: String): PendingIntent {
        val intent = Intent(app, HangUp::class.java).setData(Uri.fromParts(SCHEME, callId, null))
        return PendingIntent.getBroadcast(app, 0, intent, FLAGS)
    }

    companion object {
        const val ANSWER = "answer"
        const val CALL_ID = "callId"
        private const val SCHEME = "callsign"
        private const val RINGING = "ringing"
        private const val NEWS = "news"
        private const val RINGING_ID = 1
        private const val NEWS_ID = 2
        private const val ICON = android.R.drawable.sym_action_call
        private const val CONNECTED_WITHIN_MS = 10_000L
        private const val FLAGS = PendingIntent.FLAG_IMMUTABLE or PendingIntent.FLAG_UPDATE_CURRENT
    }
}
