/**
 * The devices of each person that this app encrypts for, as it has come to know them. A device list that the log proves says
 * which they are; a person whose apps make no list is trusted on first use. Every change since is an event.
 */
package callsign.verify

import kotlinx.coroutines.sync.Mutex
import kotlinx.coroutines.sync.withLock

/**
 * A user as `GET user/publicKeys` and a friend request's answer name it. Ids are decimal texts, as in JSON. [deviceList] is
 * base64, with the VRF hash under which the log holds its SHA-256.
 */
public data class NamedUser(
    val userId: String,
    val devices: List<NamedDevice>,
    val deviceList: String? = null,
    val deviceListHash: String? = null,
)

/** A device as the server names it; key and hash are base64. */
public data class NamedDevice(
    val deviceId: String,
    val keyAlgorithm: String,
    val publicKey: String,
    val publicKeyHash: String,
)

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

/** The app's memory of a person. [events] are those that the app has not shown yet. */
public data class KnownUser(
    val userId: String,
    val devices: List<KnownDevice>,
    val list: KnownList? = null,
    val events: List<DeviceEvent> = emptyList(),
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

/** A device to encrypt for. [signingKey] is an uncompressed P-256 point, base64; null where no list names the device. */
public data class VerifiedDevice(val device: NamedDevice, val signingKey: String? = null)

/** What became of a person's devices: [VerifiedDevices], [Refusal] or [Unanswered]. */
public sealed interface DevicesOutcome

/** Encrypt for [devices] only. Each event comes again until [ContactDevices.shown] is called. */
public class VerifiedDevices(
    public val basis: Basis,
    public val devices: List<VerifiedDevice>,
    public val list: DeviceList?,
    public val events: List<DeviceEvent>,
) : DevicesOutcome {
    /** Whether a list says which devices there are, or the server alone. */
    public enum class Basis(public val wireName: String) { LIST("list"), FIRST_USE("first-use") }
}

/** Verifies and remembers the devices of contacts. Safe to share between threads. */
public class ContactDevices(private val lookups: KeyLookups, private val store: KnownUserStore) {
    private val turn = Mutex()

    /**
     * The devices of this person to encrypt for, once the log proves them. Refused at `deviceList` where the list or the
     * devices named beside it do not hold, or a list that there was is left out; else at the check of a lookup that failed.
     * Throws what the store throws, and [IllegalArgumentException] for an id that is no uint64 in decimal.
     */
    public suspend fun verify(user: NamedUser): DevicesOutcome = turn.withLock {
        if (user.deviceList == null && user.deviceListHash == null) trustOnFirstUse(user) else verifyListed(user)
    }

    /**
     * As [verify], of a person whom a link or QR code names: refused at `deviceList` unless they are that person, with the
     * list of the link or with lists that have followed it in the log. Nothing is remembered where that fails.
     */
    public suspend fun verifyShared(user: NamedUser, shared: ListedPerson): DevicesOutcome = turn.withLock {
        if (user.userId != "${shared.userId}") return refused("the link is of user ${shared.userId}")
        val vrfHash = user.deviceListHash
        if (user.deviceList == null || vrfHash == null) return refused("the device list is left out")
        val read = try {
            readList(user, null)
        } catch (failed: CheckFailed) {
            return failed.refusal
        }
        val hash = encodeBase64(deviceListHash(read.octets))
        if (hash != shared.listHash) {
            val own = OwnDevice(uint64Of(user.userId), DEVICE_LIST_SLOT, vrfHash, listOf(hash))
            val report = when (val outcome = lookups.checkOwnKeys(own)) {
                is OwnKeysReport -> outcome
                is Refusal -> return outcome
                is Unanswered -> return outcome
            }
            if (report.entries.none { it.publicKey == shared.listHash })
                return refused("the link names a device list that the log does not have of this user")
        }
        verifyListed(user)
    }

    /** The app has shown the events that [verify] gave, so they come no more. */
    public suspend fun shown(userId: String, events: List<DeviceEvent>): Unit = turn.withLock {
        val known = store.get(userId) ?: return
        store.put(known.copy(events = known.events.filter { it !in events }))
    }

    /**
     * For one's own user id: whether the log holds, in the place of one's lists, exactly those that this device has followed.
     * Clean where there is no list.
     */
    public suspend fun checkOwnList(userId: String): OwnKeysOutcome {
        val list = store.get(userId)?.list ?: return OwnKeysReport(OwnKeys.Clean, emptyList())
        val octets = decodeBase64(list.list)
        val hash = encodeBase64(deviceListHash(octets))
        val outcome = lookups.checkOwnKeys(OwnDevice(uint64Of(userId), DEVICE_LIST_SLOT, list.vrfHash, listOf(hash)))
        if (outcome !is OwnKeysReport) return outcome
        val followed = outcome.entries.filter { it.index in list.sinceIndex..list.index }
        // Each list names the one before, and the device that signed it had judged that: one entry too many is a list beside
        // them.
        val isWhole = followed.size.toLong() == parseDeviceList(octets).seq - list.sinceSeq + 1
        val from = if (isWhole) list.index else list.sinceIndex
        return outcome.copy(ownKeys = compareOwnKeys(outcome.entries.filter { it.index >= from }, listOf(hash)))
    }

    private suspend fun trustOnFirstUse(user: NamedUser): DevicesOutcome {
        val known = store.get(user.userId)
        if (known?.list != null) return refused("the device list of user ${user.userId} is left out")
        val userId = uint64Of(user.userId)
        failedLookup(lookups.lookUpAll(user.devices.map { claimOf(userId, it) }))?.let { return it }
        val now = user.devices.map { KnownDevice(it.deviceId, encodeBase64(sha256(decodeBase64(it.publicKey)))) }
        val news =
            if (known == null) emptyList()
            else changesOf(known.devices, now, DeviceEvent.Kind.ADDED, DeviceEvent.Kind.REPLACED)
        val events = keep(KnownUser(user.userId, now, null, known?.events.orEmpty()), news)
        return VerifiedDevices(VerifiedDevices.Basis.FIRST_USE, user.devices.map { VerifiedDevice(it) }, null, events)
    }

    private suspend fun verifyListed(user: NamedUser): DevicesOutcome {
        val known = store.get(user.userId)
        val read = try {
            readList(user, known?.list)
        } catch (failed: CheckFailed) {
            return failed.refusal
        }
        val list = read.taken.list
        val listed = list.devices.associateBy { "${it.deviceId}" }
        val devices = user.devices.filter { it.deviceId in listed }
        val userId = uint64Of(user.userId)
        val hash = encodeBase64(deviceListHash(read.octets))
        val slot = DeviceToLookUp(userId, DEVICE_LIST_SLOT, read.vrfHash, hash)
        val outcomes = lookups.lookUpAll(listOf(slot) + devices.map { claimOf(userId, it) })
        failedLookup(outcomes)?.let { return it }
        val index = (outcomes.first() as VerifiedKey).index
        notNewest(known?.list, index, read.taken.kind)?.let { return it }

        val isReset = read.taken.kind == ListKind.RESET
        val before = known?.list.takeUnless { isReset }
        val now = list.devices.map { KnownDevice("${it.deviceId}", encodeBase64(it.publicKeySha256)) }
        val unlisted = user.devices.filter { it.deviceId !in listed }
            .map { DeviceEvent(DeviceEvent.Kind.UNLISTED, it.deviceId) }
        val kept = KnownList(
            encodeBase64(read.octets),
            read.vrfHash,
            index,
            before?.sinceIndex ?: index,
            before?.sinceSeq ?: list.seq,
        )
        val news = newsOf(known, now, read.taken.kind) + unlisted
        val events = keep(KnownUser(user.userId, now, kept, known?.events.orEmpty()), news)
        val verified = devices.map { device ->
            VerifiedDevice(device, listed[device.deviceId]?.let { encodeBase64(it.signingKey) })
        }
        return VerifiedDevices(VerifiedDevices.Basis.LIST, verified, list, events)
    }

    /** Returns all events to be shown. */
    private suspend fun keep(known: KnownUser, news: List<DeviceEvent>): List<DeviceEvent> {
        val all = known.events + news.filter { it !in known.events }
        // A server may name thousands of devices: they do not crowd out that the person has started over.
        val events = all.filterIndexed { at, event ->
            event.kind == DeviceEvent.Kind.RESET || at >= all.size - EVENTS_MAX
        }
        store.put(known.copy(events = events))
        return events
    }

    private companion object {
        /** Only a server that lies makes more. */
        const val EVENTS_MAX = 64
    }
}

private class ReadList(val octets: ByteArray, val vrfHash: String, val taken: TakenList)

/** The list, judged by the one known before; and the devices beside it by the list. Throws [CheckFailed]. */
private fun readList(user: NamedUser, known: KnownList?): ReadList {
    val deviceList = user.deviceList
    val vrfHash = user.deviceListHash
    if (deviceList == null || vrfHash == null)
        throw CheckFailed(refused("the server names a list or its hash without the other"))
    val octets = during(Check.DEVICE_LIST) { decodeBase64(deviceList) }
    val before = known?.let { decodeBase64(it.list) }
    val taken = followed(before, judgeDeviceList(uint64Of(user.userId), before, octets), octets)
    for (device in user.devices) {
        val listed = taken.list.devices.find { "${it.deviceId}" == device.deviceId } ?: continue
        val key = during(Check.DEVICE_LIST) { decodeBase64(device.publicKey) }
        if (listed.algorithm.wireName != device.keyAlgorithm || !listed.publicKeySha256.contentEquals(sha256(key)))
            throw CheckFailed(refused("the key of device ${device.deviceId} is not the one in the list"))
    }
    return ReadList(octets, vrfHash, taken)
}

/**
 * An app that was away has missed lists, and only the newest one is served. One that a device of the known list has signed
 * goes on from it: that device has followed the lists between. Any other is shown as if they had started over, also where
 * its seq is lower, since they may have started over and signed more lists. It has to be younger than the known one, or else
 * a log could bring back a list from which a device was removed.
 */
private fun followed(before: ByteArray?, verdict: DeviceListVerdict, octets: ByteArray): TakenList {
    val refusal = when (verdict) {
        is TakenList -> return verdict
        is RefusedList -> verdict
    }
    if (before == null || refusal.reason !in REASONS_OF_MISSED_LISTS) throw CheckFailed(refused(refusal.detail))
    val known = parseDeviceList(before)
    val list = parseDeviceList(octets)
    if (refusal.reason == DeviceListRefusal.SEQ_JUMP && list.seq > known.seq) {
        fun signerIn(of: DeviceList) = of.devices.find { it.deviceId == list.signerDeviceId }?.signingKey
        val trusted = signerIn(known)
        val isKnown = trusted != null && trusted.contentEquals(signerIn(list))
        return TakenList(if (isKnown) ListKind.SUCCESSOR else ListKind.RESET, list)
    }
    if (list.createdAtMs <= known.createdAtMs)
        throw CheckFailed(refused("list ${list.seq} comes after list ${known.seq}"))
    return TakenList(ListKind.RESET, list)
}

/** The refusal where the log shows the list before the one that is known. */
private fun notNewest(known: KnownList?, index: Long, kind: ListKind): Refusal? {
    if (known == null) return null
    val isInOrder = if (kind == ListKind.UNCHANGED) index >= known.index else index > known.index
    if (isInOrder) return null
    return refused("the list is at leaf $index, the one known before at leaf ${known.index}")
}

private fun newsOf(known: KnownUser?, now: List<KnownDevice>, kind: ListKind): List<DeviceEvent> {
    if (known == null) return emptyList()
    return when (kind) {
        ListKind.UNCHANGED -> emptyList()
        ListKind.RESET -> listOf(DeviceEvent(DeviceEvent.Kind.RESET))
        ListKind.FIRST -> changesOf(known.devices, now, DeviceEvent.Kind.ADDED, DeviceEvent.Kind.REPLACED)
        ListKind.SUCCESSOR -> {
            val byList = DeviceEvent.Kind.ADDED_BY_LIST
            changesOf(known.devices, now, byList, byList)
        }
    }
}

private fun changesOf(
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

private fun claimOf(userId: ULong, device: NamedDevice): DeviceToLookUp =
    DeviceToLookUp(userId, uint64Of(device.deviceId), device.publicKeyHash, device.publicKey)

private fun failedLookup(outcomes: List<LookupOutcome>): DevicesOutcome? =
    outcomes.firstNotNullOfOrNull { it as? Refusal } ?: outcomes.firstNotNullOfOrNull { it as? Unanswered }

private fun uint64Of(id: String): ULong =
    requireNotNull(uint64OrNull(id)) { "\"${id.take(40)}\" is not a uint64 in decimal" }

private fun refused(detail: String): Refusal = Refusal(Check.DEVICE_LIST, detail)

/** [judgeDeviceList] gives them for a list that does not follow the known one at once. */
private val REASONS_OF_MISSED_LISTS = setOf(DeviceListRefusal.SEQ_JUMP, DeviceListRefusal.WRONG_PREVIOUS_HASH)
