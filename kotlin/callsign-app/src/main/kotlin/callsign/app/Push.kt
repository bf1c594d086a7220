/** How a push is shown, judged by the server's time (docs/build/push.md). */
package callsign.app

import java.nio.ByteBuffer
import java.security.MessageDigest
import java.time.DateTimeException
import java.time.Instant
import java.util.UUID

/**
 * The call of a push. [uuid] is the system's name of it, the same for each push and message of the call. [callerName] is what to
 * show: the user's own name for the caller, else the caller's. Where [isContact] is false the caller is a stranger, who may have any
 * name: say so.
 */
public data class PushedCall(
    public val callId: String,
    public val uuid: UUID,
    public val callerId: String,
    public val callerName: String,
    public val isContact: Boolean,
    public val isVideo: Boolean,
)

/** What to do with a push. */
public sealed interface PushAction {
    /**
     * Ring with a full-screen notification or by Telecom, [forMs] at the longest. [wasLowered]: Firebase has lowered the priority of
     * the push, so Android may refuse a service in the foreground; the server counts such pushes.
     */
    public data class Ringing(
        public val call: PushedCall,
        public val forMs: Long,
        public val wasLowered: Boolean = false,
    ) : PushAction

    /** It has rung out: show nothing. */
    public data class Over(public val call: PushedCall) : PushAction

    /** [shows] takes the place of what was shown while it rang. */
    public data class StopRinging(
        public val callId: String,
        public val uuid: UUID,
        public val reason: StopReason,
        public val shows: AfterRinging,
    ) : PushAction

    /** Shown by the system, or by the app: [type] and [members] as docs/build/push.md has them. */
    public data class Notice(public val type: String, public val members: Map<String, String>) : PushAction

    /** For another device of this phone's past, or shown before. */
    public data object Nothing : PushAction
}

/** What a phone shows in place of a call that rings no longer. */
public sealed interface AfterRinging {
    /** [name] is what to show. Where [isContact] is false they are a stranger, who may have any name: say so. */
    public data class MissedCall(public val name: String, public val isContact: Boolean) : AfterRinging

    /** A line without sound that is gone after 10 s: the user has answered or declined it on another device. */
    public data class Quiet(public val reason: StopReason) : AfterRinging

    public data object None : AfterRinging
}

/** Why a call rings no longer. [wireName] is its name in the push. */
public enum class StopReason(public val wireName: String) {
    CANCELLED("cancelled"),
    ANSWERED_ELSEWHERE("answered_elsewhere"),
    DECLINED_ELSEWHERE("declined_elsewhere"),

    /** Also for a reason that is newer than this package. */
    ENDED("ended"),
}

/**
 * Judges a push: [members] are the `data` of an FCM message, and [deviceId] is this device, null where there is none.
 * [serverNowMs] is the time by the server's clock, null until it has named it. [isSeen] says that the push's `eventId` was judged
 * before, and [wasLowered] that its priority is not the one that it was sent with.
 */
public fun judgePush(
    members: Map<String, String>,
    deviceId: ULong?,
    serverNowMs: Long?,
    isSeen: Boolean,
    wasLowered: Boolean = false,
): PushAction {
    val type = members["type"].orEmpty()
    val isOfOther = "deviceId" in members && type in CALL_PUSHES && members["deviceId"] != "$deviceId"
    if (deviceId == null || isOfOther) return PushAction.Nothing
    if (type == "call_invitation") {
        val forMs = ringsForMs(members, serverNowMs)
        val call = pushedCall(members)
        return if (forMs > 0) PushAction.Ringing(call, forMs, wasLowered) else PushAction.Over(call)
    }
    if (isSeen) return PushAction.Nothing
    if (type != "call_cancel") return PushAction.Notice(type, members)
    val callId = members["callId"].orEmpty()
    val reason = StopReason.entries.find { it.wireName == members["reason"] } ?: StopReason.ENDED
    val shows = when (reason) {
        StopReason.CANCELLED -> pushedCall(members).let { AfterRinging.MissedCall(it.callerName, it.isContact) }
        StopReason.ANSWERED_ELSEWHERE, StopReason.DECLINED_ELSEWHERE -> AfterRinging.Quiet(reason)
        StopReason.ENDED -> AfterRinging.None
    }
    return PushAction.StopRinging(callId, callUuid(callId), reason, shows)
}

/** The first sixteen octets of SHA-256 of the call's id. */
public fun callUuid(callId: String): UUID {
    val digest = ByteBuffer.wrap(MessageDigest.getInstance("SHA-256").digest(callId.toByteArray()))
    return UUID(digest.getLong(), digest.getLong())
}

private fun pushedCall(members: Map<String, String>): PushedCall {
    val callId = members["callId"].orEmpty()
    return PushedCall(
        callId,
        callUuid(callId),
        members["callerId"].orEmpty(),
        members["callerName"].orEmpty(),
        members["isContact"] == "true",
        members["isVideo"] == "true",
    )
}

/** How much longer the call rings: until the server has named its time, by the length of its ringing alone. */
private fun ringsForMs(members: Map<String, String>, serverNowMs: Long?): Long {
    val sentAtMs = members["sentAt"]?.toLongOrNull() ?: return 0
    val expiresAtMs = try {
        Instant.parse(members["expiresAt"].orEmpty()).toEpochMilli()
    } catch (_: DateTimeException) {
        return 0
    } catch (_: ArithmeticException) {
        return 0
    }
    return minOf(expiresAtMs - sentAtMs, expiresAtMs - (serverNowMs ?: sentAtMs))
}

private val CALL_PUSHES = setOf("call_invitation", "call_cancel", "missed_call")
