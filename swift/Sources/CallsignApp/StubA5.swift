import CallsignVerify

extension Turn {
    func begin(_ record: CallRecord, _ phase: CallPhase) {}
    func enter(_ record: CallRecord, _ key: HeldKey) {}
    func refresh(_ callId: String, command: Int? = nil, again: Int = 0) {}
    func isElsewhere(_ record: CallRecord) -> Bool { false }
    func holds(_ ringing: Ringing) -> Bool { false }
    func onQueue(_ event: [String: JSONValue], _ command: Int) throws {}
    func requestRemoval(_ removal: CallPurpose.Removal) {}
}

func sealerOf(_ event: [String: JSONValue]) throws -> Sender { Sender(userId: 0, deviceId: 0) }
