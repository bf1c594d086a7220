/** HPKE against the values of RFC 9180, against Bouncy Castle in both directions, and against attackers. */
package callsign.app

import java.security.GeneralSecurityException
import java.security.InvalidKeyException
import java.security.KeyPair
import java.security.interfaces.ECPrivateKey
import kotlinx.coroutines.runBlocking
import kotlinx.serialization.json.JsonObject
import org.bouncycastle.crypto.AsymmetricCipherKeyPair
import org.bouncycastle.crypto.hpke.HPKE
import org.junit.jupiter.api.Assertions.assertArrayEquals
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertThrows
import org.junit.jupiter.api.Test

/** A key that remembers how many points it met. */
private class TestKey(pair: KeyPair) {
    val scalar = (pair.private as ECPrivateKey).s.toByteArray().let { it.copyOfRange(maxOf(0, it.size - 32), it.size) }
    var met = 0
    val key = AgreementKey(pointOf(pair.public)) { point ->
        met++
        sharedSecret(pair.private, point)
    }
    val point get() = key.point
}

private fun JsonObject.key(name: String) = TestKey(pairOf(word("sk$name"), fromHex(word("pk$name"))))

private fun JsonObject.aeadId(): Int = getValue("aead_id").toString().toInt()

private fun JsonObject.context(): HpkeContext =
    HpkeContext(fromHex(word("info")), fromHex(word("aad")), Aead(aeadId(), 16 * aeadId()))

private fun strangers(aeadId: Int = 2) =
    HPKE(HPKE.mode_auth, HPKE.kem_P256_SHA256, HPKE.kdf_HKDF_SHA256, aeadId.toShort())

private fun HPKE.pair(of: TestKey): AsymmetricCipherKeyPair {
    val scalar = ByteArray(32 - of.scalar.size) + of.scalar
    return deserializePrivateKey(scalar, of.point)
}

class HpkeTest {
    private val vectors = readVectors("hpke").objects("vectors")

    @Test
    fun `the values of RFC 9180 come out, sealed and opened, and with AES-256-GCM those of a library`() = runBlocking {
        assertEquals(listOf(1, 2), vectors.map { it.aeadId() })
        for (vector in vectors) {
            val (ephemeral, receiver, sender) = listOf("Em", "Rm", "Sm").map { vector.key(it) }
            val plaintext = fromHex(vector.word("pt"))
            val sealed = sealAuth(plaintext, sender.key, receiver.point, vector.context(), ephemeral.key)
            assertEquals(vector.word("pkEm") + vector.word("ct"), toHex(sealed), vector.word("source"))
            assertArrayEquals(plaintext, openAuth(sealed, sender.point, receiver.key, vector.context()))
            assertEquals(1 to 2, sender.met to receiver.met, "AuthEncap takes one agreement, AuthDecap two")
        }
    }

    @Test
    fun `Bouncy Castle opens the same values`() {
        for (vector in vectors) {
            val hpke = strangers(vector.aeadId())
            val sender = hpke.deserializePublicKey(vector.key("Sm").point)
            val (enc, info) = listOf("pkEm", "info").map { fromHex(vector.word(it)) }
            val context = hpke.setupAuthR(enc, hpke.pair(vector.key("Rm")), info, sender)
            val opened = context.open(fromHex(vector.word("aad")), fromHex(vector.word("ct")))
            assertEquals(vector.word("pt"), toHex(opened), vector.word("source"))
        }
    }

    @Test
    fun `Bouncy Castle opens what we have sealed, and the other way round`() = runBlocking {
        val hpke = strangers()
        repeat(20) {
            val (sender, receiver) = List(2) { TestKey(newPair()) }
            val info = makeCallKey()
            val plaintext = makeCallKey()
            val ours = sealAuth(plaintext, sender.key, receiver.point, HpkeContext(info))
            val (enc, ciphertext) = ours.copyOf(65) to ours.copyOfRange(65, ours.size)
            val opening = hpke.setupAuthR(enc, hpke.pair(receiver), info, hpke.deserializePublicKey(sender.point))
            assertArrayEquals(plaintext, opening.open(ByteArray(0), ciphertext))

            val sealing = hpke.setupAuthS(hpke.deserializePublicKey(receiver.point), info, hpke.pair(sender))
            val theirs = sealing.encapsulation + sealing.seal(ByteArray(0), plaintext)
            assertArrayEquals(plaintext, openAuth(theirs, sender.point, receiver.key, HpkeContext(info)))
        }
    }

