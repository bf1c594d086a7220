/** Which keys a device takes: from whom, and for which devices (docs/check/crypto.md). */
package callsign.app.calls

import callsign.app.CallParticipant
import callsign.app.CallRecord
import callsign.app.CallsignException
import callsign.app.CallsignException.LocalCode
import callsign.app.ParticipantState
import callsign.app.SetChange
import callsign.app.bodyOf
import callsign.app.text
import callsign.app.textsOrNull
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive

/** The newest key of the call that was opened here, also one that an invitation brought. */
internal val DeviceCall.latestKey: HeldKey? get() = newestKey ?: invited?.key

/** The next epoch comes from a person who has the one before: on another device of theirs, where they have moved the call. */
internal fun HeldKey.isForSomeDeviceOf(userId: ULong): Boolean = set.members.any { userIdIn(it) == userId }

/** Whether the key is for this device. */
internal fun HeldKey.isFor(deviceName: String): Boolean = deviceName in set.members

/** The person in a device's name. */
internal fun userIdIn(deviceName: String): ULong = deviceName.substringBefore('_').toULong()

/** Sets that may be the one: those in the record, and of the keys that are here. */
internal fun setsIn(call: DeviceCall?, record: CallRecord? = call?.record): List<String> {
    val held = call?.key?.held.orEmpty() + listOfNotNull(call?.invited?.key)
    return (record?.keySets.orEmpty() + held.map { it.set.keyMembers }).distinct()
}

/** How the set of a `key_update` differs from the one before, if it says so. */
internal fun changeIn(event: JsonObject): SetChange? {
    val added = event.text("added") ?: return null
    return SetChange(added, event.textsOrNull("removed") ?: return null)
}

/** Why a key is not taken for the devices that it is sealed for. Without a record it is not known who has a part in the call. */
internal fun Turn.refusalOfSet(callId: String, key: HeldKey, record: CallRecord?): CallsignException? {
    key.unlisted.find { it !in device.kept.accepted }?.let { return ownDeviceInSet(it) }
    val removed = call(callId)?.removed.orEmpty()
    val userIds = key.set.members.map(::userIdIn).distinct()
    userIds.find { it in removed }?.let { return removalIgnored(it) }
    if (record == null) return null
    // People who have left since, or declined, were in the call when the key was made.
    val stranger = userIds.find { id ->
        val state = record.participant(id)?.state
        state == null || state == ParticipantState.REMOVED
    } ?: return null
    val sentence = "The call’s key is not taken: it is sealed for a person who is not in the call."
    return CallsignException(LocalCode.KEY_MEMBERS_REFUSED, sentence, members = bodyOf(mapOf("userId" to "$stranger")))
}

private fun ownDeviceInSet(name: String): CallsignException {
    val sentence = "The call’s key is sealed for a device of your own that is on no device list: is it yours?"
    return CallsignException(LocalCode.OWN_DEVICE_IN_SET, sentence, members = bodyOf(mapOf("name" to name)))
}

/** The user says that it is theirs. */
internal fun Turn.acceptDevice(name: String) {
    val accepted = device.kept.accepted
    if (name !in accepted) keep(device.kept.copy(accepted = (accepted + name).takeLast(ACCEPTED_MAX)))
}

/** Why the call's key is not taken from the device that is said to have made it. */
internal fun notFromMember(from: Sender): CallsignException {
    val sentence = "The call’s key is not taken: it comes from a person who did not have the one before."
    val members = bodyOf(mapOf("name" to from.deviceName))
    return CallsignException(LocalCode.KEY_MEMBERS_REFUSED, sentence, members = members)
}

internal fun removalIgnored(userId: ULong): CallsignException {
    val sentence = "The call’s key was to be sealed for a person whom this device has removed."
    return CallsignException(LocalCode.REMOVAL_IGNORED, sentence, members = bodyOf(mapOf("userId" to "$userId")))
}

internal fun callerNotSealer(): CallsignException {
    val sentence = "The call’s key does not come from the person who is said to call."
    return CallsignException(LocalCode.CALLER_NOT_SEALER, sentence)
}

