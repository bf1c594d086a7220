import CallsignApp
import SwiftUI

/// Sign-in, contacts with a button to call each, what waits for the user's approval, and the call on top of it all.
struct MainView: View {
    @ObservedObject var model: CallsModel
    @ObservedObject var phone: Phone
    @ObservedObject var asking: Asking
    @State private var answer = ""

    var body: some View {
        NavigationStack {
            VStack {
                if !asking.notice.isEmpty { Text(asking.notice).foregroundStyle(.red) }
                page
            }
        }
        .fullScreenCover(isPresented: isCalling) {
            if let screen = phone.screen { CallView(screen: screen, phone: phone, asking: asking) }
        }
        .alert(asking.question?.title ?? "", isPresented: isAsked(during: false)) {
            QuestionActions(asking: asking, answer: $answer)
        } message: {
            Text(asking.question?.text ?? "")
        }
    }

    @ViewBuilder private var page: some View {
        switch model.page {
        case .beginning: ProgressView()
        case .signIn: SignInView(model: model)
        case .waitingForSignIn(let code): Waiting(sentence: Word.approveSignIn.text, code: code)
        case .waitingForApproval(let code):
            Waiting(sentence: Word.approveDevice.text, code: code)
            Button(Word.refresh.text) { model.refresh() }
        case .contacts(let page): ContactsView(model: model, asking: asking, page: page)
        case .found(let found, let whose):
            Text(whose).font(.title)
            Button(Word.askForContact.text) { model.request(found) }
            Button(Word.notNow.text) { model.refresh() }
        }
    }

    private var isCalling: Binding<Bool> {
        Binding(get: { phone.screen != nil }, set: { _ in })
    }

    /// A sheet's questions are shown by the sheet.
    private func isAsked(during call: Bool) -> Binding<Bool> {
        Binding(get: { asking.question != nil && (phone.screen != nil) == call }, set: { _ in })
    }
}

private struct Waiting: View {
    let sentence: String
    let code: String

    var body: some View {
        VStack(spacing: 24) {
            Text(sentence)
            Text(code).font(.title.monospacedDigit())
        }
        .padding()
    }
}

/// The buttons of a question, and its text field.
struct QuestionActions: View {
    @ObservedObject var asking: Asking
    @Binding var answer: String

    var body: some View {
        if let question = asking.question {
            if let field = question.field { TextField(field, text: $answer).textContentType(.oneTimeCode) }
            ForEach(question.choices) { choice in
                Button(choice.label, role: choice.isRefusal ? .cancel : nil) {
                    asking.choose(choice, answer)
                    answer = ""
                }
            }
        }
    }
}
