/**
 * This user's view of the key transparency log: the devices of other people, only those that the log proves, and the user's
 * own key and device list.
 */
package callsign.app

import callsign.app.CallsignException.LocalCode
import callsign.verify.AbsentList
import callsign.verify.CallKeyContent
import callsign.verify.Check
import callsign.verify.Completeness
import callsign.verify.CompletenessDemand
import callsign.verify.ContactDevices
import callsign.verify.DeviceEvent
import callsign.verify.DeviceList
import callsign.verify.DevicesOutcome
import callsign.verify.KeyQuestion
import callsign.verify.ListedPerson
import callsign.verify.LogClient
import callsign.verify.LogException
import callsign.verify.LogKeys
import callsign.verify.LogTransport
import callsign.verify.NamedDevice
import callsign.verify.NamedUser
import callsign.verify.OwnDevice
import callsign.verify.OwnKeys
import callsign.verify.OwnKeysReport
import callsign.verify.Refusal
import callsign.verify.SharedPerson
import callsign.verify.Unanswered
import callsign.verify.VerifiedDevices
import callsign.verify.VerifiedDevices.Basis
import callsign.verify.comparisonCode
import callsign.verify.decodeBase64
import callsign.verify.encodeBase64
import callsign.verify.packCallKey
import callsign.verify.readCallKey
import callsign.verify.readShareFragment
import callsign.verify.shareFragment
import java.security.MessageDigest
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive
import kotlinx.serialization.json.buildJsonObject

/** What people are to hear of; it comes before the operation that found it returns. */
public sealed interface KeyEvent {
    public val userId: ULong

    /** Another user has other devices than before. */
    public data class DevicesChanged(override val userId: ULong, public val event: DeviceEvent) : KeyEvent

    /**
     * The server or the log has named keys of this user that do not hold, and nothing is sealed for them. With `evidence`, the
     * log has shown two trees.
     */
    public data class Refused(override val userId: ULong, public val refusal: Refusal) : KeyEvent

    /** The log holds a key in this device's name that it has not made, or lacks its own. */
    public data class OwnKeyAlert(override val userId: ULong, public val report: OwnKeysReport) : KeyEvent

    /** The log holds a device list that none of the user's devices has made. */
    public data class OwnListAlert(override val userId: ULong, public val report: OwnKeysReport) : KeyEvent

    /** A call goes on without this user, as it was asked to: nothing can be sealed for this device of theirs. */
    public data class LeftOut(override val userId: ULong, public val deviceId: ULong) : KeyEvent
}

/** Whether new keys of a contact that nothing known vouches for are asked about, as `KEYS_RESET`. */
public enum class OnReset {
    ASK,

    /** Encrypts for them without a question, after the event: for bots. */
    GO_ON,
}

/** A device whose key the log proves. [isListed]: its user's device list names it. */
internal class PeerDevice(
    val userId: ULong,
    val deviceId: ULong,
    val publicKeyHash: String,
    val isListed: Boolean,
    val holder: KeyHolder,
)

/** A user as `GET user/publicKeys` names them. [signingKeys], base64, are by the id of their device. */
internal class PublishedUser(val userId: ULong, val named: NamedUser, val signingKeys: Map<String, String>)

internal fun publishedUserOf(members: JsonObject): PublishedUser {
    val devices = members.members("devices")
    val named = devices.map {
        NamedDevice(
            "${it.needId("deviceId")}",
            it.needText("keyAlgorithm"),
            it.needText("publicKey"),
            it.needText("publicKeyHash"),
        )
    }
    val signingKeys = devices.mapNotNull { device ->
        device.text("signingKey")?.let { "${device.needId("deviceId")}" to it }
    }
    val userId = members.needId("userId")
    val absent = (members["absent"] as? JsonObject)?.let(::absentListOf)
    val user = NamedUser("$userId", named, members.text("deviceList"), members.text("deviceListHash"), absent)
    return PublishedUser(userId, user, signingKeys.toMap())
}

private fun absentListOf(members: JsonObject) =
    AbsentList(members.needText("vrfHash"), members.needText("vrfProof"), members["indexProof"]?.toString())

/** [list] is null where the user never had one. */
internal class OwnUser(val user: PublishedUser, val list: DeviceList?)

