package callsign.app

import java.io.File
import java.io.IOException
import java.nio.file.Files
import java.nio.file.attribute.PosixFilePermissions
import kotlinx.coroutines.async
import kotlinx.coroutines.awaitAll
import kotlinx.coroutines.coroutineScope
import kotlinx.coroutines.runBlocking
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertNull
import org.junit.jupiter.api.Assertions.assertThrows
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.io.TempDir

class FileAppStorageTest {
    @TempDir
    lateinit var folder: File

    private val state get() = File(folder, "state")

    private fun storage() = FileAppStorage(state)

    private fun files() = state.list().orEmpty().toList()

    private fun permissionsOf(file: File) = PosixFilePermissions.toString(Files.getPosixFilePermissions(file.toPath()))

    @Test
    fun `texts outlast the storage, and can be taken away`() = runBlocking {
        assertNull(storage().get("a"))
        for (text in listOf("", "ä\nsecond line\n", "sha256 0\n")) {
            storage().put("a", text)
            assertEquals(text, storage().get("a"))
        }
        storage().put("a", null)
        storage().put("a", null)
        assertNull(storage().get("a"))
        assertEquals(emptyList<String>(), files())
    }

    @Test
    fun `one file for each key, whatever is in it, for its owner alone`() = runBlocking {
        val keys = listOf("a", "../a b", "..", "A/ä", "%")
        for (key in keys) storage().put(key, "text of $key")
        for (key in keys) assertEquals("text of $key", storage().get(key))
        assertEquals(keys.size, files().size)
        assertEquals("rwx------", permissionsOf(state))
        for (name in files()) assertEquals("rw-------", permissionsOf(File(state, name)))
        assertEquals(listOf("state"), folder.list().orEmpty().toList())
    }

    @Test
    fun `of many writes at once one stays, whole`() = runBlocking {
        val storage = storage()
        coroutineScope { List(20) { async { storage.put("a", "$it".repeat(5_000)) } }.awaitAll() }
        val text = checkNotNull(storage.get("a"))
        assertTrue((0..<20).any { text == "$it".repeat(5_000) })
        assertEquals(listOf("a.txt"), files())
    }

    @Test
    fun `a write that fails leaves the text of before, and the next one passes`() = runBlocking {
        storage().put("a", "old")
        val inTheWay = File(state, "a.txt.new/file").apply { parentFile.mkdirs() }
        inTheWay.writeText("")
        assertThrows(IOException::class.java) { runBlocking { storage().put("a", "new") } }
        assertEquals("old", storage().get("a"))
        inTheWay.parentFile.deleteRecursively()
        storage().put("a", "new")
        assertEquals("new", storage().get("a"))
    }

    @Test
    fun `what a crash left beside counts for nothing, and keeps none of its permissions`() = runBlocking {
        storage().put("a", "old")
        File(state, "a.txt.new").run {
            writeText("sha25")
            setReadable(true, false)
        }
        assertEquals("old", storage().get("a"))
        storage().put("a", "new")
        assertEquals("new", storage().get("a"))
        assertEquals("rw-------", permissionsOf(File(state, "a.txt")))
    }

    @Test
    fun `a file cut or changed anywhere is an error that names the key, and stays as it is`() = runBlocking {
        storage().put("session", "tokens")
        val file = File(state, "session.txt")
        val octets = file.readBytes()
        val changed = octets.indices.map { at -> octets.copyOf().also { it[at] = (it[at].toInt() xor 1).toByte() } }
        val cut = octets.indices.map(octets::copyOf)
        for (damaged in changed + cut + listOf(octets + 10, ByteArray(octets.size))) {
            file.writeBytes(damaged)
            val error = assertThrows(CallsignException::class.java) { runBlocking { storage().get("session") } }
            assertEquals("STORAGE_CORRUPT", error.code)
            assertEquals("session", error.members.text("key"))
            assertTrue(file.readBytes().contentEquals(damaged))
        }
        file.writeBytes(octets)
        assertEquals("tokens", storage().get("session"))
    }

    /** Another process writes one text after another, and says so after each; it is killed at several moments. */
    @Test
    fun `a process that is killed while it writes leaves a whole text, at least the last one that was put`() {
        val java = File(System.getProperty("java.home"), "bin/java").path
        val classPath = System.getProperty("java.class.path")
        for (puts in listOf(1, 2, 3, 5, 8, 13)) {
            val process = ProcessBuilder(java, "-cp", classPath, "callsign.app.EndlessWriter", state.path).start()
            val last = process.inputStream.bufferedReader().use { lines ->
                val last = List(puts) { lines.readLine() }.last()
                process.destroyForcibly().waitFor()
                last.toInt()
            }
            val (number, rest) = checkNotNull(runBlocking { storage().get("a") }).split(' ')
            assertTrue(number.toInt() >= last, "$number was there after $last")
            assertEquals(EndlessWriter.REST, rest)
        }
    }
}

object EndlessWriter {
    val REST = "x".repeat(200_000)

    @JvmStatic
    fun main(arguments: Array<String>) = runBlocking {
        val storage = FileAppStorage(File(arguments.single()))
        for (number in 1..100_000) {
            storage.put("a", "$number $REST")
            println(number)
        }
    }
}
