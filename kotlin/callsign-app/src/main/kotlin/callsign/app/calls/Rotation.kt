/** The keys that this device makes in one call: when their time has run out, after a participant has left, and when asked. */
package callsign.app.calls

import callsign.app.CallRecord
import callsign.app.CallsignException
import callsign.app.CallsignException.LocalCode
import callsign.app.ParticipantState
import callsign.app.bodyOf
import callsign.app.hasCode
import kotlinx.serialization.json.JsonArray
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive
import kotlinx.serialization.json.buildJsonObject

/** The time of the present key begins. */
internal fun Turn.plan(callId: String, record: CallRecord) =
    planAfter(callId, periodMsOf(record), KeysReason.ROTATION)

/** A little later, for several who leave at once. */
internal fun Turn.planAfterLeaving(callId: String) = planSooner(callId, AFTER_LEAVING_MS, KeysReason.LEAVE)

/** Makes a key for all now: for the app that asks, or to return with it into a call whose key is gone. */
internal fun Turn.renew(callId: String, command: Int? = null, returning: CallRecord? = null) {
    val call = call(callId) ?: return
    val commands = listOfNotNull(command)
    val rotation = call.rotation
    if (rotation !is Rotation.Renewing)
        return startRenewing(callId, Rotation.Renewing(KeysReason.ROTATION, afterMs = null, commands, returning))
    val joined = rotation.copy(commands = rotation.commands + commands, returning = returning ?: rotation.returning)
    change(callId) { copy(rotation = joined) }
}

/** Soon, since members may have one that this device does not know. */
internal fun Turn.planAgain(callId: String) = planSooner(callId, AFTER_LEAVING_MS, KeysReason.ROTATION)

/** One who was removed has no key of what follows: the next one is made at once. */
internal fun Turn.renewWithout(callId: String) {
    val call = call(callId)
    if (call?.phase != Phase.Active || !hasOthers(call)) return
    if (call.rotation is Rotation.Renewing) planAfter(callId, 0, KeysReason.LEAVE)
    else startRenewing(callId, Rotation.Renewing(KeysReason.LEAVE, afterMs = 0, commands = emptyList()))
}

/**
 * Once no invitation rings, the key is for those in the call alone, and for all of them. The host checks that after each change of
 * people.
 */
internal fun Turn.fit(callId: String) {
    val call = call(callId) ?: return
    val (record, held) = (call.record ?: return) to (call.newestKey ?: return)
    if (call.phase != Phase.Active || record.hostUserId != device.userId) return
    if (call.rotation is Rotation.Renewing || !hasOthers(call)) return
    val joined = record.participants.filter { it.state == ParticipantState.JOINED }.map { it.deviceName }
    if (joined.any { !held.isFor(it) && it !in call.without }) return planSooner(callId, 0, KeysReason.ROTATION)
    val rings = record.participants.any { it.state == ParticipantState.INVITED || it.state == ParticipantState.RINGING }
    if (!rings && held.set.members.any { it !in joined }) planAfterLeaving(callId)
}

/** Sends the present key once more. */
internal fun Turn.resend(callId: String, command: Int) =
    readForKeys(NewKey(callId, KeysReason.EMERGENCY, command, TRIES))

/** Only the host makes it. Where it can't be made now, it is later. */
internal fun Turn.onRotationDue(callId: String) {
    val call = call(callId) ?: return
    val (_, afterMs, reason) = call.rotation as? Rotation.Planned ?: return
    if (call.record?.hostUserId == device.userId && call.phase == Phase.Active && hasOthers(call))
        startRenewing(callId, Rotation.Renewing(reason, afterMs, commands = emptyList()))
    else planAfter(callId, later(afterMs), reason)
}

/** The call was read: its devices and its epoch. */
internal fun Turn.onKeysRead(sending: NewKey, record: CallRecord) {
    val (callId, reason, command) = sending
    val call = call(callId) ?: return settle(command, hasEndedHere())
    val participants = receiversIn(callId, record)
    if (reason == KeysReason.EMERGENCY) {
        val (epoch, key, _, set) = call.newestKey ?: return settle(command, keyMissing())
        val again = sending.copy(key = key, epoch = epoch, record = record, set = set)
        return seal(key, Receivers.Members(participants, set.keyMembers), Use(callId, epoch), Purpose.KeysSeal(again))
    }
    val ignored = record.participants.find { it.state == ParticipantState.JOINED && it.userId in call.removed }
    if (ignored != null) {
        report(callId, removalIgnored(ignored.userId))
        // The server may not have heard of it.
        requestRemoval(Purpose.Remove(callId, command = null, ignored.userId, isKnown = true))
    }
    val key = makeKey()
    val epoch = record.keyEpoch + 1
    val sealing = sending.copy(key = key, epoch = epoch, record = record)
    seal(key, Receivers.Participants(participants), Use(callId, epoch), Purpose.KeysSeal(sealing))
}

