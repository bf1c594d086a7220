package org.example.calls

import android.os.Build
import android.security.keystore.KeyGenParameterSpec
import android.security.keystore.KeyProperties
import callsign.app.AppStorage
import callsign.app.DeviceKeys
import callsign.app.DeviceKeysOf
import callsign.app.JcaDeviceKeys
import callsign.app.softwareKeys
import java.security.KeyPair
import java.security.KeyPairGenerator
import java.security.KeyStore
import java.security.spec.ECGenParameterSpec
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.withContext

/**
 * The device's keys in Android's Keystore, which no one gets out of the phone. Agreement of keys needs Android 12 there: before that
 * they are software keys in [storage], and stay so after an update, for other keys would be another device.
 */
fun keystoreKeys(storage: AppStorage): DeviceKeysOf = DeviceKeysOf { userId ->
    val isOfSoftware = storage.get("keys.$userId") != null
    if (isOfSoftware || Build.VERSION.SDK_INT < Build.VERSION_CODES.S) softwareKeys(storage).of(userId)
    else withContext(Dispatchers.IO) { keysOfKeystore(userId) }
}

private fun keysOfKeystore(userId: ULong): DeviceKeys {
    val agreement = pairOf("callsign.$userId.agreement", KeyProperties.PURPOSE_AGREE_KEY)
    return JcaDeviceKeys(agreement, pairOf("callsign.$userId.signing", KeyProperties.PURPOSE_SIGN))
}

/** Usable while the phone is locked, once it was unlocked since its start: a push has to ring. */
private fun pairOf(alias: String, purpose: Int): KeyPair {
    val store = KeyStore.getInstance(KEYSTORE).apply { load(null) }
    val kept = store.getEntry(alias, null) as KeyStore.PrivateKeyEntry?
    if (kept != null) return KeyPair(kept.certificate.publicKey, kept.privateKey)
    val spec = KeyGenParameterSpec.Builder(alias, purpose).setAlgorithmParameterSpec(ECGenParameterSpec("secp256r1"))
    if (purpose == KeyProperties.PURPOSE_SIGN) spec.setDigests(KeyProperties.DIGEST_SHA256)
    val generator = KeyPairGenerator.getInstance(KeyProperties.KEY_ALGORITHM_EC, KEYSTORE)
    return generator.apply { initialize(spec.build()) }.generateKeyPair()
}

internal const val KEYSTORE = "AndroidKeyStore"
