/** A port that leads to the server, as long as the network is there. */
package callsign.app

import java.io.IOException
import java.net.InetAddress
import java.net.ServerSocket
import java.net.Socket
import java.net.URI
import java.util.concurrent.ConcurrentHashMap
import kotlin.concurrent.thread

class BreakableNetwork(target: String) : AutoCloseable {
    private val serverPort = URI(target).port
    private val listening = ServerSocket(0, 50, InetAddress.getLoopbackAddress())
    private val sockets: MutableSet<Socket> = ConcurrentHashMap.newKeySet()

    @Volatile
    private var isCut = false

    val url = "http://127.0.0.1:${listening.localPort}"

    init {
        thread(isDaemon = true) {
            try {
                while (true) take(listening.accept())
            } catch (_: IOException) {
                // It was closed.
            }
        }
    }

    /** Breaks all connections, and each new one. */
    fun cut() {
        isCut = true
        for (socket in sockets) socket.close()
        sockets.clear()
    }

    fun restore() {
        isCut = false
    }

    private fun take(client: Socket) {
        if (isCut) return client.close()
        val server = Socket(InetAddress.getLoopbackAddress(), serverPort)
        sockets += listOf(client, server)
        pass(client, server)
        pass(server, client)
    }

    private fun pass(from: Socket, to: Socket) = thread(isDaemon = true) {
        try {
            from.getInputStream().copyTo(to.getOutputStream())
        } catch (_: IOException) {
            // One side has gone.
        }
        from.close()
        to.close()
    }

    override fun close() {
        listening.close()
        cut()
    }
}
