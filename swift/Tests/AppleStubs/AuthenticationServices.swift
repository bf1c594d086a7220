@_exported import Foundation
import UIKit

public typealias ASPresentationAnchor = UIWindow

public class ASAuthorization: NSObject {
    public var credential: any ASAuthorizationCredential { fatalError() }
}

public protocol ASAuthorizationCredential {}

public class ASAuthorizationRequest: NSObject {}

public protocol ASAuthorizationControllerDelegate: AnyObject {
    func authorizationController(controller: ASAuthorizationController, didCompleteWithAuthorization authorization: ASAuthorization)
    func authorizationController(controller: ASAuthorizationController, didCompleteWithError error: any Error)
}

public protocol ASAuthorizationControllerPresentationContextProviding: AnyObject {
    func presentationAnchor(for controller: ASAuthorizationController) -> ASPresentationAnchor
}

public class ASAuthorizationController: NSObject {
    public init(authorizationRequests: [ASAuthorizationRequest]) { fatalError() }
    public weak var delegate: (any ASAuthorizationControllerDelegate)?
    public weak var presentationContextProvider: (any ASAuthorizationControllerPresentationContextProviding)?
    public func performRequests() { fatalError() }
}

public struct ASAuthorizationError: Error {
    public enum Code: Int, Sendable { case unknown = 1000, canceled, invalidResponse, notHandled, failed, notInteractive }
    public var code: Code { fatalError() }
}

public struct ASAuthorizationPublicKeyCredentialUserVerificationPreference: Sendable {
    public static var required: Self { fatalError() }
}

public class ASAuthorizationPlatformPublicKeyCredentialDescriptor: NSObject {
    public init(credentialID: Data) { fatalError() }
}

public class ASAuthorizationPlatformPublicKeyCredentialProvider: NSObject {
    public init(relyingPartyIdentifier: String) { fatalError() }
    public func createCredentialRegistrationRequest(
        challenge: Data, name: String, userID: Data) -> ASAuthorizationPlatformPublicKeyCredentialRegistrationRequest { fatalError() }
    public func createCredentialAssertionRequest(
        challenge: Data) -> ASAuthorizationPlatformPublicKeyCredentialAssertionRequest { fatalError() }
}

public class ASAuthorizationPlatformPublicKeyCredentialRegistrationRequest: ASAuthorizationRequest {
    public var userVerificationPreference: ASAuthorizationPublicKeyCredentialUserVerificationPreference {
        get { fatalError() }
        set { fatalError() }
    }
    public var excludedCredentials: [ASAuthorizationPlatformPublicKeyCredentialDescriptor]? {
        get { fatalError() }
        set { fatalError() }
    }
}

public class ASAuthorizationPlatformPublicKeyCredentialAssertionRequest: ASAuthorizationRequest {
    public var userVerificationPreference: ASAuthorizationPublicKeyCredentialUserVerificationPreference {
        get { fatalError() }
        set { fatalError() }
    }
    public var allowedCredentials: [ASAuthorizationPlatformPublicKeyCredentialDescriptor] {
        get { fatalError() }
        set { fatalError() }
    }
}

public class ASAuthorizationPlatformPublicKeyCredentialRegistration: NSObject, ASAuthorizationCredential {
    public var credentialID: Data { fatalError() }
    public var rawClientDataJSON: Data { fatalError() }
    public var rawAttestationObject: Data? { fatalError() }
}

public class ASAuthorizationPlatformPublicKeyCredentialAssertion: NSObject, ASAuthorizationCredential {
    public var credentialID: Data { fatalError() }
    public var rawClientDataJSON: Data { fatalError() }
    public var rawAuthenticatorData: Data! { fatalError() }
    public var signature: Data! { fatalError() }
    public var userID: Data! { fatalError() }
}
