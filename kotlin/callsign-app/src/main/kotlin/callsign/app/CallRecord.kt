/** A call as the server has it. */
package callsign.app

import callsign.app.calls.Sender
import kotlinx.serialization.json.JsonObject

public enum class ParticipantState {
    INVITED,
    RINGING,
    JOINED,
    LEFT,
    LOST,
    DECLINED,
    BUSY,
    MISSED,
    REMOVED,

    /** A newer server's. */
    UNKNOWN,
}

/**
 * One person of a call. [deviceId] is the device that is in the call, or was last, and [feedIds] what it sends at the media gateway:
 * show no name with any other feed. [identity] is that device at LiveKit, while it is in the call. [mediaName] is `<userId>:<displayName>`; enter the media room without it.
 * [isUnreachable]: the person is invited, and none of their devices has shown itself to the server for five seconds: say that they
 * can't be reached now. A phone of theirs may ring yet, and the state then changes. [hasUnapprovedDevice]: they have the app open
 * on a device that they have not approved, where no call rings; say that they are to approve it.
 */
public data class CallParticipant(
    public val userId: ULong,
    public val displayName: String,
    /** For screens: this user's own name for them, else their display name. */
    public val name: String,
    public val state: ParticipantState,
    public val isHost: Boolean,
    public val invitedBy: ULong,
    public val deviceId: ULong?,
    public val mediaName: String,
    public val feedIds: List<Long>,
    internal val invitedAtMs: Long,
    public val isUnreachable: Boolean = false,
    public val identity: String? = null,
    public val hasUnapprovedDevice: Boolean = false,
) {
    /** As the sets of devices name it that keys are sealed for. */
    internal val deviceName: String get() = "${userId}_$deviceId"

    internal val person: Person get() = Person(userId, displayName)
}

/** Which media gateway the call has, and this device's tokens for it: see docs/build/media.md. */
public data class CallGateway(
    public val kind: String,
    public val state: String? = null,
    public val url: String? = null,
    public val roomToken: String? = null,
    public val pluginToken: String? = null,
    /** Of LiveKit: for its `connect`. */
    public val token: String? = null,
    /** Of LiveKit: the bits of the keys that frames are sealed with, the same for all devices. */
    public val keySize: Long? = null,
)

internal data class CallRecord(
    val callId: String,
    /** The greater of two is the later one. */
    val version: Long,
    val roomId: Long?,
    val status: String,
    val isVideo: Boolean,
    val isOnGoing: Boolean,
    val initiatorId: ULong,
    val hostUserId: ULong,
    val startedAtMs: Long?,
    val endReason: String?,
    val ringTimeoutMs: Long,
    val keyEpoch: Long,
    val keyRotationMs: Long,
    val participants: List<CallParticipant>,
    val media: CallGateway,
    /** Who calls this user, where it rings for them. */
    val caller: Person?,
    val encryptedAESKey: String?,
    /** Who has sealed it. */
    val keyFrom: Sender?,
    /** Sets of devices that the newest keys are for. */
    val keySets: List<String>,
) {
    fun participant(userId: ULong): CallParticipant? = participants.find { it.userId == userId }

    fun person(userId: ULong): Person = participant(userId)?.person ?: Person(userId, "")

    /** With what an event of the call's topic tells. */
    fun changedBy(event: JsonObject): CallRecord {
        val version = event.needNumber("version")
        if (event.text("type") == "host_changed") return copy(version = version, hostUserId = event.needId("hostUserId"))
        if ("participant" !in event) return copy(version = version)
        val changed = participantOf(event.member("participant"))
        return copy(version = version, participants = participants.filter { it.userId != changed.userId } + changed)
    }
}

internal fun callRecordOf(members: JsonObject) = CallRecord(
    callId = members.needText("callId"),
    version = members.needNumber("version"),
    roomId = members.number("roomId"),
    status = members.needText("status"),
    isVideo = members.flag("isVideo"),
    isOnGoing = members.flag("isOnGoing"),
    initiatorId = members.needId("initiatorId"),
    hostUserId = members.needId("hostUserId"),
    startedAtMs = members.text("startedAt")?.let(::timeMsOf),
    endReason = members.text("endReason"),
    ringTimeoutMs = members.needDurationMs("ringTimeoutIn"),
    keyEpoch = members.needNumber("keyEpoch"),
    keyRotationMs = members.needDurationMs("keyRotationIn"),
    participants = members.members("participants").map(::participantOf),
    media = gatewayOf(members.member("media")),
    caller = (members["invitation"] as? JsonObject)?.let(::callerIn),
    encryptedAESKey = members.text("encryptedAESKey"),
    keyFrom = keyFromIn(members),
    keySets = if ("keySets" in members) members.members("keySets").map { it.needText("keyMembers") } else emptyList(),
)

/** The device that has sealed a key, where the server names it. */
internal fun keyFromIn(members: JsonObject): Sender? =
    if ("keyFromUserId" !in members || "keyFromDeviceId" !in members) null
    else Sender(members.needId("keyFromUserId"), members.needId("keyFromDeviceId"))

internal fun participantOf(members: JsonObject) = CallParticipant(
    userId = members.needId("userId"),
    displayName = members.text("displayName").orEmpty(),
    name = members.text("displayName").orEmpty(),
    state = namedOrNull<ParticipantState>(members.text("state")) ?: ParticipantState.UNKNOWN,
    isHost = members.flag("isHost"),
    invitedBy = members.needId("invitedBy"),
    deviceId = members.text("deviceId")?.toULongOrNull(),
    mediaName = members.text("mediaName").orEmpty(),
    feedIds = members.numbers("feedIds"),
    invitedAtMs = members.needTimeMs("invitedAt"),
    identity = members.text("identity"),
)

internal fun gatewayOf(members: JsonObject) = CallGateway(
    members.needText("kind"),
    members.text("state"),
    members.text("url"),
    members.text("roomToken"),
    members.text("pluginToken"),
    members.text("token"),
    members.number("keySize"),
)

internal fun isOver(status: String): Boolean = status != "ringing" && status != "active"

internal fun endingOf(reason: String?): CallEnding = namedOrNull<CallEnding>(reason) ?: CallEnding.UNKNOWN
