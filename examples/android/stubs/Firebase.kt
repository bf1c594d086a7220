/**
 * The few signatures of Firebase that the example uses, for `pom.xml` alone: Firebase is in Google's repository, which the check
 * on a JVM does without. Gradle does not see this folder.
 */
package com.google.firebase.messaging

import android.app.Service
import android.content.Intent
import android.os.IBinder

open class FirebaseMessagingService : Service() {
    open fun onNewToken(token: String) {}

    open fun onMessageReceived(message: RemoteMessage) {}

    override fun onBind(intent: Intent?): IBinder? = null
}

class RemoteMessage(val data: Map<String, String>, val originalPriority: Int, val priority: Int) {
    companion object {
        const val PRIORITY_HIGH = 1
    }
}

class FirebaseMessaging private constructor() {
    val token: Task<String> get() = throw NotImplementedError()

    companion object {
        fun getInstance(): FirebaseMessaging = throw NotImplementedError()
    }
}

/** `com.google.android.gms.tasks.Task`. */
interface Task<Result> {
    fun addOnSuccessListener(listener: (Result) -> Unit): Task<Result>
}
