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
import org.junit.jupiter.api.Assumptions.assumeTrue
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
        for (puts in listOf(1, 3, 8)) {
            val process = ProcessBuilder(java + listOf("callsign.app.EndlessWriter", state.path)).start()
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

    /** A process that replaces "old" by "new" is killed as it enters each of its calls of the system. */
    @Test
    fun `a process that is killed at any step leaves the old text or the new one, and syncs before it renames`() {
        assumeTrue(isThere("strace"), "strace is not there")
        val steps = listOf("openat" to 1, "write" to 1, SYNC to 1, RENAME to 1, "openat" to 2, SYNC to 2)
        val texts = steps.map { (call, time) ->
            runBlocking { storage().put("a", "old") }
            val calls = callsOfReplacement("-e", "inject=$call:signal=KILL:when=$time")
            assertTrue("+++ killed by SIGKILL +++" in calls, calls)
            runBlocking { storage().get("a") }
        }
        assertEquals(listOf("old", "old", "old"), texts.take(3))
        assertTrue(texts[3] in setOf("old", "new"))
        assertEquals(listOf("new", "new"), texts.drop(4))
        val names = Regex("""^\d+ +(\w+)\(""", RegexOption.MULTILINE).findAll(callsOfReplacement()).map { it.groupValues[1] }
        val order = Regex("openat write f(data)?sync rename(at2?)? openat f(data)?sync")
        assertTrue(order.matches(names.joinToString(" ")), names.joinToString(" "))
    }

    private fun callsOfReplacement(vararg killing: String): String {
        val log = File(folder, "calls")
        val tracing = listOf("strace", "-f", "-o", log.path, "-e", "trace=openat,write,$SYNC,$RENAME") + killing
        val paths = listOf(state, File(state, "a.txt"), File(state, "a.txt.new")).flatMap { listOf("-P", it.path) }
        ProcessBuilder(tracing + paths + java + listOf("callsign.app.Replacement", state.path)).start().waitFor()
        return log.readText()
    }

    private val java = listOf(
        File(System.getProperty("java.home"), "bin/java").path,
        "-cp",
        System.getProperty("java.class.path"),
    )

    private fun isThere(program: String) =
        System.getenv("PATH").split(File.pathSeparator).any { File(it, program).canExecute() }

    private companion object {
        const val SYNC = "fsync,fdatasync"
        const val RENAME = "?rename,?renameat,?renameat2"
    }
}

object Replacement {
    @JvmStatic
    fun main(arguments: Array<String>) = runBlocking { FileAppStorage(File(arguments.single())).put("a", "new") }
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
