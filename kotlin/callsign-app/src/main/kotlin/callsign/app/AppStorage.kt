/** Where an app keeps what has to outlive it: its session and its device's keys. */
package callsign.app

import callsign.verify.AtomicFiles
import java.io.File
import java.net.URLEncoder
import java.security.MessageDigest
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

/**
 * One file in [folder] for each text, for its owner alone: after a crash it has the old text or the new one. [get] throws
 * `STORAGE_CORRUPT` for a damaged file, and leaves it as it is. Texts are not encrypted here. Use a folder in one program at
 * a time.
 */
public class FileAppStorage(folder: File) : AppStorage {
    private val files = AtomicFiles(folder)

    override suspend fun get(key: String): String? {
        val content = String(files.read(fileOf(key)) ?: return null)
        val text = content.substringAfter('\n')
        if (content != contentOf(text)) throw storageCorrupt(key)
        return text
    }

    override suspend fun put(key: String, text: String?) {
        if (text == null) files.delete(fileOf(key)) else files.write(fileOf(key), contentOf(text).toByteArray())
    }

    private fun fileOf(key: String) = "${URLEncoder.encode(key, "UTF-8")}.txt"

    /** A line with SHA-256 of the text, then the text: a disk that forgets or changes octets shows. */
    private fun contentOf(text: String): String {
        val digest = MessageDigest.getInstance("SHA-256").digest(text.toByteArray())
        return "sha256 ${digest.joinToString("") { "%02x".format(it) }}\n$text"
    }
}
