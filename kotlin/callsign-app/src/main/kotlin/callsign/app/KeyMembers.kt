/**
 * The set of devices that a call's key is sealed for (docs/check/crypto.md). Its hash is sealed with the key, so each of them learns who
 * else has it.
 */
package callsign.app

import callsign.verify.LogException
import callsign.verify.decodeBase64
import callsign.verify.encodeBase64
import java.nio.ByteBuffer

/**
 * A device in a set. [name] is `<userId>_<deviceId>`. [keyHash] is SHA-256 of its logged public key: a name may have had another
 * key before.
 */
internal class KeyMember(val userId: ULong, val name: String, val keyHash: ByteArray)

/** How a set differs from the one before, as `key_update` tells it: entries in base64, and names. */
internal data class SetChange(val added: String, val removed: List<String>)

/** Where a set may be found, also by a [change] to one of these; whether it is the one, its hash says. */
internal data class SetHints(val sets: List<String>, val change: SetChange? = null)

/** A set as it travels: the base64 of its octets. Throws `IllegalArgumentException` for a device that comes twice. */
internal fun keyMembersOf(holders: List<KeyHolder>): String = setOf(holders.map(::entryOf))

/** The devices in a set. Throws `IllegalArgumentException` for what is no set. */
internal fun readKeyMembers(keyMembers: String): List<KeyMember> = entriesIn(keyMembers).map(::memberOf)

/** 32 octets. Throws `IllegalArgumentException` for what is no set. */
internal fun hashOfSet(keyMembers: String): ByteArray {
    entriesIn(keyMembers)
    return sha256(SET_PURPOSE + octetsOf(keyMembers))
}

/** The set after a change. Throws `IllegalArgumentException` where it can't be applied. */
internal fun changedSet(keyMembers: String, change: SetChange): String {
    val added = octetsOf(change.added)
    require(added.size % ENTRY_OCTETS == 0) { "what was added is no list of devices" }
    return setOf(entriesIn(keyMembers).filter { memberOf(it).name !in change.removed } + chunksOf(added))
}

private fun setOf(entries: List<ByteArray>): String {
    val set = ByteBuffer.allocate(COUNT_OCTETS + entries.size * ENTRY_OCTETS).putShort(entries.size.toShort())
    entries.sortedWith(::compareEntries).forEach(set::put)
    return encodeBase64(set.array()).also(::entriesIn)
}

private fun entryOf(holder: KeyHolder): ByteArray = ByteBuffer.allocate(ENTRY_OCTETS)
    .putLong(holder.userId.toLong()).putLong(holder.deviceId.toLong()).put(holder.keyHash).array()

private fun memberOf(entry: ByteArray): KeyMember {
    val names = ByteBuffer.wrap(entry)
    val userId = names.getLong().toULong()
    return KeyMember(userId, "${userId}_${names.getLong().toULong()}", entry.copyOfRange(NAME_OCTETS, ENTRY_OCTETS))
}

/** Throws unless the octets are a set in its one order. */
private fun entriesIn(keyMembers: String): List<ByteArray> {
    val set = octetsOf(keyMembers)
    val count = if (set.size < COUNT_OCTETS) 0 else ByteBuffer.wrap(set).getShort().toUShort().toInt()
    require(count in 1..MEMBERS_MAX && set.size == COUNT_OCTETS + count * ENTRY_OCTETS) {
        "${set.size} octets are no set of devices"
    }
    val entries = chunksOf(set.copyOfRange(COUNT_OCTETS, set.size))
    require(entries.zipWithNext().all { (one, next) -> compareEntries(one, next) < 0 }) {
        "the devices of a set are not in their order"
    }
    return entries
}

private fun chunksOf(octets: ByteArray): List<ByteArray> =
    List(octets.size / ENTRY_OCTETS) { octets.copyOfRange(it * ENTRY_OCTETS, (it + 1) * ENTRY_OCTETS) }

/** By user, then by device. */
private fun compareEntries(one: ByteArray, other: ByteArray): Int {
    val at = (0 until NAME_OCTETS).find { one[it] != other[it] } ?: return 0
    return one[at].toUByte().compareTo(other[at].toUByte())
}

private fun octetsOf(base64: String): ByteArray = try {
    decodeBase64(base64)
} catch (cause: LogException) {
    throw IllegalArgumentException("not base64", cause)
}

private val SET_PURPOSE = "callsign call members v1\n".toByteArray()
private const val COUNT_OCTETS = 2
private const val NAME_OCTETS = 16
private const val ENTRY_OCTETS = 48

/** Those of a key map, and the sender. */
private const val MEMBERS_MAX = 321