/** [unproved] are devices in the call that it could not be sealed for. */
internal fun Turn.onKeysSealed(sending: NewKey, texts: JsonObject, set: KeySet, unproved: List<String>) {
    val callId = sending.callId
    if (call(callId) == null) return settle(sending.command, hasEndedHere())
    val record = checkNotNull(sending.record)
    val without =
        if (sending.reason == KeysReason.EMERGENCY) emptyList()
        else withoutIn(record, receiversIn(callId, record), unproved)
    val body = buildJsonObject {
        put("epoch", JsonPrimitive(sending.epoch))
        put("reason", JsonPrimitive(sending.reason.name.lowercase()))
        put("keyMembers", JsonPrimitive(set.keyMembers))
        put("encryptedAESKeys", texts)
        if (without.isNotEmpty()) put("without", JsonArray(without.map(::JsonPrimitive)))
    }
    request("POST", "call/$callId/keys", Purpose.Keys(sending.copy(set = set, without = without)), body)
}

/** Gives the record with which this device returns into the call by the key, if it does: also where it still asks for one. */
internal fun Turn.onKeysSent(sending: NewKey): CallRecord? {
    val callId = sending.callId
    val call = call(callId)
    if (sending.reason == KeysReason.EMERGENCY) {
        settle(sending.command)
        return null
    }
    val record = checkNotNull(sending.record)
    val told = call?.without.orEmpty()
    for (name in sending.without)
        if (name !in told && userIdIn(name) !in call?.removed.orEmpty()) report(callId, leftOut(name))
    change(callId) { copy(without = sending.without, admitted = emptyList()) }
    val (epoch, key) = checkNotNull(sending.epoch) to checkNotNull(sending.key)
    // The app may have been closed and opened meanwhile: the others have it all the same.
    hold(callId, HeldKey(epoch, key, device.userId, checkNotNull(sending.set)), reason = sending.reason)
    val rotation = call?.rotation as? Rotation.Renewing ?: return null
    change(callId) { copy(rotation = Rotation.None) }
    if (rotation.next == null) plan(callId, record) else planAfter(callId, rotation.next.afterMs, rotation.next.reason)
    settleAll(rotation.commands)
    return rotation.returning ?: record.takeIf { call.isAsking }
}

/** Gives whether this device was to return into the call by the key. */
internal fun Turn.onKeysNotSent(sending: NewKey, failure: CallsignException): Boolean {
    val callId = sending.callId
    val call = call(callId)
    val ignored = call?.removed?.find { failure.namesDeviceOf(it) }
    if (ignored != null) report(callId, removalIgnored(ignored))
    // The server may have forgotten what they have asked: they ask again.
    if (failure.hasCode("DEVICE_LIST_MISMATCH")) change(callId) { copy(admitted = emptyList()) }
    if (call != null && failure.isChanged && sending.triesLeft > 1) {
        readForKeys(NewKey(callId, sending.reason, sending.command, sending.triesLeft - 1))
        return false
    }
    if (sending.reason == KeysReason.EMERGENCY) {
        settle(sending.command, failure)
        return false
    }
    val rotation = call?.rotation as? Rotation.Renewing ?: return false
    val afterMs = rotation.afterMs
    change(callId) { copy(rotation = Rotation.None) }
    // It may have arrived; then this device needs another one with them.
    if (afterMs == null) planAgain(callId)
    else planAfter(callId, later(afterMs), rotation.reason)
    settleAll(rotation.commands, failure)
    if (afterMs != null) report(callId, failure)
    return rotation.returning != null
}

private fun Turn.startRenewing(callId: String, renewing: Rotation.Renewing) {
    change(callId) { copy(rotation = renewing) }
    readForKeys(NewKey(callId, renewing.reason, command = null, TRIES))
}

private fun Turn.readForKeys(sending: NewKey) = request("GET", "call/${sending.callId}", Purpose.KeysRead(sending))

private fun Turn.planAfter(callId: String, afterMs: Long, reason: KeysReason) {
    val rotation = call(callId)?.rotation
    val planned =
        if (rotation is Rotation.Renewing) rotation.copy(next = Planning(afterMs, reason))
        else Rotation.Planned(nowMs + afterMs, afterMs, reason)
    change(callId) { copy(rotation = planned) }
}

/** Unless one is planned that is to be earlier: it is for this too. */
private fun Turn.planSooner(callId: String, afterMs: Long, reason: KeysReason) {
    val rotation = call(callId)?.rotation
    if (rotation !is Rotation.Planned || rotation.atMs > nowMs + afterMs) planAfter(callId, afterMs, reason)
    else if (reason == KeysReason.LEAVE) change(callId) { copy(rotation = rotation.copy(reason = reason)) }
}

private fun Turn.hasOthers(call: DeviceCall): Boolean =
    call.record?.participants.orEmpty().any { it.state == ParticipantState.JOINED && it.userId != device.userId }

/** Whether it says that a device of theirs was to have the key. */
private fun CallsignException.namesDeviceOf(userId: ULong): Boolean {
    val missing = (members["missing"] as? JsonArray).orEmpty()
    return missing.any { (it as? JsonPrimitive)?.content?.substringBefore('_') == "$userId" }
}

private fun leftOut(name: String): CallsignException {
    val sentence = "A device in the call did not get the key, since the key log does not prove it."
    return CallsignException(LocalCode.KEY_LEFT_OUT, sentence, members = bodyOf(mapOf("name" to name)))
}

private fun later(afterMs: Long): Long = (2 * afterMs).coerceIn(AFTER_LEAVING_MS, AGAIN_MS)

internal fun keyMissing() =
    CallsignException(LocalCode.KEY_MISSING, "This device does not have the call’s key yet.")

private const val AFTER_LEAVING_MS = 5_000L
private const val AGAIN_MS = 60_000L
