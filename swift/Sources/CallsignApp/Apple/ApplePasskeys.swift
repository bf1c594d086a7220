#if canImport(AuthenticationServices)
import AuthenticationServices
import Foundation

/// Passkeys of the phone, or of the password manager that its user has chosen. The domain of the passkeys has to name the app,
/// and the app the domain (`webcredentials:` among its associated domains): docs/build/ios.md.
public final class ApplePasskeys: PasskeyAuthenticator {
    private let window: @MainActor @Sendable () -> ASPresentationAnchor

    /// `window` is the one that the system asks over.
    public init(window: @escaping @MainActor @Sendable () -> ASPresentationAnchor) { self.window = window }

    public func create(_ options: String) async throws -> String { try await created(PasskeyCreation(options)) }

    public func get(_ options: String) async throws -> String { try await given(PasskeyRequest(options)) }

    @MainActor private func created(_ options: PasskeyCreation) async throws -> String {
        let provider = ASAuthorizationPlatformPublicKeyCredentialProvider(relyingPartyIdentifier: options.domain)
        let request = provider.createCredentialRegistrationRequest(
            challenge: Data(options.challenge), name: options.userName, userID: Data(options.userHandle))
        request.userVerificationPreference = .required
        if #available(iOS 17.4, macOS 13.5, *) { request.excludedCredentials = options.excluded.map(descriptor) }
        return try await PasskeyQuestion(window()).ask(request)
    }

    @MainActor private func given(_ options: PasskeyRequest) async throws -> String {
        let provider = ASAuthorizationPlatformPublicKeyCredentialProvider(relyingPartyIdentifier: options.domain)
        let request = provider.createCredentialAssertionRequest(challenge: Data(options.challenge))
        request.userVerificationPreference = .required
        request.allowedCredentials = options.allowed.map(descriptor)
        return try await PasskeyQuestion(window()).ask(request)
    }
}

private func descriptor(_ id: [UInt8]) -> ASAuthorizationPlatformPublicKeyCredentialDescriptor {
    ASAuthorizationPlatformPublicKeyCredentialDescriptor(credentialID: Data(id))
}

/// One question to the person, and its answer as JSON.
@MainActor private final class PasskeyQuestion: NSObject {
    private let window: ASPresentationAnchor
    private var answer: CheckedContinuation<String, any Error>?

    init(_ window: ASPresentationAnchor) { self.window = window }

    func ask(_ request: ASAuthorizationRequest) async throws -> String {
        let controller = ASAuthorizationController(authorizationRequests: [request])
        controller.delegate = self
        controller.presentationContextProvider = self
        return try await withCheckedThrowingContinuation { answer in
            self.answer = answer
            controller.performRequests()
        }
    }

    private func settle(_ result: Result<String, any Error>) {
        answer?.resume(with: result)
        answer = nil
    }
}

extension PasskeyQuestion: @preconcurrency ASAuthorizationControllerDelegate {
    func authorizationController(
        controller: ASAuthorizationController, didCompleteWithAuthorization authorization: ASAuthorization
    ) {
        switch authorization.credential {
        case let made as ASAuthorizationPlatformPublicKeyCredentialRegistration:
            let attestation = [UInt8](made.rawAttestationObject ?? Data())
            settle(
                .success(
                    passkeyRegistration(
                        id: [UInt8](made.credentialID), clientData: [UInt8](made.rawClientDataJSON), attestation: attestation)))
        case let given as ASAuthorizationPlatformPublicKeyCredentialAssertion:
            settle(
                .success(
                    passkeyAssertion(
                        id: [UInt8](given.credentialID),
                        clientData: [UInt8](given.rawClientDataJSON),
                        authenticatorData: [UInt8](given.rawAuthenticatorData),
                        signature: [UInt8](given.signature),
                        userHandle: [UInt8](given.userID)
                    )))
        default: settle(.failure(refusal(CallsignError.LocalCode.passkeyUnavailable, nil)))
        }
    }

    func authorizationController(controller: ASAuthorizationController, didCompleteWithError error: any Error) {
        // Also where the phone has no passkey of the domain.
        let isCancelled = (error as? ASAuthorizationError)?.code == .canceled
        let code = isCancelled ? CallsignError.LocalCode.passkeyCancelled : CallsignError.LocalCode.passkeyUnavailable
        settle(.failure(refusal(code, error)))
    }

    private func refusal(_ code: String, _ cause: (any Error)?) -> CallsignError {
        CallsignError(code, "No passkey was given.", cause: cause)
    }
}

extension PasskeyQuestion: @preconcurrency ASAuthorizationControllerPresentationContextProviding {
    func presentationAnchor(for controller: ASAuthorizationController) -> ASPresentationAnchor { window }
}
#endif
