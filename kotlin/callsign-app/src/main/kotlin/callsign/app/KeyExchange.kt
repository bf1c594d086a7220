/**
 * How a call's key goes to other devices and comes from them: only to and from devices that the key log proves. With each key goes
 * the set of devices that it is sealed for, and who opens it looks at all of them.
 */
package callsign.app

import callsign.app.CallsignException.LocalCode
import callsign.app.calls.Sender
import callsign.verify.CallKeyContent
import callsign.verify.Check
import callsign.verify.Refusal
import java.security.MessageDigest
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.currentCoroutineContext
import kotlinx.coroutines.ensureActive
import kotlinx.coroutines.joinAll
import kotlinx.coroutines.launch
import kotlinx.coroutines.withTimeoutOrNull
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive

/**
 * A key sealed for a set of devices. [texts] are by `<userId>_<deviceId>`, none for this device. [members] are the names of the
 * devices in the set [keyMembers], this one among them; [without] those of devices in the call that can't be proved now.
 */
internal class SealedKeys(
    val texts: JsonObject,
    val keyMembers: String,
    val members: List<String>,
    val without: List<String>,
)

/**
 * A key, the device that has sealed it, and the set of devices that it is sealed for. [unlisted] are names of the user's own
 * devices in the set, but this one, that no device list names. [sealedAtMs] is by the sender's clock.
 */
internal class OpenedKey(
    val key: ByteArray,
    val from: Sender,
    val keyMembers: String,
    val members: List<String>,
    val unlisted: List<String>,
    val sealedAtMs: Long,
)

/** Its functions throw as those of [KeyLog]. All of it runs in [scope]. */
internal class KeyExchange(private val keyLog: KeyLog, private val session: Session, private val scope: CoroutineScope) {
    /** By call: the devices that the log has proved since this device is in it. */
    private val proved = LinkedHashMap<String, Map<String, PeerDevice>>()
    private val self get() = keyLog.self.holder

    /** For every device of these users. */
    suspend fun sealForUsers(key: ByteArray, userIds: List<ULong>, binding: KeyBinding): SealedKeys =
        sealed(key, proveCallees(userIds, binding), binding)

    /**
     * For a call that goes on. Devices that were proved before are not asked for again, and one in the call that can't be proved is
     * left out. Throws where a user of [userIds] can't be proved.
     */
    suspend fun sealForCall(
        key: ByteArray,
        participants: List<CallParticipant>,
        userIds: List<ULong>,
        binding: KeyBinding,
    ): SealedKeys {
        val invited = proveCallees(userIds, binding)
        val others = participants.filter { it.userId != self.userId && it.userId !in userIds }
        val receivers = others.filter { it.state == ParticipantState.JOINED || it.state in RINGING }
        fun isOf(device: PeerDevice, receiver: CallParticipant) =
            if (receiver.state == ParticipantState.JOINED) device.holder.name == receiver.deviceName
            else device.userId == receiver.userId
        fun isMissing(receiver: CallParticipant) = known(binding).none { isOf(it, receiver) }
        proveSoon(receivers.filter(::isMissing).map { it.userId }, binding)
        val present = known(binding).filter { device -> receivers.any { isOf(device, it) } }
        val without = receivers.filter { it.state == ParticipantState.JOINED && isMissing(it) }.map { it.deviceName }
        return sealed(key, invited + present, binding, without)
    }

    /** A key that this device holds once more, for the devices of its set that are in the call. */
    suspend fun sealAgain(
        key: ByteArray,
        keyMembers: String,
        participants: List<CallParticipant>,
        binding: KeyBinding,
    ): SealedKeys {
        val members = readKeyMembers(keyMembers)
        val joined = participants.filter { it.state == ParticipantState.JOINED }.map { it.deviceName }
        val devices = provedAs(members.filter { it.name in joined && it.name != self.name }, binding)
        val texts = textsOf(key, devices, hashOfSet(keyMembers), binding)
        return SealedKeys(texts, keyMembers, members.map { it.name }, without = emptyList())
    }

