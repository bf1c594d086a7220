#if canImport(Security)
    import Foundation
    import Security

    #if canImport(FoundationNetworking)
        import FoundationNetworking
    #endif

    /// What to do about a server's certificate: the system decides, and beyond that the pins. What is no question about one is the
    /// system's alone.
    func answer(to challenge: URLAuthenticationChallenge, _ pins: TLSPins) -> URLSession.AuthChallengeDisposition {
        let space = challenge.protectionSpace
        guard !pins.isEmpty, space.authenticationMethod == NSURLAuthenticationMethodServerTrust else { return .performDefaultHandling }
        guard let trust = space.serverTrust else { return .cancelAuthenticationChallenge }
        // The chain as it was evaluated: a server may send certificates that belong to no chain.
        guard SecTrustEvaluateWithError(trust, nil) else { return .performDefaultHandling }
        let chain = SecTrustCopyCertificateChain(trust) as? [SecCertificate] ?? []
        let certificates = chain.map { [UInt8](SecCertificateCopyData($0) as Data) }
        return pins.hold(certificates: certificates) ? .performDefaultHandling : .cancelAuthenticationChallenge
    }
#endif
