/** Where an app keeps what has to outlive it: its session and its device's keys. */
package callsign.app

import java.util.concurrent.ConcurrentHashMap

/** A text survives a crash once [put] has returned. The texts are secrets: keep them encrypted, and out of backups. */
public interface AppStorage {
    /** The text that was put last; null where there is none. */
    public suspend fun get(key: String): String?

    /** Null takes a text away. */
    public suspend fun put(key: String, text: String?)
}

/** Forgets everything when the program ends. */
public class MemoryAppStorage : AppStorage {
    private val texts = ConcurrentHashMap<String, String>()

    override suspend fun get(key: String): String? = texts[key]

    override suspend fun put(key: String, text: String?) {
        if (text == null) texts.remove(key) else texts[key] = text
    }
}
