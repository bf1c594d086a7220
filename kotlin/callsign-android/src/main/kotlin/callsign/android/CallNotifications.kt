package callsign.android

import android.app.Notification
import android.app.NotificationManager
import android.app.PendingIntent
import android.app.Person
import android.content.Context
import android.content.Intent
import android.net.Uri
import android.os.Build
import android.provider.Settings
import callsign.app.AfterRinging
import callsign.app.PushAction
import callsign.app.StopReason

/** Where the notifications lead. */
public interface CallIntents {
    /** The call screen, also over the lock screen. */
    public fun screen(callId: String): PendingIntent

    public fun answer(callId: String): PendingIntent

    /** Declines what rings, and ends what is on. */
    public fun hangUp(callId: String): PendingIntent

    /** The app, as its icon opens it. */
    public fun home(): PendingIntent
}

/**
 * What the phone shows of calls. Each call has one notification, which the next takes the place of: it rings, then was missed, or
 * says for ten seconds that another device has it. Firebase shows the push of a missed call in the same place: its tag is the
 * call's id. [icon] is a drawable of the app in one colour.
 */
public class CallNotifications(
    private val context: Context,
    private val icon: Int,
    private val intents: CallIntents,
) {
    private val manager = context.getSystemService(NotificationManager::class.java)

    /** Rings for [forMs] at the longest, also where Android has ended the app meanwhile. */
    public fun ring(callId: String, name: String, isContact: Boolean, forMs: Long) {
        val builder = builder(CallsignChannels.CALLS, intents.screen(callId))
            .setFullScreenIntent(intents.screen(callId), true)
            .setOngoing(true)
            .setTimeoutAfter(forMs)
        styled(builder, shownName(name, isContact), intents.answer(callId), intents.hangUp(callId))
        val notification = builder.build()
        // The sound goes on until the notification goes.
        notification.flags = notification.flags or Notification.FLAG_INSISTENT
        show(callId, notification)
    }

    /** It rings no longer, as `PushAction.StopRinging` says. */
    public fun stop(callId: String, shows: AfterRinging): Unit = when (shows) {
        is AfterRinging.MissedCall -> missed(callId, shows.name, shows.isContact)
        is AfterRinging.Quiet -> quiet(callId, shows.reason)
        is AfterRinging.None -> cancel(callId)
    }

    public fun missed(callId: String, name: String, isContact: Boolean) {
        val words = if (isContact) R.string.missed_call else R.string.missed_call_stranger
        val builder = builder(CallsignChannels.MISSED, intents.home())
            .setContentText(context.getString(words, name))
            .setCategory(CATEGORY_MISSED_CALL)
            .setAutoCancel(true)
        show(callId, builder.build())
    }

    /** Android counts the pushes that show nothing against the app, so another device's answer is shown for a moment. */
    public fun quiet(callId: String, reason: StopReason) {
        val words = when (reason) {
            StopReason.ANSWERED_ELSEWHERE -> R.string.callsign_answered_elsewhere
            StopReason.DECLINED_ELSEWHERE -> R.string.callsign_declined_elsewhere
            StopReason.CANCELLED, StopReason.ENDED -> return cancel(callId)
        }
        val builder = builder(CallsignChannels.ONGOING, intents.home())
            .setContentText(context.getString(words))
            .setAutoCancel(true)
            .setTimeoutAfter(QUIET_MS)
        show(callId, builder.build())
    }

    /** Answered here, say: nothing of the call stays but what [ongoing] shows. */
    public fun cancel(callId: String): Unit = manager.cancel(callId, ID)

    /** For the foreground service that keeps the app running while the call is on. */
    public fun ongoing(callId: String, name: String, isContact: Boolean): Notification {
        val builder = builder(CallsignChannels.ONGOING, intents.screen(callId))
            .setContentText(context.getString(R.string.callsign_ongoing_call))
            .setOngoing(true)
        styled(builder, shownName(name, isContact), null, intents.hangUp(callId))
        return builder.build()
    }

    /** False for a type that this package has no words for. */
    public fun tell(notice: PushAction.Notice): Boolean {
        val members = notice.members
        if (notice.type == "missed_call") {
            missed(members["callId"].orEmpty(), members["callerName"].orEmpty(), members["isContact"] == "true")
            return true
        }
        val (channel, sentence) = sentenceOf(notice.type, members) ?: return false
        val builder = builder(channel, intents.home()).setContentText(sentence).setAutoCancel(true)
        builder.style = Notification.BigTextStyle().bigText(sentence)
        show(members["eventId"] ?: notice.type, builder.build())
        return true
    }

    /** The caller's name as it is to be shown: a stranger may have any name, that of a contact too. */
    public fun shownName(name: String, isContact: Boolean): String =
        if (isContact) name else context.getString(R.string.callsign_stranger, name)

    /**
     * The page of the phone's settings where the user lets calls show over the lock screen; null where they do. Android 14 and later
     * let the user take it away, and some shops' copies of an app never have it: a call is then a banner alone.
     */
    public fun fullScreenSettings(): Intent? {
        if (Build.VERSION.SDK_INT < Build.VERSION_CODES.UPSIDE_DOWN_CAKE || manager.canUseFullScreenIntent()) return null
        return Intent(Settings.ACTION_MANAGE_APP_USE_FULL_SCREEN_INTENT, Uri.fromParts("package", context.packageName, null))
    }

    /** The words of a push that was not shown by Firebase: as the server fills them. */
    private fun sentenceOf(type: String, members: Map<String, String>): Pair<String, String>? {
        val person = members["displayName"].orEmpty()
        val device = members["name"].orEmpty()
        val client = members["userAgent"].orEmpty().ifEmpty { members["network"].orEmpty() }
        return when (type) {
            "newFriendRequested" -> ofContacts(R.string.newFriendRequested, person)
            "acceptFriendRequested" -> ofContacts(R.string.acceptFriendRequested, person)
            "device_added" -> ofAccount(R.string.device_added, device)
            "device_list_reset" -> ofAccount(R.string.device_list_reset, device)
            "device_push_lost" -> ofAccount(R.string.device_push_lost, device)
            "session_started" ->
                if (client.isEmpty()) ofAccount(R.string.session_started_unknown)
                else ofAccount(R.string.session_started, client)
            "session_ending" -> ofAccount(R.string.session_ending)
            "session_revoked" -> ofAccount(R.string.session_revoked)
            "sign_in_waiting" ->
                if (client.isEmpty()) ofAccount(R.string.sign_in_waiting_unknown)
                else ofAccount(R.string.sign_in_waiting, client)
            "login_method_lost" -> ofAccount(R.string.login_method_lost)
            else -> null
        }
    }

    private fun ofContacts(words: Int, name: String) = CallsignChannels.CONTACTS to context.getString(words, name)

    private fun ofAccount(words: Int, vararg names: String) = CallsignChannels.ACCOUNT to context.getString(words, *names)

    private fun builder(channel: String, leadsTo: PendingIntent) = Notification.Builder(context, channel)
        .setSmallIcon(icon)
        .setContentIntent(leadsTo)
        // What takes the place of a ring makes no second sound.
        .setOnlyAlertOnce(true)

    private fun styled(builder: Notification.Builder, name: String, answer: PendingIntent?, hangUp: PendingIntent) {
        builder.setCategory(Notification.CATEGORY_CALL).setContentTitle(name)
        if (Build.VERSION.SDK_INT >= Build.VERSION_CODES.S) {
            val person = Person.Builder().setName(name).setImportant(true).build()
            builder.style = when (answer) {
                null -> Notification.CallStyle.forOngoingCall(person, hangUp)
                else -> Notification.CallStyle.forIncomingCall(person, hangUp, answer)
            }
            return
        }
        if (answer != null) builder.addAction(action(R.string.callsign_answer, answer))
        builder.addAction(action(if (answer == null) R.string.callsign_hang_up else R.string.callsign_decline, hangUp))
    }

    private fun action(label: Int, leadsTo: PendingIntent) =
        Notification.Action.Builder(null, context.getString(label), leadsTo).build()

    private fun show(tag: String, notification: Notification) = manager.notify(tag, ID, notification)

    private companion object {
        /** Firebase's own. */
        const val ID = 0
        const val QUIET_MS = 10_000L

        /** `Notification.CATEGORY_MISSED_CALL` of Android 12. */
        const val CATEGORY_MISSED_CALL = "missed_call"
    }
}
