package org.example.calls

import android.app.Service
import android.content.BroadcastReceiver
import android.content.Context
import android.content.Intent
import android.content.pm.ServiceInfo
import android.os.Build
import android.os.IBinder
import android.util.Log

/** Keeps the app running while a call is on and another app is in front. */
class OngoingCall : Service() {
    override fun onBind(intent: Intent?): IBinder? = null

    override fun onStartCommand(intent: Intent?, flags: Int, startId: Int): Int {
        val notification = app.phone.ongoing(intent?.let(Screens::callIdOf).orEmpty())
        if (Build.VERSION.SDK_INT >= Build.VERSION_CODES.Q) startForeground(ID, notification, types())
        else startForeground(ID, notification)
        return START_NOT_STICKY
    }

    /** Android 14 and later refuse the microphone to a service that may not use it, with the whole service. */
    private fun types(): Int {
        val call = ServiceInfo.FOREGROUND_SERVICE_TYPE_PHONE_CALL
        if (Build.VERSION.SDK_INT < Build.VERSION_CODES.R || !hasMicrophone) return call
        return call or ServiceInfo.FOREGROUND_SERVICE_TYPE_MICROPHONE
    }

    companion object {
        private const val ID = 3

        fun start(context: Context, callId: String) {
            try {
                context.startForegroundService(Intent(context, OngoingCall::class.java).setData(Screens.dataOf(callId)))
            } catch (error: IllegalStateException) {
                // Answered by a headset with the app behind: Android 12 and later may not allow it, and the call goes on.
                Log.w("calls", error)
            }
        }

        fun stop(context: Context) {
            context.stopService(Intent(context, OngoingCall::class.java))
        }
    }
}

/** The button of a call's notification. */
class HangUp : BroadcastReceiver() {
    override fun onReceive(context: Context, intent: Intent) {
        Screens.callIdOf(intent)?.let { context.app.phone.hangUp(it) }
    }
}
