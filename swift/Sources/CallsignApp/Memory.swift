/// Overwrites a secret where it is. Copies that were made of it stay.
func wipe(_ octets: inout [UInt8]) {
    octets.withUnsafeMutableBytes { _ = $0.initializeMemory(as: UInt8.self, repeating: 0) }
}
