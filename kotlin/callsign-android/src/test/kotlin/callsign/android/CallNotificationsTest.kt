package callsign.android

import android.app.Application
import android.app.Notification
import android.app.NotificationManager
import android.app.PendingIntent
import android.content.Context
import android.content.ContextWrapper
import android.content.Intent
import android.content.res.Resources
import android.media.AudioAttributes
import android.os.Build
import callsign.app.AfterRinging
import callsign.app.PushAction
import callsign.app.StopReason
import java.io.File
import javax.xml.parsers.DocumentBuilderFactory
import org.junit.Assert.assertEquals
import org.junit.Assert.assertFalse
import org.junit.Assert.assertNotNull
import org.junit.Assert.assertNull
import org.junit.Assert.assertTrue
import org.junit.Test
import org.junit.runner.RunWith
import org.robolectric.RobolectricTestRunner
import org.robolectric.RuntimeEnvironment
import org.robolectric.Shadows.shadowOf
import org.robolectric.annotation.Config
import org.robolectric.util.ReflectionHelpers

/** Against Android's own classes on a JVM, with the words of the package's resources. */
@RunWith(RobolectricTestRunner::class)
@Config(sdk = [34], manifest = Config.NONE)
class CallNotificationsTest {
    private val app: Application = RuntimeEnvironment.getApplication()
    private val manager = app.getSystemService(NotificationManager::class.java)
    private val shown get() = manager.activeNotifications.toList()

    @Test
    fun `there are five channels, with names in each language`() {
        val names = LANGUAGES.map { language ->
            CallsignChannels.create(worded(language))
            manager.notificationChannels.map { it.id to "${it.name}" }.sortedBy { it.first }
        }
        for (channels in names) {
            val ids = listOf("account", "calls", "contacts", "missed", "ongoing").map { "callsign_$it" }
            assertEquals(ids, channels.map { it.first })
        }
        assertEquals(listOf("Incoming calls", "Cuộc gọi đến", "Eingehende Anrufe"), names.map { it[1].second })
        val calls = manager.getNotificationChannel(CallsignChannels.CALLS)
        assertEquals(NotificationManager.IMPORTANCE_HIGH, calls.importance)
        assertEquals(AudioAttributes.USAGE_NOTIFICATION_RINGTONE, calls.audioAttributes.usage)
        val quiet = manager.getNotificationChannel(CallsignChannels.ONGOING)
        assertEquals(NotificationManager.IMPORTANCE_LOW, quiet.importance)
    }

    @Test
    fun `a call rings over the lock screen until its end`() {
        notifications("").ring("71", "Ann", isContact = true, forMs = 42_000)
        val ring = only("71")
        assertEquals(CallsignChannels.CALLS, ring.channelId)
        assertEquals(42_000, ring.timeoutAfter)
        assertEquals("screen 71", ring.fullScreenIntent.action)
        assertTrue(ring.flags and Notification.FLAG_INSISTENT != 0)
        assertTrue(ring.flags and Notification.FLAG_ONGOING_EVENT != 0)
        assertEquals("Ann", ring.title)
        val (answer, hangUp) = listOf(Notification.EXTRA_ANSWER_INTENT, Notification.EXTRA_DECLINE_INTENT).map {
            ring.extras.getParcelable(it, PendingIntent::class.java)
        }
        assertEquals("answer 71", answer?.action)
        assertEquals("hangUp 71", hangUp?.action)
    }

    @Test
    fun `a stranger is called one`() {
        val names = LANGUAGES.map { language ->
            notifications(language).ring("71", "Ann", isContact = false, forMs = 42_000)
            only("71").title
        }
        assertEquals(listOf("Ann, not a contact", "Ann (không có trong danh bạ)", "Ann (kein Kontakt)"), names)
    }

    @Test
    fun `before Android 12 there are buttons with words`() {
        ReflectionHelpers.setStaticField(Build.VERSION::class.java, "SDK_INT", 30)
        val labels = LANGUAGES.map { language ->
            notifications(language).ring("71", "Ann", isContact = true, forMs = 42_000)
            val ongoing = notifications(language).ongoing("71", "Ann", isContact = true)
            (only("71").actions.toList() + ongoing.actions).map { "${it.title}" }
        }
        val buttons = listOf(
            listOf("Answer", "Decline", "Hang up"),
            listOf("Trả lời", "Từ chối", "Kết thúc"),
            listOf("Annehmen", "Ablehnen", "Auflegen"),
        )
        assertEquals(buttons, labels)
    }

    @Test
    fun `a missed call takes the place of the ring`() {
        val notifications = notifications("")
        notifications.ring("71", "Ann", isContact = true, forMs = 42_000)
        notifications.stop("71", AfterRinging.MissedCall("Ann", isContact = true))
        val missed = only("71")
        assertEquals(CallsignChannels.MISSED, missed.channelId)
        assertEquals("Missed call from Ann", missed.text)
        assertEquals(0, missed.flags and Notification.FLAG_INSISTENT)
        assertTrue(missed.flags and Notification.FLAG_ONLY_ALERT_ONCE != 0)
        notifications.stop("71", AfterRinging.MissedCall("Ann", isContact = false))
        assertEquals("Missed call from Ann, not a contact", only("71").text)
    }