/**
 * Its functions throw `KEYS_REFUSED` for what does not hold, after an event; `KEYS_UNAVAILABLE` for keys that this user may not
 * see or that are not there; and `LOG_UNANSWERED` where the log could not be asked.
 */
internal class KeyLog(
    private val session: Session,
    storage: AppStorage,
    private val device: RegisteredDevice,
    private val keys: LogKeys,
    url: String,
    transport: LogTransport,
    private val onReset: OnReset,
    completeness: CompletenessDemand?,
    maxIndexAgeMs: Long?,
    private val onEvent: (KeyEvent) -> Unit,
) {
    val self = OwnKeyHolder(device.userId, device.deviceId, device.keys)
    private val stores = LogStores(storage, device.userId, keys)
    private val client =
        LogClient(keys, url, stores.checkpoints, transport, completeness = completeness, maxIndexAgeMs = maxIndexAgeMs)
    private val contacts = ContactDevices(client, stores.knownUsers) { userId, after ->
        val query = after?.let { "&after=$it" }.orEmpty()
        session.ask("GET", "user/device-lists?userId=$userId$query").texts("lists")
    }

    /**
     * Whether the log holds this device's own key, and no other in its name. Call it at each start and once a day. Refused at
     * `otherKey` where the log's index shows that it was logged twice.
     */
    suspend fun checkOwn(): OwnKeysReport {
        val claim = OwnDevice(device.userId, device.deviceId, device.publicKeyHash, listOf(device.keys.publicKey))
        val report = heldReport(device.userId, checked { client.checkOwnKeys(claim) })
        if (report.ownKeys != OwnKeys.Clean) {
            onEvent(KeyEvent.OwnKeyAlert(device.userId, report))
        } else if (report.complete == Completeness.Kind.COMPLETE && report.entries.size > 1) {
            // Twice the same key: other people's apps refuse it all the same.
            val detail = "another key was logged under the hash of device ${device.deviceId}"
            throw refuse(device.userId, Refusal(Check.OTHER_KEY, detail))
        }
        return report
    }

    /**
     * All devices of these users, in order to encrypt for them alone. Throws also `KEY_UNSUPPORTED` for an RSA key of a user
     * without a device list; and `KEYS_RESET` for the first of them whose keys are new, until [acceptKeys]. The own user is never asked about.
     */
    suspend fun devicesOf(userIds: List<ULong>): List<PeerDevice> = published(userIds).flatMap { user ->
        val verdict = verified(user).second
        val isAsked = onReset == OnReset.ASK && user.userId != device.userId
        verdict.question?.takeIf { isAsked }?.let { throw keysReset(user.userId, it) }
        if (verdict.devices.isEmpty()) throw unavailable(listOf(user.userId), "A user has no device yet.")
        verdict.devices.map { peerOf(user.userId, it.device, verdict.basis) }
    }

    /**
     * The person in front of the screen goes on with these keys of the user, and no later ones. Throws `KEYS_RESET` where
     * other ones are asked about.
     */
    suspend fun acceptKeys(userId: ULong, listHash: String) {
        checked { contacts.accept("$userId", listHash) }?.let { throw keysReset(userId, it) }
    }

    suspend fun deviceOf(userId: ULong, deviceId: ULong): PeerDevice =
        devicesOf(listOf(userId)).find { it.deviceId == deviceId }
            ?: throw unavailable(listOf(userId), "The device is not one of theirs any more.")

    /** The user's own devices, listed or not, and their list, which the log proves. */
    suspend fun ownUser(): OwnUser {
        val userId = device.userId
        var left = TRIES
        while (true) {
            val (user, verdict) = verified(published(listOf(userId)).single())
            val report = heldReport(userId, checked { contacts.checkOwnList("$userId") })
            val isAlert = report.ownKeys != OwnKeys.Clean
            // Another device of theirs may have signed a list meanwhile.
            if (isAlert && left-- > 1) continue
            if (isAlert) onEvent(KeyEvent.OwnListAlert(userId, report))
            return OwnUser(user, verdict.list)
        }
    }

    /** Sixty digits, the same for both users. Throws `KEYS_UNAVAILABLE` where one of them has no device list. */
    suspend fun codeWith(userId: ULong): String = comparisonCode(listed(device.userId), listed(userId))

    /** Names this user in a share link's fragment. Throws `KEYS_UNAVAILABLE` while they have no device list. */
    suspend fun shareFragment(): String {
        // Else a server could have this user vouch for a list that is not theirs.
        val own = listed(device.userId)
        return shareFragment(own, checked { client.highestCheckpoint() }, checked { client.highestIndexCheckpoint() })
    }

    /**
     * The person that a link's fragment names; null for a link without one. Compares the log with the one that they were shown.
     * Throws `MALFORMED` for a fragment that is damaged, or of another log.
     */
    suspend fun openShared(fragment: String): SharedPerson? {
        if (fragment.isEmpty() || fragment == "#") return null
        val shared = try {
            readShareFragment(fragment, keys.origin)
        } catch (cause: LogException) {
            throw damaged(cause)
        }
        if (shared == null) throw damaged()
        for (note in listOfNotNull(shared.note, shared.indexNote)) {
            val refusal = compare(shared.person.userId, note)
            if (refusal != null && refusal.check in FOREIGN) throw damaged()
        }
        return shared
    }

    /** The person of a link is verified against it when their devices are first used. */
    suspend fun expect(person: ListedPerson) = stores.putExpected(person)

    /** The octets to seal: this user's newest checkpoint goes with them. */
    suspend fun packed(content: CallKeyContent): ByteArray =
        packCallKey(content, checked { client.highestCheckpoint() })

    /** Takes apart what a device of this user has sealed, and compares its checkpoint with the newest one here. */
    suspend fun unpacked(opened: ByteArray, userId: ULong): CallKeyContent {
        val read = try {
            readCallKey(opened, keys.origin)
        } catch (cause: LogException) {
            throw CallsignException(LocalCode.CALL_KEY_INVALID, "What was sealed is no call's key.", cause)
        }
        read.note?.let { compare(userId, it) }
        return read.content
    }

    /** Reports that what the server said of the user does not hold: the error to throw. */
    suspend fun refuse(userId: ULong, refusal: Refusal): CallsignException {
        refusal.evidence?.let { stores.addEvidence(it) }
        onEvent(KeyEvent.Refused(userId, refusal))
        val members = bodyOf(mapOf("userId" to "$userId", "check" to refusal.check.wireName))
        return CallsignException(LocalCode.KEYS_REFUSED, "The keys do not hold: ${refusal.detail}.", members = members)
    }

    private fun peerOf(userId: ULong, named: NamedDevice, basis: Basis): PeerDevice {
        val deviceId = named.deviceId.toULong()
        val holder = KeyHolder.of(userId, deviceId, named.publicKey)
        // An app that knows of device lists opens the form for RSA keys too, which takes the sender's signing key in them.
        if (holder.key is HolderKey.Rsa && basis != Basis.LIST)
            throw keyUnsupported(userId, deviceId, "is one of RSA, and stands in no device list")
        return PeerDevice(userId, deviceId, named.publicKeyHash, basis == Basis.LIST, holder)
    }

    /** Reports it where the log has shown another user another tree. The key is good all the same. Returns what was refused. */
    private suspend fun compare(userId: ULong, note: String): Refusal? {
        val refusal = checked { client.compareWith(note) } as? Refusal ?: return null
        // A note that proves nothing is that user's doing.
        if (refusal.evidence != null) refuse(userId, refusal)
        return refusal
    }

    /** In the order of the ids. Users that were not asked for are left out. */
    private suspend fun published(userIds: List<ULong>): List<PublishedUser> {
        if (userIds.isEmpty()) return emptyList()
        val answer = session.ask("GET", "user/publicKeys?userIds=${userIds.joinToString(",")}")
        val users = answer.members("users").map(::publishedUserOf).associateBy { it.userId }
        val hidden = answer.textsOrNull("unavailable").orEmpty()
        val missing = userIds.filter { it !in users }
        if (missing.isNotEmpty())
            throw unavailable(missing, "The keys of a user are not to be seen.", missing.filter { "$it" in hidden })
        return userIds.map(users::getValue)
    }

    /** Tells what has changed, once the devices are found good. */
    private suspend fun verified(published: PublishedUser): Pair<PublishedUser, VerifiedDevices> {
        val userId = published.userId
        var user = published
        var judged = judge(user)
        var left = TRIES
        while (judged is Refusal && left-- > 1) {
            // They may have signed a list since the answer: the next answer has it.
            user = published(listOf(userId)).single()
            judged = judge(user)
        }
        val verdict = when (judged) {
            is VerifiedDevices -> judged
            is Refusal -> throw refuse(userId, judged)
            is Unanswered -> throw unanswered(judged)
        }
        val isOwn = userId == device.userId
        val isOwnDoing = isOwn && hasSigned(verdict)
        for (event in verdict.events) {
            // `OwnDeviceList` has the devices that wait for the list, and this one's place.
            val isKnown = isOwn && (event.kind == DeviceEvent.Kind.UNLISTED || event.deviceId == "${device.deviceId}")
            if (!isOwnDoing && !isKnown) onEvent(KeyEvent.DevicesChanged(userId, event))
        }
        if (verdict.events.isNotEmpty()) checked { contacts.shown("$userId", verdict.events) }
        return user to verdict
    }

    /** Whether this device has signed the user's own list. Throws where the list has another signing key for it. */
    private suspend fun hasSigned(verdict: VerifiedDevices): Boolean {
        val list = verdict.list ?: return false
        val own = list.devices.find { it.deviceId == device.deviceId } ?: return false
        if (encodeBase64(own.signingKey) != device.keys.signingKey) {
            val detail = "the list has another signing key for this device"
            throw refuse(device.userId, Refusal(Check.DEVICE_LIST, detail))
        }
        return list.signerDeviceId == own.deviceId
    }

    private suspend fun judge(user: PublishedUser): DevicesOutcome {
        val expected = stores.expected(user.userId) ?: return checked { contacts.verify(user.named) }
        val verdict = checked { contacts.verifyShared(user.named, expected) }
        if (verdict is VerifiedDevices) stores.forgetExpected(user.userId)
        return verdict
    }

    private suspend fun listed(userId: ULong): ListedPerson {
        val list = verified(published(listOf(userId)).single()).first.named.deviceList
            ?: throw unavailable(listOf(userId), "A user has no device list yet.")
        val hash = MessageDigest.getInstance("SHA-256").digest(decodeBase64(list))
        return ListedPerson(userId, encodeBase64(hash))
    }

    private suspend fun heldReport(userId: ULong, outcome: callsign.verify.OwnKeysOutcome): OwnKeysReport = when (outcome) {
        is OwnKeysReport -> outcome
        is Refusal -> throw refuse(userId, outcome)
        is Unanswered -> throw unanswered(outcome)
    }

    private fun unanswered(answer: Unanswered): CallsignException {
        val members = buildJsonObject {
            answer.status?.let { put("status", JsonPrimitive(it)) }
            answer.code?.let { put("code", JsonPrimitive(it)) }
            answer.check?.let { put("check", JsonPrimitive(it.wireName)) }
        }
        val sentence = "The key log could not be asked: ${answer.detail}."
        return CallsignException(LocalCode.LOG_UNANSWERED, sentence, members = members)
    }

    private companion object {
        /** How often an answer is judged that a new list may have overtaken. */
        const val TRIES = 3

        /** A note is none of this log. */
        val FOREIGN = setOf(Check.CHECKPOINT, Check.ORIGIN, Check.SIGNATURE)
    }
}