/** Why a key of this epoch is not taken: what the call had before does not come again. */
internal fun Turn.refusalOfEpoch(callId: String, epoch: Long): CallsignException? {
    val before = device.kept.opened.find { it.callId == callId } ?: return null
    // Keys that come out of their order are taken, but none from before those that are here.
    val oldest = call(callId)?.key?.held?.lastOrNull()?.epoch
    val isOld = if (before.isOver) epoch <= before.epoch else epoch < (oldest ?: before.epoch)
    if (!isOld) return null
    val sentence = "The call’s key is not taken: it is of an epoch that this device has left behind."
    return CallsignException(LocalCode.CALL_KEY_OLD, sentence, members = numberOf("epoch", epoch))
}

/** A server may hand out once more what it has kept. */
internal fun Turn.refusalOfAge(callId: String, sealedAgoMs: Long): CallsignException? {
    val isWanted = (call(callId)?.phase as? Phase.Entering)?.evenIfOld == true
    if (sealedAgoMs <= OLD_MS || isWanted) return null
    val sentence = "The invitation was sealed ${sealedAgoMs / 60_000} minutes ago: take it only if you expect it."
    return CallsignException(LocalCode.INVITATION_OLD, sentence, members = numberOf("sealedAgoMs", sealedAgoMs))
}

private fun numberOf(name: String, value: Long) = JsonObject(mapOf(name to JsonPrimitive(value)))

/** Notes the newest epoch of a call, for as long as this device is the user's. */
internal fun Turn.noteOpened(callId: String, epoch: Long, isOver: Boolean = false) {
    val opened = device.kept.opened
    val before = opened.find { it.callId == callId }
    val removed = call(callId)?.removed ?: before?.removed.orEmpty()
    val noted = Opened(callId, maxOf(epoch, before?.epoch ?: 0), isOver, if (isOver) emptyList() else removed)
    keep(device.kept.copy(opened = (opened - setOfNotNull(before) + noted).takeLast(OPENED_MAX)))
}

/** The call was left meanwhile. */
internal fun Turn.forgetRemoved(callId: String, userId: ULong) {
    val opened = device.kept.opened.map { if (it.callId == callId) it.copy(removed = it.removed - userId) else it }
    keep(device.kept.copy(opened = opened))
}

/**
 * Whether this device may make the next epoch. The host's may; if the host's device does not have the present key, the member with
 * the lowest id may instead.
 */
internal fun Turn.mayRenew(callId: String, record: CallRecord): Boolean {
    val userId = device.userId
    if (record.hostUserId == userId) return true
    val held = call(callId)?.newestKey?.takeIf { it.isFor(Sender(userId, device.deviceId).deviceName) } ?: return false
    val able = record.participants.filter { it.state == ParticipantState.JOINED && held.isFor(it.deviceName) }.map { it.userId }
    return record.hostUserId !in able && able.minOrNull() == userId
}

/** The next key's receivers, without those whom this device has removed. */
internal fun Turn.receiversIn(callId: String, record: CallRecord): List<CallParticipant> {
    val call = call(callId)
    return record.participants.filter { it.userId !in call?.removed.orEmpty() }.flatMap { one ->
        val admitted = call?.admitted?.find { it.userId == one.userId }
        val joined = admitted?.let { one.copy(deviceId = it.deviceId, state = ParticipantState.JOINED) }
        if (joined == null || joined.deviceId == one.deviceId) listOf(joined ?: one) else listOf(one, joined)
    }
}

/** Devices in the call that it is not for. */
internal fun withoutIn(record: CallRecord, receivers: List<CallParticipant>, without: List<String>): List<String> =
    record.participants
        .filter { it.state == ParticipantState.JOINED }
        .filter { one -> one.deviceName in without || receivers.none { it.userId == one.userId } }
        .map { it.deviceName }

/** Some tens of octets each. */
private const val OPENED_MAX = 500
private const val ACCEPTED_MAX = 100

/** An invitation rings for a minute, and clocks differ. */
private const val OLD_MS = 300_000L
