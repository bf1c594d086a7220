import SwiftUI

struct SignInView: View {
    let model: CallsModel
    @State private var address = ""
    @State private var name = ""

    var body: some View {
        Form {
            TextField(Word.emailAddress.text, text: $address)
                .textContentType(.emailAddress)
                .keyboardType(.emailAddress)
                .textInputAutocapitalization(.never)
                .autocorrectionDisabled()
            TextField(Word.nameFirstTime.text, text: $name)
            Button(Word.signIn.text) {
                let address = address.trimmingCharacters(in: .whitespaces)
                model.signIn(address: address, name: name.trimmingCharacters(in: .whitespaces))
            }
            Button(Word.signInByPasskey.text) { model.signInByPasskey() }
        }
        .navigationTitle(Word.signIn.text)
    }
}
