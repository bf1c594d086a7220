import AVFAudio
import Dispatch
@_exported import Foundation

public class CXHandle: NSObject {
    public enum HandleType: Int, Sendable { case generic = 1, phoneNumber, emailAddress }
    public init(type: HandleType, value: String) { fatalError() }
    public var type: HandleType { fatalError() }
    public var value: String { fatalError() }
}

public class CXProviderConfiguration: NSObject {
    public override init() { fatalError() }
    public var maximumCallGroups = 2
    public var maximumCallsPerCallGroup = 5
    public var supportsVideo = false
    public var includesCallsInRecents = true
    public var supportedHandleTypes: Set<CXHandle.HandleType> = []
    public var ringtoneSound: String?
    public var iconTemplateImageData: Data?
}

public class CXCallUpdate: NSObject {
    public override init() { fatalError() }
    public var remoteHandle: CXHandle?
    public var localizedCallerName: String?
    public var supportsHolding = false
    public var supportsGrouping = false
    public var supportsUngrouping = false
    public var supportsDTMF = false
    public var hasVideo = false
}

public enum CXCallEndedReason: Int, Sendable { case failed = 1, remoteEnded, unanswered, answeredElsewhere, declinedElsewhere }

public class CXAction: NSObject {
    public var uuid: UUID { fatalError() }
    public func fulfill() { fatalError() }
    public func fail() { fatalError() }
}

public class CXCallAction: CXAction {
    public var callUUID: UUID { fatalError() }
}

public class CXStartCallAction: CXCallAction {
    public init(call: UUID, handle: CXHandle) { fatalError() }
    public var handle: CXHandle { fatalError() }
    public var isVideo: Bool { get { fatalError() } set { fatalError() } }
    public var contactIdentifier: String? { get { fatalError() } set { fatalError() } }
}

public class CXAnswerCallAction: CXCallAction {
    public init(call: UUID) { fatalError() }
}

public class CXEndCallAction: CXCallAction {
    public init(call: UUID) { fatalError() }
}

public class CXSetMutedCallAction: CXCallAction {
    public init(call: UUID, muted: Bool) { fatalError() }
    public var isMuted: Bool { fatalError() }
}

public class CXTransaction: NSObject {
    public init(action: CXAction) { fatalError() }
}

public class CXCallController: NSObject {
    public override init() { fatalError() }
    public func request(_ transaction: CXTransaction) async throws { fatalError() }
    public func request(_ transaction: CXTransaction, completion: @escaping @Sendable ((any Error)?) -> Void) { fatalError() }
}

public protocol CXProviderDelegate: AnyObject {
    func providerDidReset(_ provider: CXProvider)
    func provider(_ provider: CXProvider, perform action: CXStartCallAction)
    func provider(_ provider: CXProvider, perform action: CXAnswerCallAction)
    func provider(_ provider: CXProvider, perform action: CXEndCallAction)
    func provider(_ provider: CXProvider, perform action: CXSetMutedCallAction)
    func provider(_ provider: CXProvider, didActivate audioSession: AVAudioSession)
    func provider(_ provider: CXProvider, didDeactivate audioSession: AVAudioSession)
}

/// Optional in Objective-C.
extension CXProviderDelegate {
    public func provider(_ provider: CXProvider, perform action: CXStartCallAction) { fatalError() }
    public func provider(_ provider: CXProvider, perform action: CXAnswerCallAction) { fatalError() }
    public func provider(_ provider: CXProvider, perform action: CXEndCallAction) { fatalError() }
    public func provider(_ provider: CXProvider, perform action: CXSetMutedCallAction) { fatalError() }
    public func provider(_ provider: CXProvider, didActivate audioSession: AVAudioSession) { fatalError() }
    public func provider(_ provider: CXProvider, didDeactivate audioSession: AVAudioSession) { fatalError() }
}

public class CXProvider: NSObject {
    public init(configuration: CXProviderConfiguration) { fatalError() }
    public func setDelegate(_ delegate: (any CXProviderDelegate)?, queue: DispatchQueue?) { fatalError() }
    public func reportNewIncomingCall(
        with uuid: UUID, update: CXCallUpdate, completion: @escaping @Sendable ((any Error)?) -> Void) { fatalError() }
    public func reportNewIncomingCall(with uuid: UUID, update: CXCallUpdate) async throws { fatalError() }
    public func reportCall(with uuid: UUID, updated update: CXCallUpdate) { fatalError() }
    public func reportCall(with uuid: UUID, endedAt date: Date?, reason: CXCallEndedReason) { fatalError() }
    public func reportOutgoingCall(with uuid: UUID, startedConnectingAt date: Date?) { fatalError() }
    public func reportOutgoingCall(with uuid: UUID, connectedAt date: Date?) { fatalError() }
    public func invalidate() { fatalError() }
}
