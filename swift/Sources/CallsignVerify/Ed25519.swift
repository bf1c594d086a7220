/// Whether the signature is one of the message by the key (RFC 8032), without the cofactor. False for any odd input: wrong
/// lengths, a point that is not one or not canonical, a key of small order.
///
/// Libraries differ at these edges, CryptoKit from OpenSSL too, and two clients that disagree about one signature are a split
/// view.
func ed25519Verify(publicKey: [UInt8], message: [UInt8], signature: [UInt8]) -> Bool {
    guard publicKey.count == 32, signature.count == 64, let key = EdwardsPoint(octets: publicKey), !key.isSmallOrder,
        let s = Scalar25519(octets: signature[32...])
    else { return false }
    let r = Array(signature[..<32])
    let k = Scalar25519(reducing: sha512(r, publicKey, message))
    // R = sB - kA, compared octet by octet: with the cofactor, signatures would hold that OpenSSL refuses.
    return sumOfMultiples(s, .ofBase, k, Multiples(-key)).octets == r
}
