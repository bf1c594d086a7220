import CallsignCrypto
import CallsignVerify

// How a call's key is sealed for a device with an RSA-2048 key: form 3 of docs/check/crypto.md. RSA has no agreement that would say who
// sealed, so the sender signs with the key of its device list.

/// SubjectPublicKeyInfo DER of an RSA-2048 key with the exponent 65537. Nil for another key; PKCS#1 is read too.
func rsaSPKI(of octets: [UInt8]) -> [UInt8]? {
    let modulusAt = octets.count - modulusOctets - exponent.count
    guard modulusAt >= 0, octets.suffix(exponent.count).elementsEqual(exponent) else { return nil }
    let prefix = Array(octets.prefix(modulusAt))
    if prefix == spkiAlone + pkcs1 { return octets }
    return prefix == pkcs1 ? spkiAlone + octets : nil
}

/// The form's number, and all that follows it. `info` is the use of the key, and `spki` the key of `to`. Throws `KEY_UNSUPPORTED`
/// for one that can't be used.
func sealForRSA(
    _ plaintext: [UInt8], sender: any DeviceKeys, to: KeyHolder, spki: [UInt8], info: [UInt8]
) async throws -> [UInt8] {
    let secret = randomOctets(secretOctets)
    let sealedSecret: [UInt8]
    do {
        sealedSecret = try platform.rsaEncrypt(spki: spki, secret)
    } catch {
        throw keyUnsupported(to.userId, to.deviceId, "is no RSA key to encrypt for", error)
    }
    let use = keyPurpose + info + to.keyHash + (try decodeBase64(sender.signingKey))
    let derived = HKDF.derive(.sha256, secret: secret, info: use, length: keyOctets + nonceOctets)
    let key = Array(derived.prefix(keyOctets))
    let ciphertext = try platform.sealGCM(key: key, nonce: derived.suffix(nonceOctets), plaintext, authenticating: [])
    let sealed = [rsaForm] + sealedSecret + ciphertext
    return sealed + (try withLowS(await sender.sign(signaturePurpose + info + sealed)))
}

private let keyPurpose = Array("callsign call key rsa v2\n".utf8)
private let signaturePurpose = Array("callsign call key rsa signature v2\n".utf8)
private let rsaForm: UInt8 = 3
private let secretOctets = 32
private let keyOctets = 32
private let modulusOctets = 256

/// The DER of 65537, which ends an RSAPublicKey.
private let exponent: [UInt8] = [2, 3, 1, 0, 1]

/// RSAPublicKey DER (RFC 8017, A.1.1) up to the modulus.
private let pkcs1: [UInt8] = [0x30, 0x82, 0x01, 0x0a, 0x02, 0x82, 0x01, 0x01, 0x00]

/// SubjectPublicKeyInfo DER up to the RSAPublicKey in it.
private let spkiAlone: [UInt8] = [
    0x30, 0x82, 0x01, 0x22, 0x30, 0x0d, 0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01, 0x05, 0x00, 0x03,
    0x82, 0x01, 0x0f, 0x00,
]
