package callsign.app

import callsign.verify.decodeBase64
import callsign.verify.encodeBase64
import org.junit.jupiter.api.Assertions.assertArrayEquals
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertThrows
import org.junit.jupiter.api.Test

class KeyMembersTest {
    private val devices = listOf(1uL to 10uL, 2uL to 20uL, 2uL to 21uL, ULong.MAX_VALUE to 1uL)
        .map { (userId, deviceId) -> KeyHolder.of(userId, deviceId, JcaDeviceKeys.generate().publicKey) }
    private val set = keyMembersOf(devices.reversed())
    private val octets = decodeBase64(set)

    @Test
    fun `a set is in one order, and comes out as it went in`() {
        assertEquals(set, keyMembersOf(devices))
        assertEquals(2 + 4 * 48, octets.size)
        val read = readKeyMembers(set)
        assertEquals(devices.map { it.name }, read.map { it.name })
        assertEquals(devices.map { it.userId }, read.map { it.userId })
        for ((holder, member) in devices.zip(read)) assertArrayEquals(holder.keyHash, member.keyHash)
        assertArrayEquals(sha256("callsign call members v1\n".toByteArray() + octets), hashOfSet(set))
    }

    @Test
    fun `a change makes the set after it`() {
        val before = keyMembersOf(devices.take(3))
        val added = encodeBase64(octets.copyOfRange(2 + 3 * 48, octets.size))
        val removed = listOf(devices[0].name, devices[2].name)
        assertEquals(keyMembersOf(listOf(devices[1], devices[3])), changedSet(before, SetChange(added, removed)))
        assertEquals(before, changedSet(before, SetChange("", emptyList())))
        val wrong = listOf(
            SetChange(added.dropLast(4), emptyList()),
            SetChange("?", emptyList()),
            SetChange(encodeBase64(octets.copyOfRange(2, 2 + 48)), emptyList()),
            SetChange("", devices.map { it.name }),
        )
        for (change in wrong) assertThrows(IllegalArgumentException::class.java) { changedSet(before, change) }
    }

    @Test
    fun `another form is no set`() {
        val entries = List(4) { octets.copyOfRange(2 + it * 48, 2 + (it + 1) * 48) }
        fun setOf(count: Int, vararg entries: ByteArray) =
            entries.fold(byteArrayOf((count shr 8).toByte(), count.toByte())) { all, entry -> all + entry }
        val named = entries[0].copyOf().also { it[47] = (it[47].toInt() xor 1).toByte() }
        val wrong = octets.indices.map(octets::copyOf) + listOf(
            octets + 0,
            setOf(0),
            setOf(3, *entries.toTypedArray()),
            setOf(2, entries[1], entries[0]),
            setOf(2, entries[0], entries[0]),
            setOf(2, entries[0], named),
        )
        for (each in wrong)
            for (read in listOf(::readKeyMembers, ::hashOfSet))
                assertThrows(IllegalArgumentException::class.java, { read(encodeBase64(each)) }, "${each.size} octets")
        assertThrows(IllegalArgumentException::class.java) { readKeyMembers("?") }
        assertThrows(IllegalArgumentException::class.java) { keyMembersOf(listOf(devices[0], devices[0])) }
    }

    @Test
    fun `a set has as many devices as a key map, and one`() {
        val publicKey = JcaDeviceKeys.generate().publicKey
        fun setOf(size: Int) = keyMembersOf(List(size) { KeyHolder.of(1u, it.toULong(), publicKey) })
        assertEquals(321, readKeyMembers(setOf(321)).size)
        assertThrows(IllegalArgumentException::class.java) { setOf(322) }
    }
}
