import CallsignVerify
import Foundation

// What an app shows its user for an error, in English, Vietnamese or German: what happened, and what to do now. The server has
// the words for its refusals; here are those for failures on this side. `test/vectors/sentences.json` has the same for all SDKs.

/// The sentence for a code. `title` is the one of the server's problem, which comes first. `language` is a tag such as `vi-VN`;
/// any but Vietnamese and German is answered in English.
func sentenceFor(_ code: String, title: String?, language: String) -> String {
    if let title, let last = title.utf8.last, title.utf16.count <= titleLengthMax {
        return ".!?".utf8.contains(last) ? title : title + "."
    }
    let words = sentences.first { $0.codes.contains { isSame($0, code) } } ?? other
    switch languageOf(language) {
    case "vi": return words.vi
    case "de": return words.de
    default: return words.en
    }
}

/// The language of sentences that no server has written: the one of the `Server` that was made last.
enum Spoken {
    private static let tag = Locked(Locale.preferredLanguages.first ?? "en")

    static var language: String {
        get { tag.with { $0 } }
        set { tag.with { $0 = newValue } }
    }
}

/// Such as `vi` of `vi-VN` or `VI_vn`.
private func languageOf(_ tag: String) -> String {
    let letters = tag.utf8.prefix { !"-_,; ".utf8.contains($0) }
    return String(decoding: letters.map { (0x41...0x5a).contains($0) ? $0 | 0x20 : $0 }, as: UTF8.self)
}

private struct Sentences: Sendable {
    let en: String
    let vi: String
    let de: String
    let codes: [String]

    init(_ en: String, _ vi: String, _ de: String, _ codes: String...) {
        self.en = en
        self.vi = vi
        self.de = de
        self.codes = codes
    }
}

private let titleLengthMax = 200

private let other = Sentences(
    "Something went wrong. Try again, and update the app if it happens again.",
    "Đã xảy ra lỗi. Hãy thử lại; nếu vẫn gặp lỗi, hãy cập nhật ứng dụng.",
    "Etwas ist schiefgegangen. Versuche es noch einmal, und aktualisiere die App, falls es wieder passiert.")

