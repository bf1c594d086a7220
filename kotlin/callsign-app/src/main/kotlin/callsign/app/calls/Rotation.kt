/** The keys that this device makes in one call: when their time has run out, after a participant has left, and when asked. */
package callsign.app.calls

import callsign.app.CallRecord
import callsign.app.CallsignException
import callsign.app.CallsignException.LocalCode
import callsign.app.KeyBinding
import callsign.app.ParticipantState
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive
import kotlinx.serialization.json.buildJsonObject

/** The time of the present key begins. */
internal fun Turn.plan(callId: String, record: CallRecord) =
    planAfter(callId, record.keyRotationMs.takeIf { it > 0 } ?: AGAIN_MS, KeysReason.ROTATION)

/** A little later, for several who leave at once. */
internal fun Turn.planAfterLeaving(callId: String) = planAfter(callId, AFTER_LEAVING_MS, KeysReason.LEAVE)

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

/** Sends the present key once more. */
internal fun Turn.resend(callId: String, command: Int) =
    readForKeys(NewKey(callId, KeysReason.EMERGENCY, command, TRIES))

/** Only the host makes it. Where it can't be made now, it is later. */
internal fun Turn.onRotationDue(callId: String) {
    val call = call(callId) ?: return
    val (_, afterMs, reason) = call.rotation as? Rotation.Planned ?: return
    val userId = device.userId
    val hasOthers = call.record?.participants.orEmpty().any { it.state == ParticipantState.JOINED && it.userId != userId }
    if (call.record?.hostUserId == userId && call.phase == Phase.Active && hasOthers)
        startRenewing(callId, Rotation.Renewing(reason, afterMs, commands = emptyList()))
    else planAfter(callId, later(afterMs), reason)
}

/** The call was read: its devices and its epoch. */
internal fun Turn.onKeysRead(sending: NewKey, record: CallRecord) {
    val call = call(sending.callId) ?: return settle(sending.command, hasEndedHere())
    val isEmergency = sending.reason == KeysReason.EMERGENCY
    val held = call.newestKey
    if (isEmergency && held == null) return settle(sending.command, keyMissing())
    val key = if (isEmergency && held != null) held.key else makeKey()
    val epoch = if (isEmergency && held != null) held.epoch else record.keyEpoch + 1
    val sealing = sending.copy(key = key, epoch = epoch, record = record)
    val receivers = Receivers.Participants(record.participants)
    seal(key, receivers, KeyBinding(sending.callId, epoch), Purpose.KeysSeal(sealing))
}

internal fun Turn.onKeysSealed(sending: NewKey, texts: JsonObject) {
    val callId = sending.callId
    if (call(callId) == null) return settle(sending.command, hasEndedHere())
    val body = buildJsonObject {
        put("epoch", JsonPrimitive(sending.epoch))
        put("reason", JsonPrimitive(sending.reason.wireName))
        put("encryptedAESKeys", texts)
    }
    request("POST", "call/$callId/keys", Purpose.Keys(sending), body)
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
    // The app may have been closed and opened meanwhile: the others have it all the same.
    hold(callId, HeldKey(record.keyEpoch + 1, checkNotNull(sending.key), device.userId))
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
    if (afterMs == null) planAfter(callId, AFTER_LEAVING_MS, KeysReason.ROTATION)
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

private fun later(afterMs: Long): Long = minOf(2 * afterMs, AGAIN_MS)

internal fun keyMissing() =
    CallsignException(LocalCode.KEY_MISSING, "This device does not have the call’s key yet.")

private const val AFTER_LEAVING_MS = 5_000L
private const val AGAIN_MS = 60_000L
