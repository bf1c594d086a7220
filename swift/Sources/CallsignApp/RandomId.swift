/// From 2^32 up to 2^53: of a device or a call that no server has named.
func randomId() -> UInt64 { UInt64.random(in: 1 << 32..<1 << 53) }
