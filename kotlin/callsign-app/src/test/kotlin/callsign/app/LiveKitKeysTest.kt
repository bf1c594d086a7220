package callsign.app

import javax.crypto.SecretKeyFactory
import javax.crypto.spec.PBEKeySpec
import kotlinx.coroutines.CoroutineStart
import kotlinx.coroutines.async
import kotlinx.coroutines.flow.MutableStateFlow
import kotlinx.coroutines.flow.toList
import kotlinx.coroutines.runBlocking
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertNotEquals
import org.junit.jupiter.api.Test

/** The vectors, and the same rules as `test/app/livekit/livekit.test.ts`. */
class LiveKitKeysTest {
    private var nowMs = 0L
    private val slots = LiveKitSlots { nowMs }
    private val ann = personOf(1u, "ann")
    private val bob = personOf(2u, "bob")
    private var participants = listOf(ann, bob)

    private fun personOf(id: ULong, identity: String) = CallParticipant(
        userId = id,
        displayName = "",
        name = "",
        state = ParticipantState.JOINED,
        isHost = false,
        invitedBy = 1u,
        deviceId = id,
        mediaName = "",
        feedIds = emptyList(),
        invitedAtMs = 0,
        identity = identity,
    )

    private fun keyOf(epoch: Long) = EpochKey(epoch, ByteArray(32) { epoch.toByte() }, "")

    private fun call(sending: Long, vararg epochs: Long, isOver: Boolean = false) =
        LiveKitCall("42", 1u, isOver, epochs.map(::keyOf), sending, participants)

    private fun follow(sending: Long, vararg epochs: Long) = slots.follow(call(sending, *epochs)).map(::inShort)

    private fun inShort(slot: LiveKitSlot): String {
        val end = if (slot.isSending) " sends" else if (slot.isOver) " over" else ""
        return "${slot.identity} ${slot.keyIndex}$end"
    }

    @Test
    fun `keys are those of the vectors, and the AES keys that LiveKit derives from them`() {
        for (case in readVectors("livekit-keys").objects("keys")) {
            val epoch = checkNotNull(case.number("epoch"))
            val callKey = fromHex(case.word("call_key_hex"))
            val userId = case.word("user_id").toULong()
            val key = liveKitKey(callKey, case.word("call_id"), epoch, userId, case.word("device_id").toULong())
            assertEquals(case.word("key"), key)
            val password = PBEKeySpec(key.toCharArray(), "LKFrameEncryptionKey".toByteArray(), 100_000, 128)
            val derived = SecretKeyFactory.getInstance("PBKDF2WithHmacSHA256").generateSecret(password).encoded
            assertEquals(case.word("aes_128_hex"), toHex(derived))
        }
    }

    @Test
    fun `each device has a key for each epoch, seals with the one that all have, and a slot that is over is overwritten`() {
        val first = slots.follow(call(1, 1))
        assertEquals(listOf("bob 1", "ann 1 sends"), first.map(::inShort))
        assertEquals(liveKitKey(keyOf(1).key, "42", 1, 2u, 2u), first[0].key)
        assertEquals(listOf("bob 2"), follow(1, 2, 1))
        assertEquals(listOf("ann 2 sends"), follow(2, 2, 1))
        assertEquals(emptyList<String>(), follow(2, 2, 1))
        val over = slots.follow(call(2, 2))
        assertEquals(listOf("bob 1 over", "ann 1 over", "ann 2 sends"), over.map(::inShort))
        assertNotEquals(first[0].key, over[0].key)
        assertNotEquals(over[0].key, over[1].key)
        assertEquals(listOf("bob 2", "ann 2 sends"), follow(18, 18, 2))
    }

    @Test
    fun `keys of a member who leaves are overwritten, and a label of this device is nobody else's`() {
        follow(1, 1)
        participants = listOf(ann)
        assertEquals(listOf("bob 1 over"), follow(1, 1))
        participants = listOf(ann, bob.copy(identity = "ann"))
        assertEquals(emptyList<String>(), follow(1, 1))
        participants = listOf(ann, bob.copy(state = ParticipantState.LEFT))
        assertEquals(emptyList<String>(), follow(1, 1))
    }

    @Test
    fun `a fifteenth epoch within a minute waits`() {
        follow(1, 1)
        for (epoch in 2L..14) {
            nowMs += 1_000
            follow(epoch, epoch, epoch - 1)
        }
        assertEquals(listOf("bob 13 over", "ann 13 over", "ann 14 sends"), follow(15, 15, 14))
        assertEquals(47_000L, slots.waitMs)
        nowMs += 47_000
        assertEquals(listOf("bob 15", "ann 15 sends"), follow(15, 15, 14))
    }

    @Test
    fun `the flow follows the call to its end`() = runBlocking {
        val calls = MutableStateFlow(call(1, 1))
        val all = async(start = CoroutineStart.UNDISPATCHED) { slotsOf(calls).toList().map(::inShort) }
        calls.value = call(1, isOver = true)
        assertEquals(listOf("bob 1", "ann 1 sends", "bob 1 over", "ann 1 over"), all.await())
    }
}
