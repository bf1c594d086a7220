/** An authenticator in software with the page around it: it makes passkeys (ES256), and signs as WebAuthn Level 3 says. */
package callsign.app

import java.io.ByteArrayOutputStream
import java.math.BigInteger
import java.nio.ByteBuffer
import java.security.KeyPair
import java.security.KeyPairGenerator
import java.security.MessageDigest
import java.security.SecureRandom
import java.security.Signature
import java.security.interfaces.ECPublicKey
import java.security.spec.ECGenParameterSpec
import java.util.Base64
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive

/** For the pages of a development server. It signs by its newest passkey. */
class SoftwareAuthenticator(server: String) : PasskeyAuthenticator {
    private class Passkey(val id: ByteArray, val keys: KeyPair, val userHandle: String)

    private val origin = server.replace("127.0.0.1", "localhost")
    private var newest: Passkey? = null

    override suspend fun create(options: String): String {
        val said = checkNotNull(objectIn(options))
        val keys = KeyPairGenerator.getInstance("EC").apply { initialize(ECGenParameterSpec("secp256r1")) }.generateKeyPair()
        val id = ByteArray(32).also(SecureRandom()::nextBytes)
        newest = Passkey(id, keys, said.member("user").word("id"))
        val point = (keys.public as ECPublicKey).w
        val key = fromHex("a5010203262001215820") + octets(point.affineX) +
            fromHex("225820") + octets(point.affineY)
        val credential = ByteArray(16) + ByteBuffer.allocate(2).putShort(id.size.toShort()).array() + id + key
        val data = authenticatorData(said.member("rp").word("id"), flags = 0x5d) + credential
        val attestation = ByteArrayOutputStream().apply {
            write("\u00a3\u0063fmt\u0064none\u0067attStmt\u00a0\u0068authData".toByteArray(Charsets.ISO_8859_1))
            write(byteArrayOf(0x59, (data.size shr 8).toByte(), data.size.toByte()) + data)
        }
        val clientData = clientData("webauthn.create", said)
        return credentialOf(id, mapOf("clientDataJSON" to clientData, "attestationObject" to attestation.toByteArray()))
    }

    override suspend fun get(options: String): String {
        val said = checkNotNull(objectIn(options))
        val passkey = checkNotNull(newest)
        val data = authenticatorData(said.word("rpId"), flags = 0x1d)
        val clientData = clientData("webauthn.get", said)
        val signature = Signature.getInstance("SHA256withECDSA").run {
            initSign(passkey.keys.private)
            update(data + sha256(clientData))
            sign()
        }
        val handle = Base64.getUrlDecoder().decode(passkey.userHandle)
        val parts = mapOf("authenticatorData" to data, "signature" to signature, "userHandle" to handle)
        return credentialOf(passkey.id, parts + ("clientDataJSON" to clientData))
    }

    private fun clientData(type: String, options: JsonObject): ByteArray {
        val texts = bodyOf(mapOf("type" to type, "challenge" to options.word("challenge"), "origin" to origin))
        return JsonObject(texts + ("crossOrigin" to JsonPrimitive(false))).toString().toByteArray()
    }

    /** [flags]: the user is present and verified, and the key backed up; with a new one where it is made. */
    private fun authenticatorData(rpId: String, flags: Int) =
        sha256(rpId.toByteArray()) + flags.toByte() + ByteArray(4)

    private fun credentialOf(id: ByteArray, parts: Map<String, ByteArray>): String {
        val texts = mapOf("id" to base64Url(id), "rawId" to base64Url(id), "type" to "public-key")
        return JsonObject(bodyOf(texts) + ("response" to bodyOf(parts.mapValues { base64Url(it.value) }))).toString()
    }

    /** The 32 octets of a coordinate. */
    private fun octets(coordinate: BigInteger): ByteArray {
        val octets = ByteArray(32) + coordinate.toByteArray()
        return octets.copyOfRange(octets.size - 32, octets.size)
    }

    private fun sha256(octets: ByteArray) = MessageDigest.getInstance("SHA-256").digest(octets)

    private fun base64Url(octets: ByteArray) = Base64.getUrlEncoder().withoutPadding().encodeToString(octets)
}
