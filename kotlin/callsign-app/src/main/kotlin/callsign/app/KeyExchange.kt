/** How a call's key goes to other devices and comes from them: only to and from devices that the key log proves. */
package callsign.app

import callsign.app.CallsignException.LocalCode
import callsign.app.calls.Sender
import callsign.verify.Check
import callsign.verify.Refusal
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive

/** A key, and the device that has sealed it. */
internal class OpenedKey(val key: ByteArray, val from: Sender)

/** Its functions throw as those of [KeyLog]. */
internal class KeyExchange(private val keyLog: KeyLog, private val userId: ULong) {
    /** The key sealed for every device of these users, but this one, by `<userId>_<deviceId>`. */
    suspend fun sealForUsers(key: ByteArray, userIds: List<ULong>, binding: KeyBinding): JsonObject =
        sealed(key, keyLog.devicesOf(userIds), binding)

    /** The key sealed for the other users' devices that are in the call, and for those that still ring. */
    suspend fun sealForCall(key: ByteArray, participants: List<CallParticipant>, binding: KeyBinding): JsonObject {
        val receivers = participants.filter { it.userId != userId && it.state in RECEIVING }.associateBy { it.userId }
        val devices = keyLog.devicesOf(receivers.keys.toList()).filter { device ->
            val receiver = receivers.getValue(device.userId)
            receiver.state != ParticipantState.JOINED || receiver.deviceId == device.deviceId
        }
        return sealed(key, devices, binding)
    }

    /** The key sealed for one device. Throws `KEYS_REFUSED` where it has another key than the one of this hash. */
    suspend fun sealForDevice(key: ByteArray, asker: KeyAsk, binding: KeyBinding): String {
        val device = keyLog.deviceOf(asker.userId, asker.deviceId)
        if (device.publicKeyHash == asker.publicKeyHash) return seal(key, device, binding)
        val detail = "device ${asker.deviceId} asks for a call's key with another key than its own"
        throw keyLog.refuse(asker.userId, Refusal(Check.VRF_HASH, detail))
    }

    /**
     * Opens a key that one of these has sealed, tried in this order. Show people who it was where it is neither the caller nor the
     * host. Throws `CALL_KEY_INVALID` when none of them has.
     */
    suspend fun open(sealed: String, senders: List<Sender>, binding: KeyBinding): OpenedKey {
        var refusal = CallsignException(LocalCode.CALL_KEY_INVALID, "Nobody in the call has sealed its key.")
        for (sender in senders) {
            try {
                return OpenedKey(open(sealed, sender, binding), sender)
            } catch (error: CallsignException) {
                // A sender whose keys could not be read now may have sealed it.
                if (refusal.code == LocalCode.CALL_KEY_INVALID) refusal = error
            }
        }
        throw refusal
    }

    private suspend fun open(sealed: String, sender: Sender, binding: KeyBinding): ByteArray {
        val from = keyLog.deviceOf(sender.userId, sender.deviceId)
        return keyLog.readKey(openCallKey(sealed, from.holder, keyLog.self, binding), sender.userId)
    }

    private suspend fun sealed(key: ByteArray, devices: List<PeerDevice>, binding: KeyBinding): JsonObject {
        val others = devices.filter { it.holder.name != keyLog.self.holder.name }
        return JsonObject(others.associate { it.holder.name to JsonPrimitive(seal(key, it, binding)) })
    }

    private suspend fun seal(key: ByteArray, to: PeerDevice, binding: KeyBinding): String =
        sealCallKey(keyLog.withCheckpoint(key, to), keyLog.self, to.holder, binding)

    private companion object {
        /** States of participants who need a new key. */
        val RECEIVING = setOf(ParticipantState.JOINED, ParticipantState.INVITED, ParticipantState.RINGING)
    }
}
