import CallsignVerify

func sentenceFor(_ code: String, title: String?, language: String) -> String { title ?? code }

enum Spoken {
    private static let spoken = Locked("en")

    static var language: String {
        get { spoken.with { $0 } }
        set { spoken.with { $0 = newValue } }
    }
}
