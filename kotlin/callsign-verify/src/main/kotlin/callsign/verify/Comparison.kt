/**
 * How two people make sure, outside of the app, that they mean each other: a link or QR code that says whose it is, and
 * sixty digits to read out. Neither needs to trust the server.
 */
package callsign.verify

import java.nio.ByteBuffer

/** A person with a device list. [listHash] is SHA-256 of the newest list, base64. */
public data class ListedPerson(val userId: ULong, val listHash: String)

/** The content of a link's fragment. [note] is for [LogClient.compareWith]. */
public data class SharedPerson(val person: ListedPerson, val note: String? = null)

/**
 * Twelve groups of five digits, the same for both people. Another device list gives another code, so a false list shows; it
 * changes when either of them adds or removes a device. Throws `MALFORMED` for a hash that is not base64 of 32 octets.
 */
public fun comparisonCode(one: ListedPerson, other: ListedPerson): String {
    val people = if (one.userId < other.userId) listOf(one, other) else listOf(other, one)
    return people.flatMap(::groupsOf).joinToString(" ")
}

/**
 * The fragment for a link or QR code, with the sign `#`. Browsers do not send it to the server. [checkpoint] is the highest
 * one of this app.
 */
public fun shareFragment(person: ListedPerson, checkpoint: SignedCheckpoint? = null): String {
    val packed = checkpoint?.let(::packCheckpoint)
    val note = if (packed == null) "" else "&n=${toUrl(encodeBase64(packed))}"
    return "#u=${person.userId}&l=${toUrl(person.listHash)}$note"
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
    val note = members["n="]?.let { readPackedCheckpoint(decodeBase64(fromUrl(it)), origin) ?: throw damaged() }
    return SharedPerson(ListedPerson(userId, listHash), note)
}

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
