#if canImport(Combine)
import Combine
#endif
import CallsignApp
import Foundation

/// A question over whatever is on the screen. `field` is what stands in an empty text field, where it has one.
struct Question: Identifiable {
    struct Choice: Identifiable {
        let id = UUID()
        let label: String
        var isRefusal = false

        /// Gets what is in the text field.
        let act: @MainActor (String) async throws -> Void
    }

    let id = UUID()
    let title: String
    var text = ""
    var field: String?
    var choices: [Choice]
}

/// Asks the person one thing at a time, and says what has failed.
@MainActor final class Asking: ObservableObject {
    @Published private(set) var question: Question?
    @Published var notice = ""
    let me: Callsign
    private var next: [Question] = []
    private var isClosing = false

    init(_ me: Callsign) { self.me = me }

    func ask(_ question: Question) {
        next.append(question)
        showNext()
    }

    /// The alert goes as soon as a button was pressed, and SwiftUI shows no other one while it does.
    func choose(_ choice: Question.Choice, _ text: String) {
        question = nil
        isClosing = true
        start { try await choice.act(text) }
        Task {
            try? await Task.sleep(for: .milliseconds(600))
            isClosing = false
            showNext()
        }
    }

    private func showNext() {
        if question == nil && !isClosing && !next.isEmpty { question = next.removeFirst() }
    }

    /// Runs what may fail by itself. Where a contact's keys are new it asks the person, and runs it once more when they go on.
    func start(_ act: @escaping @MainActor () async throws -> Void) {
        Task { await askingAboutKeys(act) }
    }

    func tell(_ error: any Error) {
        if error is CancellationError { return }
        guard let error = error as? CallsignError else { return notice = "\(error)" }
        NSLog("calls: %@ %@", error.code, error.message)
        notice = error.sentence
    }
}
