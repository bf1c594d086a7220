package callsign.verify

import java.io.File
import java.io.IOException
import java.nio.ByteBuffer
import java.nio.channels.FileChannel
import java.nio.file.FileSystems
import java.nio.file.Files
import java.nio.file.Path
import java.nio.file.StandardCopyOption
import java.nio.file.StandardOpenOption
import java.nio.file.attribute.FileAttribute
import java.nio.file.attribute.PosixFilePermissions
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.sync.Mutex
import kotlinx.coroutines.sync.withLock
import kotlinx.coroutines.withContext

/**
 * Files in [folder] that are replaced whole: written beside, forced to the disk, then renamed. A crash or power cut leaves the
 * old octets or the new ones. The owner alone can read them. Use a folder in one program at a time.
 */
public class AtomicFiles(private val folder: File) {
    private val writing = Mutex()

    /** Null where there is no file. */
    public suspend fun read(name: String): ByteArray? = withContext(Dispatchers.IO) {
        val file = File(folder, name)
        if (file.exists()) file.readBytes() else null
    }

    /** The octets survive a crash once it has returned. */
    public suspend fun write(name: String, octets: ByteArray): Unit = changing {
        Files.createDirectories(folder.toPath(), *privately("rwx------"))
        val beside = File(folder, "$name.new").toPath()
        // One of a crash; its permissions may be of another time.
        Files.deleteIfExists(beside)
        writeDurably(beside, octets)
        Files.move(
            beside,
            File(folder, name).toPath(),
            StandardCopyOption.ATOMIC_MOVE,
            StandardCopyOption.REPLACE_EXISTING,
        )
        syncFolder()
    }

    public suspend fun delete(name: String): Unit = changing {
        if (Files.deleteIfExists(File(folder, name).toPath())) syncFolder()
    }

    private suspend fun changing(act: () -> Unit) = writing.withLock { withContext(Dispatchers.IO) { act() } }

    private fun writeDurably(path: Path, octets: ByteArray) {
        val options = setOf(StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE)
        FileChannel.open(path, options, *privately("rw-------")).use { channel ->
            val left = ByteBuffer.wrap(octets)
            while (left.hasRemaining()) channel.write(left)
            channel.force(true)
        }
    }

    /** The rename itself has to outlast a power cut. Not every system lets a folder be opened. */
    private fun syncFolder() {
        try {
            FileChannel.open(folder.toPath(), StandardOpenOption.READ).use { it.force(true) }
        } catch (_: IOException) {
            return
        }
    }

    /** Nothing on a system without such permissions. */
    private fun privately(permissions: String): Array<FileAttribute<*>> {
        val isPosix = "posix" in FileSystems.getDefault().supportedFileAttributeViews()
        if (!isPosix) return emptyArray()
        return arrayOf(PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString(permissions)))
    }
}
