/**
 * How two people make sure, outside of the app, that they mean each other: a link or QR code that says whose it is, and
 * sixty digits to read out. Neither needs to trust the server.
 */
package callsign.verify

import java.nio.ByteBuffer

/** A person with a device list. [listHash] is SHA-256 of the newest list, base64. */
public data class ListedPerson(val userId: ULong, val listHash: String)

/** The content of a link's fragment. [note] is for [LogClient.compareWith], and so is [indexNote], of the log's index. */
public data class SharedPerson(val person: ListedPerson, val note: String? = null, val indexNote: String? = null)

/**
 * Twelve groups of five digits, the same for both people. Another device list gives another code, so a false list shows; it
 * changes when either of them adds or removes a device. Throws `MALFORMED` for a hash that is not base64 of 32 octets.
 */
public fun comparisonCode(one: ListedPerson, other: ListedPerson): String {
    val people = if (one.userId < other.userId) listOf(one, other) else listOf(other, one)
    return people.flatMap(::groupsOf).joinToString(" ")
}

/**
 * The fragment for a link or QR code, with the sign `#`. Browsers do not send it to the server. The checkpoints are the highest
 * ones of this app, of the log and of its index.
 */
public fun shareFragment(
    person: ListedPerson,
    checkpoint: SignedCheckpoint? = null,
    indexCheckpoint: SignedCheckpoint? = null,
): String {
    val notes = noteMember("n", checkpoint) + noteMember("i", indexCheckpoint)
    return "#u=${person.userId}&l=${toUrl(person.listHash)}$notes"
}

/**
 * Reads a fragment, with or without its `#`; null where it says nothing of a person. [origin] is the name of the app's log.
 * Throws `MALFORMED` for one that does and is broken: do not add that contact.
 */
public fun readShareFragment(fragment: String, origin: String): SharedPerson? {
    val members = fragment.removePrefix("#").split('&').associate { it.take(2) to it.drop(2) }
    val user = members["u="]
    val list = members["l="]
    if (user == null && list == null) return null
    val userId = user?.let(::uint64OrNull)
    if (userId == null || list == null) throw damaged()
    val listHash = fromUrl(list)
    if (decodeBase64(listHash).size != HASH_OCTETS) throw damaged()
    val note = noteIn(members["n="], origin)
    return SharedPerson(ListedPerson(userId, listHash), note, noteIn(members["i="], indexOriginOf(origin)))
}

private fun noteMember(name: String, checkpoint: SignedCheckpoint?): String {
    val packed = checkpoint?.let(::packCheckpoint)
    return if (packed == null) "" else "&$name=${toUrl(encodeBase64(packed))}"
}

private fun noteIn(packed: String?, origin: String): String? =
    packed?.let { readPackedCheckpoint(decodeBase64(fromUrl(it)), origin) ?: throw damaged() }

/** 30 digits, of 240 bits of SHA-256: to find another list with the same ones takes 2^99 tries. */
private fun groupsOf(person: ListedPerson): List<String> {
    val hash = decodeBase64(person.listHash)
    if (hash.size != HASH_OCTETS) throw damaged()
    val userId = ByteBuffer.allocate(8).putLong(person.userId.toLong()).array()
    val digest = sha256(PURPOSE, userId, hash)
    return List(6) { group ->
        val value = (0 until 5).fold(0L) { sum, at -> sum * 256 + (digest[5 * group + at].toInt() and 0xff) }
        (value % 100_000).toString().padStart(5, '0')
    }
}

private fun toUrl(base64: String): String = base64.replace('+', '-').replace('/', '_').trimEnd('=')

private fun fromUrl(text: String): String {
    val base64 = text.replace('-', '+').replace('_', '/')
    return base64 + "=".repeat(-base64.length and 3)
}

private fun damaged(): LogException = malformed("the link is damaged")

private val PURPOSE = "callsign comparison v1\n".toByteArray()
