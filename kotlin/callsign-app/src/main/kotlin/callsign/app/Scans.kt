/** What a text leads to that was scanned, opened or pasted. `test/vectors/contact-scans.json` has examples for all SDKs. */
package callsign.app

internal sealed interface Scan {
    /** The token of a contact's link, and its fragment, which no server has seen; empty without one. */
    data class Link(val token: String, val fragment: String) : Scan

    data class User(val userId: ULong) : Scan
}

/** A link counts before an id. Null for any other text, and for one of more than 4,096 characters. */
internal fun scanIn(text: String): Scan? {
    val link = contactLinkIn(text)
    if (link != null || text.length > TEXT_LENGTH_MAX) return link
    val (userId) = USER_ID.matchEntire(text)?.destructured ?: return null
    return userId.toULongOrNull()?.let(Scan::User)
}

/** The first link in a text, of any form, or the token by itself. */
internal fun contactLinkIn(text: String): Scan.Link? {
    if (text.length > TEXT_LENGTH_MAX) return null
    for (word in text.split(WHITE_SPACE)) {
        val token = TOKEN.find(word)?.value ?: continue
        val at = word.indexOf('#')
        return Scan.Link(token, if (at < 0) "" else word.substring(at))
    }
    return null
}

private const val TEXT_LENGTH_MAX = 4_096

/** No other white space, nor other digits: all platforms agree about these. */
private val WHITE_SPACE = Regex("[\\t-\\r ]")
private val USER_ID = Regex("[\\t-\\r ]*(0|[1-9][0-9]{0,19})[\\t-\\r ]*")
private val TOKEN = Regex("c_[A-Za-z0-9_-]{22}(?![A-Za-z0-9_-])")
