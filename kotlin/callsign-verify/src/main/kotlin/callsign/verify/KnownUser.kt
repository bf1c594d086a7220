/** An app's memory of a person: the devices, the newest list, and the events and questions still to show. */
package callsign.verify

/** [deviceId] is null where all devices are meant. */
public data class DeviceEvent(val kind: Kind, val deviceId: String? = null) {
    /** The name of each on the wire is [wireName]. */
    public enum class Kind(public val wireName: String) {
        /** A device, or another key of one, that a device of the list before has signed for. */
        ADDED_BY_LIST("added-by-list"),

        /** It is not in the list any more; nothing is encrypted for it. */
        REMOVED("removed"),

        /** No device of the list before signed the list: the person has started over, or someone else is at work. */
        RESET("reset"),

        /** The server named a device that the list does not: nothing is encrypted for it. */
        UNLISTED("unlisted"),

        /** A device that no list vouches for. */
        ADDED("added"),

        /** Another key of a device that no list vouches for. */
        REPLACED("replaced"),
    }
}

/**
 * A change of a person's keys that nothing known before vouches for. Encrypt for them once [ContactDevices.accept] was called
 * with [listHash]: base64, of the newest list; without a list a hash of all devices and keys.
 */
public data class KeyQuestion(val kind: Kind, val listHash: String) {
    /** The name of each on the wire is [wireName]. */
    public enum class Kind(public val wireName: String) {
        /** The event of that name. */
        RESET("reset"),

        /** The person had no list before, and no key that is known has signed this one. */
        FIRST_LIST("first-list"),

        /** The event of that name, of a person without a list. */
        ADDED("added"),

        /** The event of that name, of a person without a list. */
        REPLACED("replaced"),
    }
}

/** The app's memory of a person. [question] is null once it was accepted. [events] are those that the app has not shown yet. */
public data class KnownUser(
    val userId: String,
    val devices: List<KnownDevice>,
    val list: KnownList? = null,
    val events: List<DeviceEvent> = emptyList(),
    val question: KeyQuestion? = null,
)

/** [keyHash] is SHA-256 of the public key, base64. */
public data class KnownDevice(val deviceId: String, val keyHash: String)

/**
 * [list] is base64; [index] is the leaf that holds its hash. [sinceIndex] and [sinceSeq] are of the first list since this
 * app knows the person, or since they have started over.
 */
public data class KnownList(
    val list: String,
    val vrfHash: String,
    val index: Long,
    val sinceIndex: Long,
    val sinceSeq: Long,
)

/** Where the app keeps what it knows: see [FileKnownUserStore]. */
public interface KnownUserStore {
    public suspend fun get(userId: String): KnownUser?

    public suspend fun put(known: KnownUser)
}

/** A store that forgets with the process. */
public class MemoryKnownUserStore : KnownUserStore {
    private val known = java.util.concurrent.ConcurrentHashMap<String, KnownUser>()

    override suspend fun get(userId: String): KnownUser? = known[userId]

    override suspend fun put(known: KnownUser) {
        this.known[known.userId] = known
    }
}

/** A question that is open stays so for the keys that came since. */
internal fun questionAfter(known: KnownUser?, asked: KeyQuestion.Kind?, listHash: String): KeyQuestion? =
    (asked ?: known?.question?.kind)?.let { KeyQuestion(it, listHash) }

/** Names the devices of a person without a list, and their keys, in base64 of SHA-256. */
internal fun unlistedDevicesHash(userId: String, devices: List<KnownDevice>): String {
    val lines = devices.sortedBy { uint64Of(it.deviceId) }.joinToString("") { "${it.deviceId} ${it.keyHash}\n" }
    return encodeBase64(sha256("callsign unlisted devices v1\n$userId\n$lines".toByteArray()))
}

internal fun changesOf(
    before: List<KnownDevice>,
    now: List<KnownDevice>,
    added: DeviceEvent.Kind,
    replaced: DeviceEvent.Kind,
): List<DeviceEvent> {
    fun keyOf(devices: List<KnownDevice>, deviceId: String) = devices.find { it.deviceId == deviceId }?.keyHash
    val changed = now.mapNotNull { device ->
        when (keyOf(before, device.deviceId)) {
            null -> DeviceEvent(added, device.deviceId)
            device.keyHash -> null
            else -> DeviceEvent(replaced, device.deviceId)
        }
    }
    val removed = before.filter { keyOf(now, it.deviceId) == null }
    return changed + removed.map { DeviceEvent(DeviceEvent.Kind.REMOVED, it.deviceId) }
}
