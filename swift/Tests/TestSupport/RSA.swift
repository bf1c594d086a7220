#if canImport(Security)
import Foundation
import Security

/// RSAES-OAEP with SHA-256, as a device with an RSA-2048 key opens. Throws for what was not encrypted for it.
public func rsaDecrypt(pkcs8: [UInt8], _ encrypted: [UInt8]) throws -> [UInt8] {
    let attributes = [kSecAttrKeyType: kSecAttrKeyTypeRSA, kSecAttrKeyClass: kSecAttrKeyClassPrivate] as CFDictionary
    // SecKey takes PKCS#1: of an RSA-2048 key, all behind the first 26 octets.
    let key = try known(SecKeyCreateWithData(Data(pkcs8.dropFirst(26)) as CFData, attributes, nil), "key")
    let opened = SecKeyCreateDecryptedData(key, .rsaEncryptionOAEPSHA256, Data(encrypted) as CFData, nil)
    return [UInt8](try known(opened, "opened") as Data)
}
#else
import COpenSSL

/// RSAES-OAEP with SHA-256, as a device with an RSA-2048 key opens. Throws for what was not encrypted for it.
public func rsaDecrypt(pkcs8: [UInt8], _ encrypted: [UInt8]) throws -> [UInt8] {
    let key = try known(
        pkcs8.withUnsafeBufferPointer { buffer in
            var at = buffer.baseAddress
            return d2i_AutoPrivateKey(nil, &at, buffer.count)
        }, "key")
    defer { EVP_PKEY_free(key) }
    let context = EVP_PKEY_CTX_new(key, nil)
    defer { EVP_PKEY_CTX_free(context) }
    var opened = [UInt8](repeating: 0, count: 256)
    var count = opened.count
    let isOpened =
        EVP_PKEY_decrypt_init(context) == 1
        && EVP_PKEY_CTX_set_rsa_padding(context, RSA_PKCS1_OAEP_PADDING) == 1
        && EVP_PKEY_CTX_set_rsa_oaep_md(context, EVP_sha256()) == 1
        && EVP_PKEY_CTX_set_rsa_mgf1_md(context, EVP_sha256()) == 1
        && EVP_PKEY_decrypt(context, &opened, &count, encrypted, encrypted.count) == 1
    return Array(try known(isOpened ? opened : nil, "opened")[..<count])
}
#endif
