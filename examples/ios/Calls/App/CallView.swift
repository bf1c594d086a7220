import AVFAudio
import CallsignApp
import SwiftUI

/// The call screen: its people, its state, and the fingerprint of its key. CallKit has a screen of its own over the lock screen.
struct CallView: View {
    let screen: CallScreen
    let phone: Phone
    @ObservedObject var asking: Asking
    @State private var answer = ""

    var body: some View {
        VStack(spacing: 24) {
            Text(screen.people).font(.title)
            if screen.isStranger { Text(Word.stranger.text) }
            Text(sentenceOf(screen.state))
            if let fingerprint = screen.fingerprint { Text(fingerprint).font(.title.monospacedDigit()) }
            if isMute { Text(Word.noMicrophone.text).foregroundStyle(.red) }
            if !asking.notice.isEmpty { Text(asking.notice).foregroundStyle(.red) }
            if screen.canAnswer {
                Button(Word.answer.text) { phone.system?.answer(screen.uuid) }.buttonStyle(.borderedProminent)
            }
            Button(Word.hangUp.text, role: .destructive) { phone.system?.hangUp(screen.uuid) }.buttonStyle(.bordered)
        }
        .padding()
        .alert(asking.question?.title ?? "", isPresented: isAsked) {
            QuestionActions(asking: asking, answer: $answer)
        } message: {
            Text(asking.question?.text ?? "")
        }
    }

    /// The person can still listen.
    private var isMute: Bool { AVAudioSession.sharedInstance().recordPermission == .denied }

    private var isAsked: Binding<Bool> {
        Binding(get: { asking.question != nil }, set: { _ in })
    }
}