    @Test
    fun `another device's answer is a line for ten seconds`() {
        val notifications = notifications("")
        notifications.ring("71", "Ann", isContact = true, forMs = 42_000)
        val lines = listOf(StopReason.ANSWERED_ELSEWHERE, StopReason.DECLINED_ELSEWHERE).map { reason ->
            notifications.stop("71", AfterRinging.Quiet(reason))
            val line = only("71")
            assertEquals(CallsignChannels.ONGOING, line.channelId)
            assertEquals(10_000, line.timeoutAfter)
            line.text
        }
        assertEquals(listOf("Answered on another device", "Declined on another device"), lines)
    }

    @Test
    fun `nothing stays of a call that has ended, nor of one that was answered here`() {
        val notifications = notifications("")
        notifications.ring("71", "Ann", isContact = true, forMs = 42_000)
        notifications.ring("72", "Bob", isContact = true, forMs = 42_000)
        notifications.stop("71", AfterRinging.None)
        only("72")
        notifications.cancel("72")
        assertEquals(emptyList<Any>(), shown)
    }

    @Test
    fun `each other push has its sentence, in the channel that Firebase would take`() {
        val members = mapOf("eventId" to "e1", "displayName" to "Ann", "name" to "Phone", "userAgent" to "Firefox")
        for (language in LANGUAGES) {
            for ((type, channel) in CHANNELS) for (given in listOf(members, members - "userAgent")) {
                assertTrue(type, notifications(language).tell(PushAction.Notice(type, given)))
                val notification = only("e1")
                assertEquals(type, channel, notification.channelId)
                val text = notification.text
                assertTrue(text, text.length > 10 && '%' !in text && "_" !in text && "  " !in text)
            }
        }
        val called = mapOf("callId" to "71", "callerName" to "Ann", "isContact" to "true")
        assertTrue(notifications("").tell(PushAction.Notice("missed_call", called)))
        assertEquals("Missed call from Ann", manager.activeNotifications.single { it.tag == "71" }.notification.text)
        assertFalse(notifications("").tell(PushAction.Notice("of_tomorrow", members)))
    }

    @Test
    fun `Android 14 has a page of settings for the lock screen`() {
        val settings = notifications("").fullScreenSettings()
        assertEquals("android.settings.MANAGE_APP_USE_FULL_SCREEN_INTENT", settings?.action)
        assertEquals("package:${app.packageName}", settings?.dataString)
        ReflectionHelpers.setStaticField(Build.VERSION::class.java, "SDK_INT", 33)
        assertNull(notifications("").fullScreenSettings())
    }

    private fun only(tag: String): Notification {
        val only = shown.single()
        assertEquals(tag to 0, only.tag to only.id)
        assertNotNull(manager.getNotificationChannel(only.notification.channelId))
        return only.notification
    }

    private fun notifications(language: String): CallNotifications {
        CallsignChannels.create(worded(language))
        return CallNotifications(worded(language), android.R.drawable.sym_action_call, Leads(app))
    }

    private fun worded(language: String): Context = Worded(app, wordsOf(language))

    private val Notification.title get() = "${extras.getCharSequence(Notification.EXTRA_TITLE)}"
    private val Notification.text get() = "${extras.getCharSequence(Notification.EXTRA_TEXT)}"
    private val PendingIntent.action get() = shadowOf(this).savedIntent.action

    private class Leads(private val context: Context) : CallIntents {
        override fun screen(callId: String) = pending("screen $callId")

        override fun answer(callId: String) = pending("answer $callId")

        override fun hangUp(callId: String) = pending("hangUp $callId")

        override fun home() = pending("home")

        private fun pending(action: String) =
            PendingIntent.getActivity(context, 0, Intent(action), PendingIntent.FLAG_IMMUTABLE)
    }

    private companion object {
        /** The suffixes of the folders. */
        val LANGUAGES = listOf("", "-vi", "-de")
        val CHANNELS = mapOf(
            "newFriendRequested" to "callsign_contacts",
            "acceptFriendRequested" to "callsign_contacts",
            "device_added" to "callsign_account",
            "device_list_reset" to "callsign_account",
            "device_push_lost" to "callsign_account",
            "session_started" to "callsign_account",
            "session_ending" to "callsign_account",
            "session_revoked" to "callsign_account",
            "sign_in_waiting" to "callsign_account",
            "login_method_lost" to "callsign_account",
        )

        /** By the numbers that the fields of R have here. */
        fun wordsOf(language: String): Map<Int, String> {
            val file = File("src/main/res/values$language/strings.xml")
            val strings = DocumentBuilderFactory.newInstance().newDocumentBuilder().parse(file).getElementsByTagName("string")
            return (0 until strings.length).associate { index ->
                val string = strings.item(index)
                val name = string.attributes.getNamedItem("name").nodeValue
                R.string::class.java.getField(name).setInt(null, FIRST_ID + index)
                FIRST_ID + index to string.textContent.replace("\\'", "'").replace("\\\"", "\"")
            }
        }

        const val FIRST_ID = 0x7f010000
    }
}

private class Worded(base: Context, private val words: Map<Int, String>) : ContextWrapper(base) {
    private val resources by lazy { WordedResources(base.resources, words) }

    override fun getResources(): Resources = resources
}

/** An app's build makes a table of the words; here they come from the files. */
@Suppress("DEPRECATION")
private class WordedResources(of: Resources, private val words: Map<Int, String>) :
    Resources(of.assets, of.displayMetrics, of.configuration) {
    override fun getText(id: Int): CharSequence = words[id] ?: super.getText(id)
}