    /** A held key for one device. Throws `KEYS_REFUSED` where it has another key than the one of this hash. */
    suspend fun sealForDevice(key: ByteArray, keyMembers: String, asker: KeyAsk, binding: KeyBinding): String {
        val device = keyLog.deviceOf(asker.userId, asker.deviceId)
        if (device.publicKeyHash == asker.publicKeyHash) return seal(key, device, hashOfSet(keyMembers), binding)
        val detail = "device ${asker.deviceId} asks for a call's key with another key than its own"
        throw keyLog.refuse(asker.userId, Refusal(Check.VRF_HASH, detail))
    }

    /**
     * Opens a key that one of these has sealed, tried in this order. Throws `CALL_KEY_INVALID` when none of them has, and
     * `KEY_MEMBERS_REFUSED` where the set does not hold that goes with it.
     */
    suspend fun open(sealed: String, senders: List<Sender>, binding: KeyBinding, hints: SetHints): OpenedKey {
        var refusal = CallsignException(LocalCode.CALL_KEY_INVALID, "Nobody in the call has sealed its key.")
        for (sender in senders) {
            val (from, content) = try {
                openFrom(sender, sealed, binding)
            } catch (error: CallsignException) {
                // A sender whose keys could not be read now may have sealed it.
                if (refusal.code == LocalCode.CALL_KEY_INVALID) refusal = error
                continue
            }
            val keyMembers = setWith(content.setHash, binding, hints)
            val members = readKeyMembers(keyMembers)
            checkMembers(members, from, binding)
            val names = members.map { it.name }
            val unlisted = known(binding).filter { it.userId == self.userId && !it.isListed }.map { it.holder.name }
            return OpenedKey(
                content.callKey,
                sender,
                keyMembers,
                names,
                unlisted.filter { it in names && it != self.name },
                content.sealedAtMs,
            )
        }
        throw refusal
    }

    private suspend fun openFrom(sender: Sender, sealed: String, binding: KeyBinding): Pair<PeerDevice, CallKeyContent> {
        val (userId, deviceId) = sender
        val from = known(binding).find { it.userId == userId && it.deviceId == deviceId } ?: keyLog.deviceOf(userId, deviceId)
        return from to keyLog.unpacked(openCallKey(sealed, from.holder, keyLog.self, binding), userId)
    }

    /** The set with this hash. */
    private suspend fun setWith(setHash: ByteArray, binding: KeyBinding, hints: SetHints): String {
        fun isIt(keyMembers: String) = trying { hashOfSet(keyMembers) }.contentEquals(setHash)
        for (set in hints.sets) {
            val after = hints.change?.let { trying { changedSet(set, it) } }
            listOfNotNull(set, after).find(::isIt)?.let { return it }
        }
        val operation = "call/${binding.callId}/key-members?epoch=${binding.epoch}"
        val named = session.ask("GET", operation).needText("keyMembers")
        return named.takeIf(::isIt) ?: throw membersRefused("the server names other devices than the key is sealed for")
    }

    /** Throws unless the log proves each device with this key, and sender and receiver are among them. */
    private suspend fun checkMembers(members: List<KeyMember>, from: PeerDevice, binding: KeyBinding) {
        for (holder in listOf(self, from.holder)) {
            if (members.none { it.isSame(holder) })
                throw membersRefused("device ${holder.name} is not among those that it is sealed for", holder.name)
        }
        remember(listOf(from), binding)
        provedAs(members.filter { it.name != self.name }, binding)
    }

    /** The devices of a set, proved. Throws `KEY_MEMBERS_REFUSED` unless each has the key that the set has of it. */
    private suspend fun provedAs(members: List<KeyMember>, binding: KeyBinding): List<PeerDevice> {
        fun find(member: KeyMember) = known(binding).find { member.isSame(it.holder) }
        prove(members.filter { find(it) == null }.map { it.userId }, binding)
        return members.map { member ->
            find(member) ?: throw membersRefused("device ${member.name} is not one that the log proves", member.name)
        }
    }

