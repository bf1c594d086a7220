/** The few signatures of Credential Manager that the example uses, for `pom.xml` alone: it is in Google's repository, too. */
package androidx.credentials

import android.content.Context

interface CredentialManager {
    suspend fun createCredential(context: Context, request: CreateCredentialRequest): CreateCredentialResponse

    suspend fun getCredential(context: Context, request: GetCredentialRequest): GetCredentialResponse

    companion object {
        fun create(context: Context): CredentialManager = throw NotImplementedError("$context")
    }
}

abstract class CreateCredentialRequest

abstract class CreateCredentialResponse

class CreatePublicKeyCredentialRequest(val requestJson: String) : CreateCredentialRequest()

class CreatePublicKeyCredentialResponse(val registrationResponseJson: String) : CreateCredentialResponse()

abstract class CredentialOption

class GetPublicKeyCredentialOption(val requestJson: String) : CredentialOption()

class GetCredentialRequest(val credentialOptions: List<CredentialOption>)

abstract class Credential

class PublicKeyCredential(val authenticationResponseJson: String) : Credential()

class GetCredentialResponse(val credential: Credential)
