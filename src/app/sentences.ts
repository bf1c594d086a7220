/**
 * What an app shows its user for an error, in English, Vietnamese or German: what happened, and what to do now. The server has the
 * words for its refusals; here are those for failures on this side. `test/vectors/sentences.json` has the same for all SDKs.
 */

/**
 * The sentence for a code. `title` is the one of the server's problem, which comes first.
 * `language` is a tag such as `vi-VN`; any but Vietnamese and German is answered in English.
 */
export function sentenceFor(code: string, title: unknown, language: string): string {
  if (typeof title === 'string' && title !== '' && title.length <= TITLE_LENGTH_MAX) {
    return /[.!?]$/.test(title) ? title : `${title}.`
  }
  const at = ['vi', 'de'].indexOf(language.toLowerCase().split(/[-_,; ]/)[0]!) + 1
  const [, sentences = OTHER] =
    Object.entries(SENTENCES).find(([codes]) => codes.split(' ').includes(code)) ?? []
  return sentences[at]!
}

/** The language of sentences that no server has written: the one of the `Callsign` that was made last. */
export const spoken = { language: '' }

type Sentences = readonly [en: string, vi: string, de: string]

const SENTENCES: Readonly<Record<string, Sentences>> = {
  'NO_ANSWER OFFLINE LOG_UNANSWERED': [
    'The server can’t be reached. Check your internet connection and try again.',
    'Không kết nối được với máy chủ. Hãy kiểm tra kết nối mạng rồi thử lại.',
    'Der Server ist nicht erreichbar. Prüfe deine Internetverbindung und versuche es noch einmal.',
  ],
  DEVICE_REMOVED: [
    'This device was removed from your account. Sign in again.',
    'Thiết bị này đã bị gỡ khỏi tài khoản của bạn. Hãy đăng nhập lại.',
    'Dieses Gerät wurde aus deinem Konto entfernt. Melde dich wieder an.',
  ],
  'SIGNED_OUT SESSION_REVOKED': [
    'You are signed out. Sign in again.',
    'Bạn đã đăng xuất. Hãy đăng nhập lại.',
    'Du bist abgemeldet. Melde dich wieder an.',
  ],
  ALREADY_SIGNED_IN: [
    'Another account is signed in here. Sign it out first.',
    'Một tài khoản khác đang đăng nhập ở đây. Hãy đăng xuất tài khoản đó trước.',
    'Hier ist ein anderes Konto angemeldet. Melde es zuerst ab.',
  ],
  'CHALLENGE_GONE SIGN_IN_GONE': [
    'This is no longer valid. Start again.',
    'Yêu cầu này không còn hiệu lực. Hãy làm lại từ đầu.',
    'Das ist nicht mehr gültig. Fang noch einmal von vorn an.',
  ],
  STORAGE_FAILED: [
    'The app can’t read or save its data. Free up some space on this device and try again.',
    'Ứng dụng không đọc hoặc không lưu được dữ liệu. Hãy giải phóng bớt dung lượng trên thiết bị này rồi thử lại.',
    'Die App kann ihre Daten nicht lesen oder speichern. Schaffe auf diesem Gerät Speicherplatz und versuche es noch einmal.',
  ],
  'STORAGE_CORRUPT DEVICE_KEYS_LOST': [
    'The app’s data on this device is damaged or missing. Sign in again.',
    'Dữ liệu của ứng dụng trên thiết bị này bị hỏng hoặc bị mất. Hãy đăng nhập lại.',
    'Die Daten der App auf diesem Gerät sind beschädigt oder fehlen. Melde dich wieder an.',
  ],
  'PASSKEY_CANCELLED PASSKEY_UNAVAILABLE': [
    'No passkey was used. Try again, or choose another way.',
    'Chưa dùng được khóa truy cập. Hãy thử lại hoặc chọn cách khác.',
    'Es wurde kein Passkey verwendet. Versuche es noch einmal oder wähle einen anderen Weg.',
  ],
  METHOD_EXISTS: [
    'You already have a passkey on this device.',
    'Bạn đã có khóa truy cập trên thiết bị này.',
    'Du hast auf diesem Gerät schon einen Passkey.',
  ],
  'INVALID_QR MALFORMED': [
    'This is not a contact’s code or link for this app. Try again, or ask for a new one.',
    'Đây không phải là mã hoặc liên kết của một liên hệ trong ứng dụng này. Hãy thử lại hoặc xin mã mới.',
    'Das ist kein Code oder Link eines Kontakts für diese App. Versuche es noch einmal oder bitte um einen neuen.',
  ],
  CALL_NOT_ACTIVE: ['This call has ended.', 'Cuộc gọi này đã kết thúc.', 'Dieser Anruf ist beendet.'],
  'KEY_MISSING CALL_KEY_INVALID CALL_KEY_REUSED CALL_KEY_CHANGED CALL_KEY_OLD KEY_MEMBERS_REFUSED': [
    'This call can’t be encrypted safely right now. Hang up and call again.',
    'Hiện không thể mã hóa cuộc gọi này một cách an toàn. Hãy gác máy rồi gọi lại.',
    'Dieser Anruf lässt sich gerade nicht sicher verschlüsseln. Leg auf und ruf noch einmal an.',
  ],
  CALLER_NOT_SEALER: [
    'This call may not come from the person it shows. Decline it and call them yourself.',
    'Cuộc gọi này có thể không phải của người được hiển thị. Hãy từ chối và tự gọi cho họ.',
    'Dieser Anruf kommt vielleicht nicht von der angezeigten Person. Lehne ihn ab und ruf sie selbst an.',
  ],
  INVITATION_OLD: [
    'This call seems to be more than five minutes old. Answer only if you expect it.',
    'Cuộc gọi này có vẻ đã bắt đầu hơn năm phút trước. Chỉ trả lời nếu bạn đang chờ cuộc gọi này.',
    'Dieser Anruf scheint älter als fünf Minuten zu sein. Nimm ihn nur an, wenn du ihn erwartest.',
  ],
  OWN_DEVICE_IN_SET: [
    'A device that you have not approved could listen to this call. Answer only if it is yours.',
    'Một thiết bị bạn chưa chấp thuận có thể nghe cuộc gọi này. Chỉ trả lời nếu thiết bị đó là của bạn.',
    'Ein Gerät, das du nicht bestätigt hast, könnte diesen Anruf mithören. Nimm ihn nur an, wenn es dir gehört.',
  ],
  REMOVAL_IGNORED: [
    'Someone you removed may still be in this call. Hang up and call again.',
    'Người mà bạn đã đưa ra khỏi cuộc gọi có thể vẫn còn trong đó. Hãy gác máy rồi gọi lại.',
    'Jemand, den du entfernt hast, ist vielleicht noch im Anruf. Leg auf und ruf noch einmal an.',
  ],
  KEY_LEFT_OUT: [
    'A device in this call could not be checked and can’t hear you. Its owner can leave and join again.',
    'Không xác minh được một thiết bị trong cuộc gọi nên thiết bị đó không nghe được bạn. Người dùng thiết bị có thể rời đi rồi tham gia lại.',
    'Ein Gerät in diesem Anruf ließ sich nicht prüfen und hört dich nicht. Wer es benutzt, kann gehen und wieder beitreten.',
  ],
  KEYS_REFUSED: [
    'This person’s identity could not be confirmed, so nothing was sent. Check with them another way.',
    'Không xác nhận được danh tính của người này nên chưa có gì được gửi đi. Hãy hỏi lại họ bằng cách khác.',
    'Die Identität dieser Person ließ sich nicht bestätigen, deshalb wurde nichts gesendet. Frag auf einem anderen Weg bei ihr nach.',
  ],
  KEYS_RESET: [
    'This contact has new devices. Compare the code with them before you go on.',
    'Liên hệ này có thiết bị mới. Hãy so mã với họ trước khi tiếp tục.',
    'Dieser Kontakt hat neue Geräte. Vergleicht den Code miteinander, bevor du weitermachst.',
  ],
  // The SDK says it before the server is asked.
  CALLEE_NOT_CONTACT: [
    'You can’t call this person yet. Become contacts first.',
    'Chưa thể gọi cho người này. Hãy trở thành liên hệ của nhau trước.',
    'Du kannst diese Person noch nicht anrufen. Werdet zuerst Kontakte.',
  ],
  'KEYS_UNAVAILABLE KEY_UNSUPPORTED': [
    'A secure call to this person is not possible yet. Ask them to update and open the app.',
    'Chưa thể gọi an toàn cho người này. Hãy nhờ họ cập nhật và mở ứng dụng.',
    'Ein sicherer Anruf bei dieser Person ist noch nicht möglich. Bitte sie, die App zu aktualisieren und zu öffnen.',
  ],
  MEDIA_UNSUPPORTED: [
    'Sound and picture can’t be encrypted here. Update the browser and the app.',
    'Không mã hóa được âm thanh và hình ảnh ở đây. Hãy cập nhật trình duyệt và ứng dụng.',
    'Ton und Bild lassen sich hier nicht verschlüsseln. Aktualisiere Browser und App.',
  ],
  MEDIA_DEVICE_UNAVAILABLE: [
    'The camera or microphone can’t be used. Allow it in the settings and try again.',
    'Không dùng được camera hoặc micrô. Hãy cho phép trong phần cài đặt rồi thử lại.',
    'Kamera oder Mikrofon ist nicht verfügbar. Erlaube den Zugriff in den Einstellungen und versuche es noch einmal.',
  ],
  'MEDIA_UNANSWERED MEDIA_REFUSED': [
    'Sound and picture could not be connected. Hang up and call again.',
    'Không kết nối được âm thanh và hình ảnh. Hãy gác máy rồi gọi lại.',
    'Ton und Bild ließen sich nicht verbinden. Leg auf und ruf noch einmal an.',
  ],
}

const OTHER: Sentences = [
  'Something went wrong. Try again, and update the app if it happens again.',
  'Đã xảy ra lỗi. Hãy thử lại; nếu vẫn gặp lỗi, hãy cập nhật ứng dụng.',
  'Etwas ist schiefgegangen. Versuche es noch einmal, und aktualisiere die App, falls es wieder passiert.',
]

const TITLE_LENGTH_MAX = 200