    /** Keys are hidden from those alone whose calls the server refuses: such a user hears what the server would say. */
    private suspend fun proveCallees(userIds: List<ULong>, binding: KeyBinding): List<PeerDevice> =
        try {
            prove(userIds, binding)
        } catch (error: CallsignException) {
            val hidden = error.members["hiddenIds"] ?: throw error
            val sentence = "A callee is no contact and takes calls from contacts only: become contacts first."
            throw CallsignException("CALLEE_NOT_CONTACT", sentence, error, members = JsonObject(mapOf("calleeIds" to hidden)))
        }

    private suspend fun prove(userIds: List<ULong>, binding: KeyBinding): List<PeerDevice> {
        if (userIds.isEmpty()) return emptyList()
        val others = keyLog.devicesOf(userIds.distinct()).filter { it.holder.name != self.name }
        remember(others, binding)
        return others
    }

    /** Each by itself, and no longer than a call can wait for its key. */
    private suspend fun proveSoon(userIds: List<ULong>, binding: KeyBinding) {
        val all = userIds.distinct().map { scope.launch { proveOrNot(it, binding) } }
        withTimeoutOrNull(PROVE_WAIT_MS) { all.joinAll() }
    }

    private suspend fun proveOrNot(userId: ULong, binding: KeyBinding) {
        try {
            prove(listOf(userId), binding)
        } catch (_: Exception) {
            // It is left out, and named.
            currentCoroutineContext().ensureActive()
        }
    }

    private suspend fun sealed(
        key: ByteArray,
        devices: List<PeerDevice>,
        binding: KeyBinding,
        without: List<String> = emptyList(),
    ): SealedKeys {
        val all = listOf(self) + devices.map { it.holder }
        val keyMembers = keyMembersOf(all)
        return SealedKeys(textsOf(key, devices, hashOfSet(keyMembers), binding), keyMembers, all.map { it.name }, without)
    }

    private suspend fun textsOf(key: ByteArray, devices: List<PeerDevice>, setHash: ByteArray, binding: KeyBinding) =
        JsonObject(devices.associate { it.holder.name to JsonPrimitive(seal(key, it, setHash, binding)) })

    private suspend fun seal(key: ByteArray, to: PeerDevice, setHash: ByteArray, binding: KeyBinding): String {
        val content = CallKeyContent(key, setHash, System.currentTimeMillis())
        return sealCallKey(keyLog.packed(content), keyLog.self, to.holder, binding)
    }

    private fun known(binding: KeyBinding): List<PeerDevice> =
        proved[binding.callId].orEmpty().values.toList()

    private fun remember(devices: List<PeerDevice>, binding: KeyBinding) {
        val known = proved.remove(binding.callId).orEmpty()
        proved[binding.callId] = known + devices.associateBy { it.holder.name }
        if (proved.size > CALLS_MAX) proved.remove(proved.keys.first())
    }

    private companion object {
        val RINGING = setOf(ParticipantState.INVITED, ParticipantState.RINGING)
        const val PROVE_WAIT_MS = 3_000L

        /** A device is in one call, and a few more ring. */
        const val CALLS_MAX = 16
    }
}

private fun KeyMember.isSame(holder: KeyHolder): Boolean =
    name == holder.name && MessageDigest.isEqual(keyHash, holder.keyHash)

/** Null for what a server has named that is no set. */
private fun <Value> trying(read: () -> Value): Value? = try {
    read()
} catch (_: IllegalArgumentException) {
    null
}

private fun membersRefused(detail: String, name: String? = null): CallsignException {
    val members = bodyOf(mapOf("name" to name))
    return CallsignException(LocalCode.KEY_MEMBERS_REFUSED, "The call’s key is not taken: $detail.", members = members)
}
