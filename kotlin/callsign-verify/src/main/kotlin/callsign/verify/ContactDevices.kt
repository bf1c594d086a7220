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

/** A device to encrypt for. [signingKey] is an uncompressed P-256 point, base64; null where no list names the device. */
public data class VerifiedDevice(val device: NamedDevice, val signingKey: String? = null)

/** What became of a person's devices: [VerifiedDevices], [Refusal] or [Unanswered]. */
public sealed interface DevicesOutcome

/**
 * Encrypt for [devices] only, and ask before you do where there is a [question]: it comes again until [ContactDevices.accept]
 * is called. Each event comes again until [ContactDevices.shown] is called.
 */
public class VerifiedDevices(
    public val basis: Basis,
    public val devices: List<VerifiedDevice>,
    public val list: DeviceList?,
    public val events: List<DeviceEvent>,
    public val question: KeyQuestion? = null,
) : DevicesOutcome {
    /** Whether a list says which devices there are, or the server alone. */
    public enum class Basis(public val wireName: String) { LIST("list"), FIRST_USE("first-use") }
}

/** Verifies and remembers the devices of contacts. Safe to share between threads. */
public class ContactDevices(
    private val lookups: KeyLookups,
    private val store: KnownUserStore,
    reader: DeviceListReader,
) {
    private val turn = Mutex()
    private val missed = MissedLists(lookups, reader)

    /**
     * The devices of this person to encrypt for, once the log proves them. Refused at `deviceList` where the list or the
     * devices named beside it do not hold, or a list that there was is left out; else at the check of a lookup that failed.
     * Unanswered also where lists that this app missed are withheld. Throws what the store throws, and [IllegalArgumentException] for an id that is no uint64 in decimal.
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
        if (user.deviceList == null || user.deviceListHash == null) return refused("the device list is left out")
        verifyListed(user, shared.listHash)
    }

    /** The person in front of the screen goes on with the keys of this hash. Returns the question that is still open. */
    public suspend fun accept(userId: String, listHash: String): KeyQuestion? = turn.withLock {
        val known = store.get(userId)
        if (known == null || known.question?.listHash != listHash) return known?.question
        store.put(known.copy(question = null))
        null
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
        // A person without devices has not been met yet.
        if (known == null && now.isEmpty()) return VerifiedDevices(VerifiedDevices.Basis.FIRST_USE, emptyList(), null, emptyList())
        val news =
            if (known == null) emptyList()
            else changesOf(known.devices, now, DeviceEvent.Kind.ADDED, DeviceEvent.Kind.REPLACED)
        val kind = when {
            news.any { it.kind == DeviceEvent.Kind.REPLACED } -> KeyQuestion.Kind.REPLACED
            news.any { it.kind == DeviceEvent.Kind.ADDED } -> KeyQuestion.Kind.ADDED
            else -> null
        }
        val question = questionAfter(known, kind, unlistedDevicesHash(user.userId, now))
        val events = keep(KnownUser(user.userId, now, null, known?.events.orEmpty(), question), news)
        val verified = user.devices.map { VerifiedDevice(it) }
        return VerifiedDevices(VerifiedDevices.Basis.FIRST_USE, verified, null, events, question)
    }

    private suspend fun verifyListed(user: NamedUser, linkedHash: String? = null): DevicesOutcome {
        val known = store.get(user.userId)
        val read = try {
            readList(user, known?.list)
        } catch (failed: CheckFailed) {
            return failed.refusal
        }
        val list = read.list
        val listed = list.devices.associateBy { "${it.deviceId}" }
        val devices = user.devices.filter { it.deviceId in listed }
        val userId = uint64Of(user.userId)
        val hash = encodeBase64(deviceListHash(read.octets))
        val slot = DeviceToLookUp(userId, DEVICE_LIST_SLOT, read.vrfHash, hash)
        val outcomes = lookups.lookUpAll(listOf(slot) + devices.map { claimOf(userId, it) })
        failedLookup(outcomes)?.let { return it }
        val index = (outcomes.first() as VerifiedKey).index
        notNewest(known?.list, index, read.kind)?.let { return it }
        val newest = NewestList(list, read.octets, read.vrfHash, index)
        val kind = try {
            follow(newest, read.kind, known?.list, linkedHash ?: hash)
        } catch (ended: Unfollowed) {
            return ended.outcome
        }

        val isReset = kind == ListKind.RESET
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
        val news = newsOf(known, now, kind) + unlisted
        val asked = when {
            isReset -> KeyQuestion.Kind.RESET
            kind == ListKind.FIRST && known != null -> KeyQuestion.Kind.FIRST_LIST
            else -> null
        }
        val question = questionAfter(known, asked, hash)
        val events = keep(KnownUser(user.userId, now, kept, known?.events.orEmpty(), question), news)
        val verified = devices.map { device ->
            VerifiedDevice(device, listed[device.deviceId]?.let { encodeBase64(it.signingKey) })
        }
        return VerifiedDevices(VerifiedDevices.Basis.LIST, verified, list, events, question)
    }

    /** Judges the newest list once this app has the lists that it missed, or those since the link. Throws [Unfollowed]. */
    private suspend fun follow(newest: NewestList, kind: ListKind?, known: KnownList?, linkedHash: String): ListKind {
        val followed = kind ?: known!!.let { missed.fromKnown(newest, decodeBase64(it.list), it.index) }
        if (linkedHash == encodeBase64(deviceListHash(newest.octets))) return followed
        return if (missed.fromLinked(newest, linkedHash) == ListKind.RESET) ListKind.RESET else followed
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

/** [kind] is null for a list of a higher seq than the next one: the app has missed lists. */
private class ReadList(val octets: ByteArray, val vrfHash: String, val list: DeviceList, val kind: ListKind?)

/** The list, judged by the one known before; and the devices beside it by the list. Throws [CheckFailed]. */
private fun readList(user: NamedUser, known: KnownList?): ReadList {
    val deviceList = user.deviceList
    val vrfHash = user.deviceListHash
    if (deviceList == null || vrfHash == null)
        throw CheckFailed(refused("the server names a list or its hash without the other"))
    val octets = during(Check.DEVICE_LIST) { decodeBase64(deviceList) }
    val before = known?.let { decodeBase64(it.list) }
    val (list, kind) = followed(before, judgeDeviceList(uint64Of(user.userId), before, octets), octets)
    for (device in user.devices) {
        val listed = list.devices.find { "${it.deviceId}" == device.deviceId } ?: continue
        val key = during(Check.DEVICE_LIST) { decodeBase64(device.publicKey) }
        if (listed.algorithm.wireName != device.keyAlgorithm || !listed.publicKeySha256.contentEquals(sha256(key)))
            throw CheckFailed(refused("the key of device ${device.deviceId} is not the one in the list"))
    }
    return ReadList(octets, vrfHash, list, kind)
}

/**
 * An app that was away has missed lists: one of a higher seq is held against them, and has no kind yet. Any other list that
 * does not follow the known one comes from another first one, so the person has started over. It has to be younger than the
 * known one, or else a log could bring back a list from which a device was removed. Throws [CheckFailed].
 */
private fun followed(before: ByteArray?, verdict: DeviceListVerdict, octets: ByteArray): Pair<DeviceList, ListKind?> {
    val refusal = when (verdict) {
        is TakenList -> return verdict.list to verdict.kind
        is RefusedList -> verdict
    }
    if (before == null || refusal.reason !in REASONS_OF_MISSED_LISTS) throw CheckFailed(refused(refusal.detail))
    val known = parseDeviceList(before)
    val list = parseDeviceList(octets)
    if (refusal.reason == DeviceListRefusal.SEQ_JUMP && list.seq > known.seq) return list to null
    if (list.createdAtMs <= known.createdAtMs)
        throw CheckFailed(refused("list ${list.seq} comes after list ${known.seq}"))
    return list to ListKind.RESET
}

/** The refusal where the log shows the list before the one that is known. */
private fun notNewest(known: KnownList?, index: Long, kind: ListKind?): Refusal? {
    if (known == null) return null
    val isInOrder = if (kind == ListKind.UNCHANGED) index >= known.index else index > known.index
    if (isInOrder) return null
    return refused("the list is at leaf $index, the one known before at leaf ${known.index}")
}

private fun newsOf(known: KnownUser?, now: List<KnownDevice>, kind: ListKind): List<DeviceEvent> {
    if (known == null && kind != ListKind.RESET) return emptyList()
    val before = known?.devices.orEmpty()
    return when (kind) {
        ListKind.UNCHANGED -> emptyList()
        ListKind.RESET -> listOf(DeviceEvent(DeviceEvent.Kind.RESET))
        ListKind.FIRST -> changesOf(before, now, DeviceEvent.Kind.ADDED, DeviceEvent.Kind.REPLACED)
        ListKind.SUCCESSOR -> {
            val byList = DeviceEvent.Kind.ADDED_BY_LIST
            changesOf(before, now, byList, byList)
        }
    }
}

/** A question that is open stays so for the keys that came since. */
private fun questionAfter(known: KnownUser?, asked: KeyQuestion.Kind?, listHash: String): KeyQuestion? =
    (asked ?: known?.question?.kind)?.let { KeyQuestion(it, listHash) }

/** Names the devices of a person without a list, and their keys, in base64 of SHA-256. */
private fun unlistedDevicesHash(userId: String, devices: List<KnownDevice>): String {
    val lines = devices.sortedBy { uint64Of(it.deviceId) }.joinToString("") { "${it.deviceId} ${it.keyHash}\n" }
    return encodeBase64(sha256("callsign unlisted devices v1\n$userId\n$lines".toByteArray()))
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
