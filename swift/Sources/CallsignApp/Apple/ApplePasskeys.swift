#if canImport(AuthenticationServices)
    import AuthenticationServices
    import CallsignVerify
    import Foundation

    /// Passkeys of the person's password manager, by the system's own dialogue. The app needs the associated domain
    /// `webcredentials:` of the server's `rpId`.
    public final class ApplePasskeys: PasskeyAuthenticator {
        private let anchor: @MainActor @Sendable () -> ASPresentationAnchor

        /// `anchor` is the window that the dialogue belongs to.
        public init(anchor: @escaping @MainActor @Sendable () -> ASPresentationAnchor) { self.anchor = anchor }

        public func create(_ options: String) async throws -> String {
            let said = try PasskeyCreation(options)
            let provider = ASAuthorizationPlatformPublicKeyCredentialProvider(relyingPartyIdentifier: said.rpId)
            let request = provider.createCredentialRegistrationRequest(
                challenge: Data(said.challenge),
                name: said.userName,
                userID: Data(said.userId)
            )
            guard let made = try await credential(by: request) as? ASAuthorizationPlatformPublicKeyCredentialRegistration,
                let attestation = made.rawAttestationObject
            else { throw unavailable() }
            return registrationResponse(
                id: [UInt8](made.credentialID),
                clientData: [UInt8](made.rawClientDataJSON),
                attestation: [UInt8](attestation)
            )
        }

        public func get(_ options: String) async throws -> String {
            let said = try PasskeyRequest(options)
            let provider = ASAuthorizationPlatformPublicKeyCredentialProvider(relyingPartyIdentifier: said.rpId)
            let request = provider.createCredentialAssertionRequest(challenge: Data(said.challenge))
            request.allowedCredentials = said.allowed.map {
                ASAuthorizationPlatformPublicKeyCredentialDescriptor(credentialID: Data($0))
            }
            guard let made = try await credential(by: request) as? ASAuthorizationPlatformPublicKeyCredentialAssertion else {
                throw unavailable()
            }
            return authenticationResponse(
                id: [UInt8](made.credentialID),
                clientData: [UInt8](made.rawClientDataJSON),
                authenticatorData: [UInt8](made.rawAuthenticatorData),
                signature: [UInt8](made.signature),
                userHandle: [UInt8](made.userID)
            )
        }

        @MainActor private func credential(by request: ASAuthorizationRequest) async throws -> any ASAuthorizationCredential {
            let asking = Asking(anchor())
            return try await withTaskCancellationHandler {
                try await asking.credential(by: request)
            } onCancel: {
                Task { @MainActor in asking.cancel() }
            }
        }
    }

    /// One dialogue.
    @MainActor private final class Asking: NSObject, ASAuthorizationControllerDelegate,
        ASAuthorizationControllerPresentationContextProviding
    {
        private let anchor: ASPresentationAnchor
        private var controller: ASAuthorizationController?
        private var waiting: CheckedContinuation<any ASAuthorizationCredential, any Error>?

        init(_ anchor: ASPresentationAnchor) { self.anchor = anchor }

        func credential(by request: ASAuthorizationRequest) async throws -> any ASAuthorizationCredential {
            try await withCheckedThrowingContinuation { waiting in
                self.waiting = waiting
                let controller = ASAuthorizationController(authorizationRequests: [request])
                controller.delegate = self
                controller.presentationContextProvider = self
                self.controller = controller
                controller.performRequests()
            }
        }

        func cancel() { controller?.cancel() }

        func presentationAnchor(for controller: ASAuthorizationController) -> ASPresentationAnchor { anchor }

        func authorizationController(
            controller: ASAuthorizationController,
            didCompleteWithAuthorization authorization: ASAuthorization
        ) {
            waiting?.resume(returning: authorization.credential)
            waiting = nil
        }

        func authorizationController(controller: ASAuthorizationController, didCompleteWithError error: any Error) {
            let isCancelled = (error as? ASAuthorizationError)?.code == .canceled
            waiting?.resume(throwing: isCancelled ? cancelled(error) : unavailable(error))
            waiting = nil
        }
    }

    private func cancelled(_ cause: any Error) -> CallsignError {
        CallsignError(CallsignError.LocalCode.passkeyCancelled, "The person has given no passkey.", cause: cause)
    }

    private func unavailable(_ cause: (any Error)? = nil) -> CallsignError {
        CallsignError(CallsignError.LocalCode.passkeyUnavailable, "The system has given no passkey.", cause: cause)
    }
#endif
