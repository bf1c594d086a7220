/** The octets of this device's keys by number, in memory and nowhere else. */
package callsign.app.calls

import callsign.app.CallsignException
import callsign.app.CallsignException.LocalCode
import callsign.app.EpochKey
import callsign.app.KeyBinding
import callsign.app.fingerprintOf
import callsign.app.hashOfSet
import callsign.app.makeCallKey
import callsign.app.sha256
import callsign.verify.encodeBase64

internal class CallKeys {
    private val octets = HashMap<Int, ByteArray>()

    /** By call, epoch and number: a fingerprint takes thousands of hashes. */
    private val epochKeys = HashMap<Triple<String, Long, Int>, EpochKey>()

    /** By the hash of each key that there ever was: its call, epoch and set. */
    private val uses = LinkedHashMap<String, Use>()

    private data class Use(val callId: String, val epoch: Long, val keyMembers: String)

    /** 32 random octets. */
    fun make(key: Int) {
        octets[key] = makeCallKey()
    }

    /** Gives its number, which equal octets share. Throws as [bind]. */
    fun put(key: Int, opened: ByteArray, binding: KeyBinding, keyMembers: String): Int {
        bind(opened, binding, keyMembers)
        val known = octets.entries.find { it.value.contentEquals(opened) }
        if (known != null) return known.key
        octets[key] = opened
        return key
    }

    /** Notes what a key is for. Throws `CALL_KEY_REUSED` where it had another call, epoch or set. */
    fun bind(key: ByteArray, binding: KeyBinding, keyMembers: String) {
        val use = Use(binding.callId, binding.epoch, keyMembers)
        val before = uses.putIfAbsent(encodeBase64(sha256(key)), use)
        if (before != null && before != use) {
            val sentence = "A key was sent that another epoch of a call has had."
            throw CallsignException(LocalCode.CALL_KEY_REUSED, sentence)
        }
        if (uses.size > USES_MAX) uses.remove(uses.keys.first())
    }

    /** A copy, which stays whole when the key is wiped. */
    fun copyOf(key: Int): ByteArray = octets.getValue(key).copyOf()

    fun epochKey(callId: String, held: HeldKey): EpochKey = epochKeys.getOrPut(Triple(callId, held.epoch, held.key)) {
        val key = octets.getValue(held.key)
        EpochKey(held.epoch, key, fingerprintOf(key, hashOfSet(held.set.keyMembers), KeyBinding(callId, held.epoch)))
    }

    /** Overwrites and forgets it. */
    fun wipe(key: Int) {
        octets.remove(key)?.fill(0)
        epochKeys.keys.removeIf { it.third == key }
    }

    private companion object {
        /** More than a call has epochs, and a few hundred octets each. */
        const val USES_MAX = 10_000
    }
}
