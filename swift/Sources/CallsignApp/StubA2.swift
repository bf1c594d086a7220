import CallsignVerify

extension CallsignError.LocalCode {
    static let mediaUnsupported = "MEDIA_UNSUPPORTED"
}

func withLowS(_ signature: [UInt8]) throws(LogError) -> [UInt8] { signature }
