@_exported import Crypto
@_exported import Foundation
import Security

public enum SecureEnclave {
    public static var isAvailable: Bool { fatalError() }

    public enum P256 {
        public enum KeyAgreement {
            public struct PrivateKey: Sendable {
                public init(compactRepresentable: Bool = true, accessControl: SecAccessControl) throws { fatalError() }
                public init(dataRepresentation: Data) throws { fatalError() }
                public var dataRepresentation: Data { fatalError() }
                public var publicKey: Crypto.P256.KeyAgreement.PublicKey { fatalError() }
                public func sharedSecretFromKeyAgreement(with publicKey: Crypto.P256.KeyAgreement.PublicKey) throws -> SharedSecret {
                    fatalError()
                }
            }
        }

        public enum Signing {
            public struct PrivateKey: Sendable {
                public init(compactRepresentable: Bool = true, accessControl: SecAccessControl) throws { fatalError() }
                public init(dataRepresentation: Data) throws { fatalError() }
                public var dataRepresentation: Data { fatalError() }
                public var publicKey: Crypto.P256.Signing.PublicKey { fatalError() }
                public func signature<D: DataProtocol>(for data: D) throws -> Crypto.P256.Signing.ECDSASignature { fatalError() }
            }
        }
    }
}
