/** Words of failures, news of keys, and ends of calls. */

import type { Words } from './shared-words.ts'

export const NEWS_WORDS = {
  'name-somebody': ['somebody', 'jemand', 'ai đó'],
  'name-unnamed-device': ['Unnamed device', 'Gerät ohne Namen', 'Thiết bị chưa có tên'],
  'name-unknown-program': ['An unknown program', 'Ein unbekanntes Programm', 'Một chương trình không rõ'],
  'name-browser': ['A browser', 'Ein Browser', 'Một trình duyệt'],
  'name-program': ['{0} on {1}', '{0} auf {1}', '{0} trên {1}'],
  'failure-attempt-left': ['One more try.', 'Noch ein Versuch.', 'Còn một lần thử.'],
  'failure-attempts-left': ['{0} more tries.', 'Noch {0} Versuche.', 'Còn {0} lần thử.'],
  'failure-retry-in': ['Try again in {0}.', 'Versuche es in {0} noch einmal.', 'Hãy thử lại sau {0}.'],
  'failure-another-log': [
    'The server shows another key log than this app was built for: it was reset, or its keys changed. Nothing is encrypted for keys of that log.',
    'Der Server zeigt ein anderes Schlüsselprotokoll als das, für das diese App gebaut wurde: Er wurde zurückgesetzt, oder seine Schlüssel haben sich geändert. Für Schlüssel daraus wird nichts verschlüsselt.',
    'Máy chủ đưa ra một nhật ký khóa khác với nhật ký mà ứng dụng này được tạo cho: máy chủ đã được đặt lại hoặc đã đổi khóa. Không có gì được mã hóa cho các khóa đó.',
  ],
  'failure-keys-refused': [
    'The key of {0} does not verify in the key log ({1}). Nothing is encrypted for it.',
    'Der Schlüssel von {0} lässt sich im Schlüsselprotokoll nicht bestätigen ({1}). Für ihn wird nichts verschlüsselt.',
    'Không xác minh được khóa của {0} trong nhật ký khóa ({1}). Không có gì được mã hóa cho khóa đó.',
  ],
  'failure-keys-reset': [
    '{0}’s keys are new: {1}. Compare the code with {0}, or go on?',
    'Die Schlüssel von {0} sind neu: {1}. Den Code mit {0} vergleichen oder weitermachen?',
    'Khóa của {0} là khóa mới: {1}. So mã với {0}, hay tiếp tục?',
  ],
  'failure-no-device': [
    '{0} has no approved device yet, so nothing can ring. They have to open the app and approve theirs.',
    '{0} hat noch kein bestätigtes Gerät, deshalb kann nichts klingeln. Dazu muss die App dort geöffnet und das Gerät bestätigt werden.',
    '{0} chưa có thiết bị nào được chấp thuận nên không đổ chuông được. Họ cần mở ứng dụng và chấp thuận thiết bị của mình.',
  ],
  'failure-not-contact': [
    'They are not your contact yet, so they can’t be called. Ask them to be contacts first, by their link or yours.',
    'Ihr seid noch keine Kontakte, deshalb geht kein Anruf. Stelle zuerst eine Kontaktanfrage, über den Link der Person oder deinen.',
    'Hai bạn chưa phải là liên hệ của nhau nên chưa gọi được. Hãy gửi lời mời kết nối trước, bằng liên kết của họ hoặc của bạn.',
  ],
  'failure-invitation-old': [
    'This invitation is {0} minutes old, or a clock is wrong: somebody may have held it back. Do you expect the call?',
    'Diese Einladung ist {0} Minuten alt, oder eine Uhr geht falsch: Vielleicht hat sie jemand zurückgehalten. Erwartest du den Anruf?',
    'Lời mời này đã có từ {0} phút trước, hoặc có đồng hồ chạy sai: có thể ai đó đã giữ nó lại. Bạn có đang chờ cuộc gọi này không?',
  ],
  'failure-own-device': [
    'The call’s key is for one more device of yours, {0}, for which only the server vouches. Is it yours?',
    'Der Schlüssel des Anrufs ist auch für ein weiteres Gerät von dir, {0}, für das nur der Server bürgt. Gehört es dir?',
    'Khóa cuộc gọi còn dành cho một thiết bị nữa của bạn, {0}, mà chỉ máy chủ xác nhận. Đó có phải thiết bị của bạn không?',
  ],
  'failure-sign-in-refused': [
    'Another device of this account has refused the sign-in. Until {0} nobody can sign in with the address; then it opens a new account.',
    'Ein anderes Gerät dieses Kontos hat die Anmeldung abgelehnt. Bis {0} öffnet die Adresse nichts, danach ein neues Konto.',
    'Một thiết bị khác của tài khoản này đã từ chối lần đăng nhập. Đến {0}, địa chỉ này không mở được gì; sau đó sẽ mở tài khoản mới.',
  ],
  'reset-all': [
    'all devices were replaced by a new one, or somebody else is signed in under that name',
    'alle Geräte wurden durch ein neues ersetzt, oder jemand anderes ist unter diesem Namen angemeldet',
    'mọi thiết bị đã được thay bằng một thiết bị mới, hoặc có người khác đăng nhập dưới tên đó',
  ],
  'reset-first-list': [
    'there is now a list of the devices, which no device that you know has signed',
    'die Geräte haben ab jetzt eine Liste, die kein dir bekanntes Gerät unterschrieben hat',
    'từ nay các thiết bị có danh sách, nhưng không thiết bị nào bạn biết đã ký',
  ],
  'reset-added': [
    'there is a new device, and only the server says whose it is',
    'es gibt ein neues Gerät, und nur der Server sagt, wem es gehört',
    'có một thiết bị mới, và chỉ máy chủ nói nó là của ai',
  ],
  'reset-replaced': [
    'a device has a new key, and only the server says whose it is',
    'ein Gerät hat einen neuen Schlüssel, und nur der Server sagt, wem er gehört',
    'một thiết bị có khóa mới, và chỉ máy chủ nói khóa đó là của ai',
  ],
  'news-two-logs': [
    '{0} was shown another key log than you ({1}): one of you may be given false keys. Keep this page’s storage: it has both signed checkpoints.',
    '{0} bekam ein anderes Schlüsselprotokoll gezeigt als du ({1}): Vielleicht bekommt eine Seite falsche Schlüssel. Behalte die Daten dieser Seite: Sie enthalten beide unterschriebenen Stände.',
    '{0} được cho xem một nhật ký khóa khác với bạn ({1}): một trong hai có thể nhận khóa giả. Hãy giữ dữ liệu của trang này: nó có cả hai bản đã ký.',
  ],
  'news-own-list': [
    'The log holds a device list in your name that none of your devices has made.',
    'Im Protokoll steht eine Geräteliste in deinem Namen, die keines deiner Geräte erstellt hat.',
    'Nhật ký có một danh sách thiết bị mang tên bạn mà không thiết bị nào của bạn tạo ra.',
  ],
  'news-own-reset': [
    'Your devices were started over on a new one. If that was not you, somebody else is signed in as you.',
    'Deine Geräte wurden auf einem neuen Gerät neu begonnen. Wenn du das nicht warst, ist jemand anderes als du angemeldet.',
    'Các thiết bị của bạn đã được bắt đầu lại trên một thiết bị mới. Nếu không phải bạn, có người khác đang đăng nhập bằng tên bạn.',
  ],
  'news-added-by-list': [
    '{0} has a new device, which another device of theirs has approved.',
    '{0} hat ein neues Gerät, das ein anderes Gerät von {0} bestätigt hat.',
    '{0} có một thiết bị mới, đã được một thiết bị khác của họ chấp thuận.',
  ],
  'news-reset': [
    '{0} has started over on a new device. Ask whether that is so before you say anything private.',
    '{0} hat auf einem neuen Gerät neu begonnen. Frag nach, ob das stimmt, bevor du Privates sagst.',
    '{0} đã bắt đầu lại trên một thiết bị mới. Hãy hỏi lại cho chắc trước khi nói điều riêng tư.',
  ],
  'news-unlisted': [
    'The server names a device of {0}’s that {0} has not approved. Nothing is encrypted for it.',
    'Der Server nennt ein Gerät von {0}, das {0} nicht bestätigt hat. Für dieses wird nichts verschlüsselt.',
    'Máy chủ nêu một thiết bị của {0} mà {0} chưa chấp thuận. Không có gì được mã hóa cho thiết bị đó.',
  ],
  'news-added': [
    '{0} has a new device. Nothing is encrypted for it before you have said so.',
    '{0} hat ein neues Gerät. Für dieses wird nichts verschlüsselt, bevor du zugestimmt hast.',
    '{0} có một thiết bị mới. Không có gì được mã hóa cho thiết bị đó trước khi bạn đồng ý.',
  ],
  'news-replaced': [
    '{0} has a device with a new key. Nothing is encrypted for it before you have said so.',
    '{0} hat ein Gerät mit einem neuen Schlüssel. Für dieses wird nichts verschlüsselt, bevor du zugestimmt hast.',
    '{0} có một thiết bị dùng khóa mới. Không có gì được mã hóa cho thiết bị đó trước khi bạn đồng ý.',
  ],
  'news-left-out': [
    '{0} was not called: an app of theirs is too old for this call’s encryption.',
    '{0} wurde nicht angerufen: Eine App dort ist zu alt für die Verschlüsselung dieses Anrufs.',
    'Không gọi được {0}: ứng dụng của họ quá cũ so với cách mã hóa của cuộc gọi này.',
  ],
  'ending-cancelled': ['The call was cancelled.', 'Der Anruf wurde abgebrochen.', 'Cuộc gọi đã bị hủy.'],
  'ending-declined': ['The call was declined.', 'Der Anruf wurde abgelehnt.', 'Cuộc gọi đã bị từ chối.'],
  'ending-unanswered': ['Nobody has answered.', 'Niemand hat abgenommen.', 'Không có ai trả lời.'],
  'ending-caller-lost': [
    'The caller’s connection was lost.',
    'Die Verbindung zum Anrufer ist abgerissen.',
    'Người gọi đã mất kết nối.',
  ],
  'ending-empty': [
    'Everybody had left: the call is over.',
    'Alle sind gegangen: Der Anruf ist vorbei.',
    'Mọi người đã rời đi: cuộc gọi kết thúc.',
  ],
  'ending-alone': [
    'Nobody else came back: the call is over.',
    'Niemand sonst kam zurück: Der Anruf ist vorbei.',
    'Không ai quay lại: cuộc gọi kết thúc.',
  ],
  'ending-limit': [
    'The call has lasted as long as a call may.',
    'Der Anruf hat so lange gedauert, wie ein Anruf dauern darf.',
    'Cuộc gọi đã kéo dài tới mức tối đa.',
  ],
  'ending-removed': [
    'The host has removed you from the call.',
    'Du wurdest aus dem Anruf entfernt.',
    'Chủ cuộc gọi đã đưa bạn ra khỏi cuộc gọi.',
  ],
  'ending-operator': [
    'The operator of this service has ended the call for you.',
    'Der Betreiber dieses Dienstes hat den Anruf für dich beendet.',
    'Đơn vị vận hành dịch vụ đã kết thúc cuộc gọi của bạn.',
  ],
  'ending-suspended': [
    'Your account was suspended.',
    'Dein Konto wurde gesperrt.',
    'Tài khoản của bạn đã bị tạm khóa.',
  ],
  'ending-left': ['You left the call.', 'Du hast den Anruf verlassen.', 'Bạn đã rời cuộc gọi.'],
  'ending-moved': [
    'The call goes on on another device of yours.',
    'Der Anruf läuft auf einem anderen Gerät von dir weiter.',
    'Cuộc gọi tiếp tục trên thiết bị khác của bạn.',
  ],
  'ending-key-lost': [
    'The page was reloaded while it rang: the key is gone, so the call was given up.',
    'Die Seite wurde beim Klingeln neu geladen: Der Schlüssel ist weg, deshalb wurde der Anruf abgebrochen.',
    'Trang đã được tải lại khi đang đổ chuông: khóa không còn nên cuộc gọi đã bị hủy.',
  ],
  'ending-other': ['The call is over.', 'Der Anruf ist vorbei.', 'Cuộc gọi đã kết thúc.'],
  'ending-ring-given-up': ['{0} has given up.', '{0} hat aufgelegt.', '{0} đã gác máy.'],
  'ending-answered-elsewhere': [
    'Answered on another device.',
    'Auf einem anderen Gerät angenommen.',
    'Đã trả lời trên thiết bị khác.',
  ],
  'ending-declined-elsewhere': [
    'Declined on another device.',
    'Auf einem anderen Gerät abgelehnt.',
    'Đã từ chối trên thiết bị khác.',
  ],
  'ending-busy-elsewhere': [
    'Another device of yours is in a call.',
    'Ein anderes Gerät von dir ist in einem Anruf.',
    'Thiết bị khác của bạn đang trong cuộc gọi.',
  ],
} as const satisfies Words
