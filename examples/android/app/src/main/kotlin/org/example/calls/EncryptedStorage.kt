package org.example.calls

import android.security.keystore.KeyGenParameterSpec
import android.security.keystore.KeyProperties
import android.util.Base64
import callsign.app.AppStorage
import callsign.app.CallsignException
import java.security.GeneralSecurityException
import java.security.KeyStore
import javax.crypto.Cipher
import javax.crypto.KeyGenerator
import javax.crypto.SecretKey
import javax.crypto.spec.GCMParameterSpec
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.withContext

/** Texts of [inner], sealed by AES-256-GCM under a key of Android's Keystore. Each is bound to its name. */
class EncryptedStorage(private val inner: AppStorage) : AppStorage {
    private val secret by lazy(::keptSecret)

    override suspend fun get(key: String): String? {
        val sealed = inner.get(key) ?: return null
        return withContext(Dispatchers.IO) {
            try {
                opened(key, Base64.decode(sealed, Base64.NO_WRAP))
            } catch (cause: GeneralSecurityException) {
                throw damaged(key, cause)
            } catch (cause: IllegalArgumentException) {
                throw damaged(key, cause)
            }
        }
    }

    override suspend fun put(key: String, text: String?) {
        val sealed = text?.let { withContext(Dispatchers.IO) { Base64.encodeToString(sealed(key, it), Base64.NO_WRAP) } }
        inner.put(key, sealed)
    }

    private fun sealed(key: String, text: String): ByteArray {
        // The Keystore draws the nonce itself.
        val cipher = cipher(key) { init(Cipher.ENCRYPT_MODE, secret) }
        return cipher.iv + cipher.doFinal(text.toByteArray())
    }

    private fun opened(key: String, sealed: ByteArray): String {
        val nonce = GCMParameterSpec(TAG_BITS, sealed, 0, NONCE_OCTETS)
        val cipher = cipher(key) { init(Cipher.DECRYPT_MODE, secret, nonce) }
        return String(cipher.doFinal(sealed, NONCE_OCTETS, sealed.size - NONCE_OCTETS))
    }

    private fun cipher(key: String, begin: Cipher.() -> Unit): Cipher =
        Cipher.getInstance("AES/GCM/NoPadding").apply {
            begin()
            updateAAD(key.toByteArray())
        }

    private fun damaged(key: String, cause: Exception): CallsignException {
        val sentence = "The stored value \"$key\" can't be read. Remove it to start without it."
        return CallsignException(CallsignException.LocalCode.STORAGE_CORRUPT, sentence, cause)
    }

    private companion object {
        const val ALIAS = "callsign.storage"
        const val NONCE_OCTETS = 12
        const val TAG_BITS = 128

        fun keptSecret(): SecretKey {
            val store = KeyStore.getInstance(KEYSTORE).apply { load(null) }
            val kept = store.getEntry(ALIAS, null) as KeyStore.SecretKeyEntry?
            if (kept != null) return kept.secretKey
            val purposes = KeyProperties.PURPOSE_ENCRYPT or KeyProperties.PURPOSE_DECRYPT
            val spec = KeyGenParameterSpec.Builder(ALIAS, purposes)
                .setKeySize(256)
                .setBlockModes(KeyProperties.BLOCK_MODE_GCM)
                .setEncryptionPaddings(KeyProperties.ENCRYPTION_PADDING_NONE)
                .build()
            return KeyGenerator.getInstance(KeyProperties.KEY_ALGORITHM_AES, KEYSTORE).apply { init(spec) }.generateKey()
        }
    }
}
