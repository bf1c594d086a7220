// Until the curves are here.
func ed25519Verify(publicKey: [UInt8], message: [UInt8], signature: [UInt8]) -> Bool { false }
func parseVrfPublicKey(_ text: String) throws(LogError) -> [UInt8] { try decodeBase64(text) }
func verifyVrf(publicKey: [UInt8], input: [UInt8], proof: [UInt8]) throws(LogError) -> [UInt8] { throw .proofInvalid("no VRF") }
