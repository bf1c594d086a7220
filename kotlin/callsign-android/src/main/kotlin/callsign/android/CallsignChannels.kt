package callsign.android

import android.app.Notification
import android.app.NotificationChannel
import android.app.NotificationManager
import android.content.Context
import android.media.AudioAttributes
import android.media.RingtoneManager

/**
 * The channels of the notifications. The server names them in its pushes, so their ids stay as they are; the prefix keeps them apart
 * from the app's own.
 */
public object CallsignChannels {
    /** A call rings. */
    public const val CALLS: String = "callsign_calls"
    public const val MISSED: String = "callsign_missed"
    public const val CONTACTS: String = "callsign_contacts"
    public const val ACCOUNT: String = "callsign_account"

    /** A call is on, or was dealt with on another device: without a sound. */
    public const val ONGOING: String = "callsign_ongoing"

    /** At each start of the app, before any push: where they are there already, only their names follow the phone's language. */
    public fun create(context: Context) {
        val channels = listOf(
            channel(context, CALLS, R.string.callsign_channel_calls, NotificationManager.IMPORTANCE_HIGH).apply {
                val ringing = AudioAttributes.Builder().setUsage(AudioAttributes.USAGE_NOTIFICATION_RINGTONE)
                    .setContentType(AudioAttributes.CONTENT_TYPE_SONIFICATION)
                setSound(RingtoneManager.getDefaultUri(RingtoneManager.TYPE_RINGTONE), ringing.build())
                enableVibration(true)
                lockscreenVisibility = Notification.VISIBILITY_PUBLIC
                setShowBadge(false)
            },
            channel(context, MISSED, R.string.callsign_channel_missed, NotificationManager.IMPORTANCE_DEFAULT),
            channel(context, CONTACTS, R.string.callsign_channel_contacts, NotificationManager.IMPORTANCE_DEFAULT),
            channel(context, ACCOUNT, R.string.callsign_channel_account, NotificationManager.IMPORTANCE_DEFAULT),
            channel(context, ONGOING, R.string.callsign_channel_ongoing, NotificationManager.IMPORTANCE_LOW).apply {
                setShowBadge(false)
            },
        )
        context.getSystemService(NotificationManager::class.java).createNotificationChannels(channels)
    }

    private fun channel(context: Context, id: String, name: Int, importance: Int) =
        NotificationChannel(id, context.getString(name), importance)
}