private let sentences: [Sentences] = [
    Sentences(
        "The server can’t be reached. Check your internet connection and try again.",
        "Không kết nối được với máy chủ. Hãy kiểm tra kết nối mạng rồi thử lại.",
        "Der Server ist nicht erreichbar. Prüfe deine Internetverbindung und versuche es noch einmal.",
        "NO_ANSWER", "OFFLINE", "LOG_UNANSWERED"),
    Sentences(
        "This device was removed from your account. Sign in again.",
        "Thiết bị này đã bị gỡ khỏi tài khoản của bạn. Hãy đăng nhập lại.",
        "Dieses Gerät wurde aus deinem Konto entfernt. Melde dich wieder an.",
        "DEVICE_REMOVED"),
    Sentences(
        "You are signed out. Sign in again.",
        "Bạn đã đăng xuất. Hãy đăng nhập lại.",
        "Du bist abgemeldet. Melde dich wieder an.",
        "SIGNED_OUT", "SESSION_REVOKED"),
    Sentences(
        "Another account is signed in here. Sign it out first.",
        "Một tài khoản khác đang đăng nhập ở đây. Hãy đăng xuất tài khoản đó trước.",
        "Hier ist ein anderes Konto angemeldet. Melde es zuerst ab.",
        "ALREADY_SIGNED_IN"),
    Sentences(
        "This is no longer valid. Start again.",
        "Yêu cầu này không còn hiệu lực. Hãy làm lại từ đầu.",
        "Das ist nicht mehr gültig. Fang noch einmal von vorn an.",
        "CHALLENGE_GONE", "SIGN_IN_GONE"),
    Sentences(
        "The app can’t read or save its data. Free up some space on this device and try again.",
        "Ứng dụng không đọc hoặc không lưu được dữ liệu. Hãy giải phóng bớt dung lượng trên thiết bị này rồi thử lại.",
        "Die App kann ihre Daten nicht lesen oder speichern. Schaffe auf diesem Gerät Speicherplatz und versuche es noch einmal.",
        "STORAGE_FAILED"),
    Sentences(
        "The app’s data on this device is damaged or missing. Sign in again.",
        "Dữ liệu của ứng dụng trên thiết bị này bị hỏng hoặc bị mất. Hãy đăng nhập lại.",
        "Die Daten der App auf diesem Gerät sind beschädigt oder fehlen. Melde dich wieder an.",
        "STORAGE_CORRUPT", "DEVICE_KEYS_LOST"),
    Sentences(
        "No passkey was used. Try again, or choose another way.",
        "Chưa dùng được khóa truy cập. Hãy thử lại hoặc chọn cách khác.",
        "Es wurde kein Passkey verwendet. Versuche es noch einmal oder wähle einen anderen Weg.",
        "PASSKEY_CANCELLED", "PASSKEY_UNAVAILABLE"),
    Sentences(
        "You already have a passkey on this device.",
        "Bạn đã có khóa truy cập trên thiết bị này.",
        "Du hast auf diesem Gerät schon einen Passkey.",
        "METHOD_EXISTS"),
    Sentences(
        "This is not a contact’s code or link for this app. Try again, or ask for a new one.",
        "Đây không phải là mã hoặc liên kết của một liên hệ trong ứng dụng này. Hãy thử lại hoặc xin mã mới.",
        "Das ist kein Code oder Link eines Kontakts für diese App. Versuche es noch einmal oder bitte um einen neuen.",
        "INVALID_QR", "MALFORMED"),
    Sentences(
        "This call has ended.",
        "Cuộc gọi này đã kết thúc.",
        "Dieser Anruf ist beendet.",
        "CALL_NOT_ACTIVE"),
    Sentences(
        "This call can’t be encrypted safely right now. Hang up and call again.",
        "Hiện không thể mã hóa cuộc gọi này một cách an toàn. Hãy gác máy rồi gọi lại.",
        "Dieser Anruf lässt sich gerade nicht sicher verschlüsseln. Leg auf und ruf noch einmal an.",
        "KEY_MISSING", "CALL_KEY_INVALID", "CALL_KEY_REUSED", "CALL_KEY_CHANGED", "CALL_KEY_OLD", "KEY_MEMBERS_REFUSED"),
    Sentences(
        "This call may not come from the person it shows. Decline it and call them yourself.",
        "Cuộc gọi này có thể không phải của người được hiển thị. Hãy từ chối và tự gọi cho họ.",
        "Dieser Anruf kommt vielleicht nicht von der angezeigten Person. Lehne ihn ab und ruf sie selbst an.",
        "CALLER_NOT_SEALER"),
    Sentences(
        "This call seems to be more than five minutes old. Answer only if you expect it.",
        "Cuộc gọi này có vẻ đã bắt đầu hơn năm phút trước. Chỉ trả lời nếu bạn đang chờ cuộc gọi này.",
        "Dieser Anruf scheint älter als fünf Minuten zu sein. Nimm ihn nur an, wenn du ihn erwartest.",
        "INVITATION_OLD"),
    Sentences(
        "A device that you have not approved could listen to this call. Answer only if it is yours.",
        "Một thiết bị bạn chưa chấp thuận có thể nghe cuộc gọi này. Chỉ trả lời nếu thiết bị đó là của bạn.",
        "Ein Gerät, das du nicht bestätigt hast, könnte diesen Anruf mithören. Nimm ihn nur an, wenn es dir gehört.",
        "OWN_DEVICE_IN_SET"),
    Sentences(
        "Someone you removed may still be in this call. Hang up and call again.",
        "Người mà bạn đã đưa ra khỏi cuộc gọi có thể vẫn còn trong đó. Hãy gác máy rồi gọi lại.",
        "Jemand, den du entfernt hast, ist vielleicht noch im Anruf. Leg auf und ruf noch einmal an.",
        "REMOVAL_IGNORED"),
    Sentences(
        "A device in this call could not be checked and can’t hear you. Its owner can leave and join again.",
        """
        Không xác minh được một thiết bị trong cuộc gọi nên thiết bị đó không nghe được bạn. Người dùng thiết bị \
        có thể rời đi rồi tham gia lại.
        """,
        "Ein Gerät in diesem Anruf ließ sich nicht prüfen und hört dich nicht. Wer es benutzt, kann gehen und wieder beitreten.",
        "KEY_LEFT_OUT"),
    Sentences(
        "This person’s identity could not be confirmed, so nothing was sent. Check with them another way.",
        "Không xác nhận được danh tính của người này nên chưa có gì được gửi đi. Hãy hỏi lại họ bằng cách khác.",
        """
        Die Identität dieser Person ließ sich nicht bestätigen, deshalb wurde nichts gesendet. Frag auf einem \
        anderen Weg bei ihr nach.
        """,
        "KEYS_REFUSED"),
    Sentences(
        "This contact has new devices. Compare the code with them before you go on.",
        "Liên hệ này có thiết bị mới. Hãy so mã với họ trước khi tiếp tục.",
        "Dieser Kontakt hat neue Geräte. Vergleicht den Code miteinander, bevor du weitermachst.",
        "KEYS_RESET"),
    Sentences(
        "You can’t call this person yet. Become contacts first.",
        "Chưa thể gọi cho người này. Hãy trở thành liên hệ của nhau trước.",
        "Du kannst diese Person noch nicht anrufen. Werdet zuerst Kontakte.",
        "CALLEE_NOT_CONTACT"),
    Sentences(
        "A secure call to this person is not possible yet. Ask them to update and open the app.",
        "Chưa thể gọi an toàn cho người này. Hãy nhờ họ cập nhật và mở ứng dụng.",
        "Ein sicherer Anruf bei dieser Person ist noch nicht möglich. Bitte sie, die App zu aktualisieren und zu öffnen.",
        "KEYS_UNAVAILABLE", "KEY_UNSUPPORTED"),
    Sentences(
        "Sound and picture can’t be encrypted here. Update the browser and the app.",
        "Không mã hóa được âm thanh và hình ảnh ở đây. Hãy cập nhật trình duyệt và ứng dụng.",
        "Ton und Bild lassen sich hier nicht verschlüsseln. Aktualisiere Browser und App.",
        "MEDIA_UNSUPPORTED"),
    Sentences(
        "The camera or microphone can’t be used. Allow it in the settings and try again.",
        "Không dùng được camera hoặc micrô. Hãy cho phép trong phần cài đặt rồi thử lại.",
        "Kamera oder Mikrofon ist nicht verfügbar. Erlaube den Zugriff in den Einstellungen und versuche es noch einmal.",
        "MEDIA_DEVICE_UNAVAILABLE"),
    Sentences(
        "Sound and picture could not be connected. Hang up and call again.",
        "Không kết nối được âm thanh và hình ảnh. Hãy gác máy rồi gọi lại.",
        "Ton und Bild ließen sich nicht verbinden. Leg auf und ruf noch einmal an.",
        "MEDIA_UNANSWERED", "MEDIA_REFUSED"),
]
