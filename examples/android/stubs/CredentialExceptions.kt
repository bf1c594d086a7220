/** As `Credentials.kt`. */
package androidx.credentials.exceptions

abstract class CreateCredentialException(message: String) : Exception(message)

class CreateCredentialCancellationException(message: String) : CreateCredentialException(message)

abstract class GetCredentialException(message: String) : Exception(message)

class GetCredentialCancellationException(message: String) : GetCredentialException(message)

class NoCredentialException(message: String) : GetCredentialException(message)
