/** The octets of this device's keys by number, in memory and nowhere else. */
package callsign.app.calls

import callsign.app.EpochKey
import callsign.app.fingerprintOf

internal class CallKeys {
    private val octets = HashMap<Int, ByteArray>()

    /** By call, epoch and number. */
    private val epochKeys = HashMap<Triple<String, Long, Int>, EpochKey>()

    /** Gives its number, which equal octets share. */
    fun put(key: Int, made: ByteArray): Int {
        val known = octets.entries.find { it.value.contentEquals(made) }
        if (known != null) return known.key
        octets[key] = made
        return key
    }

    /** A copy, which stays whole when the key is wiped. */
    fun copyOf(key: Int): ByteArray = octets.getValue(key).copyOf()

    fun epochKey(callId: String, held: HeldKey): EpochKey = epochKeys.getOrPut(Triple(callId, held.epoch, held.key)) {
        val key = octets.getValue(held.key)
        EpochKey(held.epoch, key, fingerprintOf(key, callId, held.epoch))
    }

    /** Overwrites and forgets it. */
    fun wipe(key: Int) {
        octets.remove(key)?.fill(0)
        epochKeys.keys.removeIf { it.third == key }
    }
}
