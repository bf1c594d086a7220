/** Registers this device, with the user's first device list where it is their only one. */
package callsign.app

import callsign.app.CallsignException.LocalCode
import callsign.verify.encodeBase64
import callsign.verify.possessionMessage
import callsign.verify.signInMessage
import java.security.GeneralSecurityException
import kotlinx.serialization.json.JsonArray
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive
import kotlinx.serialization.json.buildJsonObject

/** Gives the keys of a user on this device, made now if there are none. */
public fun interface DeviceKeysOf {
    public suspend fun of(userId: ULong): DeviceKeys
}

/** Software keys in the app's storage, under `keys.<userId>`. Throws `STORAGE_CORRUPT` for keys that do not belong together. */
public fun softwareKeys(storage: AppStorage): DeviceKeysOf = DeviceKeysOf { userId ->
    val key = "keys.$userId"
    val kept = storage.readText(key)
    if (kept != null) JcaDeviceKeys.import(kept)
    else JcaDeviceKeys.generate().also { storage.writeText(key, it.export()) }
}

/** Facts about the device that are sent at each start, and its token of Firebase Cloud Messaging. */
public data class DeviceDetails(
    public val platform: String = "android",
    public val name: String? = null,
    public val model: String? = null,
    public val osVersion: String? = null,
    public val appVersion: String? = null,
    public val locale: String? = null,
    public val fcmToken: String? = null,
)

/** This device as the server knows it. [publicKeyHash] is the name of its entry in the log. */
internal class RegisteredDevice(
    val userId: ULong,
    val deviceId: ULong,
    val publicKeyHash: String,
    val keys: DeviceKeys,
)

internal class DeviceRegistration(
    private val server: Server,
    private val session: Session,
    private val storage: AppStorage,
    private val keysOf: DeviceKeysOf,
    private val sealedPushes: Boolean? = null,
) {
    /**
     * Registers the keys of the user who is signed in; the same keys again are the same device. Call it at each start and after
     * each sign-in. Throws `DEVICE_KEYS_LOST` where the keys of the device that was registered are gone.
     */
    suspend fun register(details: DeviceDetails = DeviceDetails()): RegisteredDevice {
        val (userId, keys, known) = read()
        // Once registered, the device goes by `OwnDeviceList`: a server that left the list out would get one of this device alone.
        val deviceList = if (known == null) firstListOf(userId, keys) else null
        val reply = send(keys, membersOf(details, pushKeyFor(userId)), deviceList)
        val device = RegisteredDevice(userId, reply.needId("deviceId"), reply.needText("publicKeyHash"), keys)
        storage.write(deviceKey(userId), buildJsonObject {
            put("publicKey", JsonPrimitive(keys.publicKey))
            put("deviceId", JsonPrimitive("${device.deviceId}"))
            put("publicKeyHash", JsonPrimitive(device.publicKeyHash))
        })
        storage.write(firstListKey(userId), null)
        return device
    }

    /** The user's device as it was registered last, without asking the server. Null where it was not. Throws `DEVICE_KEYS_LOST`. */
    suspend fun known(): RegisteredDevice? {
        val (userId, keys, known) = read()
        return known?.let { RegisteredDevice(userId, it.deviceId, it.publicKeyHash, keys) }
    }

    private data class Read(val userId: ULong, val keys: DeviceKeys, val known: KnownRegistration?)

    private suspend fun read(): Read {
        val userId = session.userId ?: throw signedOut()
        val known = knownRegistration(storage, userId)
        val keys = keysOf.of(userId)
        if (known != null && known.publicKey != keys.publicKey) {
            val sentence = "The keys of this device are gone from its storage. Start over as a new device."
            throw CallsignException(LocalCode.DEVICE_KEYS_LOST, sentence, members = keyMember(deviceKey(userId)))
        }
        return Read(userId, keys, known)
    }

    private suspend fun send(keys: DeviceKeys, details: Map<String, JsonObject>, deviceList: String?): JsonObject {
        val challenge = session.challenge ?: throw signedOut()
        val members = mapOf(
            "publicKey" to JsonPrimitive(keys.publicKey),
            "signingKey" to JsonPrimitive(keys.signingKey),
            "possession" to JsonPrimitive(encodeBase64(keys.sign(possessionMessage(challenge)))),
        ) + details
        if (deviceList == null) return session.ask("POST", "register_device", JsonObject(members))
        return try {
            session.ask("POST", "register_device", JsonObject(members + ("deviceList" to JsonPrimitive(deviceList))))
        } catch (error: CallsignException) {
            if (!isListRefused(error)) throw error
            // Another device of the user has been faster.
            session.ask("POST", "register_device", JsonObject(members))
        }
    }

    /** An empty one takes it back; null changes nothing. */
    private suspend fun pushKeyFor(userId: ULong): String? = when (sealedPushes) {
        true -> makePushKey(storage, userId)
        false -> ""
        null -> null
    }

    private fun membersOf(details: DeviceDetails, pushKey: String?): Map<String, JsonObject> {
        val info = bodyOf(
            mapOf(
                "platform" to details.platform,
                "name" to details.name,
                "model" to details.model,
                "osVersion" to details.osVersion,
                "appVersion" to details.appVersion,
                "locale" to details.locale,
            ),
        )
        val push = bodyOf(mapOf("fcmToken" to details.fcmToken, "pushKey" to pushKey))
        return mapOf("deviceInfo" to info) + if (push.isEmpty()) emptyMap() else mapOf("push" to push)
    }

    /**
     * Base64 of the list, null where the user has one or has other devices. A list that may have reached the server stays in the
     * storage, and is sent again until there is an answer.
     */
    private suspend fun firstListOf(userId: ULong, keys: DeviceKeys): String? {
        val users = session.ask("GET", "user/publicKeys").members("users").map(::publishedUserOf)
        val own = users.find { it.userId == userId } ?: return null
        if (own.named.deviceList != null || own.named.devices.any { it.publicKey != keys.publicKey }) return null
        val kept = storage.read(firstListKey(userId)) { kept ->
            val list = kept.text("list") ?: return@read null
            (kept.text("publicKey") ?: return@read null) to list
        }
        if (kept?.first == keys.publicKey) return kept.second
        val deviceId = own.named.devices.firstOrNull()?.deviceId?.toULongOrNull() ?: randomId()
        val device = listedDevice(deviceId, keys.publicKey, keys.signingKey)
        val list = signedList(ListSigner(userId, deviceId, keys), listOf(device), server.serverTimeMs())
        storage.write(firstListKey(userId), bodyOf(mapOf("publicKey" to keys.publicKey, "list" to list)))
        return list
    }
}

