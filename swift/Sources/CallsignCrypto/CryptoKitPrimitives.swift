#if canImport(CryptoKit)
import CryptoKit
import Foundation
import Security
#elseif SWIFT_CRYPTO
import Crypto
import Foundation
#endif

#if canImport(CryptoKit) || SWIFT_CRYPTO
/// By CryptoKit on Apple's systems. Tests run it on Linux by Apple's swift-crypto, all but RSA.
package struct CryptoKitPrimitives: Primitives {
    package init() {}

    package func sha256(_ octets: [UInt8]) -> [UInt8] { Array(SHA256.hash(data: octets)) }

    package func sha512(_ octets: [UInt8]) -> [UInt8] { Array(SHA512.hash(data: octets)) }

    package func hmacSHA256(key: [UInt8], _ octets: [UInt8]) -> [UInt8] {
        Array(HMAC<SHA256>.authenticationCode(for: octets, using: SymmetricKey(data: key)))
    }

    package func hmacSHA512(key: [UInt8], _ octets: [UInt8]) -> [UInt8] {
        Array(HMAC<SHA512>.authenticationCode(for: octets, using: SymmetricKey(data: key)))
    }

    package func sealGCM(
        key: [UInt8], nonce: [UInt8], _ plaintext: [UInt8], authenticating: [UInt8]
    ) throws(CryptoError) -> [UInt8] {
        guard isGCMKey(key), nonce.count == nonceOctets else { throw .keyInvalid }
        do {
            let box = try AES.GCM.seal(
                plaintext, using: SymmetricKey(data: key), nonce: AES.GCM.Nonce(data: nonce), authenticating: authenticating)
            return Array(box.ciphertext) + Array(box.tag)
        } catch {
            throw .keyInvalid
        }
    }

    package func openGCM(
        key: [UInt8], nonce: [UInt8], _ sealed: [UInt8], authenticating: [UInt8]
    ) throws(CryptoError) -> [UInt8] {
        guard isGCMKey(key), nonce.count == nonceOctets else { throw .keyInvalid }
        guard sealed.count >= tagOctets else { throw .notAuthentic }
        do {
            let box = try AES.GCM.SealedBox(
                nonce: AES.GCM.Nonce(data: nonce), ciphertext: sealed.dropLast(tagOctets), tag: sealed.suffix(tagOctets))
            return Array(try AES.GCM.open(box, using: SymmetricKey(data: key), authenticating: authenticating))
        } catch {
            throw .notAuthentic
        }
    }

    package func isP256Point(_ octets: [UInt8]) -> Bool {
        octets.count == pointOctets && octets[0] == 4 && (try? P256.KeyAgreement.PublicKey(x963Representation: octets)) != nil
    }

    package func newP256Key() -> [UInt8] { Array(P256.KeyAgreement.PrivateKey().rawRepresentation) }

    package func p256Point(ofKey key: [UInt8]) throws(CryptoError) -> [UInt8] {
        Array(try agreementKey(key).publicKey.x963Representation)
    }

    package func p256Agree(key: [UInt8], point: [UInt8]) throws(CryptoError) -> [UInt8] {
        let own = try agreementKey(key)
        guard isP256Point(point) else { throw .keyInvalid }
        do {
            let secret = try own.sharedSecretFromKeyAgreement(with: P256.KeyAgreement.PublicKey(x963Representation: point))
            return secret.withUnsafeBytes { Array($0) }
        } catch {
            throw .keyInvalid
        }
    }

    package func p256Sign(key: [UInt8], _ message: [UInt8]) throws(CryptoError) -> [UInt8] {
        do {
            return Array(try P256.Signing.PrivateKey(rawRepresentation: key).signature(for: message).rawRepresentation)
        } catch {
            throw .keyInvalid
        }
    }

    package func p256Verify(point: [UInt8], _ message: [UInt8], signature: [UInt8]) -> Bool {
        guard signature.count == 64, isP256Point(point),
            let key = try? P256.Signing.PublicKey(x963Representation: point),
            let read = try? P256.Signing.ECDSASignature(rawRepresentation: signature)
        else { return false }
        return key.isValidSignature(read, for: message)
    }

    package func rsaEncrypt(spki: [UInt8], _ plaintext: [UInt8]) throws(CryptoError) -> [UInt8] {
        #if canImport(Security)
        // SecKey takes PKCS#1: of an RSA-2048 key, all behind the first 24 octets.
        let attributes = [kSecAttrKeyType: kSecAttrKeyTypeRSA, kSecAttrKeyClass: kSecAttrKeyClassPublic] as CFDictionary
        guard isRSA2048(spki),
            let key = SecKeyCreateWithData(Data(spki.dropFirst(rsaSPKIOctets - rsaPKCS1Octets)) as CFData, attributes, nil),
            let sealed = SecKeyCreateEncryptedData(key, .rsaEncryptionOAEPSHA256, Data(plaintext) as CFData, nil)
        else { throw .keyInvalid }
        return Array(sealed as Data)
        #else
        throw .keyInvalid
        #endif
    }

    private func agreementKey(_ key: [UInt8]) throws(CryptoError) -> P256.KeyAgreement.PrivateKey {
        guard let read = try? P256.KeyAgreement.PrivateKey(rawRepresentation: key) else { throw .keyInvalid }
        return read
    }
}

private func isGCMKey(_ key: [UInt8]) -> Bool { key.count == 16 || key.count == 32 }

private let nonceOctets = 12
private let tagOctets = 16
private let pointOctets = 65
private let rsaPKCS1Octets = 270
#endif