    @Test
    fun `no private key meets a point that is not on the curve`() {
        val (sender, receiver) = List(2) { TestKey(newPair()) }
        val context = HpkeContext(ByteArray(4))
        val sealed = runBlocking { sealAuth(ByteArray(32), sender.key, receiver.point, context) }
        fun refused(what: String, act: suspend () -> ByteArray) {
            assertThrows(InvalidKeyException::class.java, { runBlocking { act() } }, what)
        }
        for ((what, point) in noPoints(receiver.point)) {
            refused(what) { sealAuth(ByteArray(32), sender.key, point, context) }
            refused("sender: $what") { openAuth(sealed, point, receiver.key, context) }
            if (point.size != POINT_OCTETS) continue
            val changed = point + sealed.copyOfRange(65, sealed.size)
            refused("enc: $what") { openAuth(changed, sender.point, receiver.key, context) }
        }
        assertEquals(1 to 0, sender.met to receiver.met)
    }

    /** Octets that are no public key of RFC 9180, 7.1.1. */
    private fun noPoints(point: ByteArray): Map<String, ByteArray> {
        val prime = fromHex("ffffffff00000001000000000000000000000000ffffffffffffffffffffffff")
        val parity = point[64].toInt() and 1
        return mapOf(
            "off the curve" to point.copyOf().also { it[64] = (it[64].toInt() xor 1).toByte() },
            "zeros, which some take for infinity" to ByteArray(65),
            "infinity, as SEC 1 has it" to ByteArray(1),
            "x and y are zero" to ByteArray(65).also { it[0] = 4 },
            "a coordinate that is the prime" to byteArrayOf(4) + prime + prime,
            "compressed" to byteArrayOf((2 + parity).toByte()) + point.copyOfRange(1, 33),
            "hybrid" to point.copyOf().also { it[0] = (6 + parity).toByte() },
            "cut off" to point.copyOf(64),
            "an octet too long" to point + 0,
            "empty" to ByteArray(0),
        )
    }

    @Test
    fun `only the same keys, info, aad and octets open it`() {
        val (sender, receiver, eve) = List(3) { TestKey(newPair()) }
        val context = HpkeContext(byteArrayOf(1, 2), byteArrayOf(3))
        val sealed = runBlocking { sealAuth(ByteArray(32), sender.key, receiver.point, context) }
        fun refused(
            what: String,
            octets: ByteArray = sealed,
            from: ByteArray = sender.point,
            to: AgreementKey = receiver.key,
            by: HpkeContext = context,
        ) {
            assertThrows(GeneralSecurityException::class.java, { runBlocking { openAuth(octets, from, to, by) } }, what)
        }
        refused("another sender", from = eve.point)
        refused("the receiver as the sender", from = receiver.point)
        refused("another receiver", to = eve.key)
        refused("the sender as the receiver", to = sender.key)
        refused("another receiver's name for its key", to = AgreementKey(eve.point, receiver.key.agree))
        refused("another info", by = HpkeContext(byteArrayOf(1), byteArrayOf(3)))
        refused("another aad", by = HpkeContext(byteArrayOf(1, 2)))
        refused("another aead", by = HpkeContext(byteArrayOf(1, 2), byteArrayOf(3), Aead(1, 16)))
        for (bit in 0 until 8 * sealed.size)
            refused("bit $bit", sealed.copyOf().also { it[bit / 8] = (it[bit / 8].toInt() xor (1 shl bit % 8)).toByte() })
        for (length in sealed.indices) refused("$length octets", sealed.copyOf(length))
        refused("an octet longer", sealed + 0)
    }
}
