/** STOMP 1.2 as an app needs it: one frame in each text message of a WebSocket. */
package callsign.app

internal class StompFrame(val command: String, val headers: Map<String, String>, val body: String)

/** Headers and body have no NUL, and those of CONNECT, which is never escaped, no line end. */
internal fun formatFrame(command: String, headers: Map<String, String>, body: String = ""): String = buildString {
    val escaped: (String) -> String = if (command == "CONNECT") { text -> text } else ::escaped
    append(command).append('\n')
    for ((name, value) in headers) append(escaped(name)).append(':').append(escaped(value)).append('\n')
    append('\n').append(body).append('\u0000')
}

/** Throws `ANSWER_INVALID`. */
internal fun parseFrame(text: String): StompFrame {
    val headEnd = text.indexOf("\n\n")
    if (headEnd < 0) throw notStomp()
    val lines = text.substring(0, headEnd).split('\n')
    val command = lines.first()
    val plain: (String) -> String = if (command == "CONNECTED") { each -> each } else ::unescaped
    val headers = LinkedHashMap<String, String>()
    for (line in lines.drop(1)) {
        val colon = line.indexOf(':')
        if (colon < 1) throw notStomp()
        // The first of repeated headers counts.
        val name = plain(line.substring(0, colon))
        if (name !in headers) headers[name] = plain(line.substring(colon + 1))
    }
    return StompFrame(command, headers, text.substring(headEnd + 2).substringBefore('\u0000'))
}

private fun escaped(text: String): String = buildString {
    for (each in text) {
        val code = ESCAPES[each]
        if (code == null) append(each) else append('\\').append(code)
    }
}

private fun unescaped(text: String): String = buildString {
    var at = 0
    while (at < text.length) {
        val each = text[at++]
        if (each != '\\') append(each)
        else append(UNESCAPES[text.getOrNull(at++)] ?: throw notStomp())
    }
}

private fun notStomp() =
    CallsignException(CallsignException.LocalCode.ANSWER_INVALID, "The server sent a frame that is not STOMP.")

private val ESCAPES = mapOf('\\' to '\\', '\n' to 'n', '\r' to 'r', ':' to 'c')
private val UNESCAPES: Map<Char?, Char> = ESCAPES.entries.associate { (plain, code) -> code to plain }
