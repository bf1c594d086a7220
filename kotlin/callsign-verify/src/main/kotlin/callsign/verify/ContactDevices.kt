/**
 * The devices of each person that this app encrypts for, as it has come to know them. A device list that the log proves says
 * which they are; a person whose apps make no list is trusted on first use. Every change since is an event.
 */
package callsign.verify

import kotlinx.coroutines.sync.Mutex
import kotlinx.coroutines.sync.withLock

/**
 * A user as `GET user/publicKeys` and a friend request's answer name it. Ids are decimal texts, as in JSON. [deviceList] is
 * base64, with the VRF hash under which the log holds its SHA-256; [absent], instead of a list, is the proof that the log has none.
 */
public data class NamedUser(
    val userId: String,
    val devices: List<NamedDevice>,
    val deviceList: String? = null,
    val deviceListHash: String? = null,
    val absent: AbsentList? = null,
)

/** A device as the server names it; key and hash are base64. */
public data class NamedDevice(
    val deviceId: String,
    val keyAlgorithm: String,
    val publicKey: String,
    val publicKeyHash: String,
)

/** A device to encrypt for. [signingKey] is an uncompressed P-256 point, base64; null where no list names the device. */
public data class VerifiedDevice(val device: NamedDevice, val signingKey: String? = null)

/** What became of a person's devices: [VerifiedDevices], [Refusal] or [Unanswered]. */
public sealed interface DevicesOutcome

/**
 * Encrypt for [devices] only, and ask before you do where there is a [question]: it comes again until [ContactDevices.accept]
 * is called. Each event comes again until [ContactDevices.shown] is called. [complete] is what the log's index proves of all that
 * was looked up, the least of it; [isProved] says whether cosigners that rebuild the index vouch for all of it.
 */
public class VerifiedDevices(
    public val basis: Basis,
    public val devices: List<VerifiedDevice>,
    public val list: DeviceList?,
    public val events: List<DeviceEvent>,
    public val question: KeyQuestion? = null,
    public val complete: Completeness.Kind = Completeness.Kind.UNINDEXED,
    public val isProved: Boolean = false,
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
     * devices named beside it do not hold, or a list that there was is left out; at `otherKey` where the log's index shows another
     * key under the hash of a device; else at the check of a lookup that failed. Unanswered also where lists that this app missed
     * are withheld. Throws what the store throws, and [IllegalArgumentException] for an id that is no uint64 in decimal.
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
        val claims = user.devices.map { claimOf(userId, it) }
        val outcomes = lookups.lookUpAll(claims)
        failedLookup(claims, outcomes)?.let { return it }
        val absence = when (val outcome = lookups.verifyAbsence(userId, DEVICE_LIST_SLOT, user.absent)) {
            is Absence -> outcome.completeness
            is Refusal -> return outcome
            is Unanswered -> return outcome
        }
        val proved = listOf(absence) + completenessOf(outcomes)
        val now = user.devices.map { KnownDevice(it.deviceId, encodeBase64(sha256(decodeBase64(it.publicKey)))) }
        // A person without devices has not been met yet.
        if (known == null && now.isEmpty()) return firstUse(emptyList(), emptyList(), null, proved)
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
        return firstUse(user.devices.map { VerifiedDevice(it) }, events, question, proved)
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
        val claims = listOf(slot) + devices.map { claimOf(userId, it) }
        val outcomes = lookups.lookUpAll(claims)
        failedLookup(claims, outcomes)?.let { return it }
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
        val proved = completenessOf(outcomes)
        return VerifiedDevices(VerifiedDevices.Basis.LIST, verified, list, events, question, leastOf(proved), areProved(proved))
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

private fun claimOf(userId: ULong, device: NamedDevice): DeviceToLookUp =
    DeviceToLookUp(userId, uint64Of(device.deviceId), device.publicKeyHash, device.publicKey)

private fun failedLookup(claims: List<DeviceToLookUp>, outcomes: List<LookupOutcome>): DevicesOutcome? =
    outcomes.firstNotNullOfOrNull { it as? Refusal }
        ?: outcomes.firstNotNullOfOrNull { it as? Unanswered }
        ?: otherKey(claims, outcomes)

/** A device has one key for its whole life, so a second key is an intruder's. Lists follow one another. */
private fun otherKey(claims: List<DeviceToLookUp>, outcomes: List<LookupOutcome>): Refusal? {
    val at = claims.indices.find { claims[it].deviceId != DEVICE_LIST_SLOT && hasOtherKey(outcomes[it]) } ?: return null
    return Refusal(Check.OTHER_KEY, "another key was logged under the hash of device ${claims[at].deviceId}")
}

private fun hasOtherKey(outcome: LookupOutcome): Boolean {
    val completeness = (outcome as VerifiedKey).completeness
    return completeness is Completeness.Complete && completeness.indexes.size > 1
}

private fun completenessOf(outcomes: List<LookupOutcome>): List<Completeness> =
    outcomes.map { (it as VerifiedKey).completeness }

private fun firstUse(
    devices: List<VerifiedDevice>,
    events: List<DeviceEvent>,
    question: KeyQuestion?,
    proved: List<Completeness>,
) = VerifiedDevices(VerifiedDevices.Basis.FIRST_USE, devices, null, events, question, leastOf(proved), areProved(proved))

internal fun uint64Of(id: String): ULong =
    requireNotNull(uint64OrNull(id)) { "\"${id.take(40)}\" is not a uint64 in decimal" }

private fun refused(detail: String): Refusal = Refusal(Check.DEVICE_LIST, detail)

/** [judgeDeviceList] gives them for a list that does not follow the known one at once. */
private val REASONS_OF_MISSED_LISTS = setOf(DeviceListRefusal.SEQ_JUMP, DeviceListRefusal.WRONG_PREVIOUS_HASH)