/** The log's client throws a [LogException] where a stored value is not what it has put there. */
private suspend fun <Answer> checked(ask: suspend () -> Answer): Answer = try {
    ask()
} catch (cause: LogException) {
    throw storageCorrupt("checkpoint", cause)
} catch (cause: IllegalArgumentException) {
    throw answerInvalid(cause)
}

private fun keysReset(userId: ULong, question: KeyQuestion): CallsignException {
    val members = mapOf("userId" to "$userId", "listHash" to question.listHash, "kind" to question.kind.wireName)
    val sentence = "The keys of a contact are new, and nothing known vouches for them. Accept them to go on."
    return CallsignException(LocalCode.KEYS_RESET, sentence, members = bodyOf(members))
}

private fun damaged(cause: Throwable? = null): CallsignException =
    CallsignException("MALFORMED", "The link is damaged, or of another server.", cause)

/** [hidden] are users whose keys the server does not show to this one. */
private fun unavailable(userIds: List<ULong>, sentence: String, hidden: List<ULong> = emptyList()): CallsignException {
    val members = mapOf("userIds" to idsOf(userIds)) + if (hidden.isEmpty()) emptyMap() else mapOf("hiddenIds" to idsOf(hidden))
    return CallsignException(LocalCode.KEYS_UNAVAILABLE, sentence, members = JsonObject(members))
}
