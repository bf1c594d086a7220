package callsign.app

import callsign.verify.decodeBase64
import java.security.InvalidKeyException
import java.security.Key
import java.security.KeyPair
import java.security.PrivateKey
import java.security.Provider
import java.security.PublicKey
import java.security.SecureRandom
import java.security.Security
import java.security.Signature
import java.security.SignatureSpi
import java.security.spec.AlgorithmParameterSpec
import javax.crypto.KeyAgreement
import javax.crypto.KeyAgreementSpi
import javax.crypto.SecretKey
import kotlinx.coroutines.runBlocking
import org.junit.jupiter.api.AfterEach
import org.junit.jupiter.api.Assertions.assertArrayEquals
import org.junit.jupiter.api.Assertions.assertNull
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.BeforeEach
import org.junit.jupiter.api.Test

/** Keys that are used where they are kept, as in Android's Keystore: a provider of the same name stands in for it. */
class HiddenKeysTest {
    @BeforeEach
    fun install() {
        Security.addProvider(KeystoreStandIn())
    }

    @AfterEach
    fun uninstall() = Security.removeProvider(KEYSTORE)

    private fun hidden(pair: KeyPair) = KeyPair(pair.public, HiddenKey(pair.private))

    @Test
    fun `keys without an encoding agree, sign and open, and are not exported`() = runBlocking {
        val signing = newPair()
        val keys = JcaDeviceKeys(hidden(newPair()), hidden(signing))
        assertNull(keys.export())

        val other = JcaDeviceKeys.generate()
        fun pointIn(of: DeviceKeys) = decodeBase64(of.publicKey).takeLast(POINT_OCTETS).toByteArray()
        assertArrayEquals(other.agree(pointIn(keys)), keys.agree(pointIn(other)))

        val signature = keys.sign("message".toByteArray())
        val verifier = Signature.getInstance("SHA256withECDSAinP1363Format").apply {
            initVerify(signing.public)
            update("message".toByteArray())
        }
        assertTrue(verifier.verify(signature))

        val (ann, bob) = listOf(OwnKeyHolder(1u, 11u, keys), OwnKeyHolder(2u, 22u, other))
        val callKey = makeCallKey()
        assertArrayEquals(callKey, openCallKey(sealCallKey(callKey, ann, bob.holder, binding), ann.holder, bob, binding))
        assertArrayEquals(callKey, openCallKey(sealCallKey(callKey, bob, ann.holder, binding), bob.holder, ann, binding))
    }
}

private const val KEYSTORE = "AndroidKeyStore"

/** [inner] is for the provider alone. */
private class HiddenKey(val inner: PrivateKey) : PrivateKey {
    override fun getAlgorithm(): String = "EC"

    override fun getFormat(): String? = null

    override fun getEncoded(): ByteArray? = null
}

private fun innerOf(key: Key?): PrivateKey = (key as? HiddenKey ?: throw InvalidKeyException("not of this store")).inner

@Suppress("DEPRECATION")
private class KeystoreStandIn : Provider(KEYSTORE, 1.0, "stands in for Android's") {
    init {
        putService(service("KeyAgreement", "ECDH") { HiddenAgreement() })
        putService(service("Signature", "SHA256withECDSA") { HiddenSignature() })
    }

    private fun service(type: String, algorithm: String, make: () -> Any) =
        object : Service(this, type, algorithm, "stand-in", null, null) {
            override fun newInstance(parameter: Any?): Any = make()

            override fun supportsParameter(parameter: Any?): Boolean = parameter is HiddenKey
        }
}

private class HiddenAgreement : KeyAgreementSpi() {
    private val inner = KeyAgreement.getInstance("ECDH", "SunEC")

    override fun engineInit(key: Key?, random: SecureRandom?) = inner.init(innerOf(key))

    override fun engineInit(key: Key?, parameters: AlgorithmParameterSpec?, random: SecureRandom?) = inner.init(innerOf(key))

    override fun engineDoPhase(key: Key?, lastPhase: Boolean): Key? = inner.doPhase(key, lastPhase)

    override fun engineGenerateSecret(): ByteArray = inner.generateSecret()

    override fun engineGenerateSecret(secret: ByteArray?, offset: Int): Int = inner.generateSecret(secret, offset)

    override fun engineGenerateSecret(algorithm: String?): SecretKey = inner.generateSecret(algorithm)
}

private class HiddenSignature : SignatureSpi() {
    private val inner = Signature.getInstance("SHA256withECDSA", "SunEC")

    override fun engineInitSign(key: PrivateKey?) = inner.initSign(innerOf(key))

    override fun engineInitVerify(key: PublicKey?) = throw InvalidKeyException("signs alone")

    override fun engineUpdate(octet: Byte) = inner.update(octet)

    override fun engineUpdate(octets: ByteArray, offset: Int, length: Int) = inner.update(octets, offset, length)

    override fun engineSign(): ByteArray = inner.sign()

    override fun engineVerify(signature: ByteArray?): Boolean = throw InvalidKeyException("signs alone")

    @Deprecated("of the platform")
    override fun engineSetParameter(name: String?, value: Any?) = throw UnsupportedOperationException()

    @Deprecated("of the platform")
    override fun engineGetParameter(name: String?): Any = throw UnsupportedOperationException()
}
