import AVFAudio
import CallsignApp
import SwiftUI
import UserNotifications

struct ContactsView: View {
    let model: CallsModel
    let asking: Asking
    let page: ContactsPage
    @State private var link = ""

    var body: some View {
        List {
            ForEach(page.signIns, id: \.id) { signIn in
                Button(Word.answerSignIn.text) { asking.askAboutSignIn(signIn) }
            }
            ForEach(page.devices, id: \.deviceId) { device in
                Button("\(Word.approve.text): \(device.name)") { asking.askAboutDevice(device) }
            }
            ForEach(page.requests, id: \.requestId) { request in
                Button("\(Word.accept.text): \(request.person.displayName)") { model.accept(request) }
            }
            ForEach(page.contacts, id: \.person.userId) { contact in
                Button("\(Word.call.text): \(contact.person.name)") { model.call(contact.person) }
            }
            Section {
                TextField(Word.personsLink.text, text: $link)
                    .textInputAutocapitalization(.never)
                    .autocorrectionDisabled()
                Button(Word.find.text) { model.find(link.trimmingCharacters(in: .whitespaces)) }
                Button(Word.myLink.text) { model.shareLink { link = $0 } }
                Button(Word.addPasskey.text) { model.addPasskey(label: UIDevice.current.model) }
                Button(Word.refresh.text) { model.refresh() }
            }
        }
        .navigationTitle(Word.contacts.text)
        .task { await askForPermissions() }
    }

    /// Before the first call: over the lock screen iOS asks for nothing.
    private func askForPermissions() async {
        _ = try? await UNUserNotificationCenter.current().requestAuthorization(options: [.alert, .sound, .badge])
        await withCheckedContinuation { answered in
            AVAudioSession.sharedInstance().requestRecordPermission { _ in answered.resume() }
        }
    }
}
