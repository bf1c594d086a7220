package org.example.calls

import android.app.PendingIntent
import android.content.Intent
import android.net.Uri
import callsign.android.CallIntents

/** Where notifications lead. The data tells the intents of two calls apart. */
class Screens(private val app: CallsApp) : CallIntents {
    override fun screen(callId: String): PendingIntent = activity(callScreen(callId))

    override fun answer(callId: String): PendingIntent = activity(callScreen(callId).setAction(ANSWER))

    override fun hangUp(callId: String): PendingIntent {
        val intent = Intent(app, HangUp::class.java).setData(dataOf(callId))
        return PendingIntent.getBroadcast(app, 0, intent, FLAGS)
    }

    override fun home(): PendingIntent = activity(Intent(app, MainActivity::class.java))

    fun callScreen(callId: String): Intent = Intent(app, CallActivity::class.java).setData(dataOf(callId))

    private fun activity(intent: Intent) = PendingIntent.getActivity(app, 0, intent, FLAGS)

    companion object {
        const val ANSWER = "answer"
        private const val FLAGS = PendingIntent.FLAG_IMMUTABLE or PendingIntent.FLAG_UPDATE_CURRENT

        fun dataOf(callId: String): Uri = Uri.fromParts("callsign", callId, null)

        fun callIdOf(intent: Intent): String? = intent.data?.schemeSpecificPart
    }
}
