package callsign.app

import java.security.SecureRandom

/** From 2^32 up to 2^53: of a device or a call that no server has named. */
internal fun randomId(): ULong {
    val random = SecureRandom()
    while (true) {
        val id = random.nextLong().toULong() shr 11
        if (id >= (1uL shl 32)) return id
    }
}
