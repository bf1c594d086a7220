/** Decimal numbers as the formats of the log write them: ASCII digits, no sign, no leading zero. */
package callsign.verify

/** Sizes and indexes are numbers that every implementation, JavaScript too, has exactly: up to 2^53 - 1. */
internal const val SAFE_MAX: Long = (1L shl 53) - 1

/** The number that [text] spells. Throws `MALFORMED` for any other spelling and above 2^53 - 1. */
internal fun parseDecimal(text: String): Long {
    val value = if (DECIMAL.matches(text)) text.toLong() else -1
    if (value !in 0..SAFE_MAX) throw malformed("\"${text.take(24)}\" is not a number below 2^53")
    return value
}

/** Sixteen digits are enough for 2^53, and always a Long. */
private val DECIMAL = Regex("0|[1-9][0-9]{0,15}")
