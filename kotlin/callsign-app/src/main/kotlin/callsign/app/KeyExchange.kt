/** How a call's key goes to other devices and comes from them: only to and from devices that the key log proves. */
package callsign.app

import callsign.app.CallsignException.LocalCode
import callsign.verify.Check
import callsign.verify.Refusal
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive

/** A key, and the device that has sealed it. */
internal class OpenedKey(val key: ByteArray, val userId: ULong, val deviceId: ULong)

/** Its functions throw as those of [KeyLog]. */
internal class KeyExchange(private val keyLog: KeyLog, private val userId: ULong) {
    /** The key sealed for every device of these users, but this one, by `<userId>_<deviceId>`. */
    suspend fun sealForUsers(key: ByteArray, userIds: List<ULong>): JsonObject = sealed(key, keyLog.devicesOf(userIds))

    /** The key sealed for the other users' devices that are in the call, and for those that still ring. */
    suspend fun sealForCall(key: ByteArray, record: CallRecord): JsonObject {
        val receivers = record.participants.filter { it.userId != userId && it.state in RECEIVING }.associateBy { it.userId }
        val devices = keyLog.devicesOf(receivers.keys.toList()).filter { device ->
            val receiver = receivers.getValue(device.userId)
            receiver.state != ParticipantState.JOINED || receiver.deviceId == device.deviceId
        }
        return sealed(key, devices)
    }

    /** The key sealed for one device. Throws `KEYS_REFUSED` where it has another key than the one of this hash. */
    suspend fun sealForDevice(key: ByteArray, userId: ULong, deviceId: ULong, publicKeyHash: String): String {
        val device = keyLog.deviceOf(userId, deviceId)
        if (device.publicKeyHash == publicKeyHash) return seal(key, device)
        val detail = "device $deviceId asks for a call's key with another key than its own"
        throw keyLog.refuse(userId, Refusal(Check.VRF_HASH, detail))
    }

    /** Throws `CALL_KEY_INVALID` unless this device of this user has sealed it. */
    suspend fun open(sealed: String, userId: ULong, deviceId: ULong): OpenedKey {
        val from = keyLog.deviceOf(userId, deviceId)
        val opened = openCallKey(sealed, from.holder, keyLog.self)
        return OpenedKey(keyLog.readKey(opened, userId), userId, deviceId)
    }

    /**
     * Opens a key that a participant has sealed: most likely [callerId] or the host. Show people who has sealed it where it is
     * neither. Throws `CALL_KEY_INVALID` when none of them has.
     */
    suspend fun openFromAny(record: CallRecord, sealed: String, callerId: ULong? = null): OpenedKey {
        val likely = setOf(callerId, record.hostUserId)
        val senders = record.participants.filter { it.userId != userId }.sortedByDescending { it.userId in likely }
        var refusal = CallsignException(LocalCode.CALL_KEY_INVALID, "Nobody in the call has sealed its key.")
        for (sender in senders) {
            val deviceId = sender.deviceId ?: continue
            try {
                return open(sealed, sender.userId, deviceId)
            } catch (error: CallsignException) {
                // A sender whose keys could not be read now may have sealed it.
                if (refusal.code == LocalCode.CALL_KEY_INVALID) refusal = error
            }
        }
        throw refusal
    }

    private suspend fun sealed(key: ByteArray, devices: List<PeerDevice>): JsonObject {
        val others = devices.filter { it.holder.name != keyLog.self.holder.name }
        return JsonObject(others.associate { it.holder.name to JsonPrimitive(seal(key, it)) })
    }

    private suspend fun seal(key: ByteArray, to: PeerDevice): String =
        sealCallKey(keyLog.withCheckpoint(key, to), keyLog.self, to.holder)

    private companion object {
        /** States of participants who need a new key. */
        val RECEIVING = setOf(ParticipantState.JOINED, ParticipantState.INVITED, ParticipantState.RINGING)
    }
}

/** Acts again when a user's devices, or the epoch of the call, have changed meanwhile. */
internal suspend fun <Value> withFreshDevices(act: suspend () -> Value): Value {
    repeat(2) {
        try {
            return act()
        } catch (error: CallsignException) {
            if (!error.hasCode("DEVICE_LIST_MISMATCH", "EPOCH_CONFLICT")) throw error
        }
    }
    return act()
}
