import Foundation

/// A value that threads take turns at. `Synchronization.Mutex` needs iOS 18.
package final class Locked<Value>: @unchecked Sendable {
    private let lock = NSLock()
    private var value: Value

    package init(_ value: Value) { self.value = value }

    package func with<Result>(_ act: (inout Value) throws -> Result) rethrows -> Result {
        lock.lock()
        defer { lock.unlock() }
        return try act(&value)
    }
}