/**
 * `device` of `verify-login` and `login`: the user's listed device signs the challenge, so that the sign-in need not wait. Null where this
 * is no device of the user, or its keys are lost.
 */
internal suspend fun deviceProof(
    storage: AppStorage,
    keysOf: DeviceKeysOf,
    userId: ULong,
    challenge: ByteArray,
): JsonObject? {
    return try {
        val known = knownRegistration(storage, userId) ?: return null
        val keys = keysOf.of(userId)
        // New ones prove nothing.
        if (keys.publicKey != known.publicKey) return null
        bodyOf(
            mapOf(
                "userId" to "$userId",
                "deviceId" to "${known.deviceId}",
                "signature" to encodeBase64(keys.sign(signInMessage(challenge))),
            ),
        )
    } catch (error: Exception) {
        // The sign-in may be another user's, and works without.
        if (error !is CallsignException && error !is GeneralSecurityException) throw error
        null
    }
}

private class KnownRegistration(val publicKey: String, val deviceId: ULong, val publicKeyHash: String)

/** The user's device as it was registered last. */
private suspend fun knownRegistration(storage: AppStorage, userId: ULong): KnownRegistration? =
    storage.read(deviceKey(userId)) { kept ->
        KnownRegistration(
            kept.text("publicKey") ?: return@read null,
            kept.text("deviceId")?.toULongOrNull() ?: return@read null,
            kept.text("publicKeyHash") ?: return@read null,
        )
    }

private fun isListRefused(error: CallsignException): Boolean {
    if (error.code == "DEVICE_LIST_CONFLICT") return true
    if (error.code != "VALIDATION_FAILED") return false
    return (error.members["errors"] as? JsonArray).orEmpty().any { (it as? JsonObject)?.text("pointer") == "/deviceList" }
}

internal fun signedOut() = CallsignException(LocalCode.SIGNED_OUT, "You are signed out.")

private fun deviceKey(userId: ULong) = "device.$userId"

private fun firstListKey(userId: ULong) = "first-list.$userId"
