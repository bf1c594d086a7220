#if canImport(COpenSSL)
import COpenSSL

/// By OpenSSL 3 on Linux.
package struct OpenSSLPrimitives: Primitives {
    package init() {}

    package func sha256(_ octets: [UInt8]) -> [UInt8] { digest(EVP_sha256(), octets) }

    package func sha512(_ octets: [UInt8]) -> [UInt8] { digest(EVP_sha512(), octets) }

    package func hmacSHA256(key: [UInt8], _ octets: [UInt8]) -> [UInt8] { hmac(EVP_sha256(), key, octets) }

    package func hmacSHA512(key: [UInt8], _ octets: [UInt8]) -> [UInt8] { hmac(EVP_sha512(), key, octets) }

    package func sealGCM(
        key: [UInt8], nonce: [UInt8], _ plaintext: [UInt8], authenticating: [UInt8]
    ) throws(CryptoError) -> [UInt8] {
        guard let cipher = gcm(key), nonce.count == nonceOctets else { throw .keyInvalid }
        let context = EVP_CIPHER_CTX_new()
        defer { EVP_CIPHER_CTX_free(context) }
        var sealed = [UInt8](repeating: 0, count: plaintext.count)
        var tag = [UInt8](repeating: 0, count: tagOctets)
        var count: Int32 = 0
        let isSealed =
            EVP_EncryptInit_ex(context, cipher, nil, key, nonce) == 1
            && EVP_EncryptUpdate(context, nil, &count, authenticating, Int32(authenticating.count)) == 1
            && EVP_EncryptUpdate(context, &sealed, &count, plaintext, Int32(plaintext.count)) == 1
            && EVP_EncryptFinal_ex(context, &tag, &count) == 1
            && EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, Int32(tagOctets), &tag) == 1
        guard isSealed else { throw .keyInvalid }
        return sealed + tag
    }

    package func openGCM(
        key: [UInt8], nonce: [UInt8], _ sealed: [UInt8], authenticating: [UInt8]
    ) throws(CryptoError) -> [UInt8] {
        guard let cipher = gcm(key), nonce.count == nonceOctets else { throw .keyInvalid }
        guard sealed.count >= tagOctets else { throw .notAuthentic }
        let context = EVP_CIPHER_CTX_new()
        defer { EVP_CIPHER_CTX_free(context) }
        let ciphertext = Array(sealed.dropLast(tagOctets))
        var tag = Array(sealed.suffix(tagOctets))
        var plaintext = [UInt8](repeating: 0, count: ciphertext.count)
        var none = [UInt8](repeating: 0, count: tagOctets)
        var count: Int32 = 0
        let isOpened =
            EVP_DecryptInit_ex(context, cipher, nil, key, nonce) == 1
            && EVP_DecryptUpdate(context, nil, &count, authenticating, Int32(authenticating.count)) == 1
            && EVP_DecryptUpdate(context, &plaintext, &count, ciphertext, Int32(ciphertext.count)) == 1
            && EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, Int32(tagOctets), &tag) == 1
            && EVP_DecryptFinal_ex(context, &none, &count) == 1
        guard isOpened else {
            ERR_clear_error()
            throw .notAuthentic
        }
        return plaintext
    }

    package func isP256Point(_ octets: [UInt8]) -> Bool {
        guard octets.count == pointOctets, octets[0] == 4, let key = publicKey(octets) else { return false }
        EVP_PKEY_free(key)
        return true
    }

    package func newP256Key() -> [UInt8] {
        while true {
            let key = randomOctets(scalarOctets)
            if (try? p256Point(ofKey: key)) != nil { return key }
        }
    }

    package func p256Point(ofKey key: [UInt8]) throws(CryptoError) -> [UInt8] {
        guard key.count == scalarOctets, let group = EC_GROUP_new_by_curve_name(NID_X9_62_prime256v1) else { throw .keyInvalid }
        defer { EC_GROUP_free(group) }
        let scalar = BN_bin2bn(key, Int32(key.count), nil)
        defer { BN_clear_free(scalar) }
        guard BN_is_zero(scalar) == 0, BN_cmp(scalar, EC_GROUP_get0_order(group)) < 0 else { throw .keyInvalid }
        let point = EC_POINT_new(group)
        defer { EC_POINT_free(point) }
        var octets = [UInt8](repeating: 0, count: pointOctets)
        guard EC_POINT_mul(group, point, scalar, nil, nil, nil) == 1,
            EC_POINT_point2oct(group, point, POINT_CONVERSION_UNCOMPRESSED, &octets, octets.count, nil) == pointOctets
        else { throw .keyInvalid }
        return octets
    }

    package func p256Agree(key: [UInt8], point: [UInt8]) throws(CryptoError) -> [UInt8] {
        guard let own = try privateKey(key) else { throw .keyInvalid }
        defer { EVP_PKEY_free(own) }
        guard isP256Point(point), let other = publicKey(point) else { throw .keyInvalid }
        defer { EVP_PKEY_free(other) }
        let context = EVP_PKEY_CTX_new(own, nil)
        defer { EVP_PKEY_CTX_free(context) }
        var secret = [UInt8](repeating: 0, count: scalarOctets)
        var count = secret.count
        guard EVP_PKEY_derive_init(context) == 1, EVP_PKEY_derive_set_peer(context, other) == 1,
            EVP_PKEY_derive(context, &secret, &count) == 1, count == scalarOctets
        else { throw .keyInvalid }
        return secret
    }

    package func p256Sign(key: [UInt8], _ message: [UInt8]) throws(CryptoError) -> [UInt8] {
        guard let own = try privateKey(key) else { throw .keyInvalid }
        defer { EVP_PKEY_free(own) }
        let context = EVP_MD_CTX_new()
        defer { EVP_MD_CTX_free(context) }
        var der = [UInt8](repeating: 0, count: derOctetsMax)
        var count = der.count
        guard EVP_DigestSignInit(context, nil, EVP_sha256(), nil, own) == 1,
            EVP_DigestSign(context, &der, &count, message, message.count) == 1
        else { throw .keyInvalid }
        return concatenated(der, count)
    }

    package func p256Verify(point: [UInt8], _ message: [UInt8], signature: [UInt8]) -> Bool {
        guard signature.count == 2 * scalarOctets, isP256Point(point), let key = publicKey(point) else { return false }
        defer { EVP_PKEY_free(key) }
        let parts = ECDSA_SIG_new()
        defer { ECDSA_SIG_free(parts) }
        ECDSA_SIG_set0(
            parts, BN_bin2bn(signature, Int32(scalarOctets), nil),
            BN_bin2bn(Array(signature.suffix(scalarOctets)), Int32(scalarOctets), nil))
        var encoded: UnsafeMutablePointer<UInt8>?
        let count = i2d_ECDSA_SIG(parts, &encoded)
        defer { CRYPTO_free(encoded, "", 0) }
        let context = EVP_MD_CTX_new()
        defer { EVP_MD_CTX_free(context) }
        let holds =
            count > 0 && EVP_DigestVerifyInit(context, nil, EVP_sha256(), nil, key) == 1
            && EVP_DigestVerify(context, encoded, Int(count), message, message.count) == 1
        if !holds { ERR_clear_error() }
        return holds
    }

    package func rsaEncrypt(spki: [UInt8], _ plaintext: [UInt8]) throws(CryptoError) -> [UInt8] {
        guard isRSA2048(spki), let key = readSPKI(spki) else { throw .keyInvalid }
        defer { EVP_PKEY_free(key) }
        let context = EVP_PKEY_CTX_new(key, nil)
        defer { EVP_PKEY_CTX_free(context) }
        var sealed = [UInt8](repeating: 0, count: rsaOctets)
        var count = sealed.count
        guard EVP_PKEY_get_bits(key) == 8 * Int32(rsaOctets), EVP_PKEY_encrypt_init(context) == 1,
            EVP_PKEY_CTX_set_rsa_padding(context, RSA_PKCS1_OAEP_PADDING) == 1,
            EVP_PKEY_CTX_set_rsa_oaep_md(context, EVP_sha256()) == 1, EVP_PKEY_CTX_set_rsa_mgf1_md(context, EVP_sha256()) == 1,
            EVP_PKEY_encrypt(context, &sealed, &count, plaintext, plaintext.count) == 1, count == rsaOctets
        else {
            ERR_clear_error()
            throw .keyInvalid
        }
        return sealed
    }

    private func digest(_ algorithm: OpaquePointer?, _ octets: [UInt8]) -> [UInt8] {
        var hash = [UInt8](repeating: 0, count: Int(EVP_MD_get_size(algorithm)))
        let isMade = EVP_Digest(octets, octets.count, &hash, nil, algorithm, nil) == 1
        // Zeros would be taken for a hash.
        precondition(isMade, "OpenSSL has no such hash")
        return hash
    }

    private func hmac(_ algorithm: OpaquePointer?, _ key: [UInt8], _ octets: [UInt8]) -> [UInt8] {
        var code = [UInt8](repeating: 0, count: Int(EVP_MD_get_size(algorithm)))
        var count: UInt32 = 0
        let isMade = HMAC(algorithm, key, Int32(key.count), octets, octets.count, &code, &count) != nil
        precondition(isMade, "OpenSSL has no such hash")
        return code
    }

    private func gcm(_ key: [UInt8]) -> OpaquePointer? {
        switch key.count {
        case 16: EVP_aes_128_gcm()
        case 32: EVP_aes_256_gcm()
        default: nil
        }
    }

    /// Nil for octets that are no point on the curve.
    private func publicKey(_ point: [UInt8]) -> OpaquePointer? { readSPKI(spkiPrefix + point) }

    private func readSPKI(_ octets: [UInt8]) -> OpaquePointer? {
        octets.withUnsafeBufferPointer { buffer in
            var at = buffer.baseAddress
            let key = d2i_PUBKEY(nil, &at, buffer.count)
            if key == nil { ERR_clear_error() }
            return key
        }
    }

    /// Nil never comes of a key that has a point.
    private func privateKey(_ key: [UInt8]) throws(CryptoError) -> OpaquePointer? {
        let pkcs8 = pkcs8Prefix + key + pkcs8Middle + (try p256Point(ofKey: key))
        return pkcs8.withUnsafeBufferPointer { buffer in
            var at = buffer.baseAddress
            return d2i_AutoPrivateKey(nil, &at, buffer.count)
        }
    }

    /// r || s out of an ECDSA-Sig-Value (RFC 3279).
    private func concatenated(_ der: [UInt8], _ count: Int) -> [UInt8] {
        der.withUnsafeBufferPointer { buffer in
            var at = buffer.baseAddress
            let parts = d2i_ECDSA_SIG(nil, &at, count)
            defer { ECDSA_SIG_free(parts) }
            var signature = [UInt8](repeating: 0, count: 2 * scalarOctets)
            signature.withUnsafeMutableBufferPointer { octets in
                _ = BN_bn2binpad(ECDSA_SIG_get0_r(parts), octets.baseAddress, Int32(scalarOctets))
                _ = BN_bn2binpad(ECDSA_SIG_get0_s(parts), octets.baseAddress! + scalarOctets, Int32(scalarOctets))
            }
            return signature
        }
    }
}

private let nonceOctets = 12
private let tagOctets = 16
private let pointOctets = 65
private let scalarOctets = 32
private let rsaOctets = 256
private let derOctetsMax = 80

/// PKCS#8 (RFC 5958) of an ECPrivateKey (RFC 5915) of P-256: before the 32 octets of the key, and before the 65 of its point.
private let pkcs8Prefix: [UInt8] = [
    0x30, 0x81, 0x87, 0x02, 0x01, 0x00, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a,
    0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x04, 0x6d, 0x30, 0x6b, 0x02, 0x01, 0x01, 0x04, 0x20,
]
private let pkcs8Middle: [UInt8] = [0xa1, 0x44, 0x03, 0x42, 0x00]

/// Everything of an RFC 5480 SubjectPublicKeyInfo before the 65 octets of a point of P-256.
private let spkiPrefix: [UInt8] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d,
    0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
]
#endif
