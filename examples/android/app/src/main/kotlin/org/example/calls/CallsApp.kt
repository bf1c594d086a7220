package org.example.calls

import android.Manifest
import android.app.Activity
import android.app.Application
import android.content.Context
import android.content.pm.PackageManager
import android.os.Build
import android.util.Log
import callsign.app.Callsign
import callsign.app.CallsignEvent
import callsign.app.CallsignException
import callsign.app.DeviceDetails
import callsign.app.FileAppStorage
import com.google.firebase.messaging.FirebaseMessaging
import java.io.File
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.SupervisorJob
import kotlinx.coroutines.launch

/** A push starts it too, without any screen. */
class CallsApp : Application() {
    val scope = CoroutineScope(SupervisorJob() + Dispatchers.Main)

    /** No backup takes the folder along: keys and tokens belong to this phone. */
    private val storage by lazy { EncryptedStorage(FileAppStorage(File(noBackupFilesDir, "callsign"))) }
    val me by lazy { Callsign(SERVER, PINS, storage, keystoreKeys(storage), details, passkeys = PhonePasskeys(this)) }
    val phone by lazy { Phone(this) }

    /** The one in front, which Android asks for a passkey over. */
    var screen: Activity? = null

    private val details
        get() = DeviceDetails(name = Build.MODEL, model = Build.MODEL, osVersion = Build.VERSION.RELEASE)

    override fun onCreate() {
        super.onCreate()
        phone.register()
        scope.launch { me.ringing.collect(phone::ring) }
        scope.launch {
            me.events.collect { event ->
                if (event is CallsignEvent.Failed) Log.w(TAG, event.error.code, event.error)
                if (event is CallsignEvent.KeysChanged) phone.tell("Keys of user ${event.event.userId} have changed")
            }
        }
        start { if (me.resume() != null) sendToken() }
    }

    /** At each start, and after each sign-in. */
    fun sendToken() {
        FirebaseMessaging.getInstance().token.addOnSuccessListener { token ->
            start { me.devices.putFcmToken(token) }
        }
    }

    /** Runs what may fail by itself; [failed] gets the sentence for the user. */
    fun start(failed: (String) -> Unit = {}, act: suspend () -> Unit) {
        scope.launch {
            try {
                act()
            } catch (error: CallsignException) {
                Log.w(TAG, error.code, error)
                failed(error.sentence)
            }
        }
    }

    private companion object {
        const val TAG = "calls"
    }
}

val Context.app: CallsApp get() = applicationContext as CallsApp

val Context.hasMicrophone: Boolean
    get() = checkSelfPermission(Manifest.permission.RECORD_AUDIO) == PackageManager.PERMISSION_GRANTED
