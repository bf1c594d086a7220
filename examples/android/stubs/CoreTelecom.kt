/** The few signatures of Core-Telecom 1.0 that the example uses, for `pom.xml` alone: it is in Google's repository, too. */
package androidx.core.telecom

import android.content.Context
import android.net.Uri
import android.telecom.DisconnectCause
import kotlinx.coroutines.CoroutineScope

class CallsManager(val context: Context) {
    fun registerAppWithTelecom(capabilities: Int): Unit = throw NotImplementedError("$capabilities")

    /** Returns once the call has ended. */
    suspend fun addCall(
        callAttributes: CallAttributesCompat,
        onAnswer: suspend (callType: Int) -> Unit,
        onDisconnect: suspend (disconnectCause: DisconnectCause) -> Unit,
        onSetActive: suspend () -> Unit,
        onSetInactive: suspend () -> Unit,
        block: CallControlScope.() -> Unit,
    ): Unit = throw NotImplementedError("$callAttributes $onAnswer $onDisconnect $onSetActive $onSetInactive $block")

    companion object {
        const val CAPABILITY_BASELINE = 1
        const val CAPABILITY_SUPPORTS_VIDEO_CALLING = 2
    }
}

class CallAttributesCompat(
    val displayName: CharSequence,
    val address: Uri,
    val direction: Int,
    val callType: Int = CALL_TYPE_AUDIO_CALL,
    val callCapabilities: Int = 2,
) {
    companion object {
        const val DIRECTION_INCOMING = 1
        const val DIRECTION_OUTGOING = 2
        const val CALL_TYPE_AUDIO_CALL = 1
        const val CALL_TYPE_VIDEO_CALL = 2
    }
}

interface CallControlScope : CoroutineScope {
    suspend fun setActive(): CallControlResult

    suspend fun answer(callType: Int): CallControlResult

    suspend fun disconnect(disconnectCause: DisconnectCause): CallControlResult
}

sealed class CallControlResult {
    class Success : CallControlResult()

    class Error(val errorCode: Int) : CallControlResult()
}

class CallException(val code: Int) : RuntimeException() {
    companion object {
        const val ERROR_CANNOT_HOLD_CURRENT_ACTIVE_CALL = 2
        const val ERROR_CALL_NOT_PERMITTED_AT_PRESENT_TIME = 5
    }
}
