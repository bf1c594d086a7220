@_exported import Foundation

public class AVAudioSession: NSObject, @unchecked Sendable {
    public struct Category: Sendable { public static var playAndRecord: Self { fatalError() } }
    public struct Mode: Sendable {
        public static var voiceChat: Self { fatalError() }
        public static var videoChat: Self { fatalError() }
    }
    public struct CategoryOptions: OptionSet, Sendable {
        public let rawValue: UInt
        public init(rawValue: UInt) { self.rawValue = rawValue }
        public static var allowBluetooth: Self { fatalError() }
    }
    public enum RecordPermission: UInt, Sendable { case undetermined, denied, granted }
    public class func sharedInstance() -> AVAudioSession { fatalError() }
    public func setCategory(_ category: Category, mode: Mode, options: CategoryOptions = []) throws { fatalError() }
    public func setActive(_ active: Bool) throws { fatalError() }
    public var recordPermission: RecordPermission { fatalError() }
    public func requestRecordPermission(_ response: @escaping @Sendable (Bool) -> Void) { fatalError() }
}
