package org.example.calls

import android.app.Activity
import androidx.credentials.CreatePublicKeyCredentialRequest
import androidx.credentials.CreatePublicKeyCredentialResponse
import androidx.credentials.CredentialManager
import androidx.credentials.GetCredentialRequest
import androidx.credentials.GetPublicKeyCredentialOption
import androidx.credentials.PublicKeyCredential
import androidx.credentials.exceptions.CreateCredentialCancellationException
import androidx.credentials.exceptions.CreateCredentialException
import androidx.credentials.exceptions.GetCredentialCancellationException
import androidx.credentials.exceptions.GetCredentialException
import androidx.credentials.exceptions.NoCredentialException
import callsign.app.CallsignException
import callsign.app.CallsignException.LocalCode
import callsign.app.PasskeyAuthenticator
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.withContext

/** Passkeys of the phone, or of the password manager that its user has chosen. Android 9 and later have them. */
class PhonePasskeys(private val app: CallsApp) : PasskeyAuthenticator {
    private val manager by lazy { CredentialManager.create(app) }

    override suspend fun create(options: String): String = asking { screen ->
        val made = manager.createCredential(screen, CreatePublicKeyCredentialRequest(options))
        (made as CreatePublicKeyCredentialResponse).registrationResponseJson
    }

    override suspend fun get(options: String): String = asking { screen ->
        val request = GetCredentialRequest(listOf(GetPublicKeyCredentialOption(options)))
        (manager.getCredential(screen, request).credential as PublicKeyCredential).authenticationResponseJson
    }

    private suspend fun asking(act: suspend (screen: Activity) -> String): String = withContext(Dispatchers.Main) {
        val screen = app.screen ?: throw CallsignException(LocalCode.PASSKEY_UNAVAILABLE, "No screen is open.")
        try {
            act(screen)
        } catch (error: CreateCredentialException) {
            throw refusalOf(error, error is CreateCredentialCancellationException)
        } catch (error: GetCredentialException) {
            throw refusalOf(error, error is GetCredentialCancellationException || error is NoCredentialException)
        }
    }

    private fun refusalOf(cause: Exception, isOfPerson: Boolean): CallsignException {
        val code = if (isOfPerson) LocalCode.PASSKEY_CANCELLED else LocalCode.PASSKEY_UNAVAILABLE
        return CallsignException(code, "No passkey was given.", cause)
    }
}
