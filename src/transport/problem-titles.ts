/** The titles of refusals in the languages of the server's letters besides English (contract 1.4). */

import type { ErrorCode } from '../errors.ts'

export type TitleLanguage = 'en' | 'vi' | 'de'

const FAULT = {
  vi: 'Máy chủ gặp lỗi. Hãy thử lại sau.',
  de: 'Auf dem Server ist etwas schiefgegangen. Versuche es später noch einmal.',
}

/**
 * SDKs show them to users (`sentence`), so those that a user can meet say what to do; the rest names the fault for developers.
 * English is beside the statuses, in `problem.ts`.
 */
export const TITLES: Record<ErrorCode, Readonly<Record<Exclude<TitleLanguage, 'en'>, string>>> = {
  MALFORMED: FAULT,
  KEY_INVALID: FAULT,
  SIGNATURE_INVALID: FAULT,
  PROOF_INVALID: FAULT,
  MALFORMED_REQUEST: { vi: 'Yêu cầu HTTP không hợp lệ', de: 'Keine gültige HTTP-Anfrage' },
  MALFORMED_JSON: { vi: 'Không phải JSON', de: 'Kein JSON' },
  VALIDATION_FAILED: {
    vi: 'Có thông tin bị thiếu hoặc không hợp lệ. Hãy kiểm tra rồi thử lại.',
    de: 'Eine Angabe fehlt oder ist nicht gültig. Prüfe sie und versuche es noch einmal.',
  },
  BODY_TOO_LARGE: { vi: 'Nội dung quá lớn. Hãy rút ngắn lại.', de: 'Das ist zu groß. Kürze es.' },
  UNSUPPORTED_MEDIA_TYPE: { vi: 'Kiểu nội dung không được hỗ trợ', de: 'Medientyp nicht unterstützt' },
  METHOD_NOT_ALLOWED: { vi: 'Phương thức không được phép', de: 'Methode nicht erlaubt' },
  NOT_FOUND: { vi: 'Không tìm thấy', de: 'Nicht gefunden' },
  RATE_LIMITED: {
    vi: 'Quá nhiều lần thử. Hãy đợi một lát rồi thử lại.',
    de: 'Zu viele Versuche. Warte einen Moment und versuche es noch einmal.',
  },
  CLIENT_TOO_OLD: { vi: 'Ứng dụng này quá cũ. Hãy cập nhật.', de: 'Diese App ist zu alt. Aktualisiere sie.' },
  UPGRADE_REQUIRED: { vi: 'Chỉ dành cho WebSocket', de: 'Nur für WebSocket' },
  HOST_NOT_ALLOWED: { vi: 'Tên máy chủ không được phép', de: 'Rechnername nicht erlaubt' },
  ORIGIN_NOT_ALLOWED: { vi: 'Nguồn gốc không được phép', de: 'Herkunft nicht erlaubt' },
  IDEMPOTENCY_KEY_REUSED: {
    vi: 'Idempotency-Key của yêu cầu khác',
    de: 'Idempotency-Key einer anderen Anfrage',
  },
  TOKEN_MISSING: { vi: 'Thiếu mã truy cập', de: 'Kein Zugriffstoken' },
  TOKEN_INVALID: { vi: 'Mã truy cập không được chấp nhận', de: 'Zugriffstoken nicht angenommen' },
  TOKEN_EXPIRED: { vi: 'Mã truy cập đã hết hạn', de: 'Zugriffstoken abgelaufen' },
  SESSION_REVOKED: {
    vi: 'Phiên đăng nhập đã kết thúc. Hãy đăng nhập lại.',
    de: 'Diese Sitzung ist beendet. Melde dich wieder an.',
  },
  REFRESH_TOKEN_INVALID: {
    vi: 'Phiên đăng nhập đã kết thúc. Hãy đăng nhập lại.',
    de: 'Diese Sitzung ist beendet. Melde dich wieder an.',
  },
  REFRESH_TOKEN_REUSED: {
    vi: 'Phiên đăng nhập đã kết thúc. Hãy đăng nhập lại.',
    de: 'Diese Sitzung ist beendet. Melde dich wieder an.',
  },
  OTP_INVALID: {
    vi: 'Mã không đúng. Hãy kiểm tra rồi nhập lại.',
    de: 'Der Code stimmt nicht. Prüfe ihn und gib ihn noch einmal ein.',
  },
  OTP_EXPIRED: {
    vi: 'Mã đã hết hạn. Hãy yêu cầu mã mới.',
    de: 'Der Code ist abgelaufen. Fordere einen neuen an.',
  },
  OTP_COOLDOWN: {
    vi: 'Hãy đợi một lát trước khi yêu cầu mã tiếp theo.',
    de: 'Warte einen Moment, bevor du den nächsten Code anforderst.',
  },
  CHALLENGE_GONE: {
    vi: 'Mã này không còn hiệu lực. Hãy yêu cầu mã mới.',
    de: 'Dieser Code gilt nicht mehr. Fordere einen neuen an.',
  },
  PROVIDER_TOKEN_REQUIRED: { vi: 'Thiếu mã của nhà cung cấp', de: 'Token des Anbieters fehlt' },
  PROVIDER_TOKEN_INVALID: {
    vi: 'Lần đăng nhập không được chấp nhận. Hãy thử lại.',
    de: 'Die Anmeldung wurde nicht angenommen. Versuche es noch einmal.',
  },
  AUTH_CODE_INVALID: {
    vi: 'Lần đăng nhập không được chấp nhận. Hãy thử lại.',
    de: 'Die Anmeldung wurde nicht angenommen. Versuche es noch einmal.',
  },
  PROVIDER_UNAVAILABLE: {
    vi: 'Hiện không đăng nhập được bằng cách này. Hãy thử lại sau.',
    de: 'Dieser Anmeldeweg funktioniert gerade nicht. Versuche es später noch einmal.',
  },
  DELIVERY_UNAVAILABLE: {
    vi: 'Hiện không gửi được mã. Hãy thử lại sau.',
    de: 'Gerade kann kein Code gesendet werden. Versuche es später noch einmal.',
  },
  BLOCKED_COUNTRY: { vi: 'Quốc gia không được phục vụ', de: 'Land nicht bedient' },
  ACCOUNT_EXISTS: { vi: 'Tài khoản đã tồn tại', de: 'Konto vorhanden' },
  METHOD_EXISTS: {
    vi: 'Bạn đã có thể đăng nhập bằng cách này.',
    de: 'Auf diesem Weg kannst du dich schon anmelden.',
  },
  LAST_LOGIN_METHOD: {
    vi: 'Đây là cách đăng nhập cuối cùng của bạn. Hãy thêm cách khác trước.',
    de: 'Das ist dein letzter Anmeldeweg. Füge zuerst einen anderen hinzu.',
  },
  LOGIN_METHOD_LIMIT: {
    vi: 'Bạn có quá nhiều cách đăng nhập. Hãy xóa bớt một cách trước.',
    de: 'Du hast zu viele Anmeldewege. Entferne zuerst einen.',
  },
  LOGIN_METHOD_NOT_FOUND: { vi: 'Không có cách đăng nhập này', de: 'Kein solcher Anmeldeweg' },
  SESSION_NOT_FOUND: { vi: 'Không có phiên đăng nhập này', de: 'Keine solche Sitzung' },
  PASSKEYS_OFF: { vi: 'Không hỗ trợ khóa truy cập', de: 'Keine Passkeys' },
  PASSKEY_UNKNOWN: {
    vi: 'Khóa truy cập này không còn dùng được. Hãy đăng nhập bằng cách khác.',
    de: 'Dieser Passkey gilt nicht mehr. Melde dich auf einem anderen Weg an.',
  },
  PASSKEY_ORIGIN_REFUSED: {
    vi: 'Nguồn gốc không được dùng khóa truy cập',
    de: 'Herkunft darf keine Passkeys verwenden',
  },
  PASSKEY_RP_REFUSED: { vi: 'Khóa truy cập của tên miền khác', de: 'Passkey einer anderen Domain' },
  PASSKEY_CHALLENGE_GONE: {
    vi: 'Việc này mất quá nhiều thời gian. Hãy thử lại.',
    de: 'Das hat zu lange gedauert. Versuche es noch einmal.',
  },
  PASSKEY_NOT_VERIFIED: {
    vi: 'Khóa truy cập không được chấp nhận. Hãy thử lại.',
    de: 'Der Passkey wurde nicht angenommen. Versuche es noch einmal.',
  },
  PASSKEY_INVALID: {
    vi: 'Khóa truy cập không được chấp nhận. Hãy thử lại.',
    de: 'Der Passkey wurde nicht angenommen. Versuche es noch einmal.',
  },
  PASSKEY_NOT_PRIMARY: {
    vi: 'Khóa truy cập không bao giờ là cách đăng nhập chính',
    de: 'Ein Passkey ist nie die Hauptanmeldung',
  },
  STEP_UP_REQUIRED: { vi: 'Trước hết hãy xác nhận danh tính của bạn.', de: 'Bestätige zuerst, wer du bist.' },
  SIGN_IN_WAITING: {
    vi: 'Hãy chấp thuận lần đăng nhập này trên một thiết bị khác.',
    de: 'Bestätige diese Anmeldung auf einem anderen Gerät.',
  },
  SIGN_IN_REFUSED: {
    vi: 'Lần đăng nhập này đã bị từ chối trên một thiết bị khác.',
    de: 'Diese Anmeldung wurde auf einem anderen Gerät abgelehnt.',
  },
  SIGN_IN_GONE: {
    vi: 'Lần đăng nhập này đã kết thúc. Hãy làm lại từ đầu.',
    de: 'Diese Anmeldung ist vorbei. Fang noch einmal von vorn an.',
  },
  SIGN_IN_NOT_FOUND: { vi: 'Không có lần đăng nhập này', de: 'Keine solche Anmeldung' },
  DEVICE_NOT_REGISTERED: { vi: 'Phiên không có thiết bị', de: 'Sitzung ohne Gerät' },
  DEVICE_NOT_LISTED: {
    vi: 'Trước hết hãy chấp thuận thiết bị này trên một thiết bị khác của bạn.',
    de: 'Bestätige dieses Gerät zuerst auf einem deiner anderen Geräte.',
  },
  DEVICE_REQUIRED: { vi: 'Hãy đăng ký thiết bị này trước', de: 'Erst dieses Gerät registrieren' },
  DEVICE_NOT_FOUND: { vi: 'Không có thiết bị này', de: 'Kein solches Gerät' },
  DEVICE_LIMIT: {
    vi: 'Bạn có quá nhiều thiết bị. Hãy gỡ bớt một thiết bị trước.',
    de: 'Du hast zu viele Geräte. Entferne zuerst eines.',
  },
  DEVICE_LIST_CONFLICT: {
    vi: 'Đã có danh sách thiết bị mới hơn',
    de: 'Eine andere Geräteliste ist die neueste',
  },
  SESSION_HAS_DEVICE: {
    vi: 'Lần đăng nhập này thuộc về thiết bị khác. Hãy đăng nhập lại.',
    de: 'Diese Anmeldung gehört zu einem anderen Gerät. Melde dich neu an.',
  },
  PUSH_ENDPOINT_REFUSED: {
    vi: 'Cuộc gọi không thể đổ chuông trong trình duyệt này khi trang đã đóng.',
    de: 'Anrufe können in diesem Browser nicht klingeln, wenn die Seite geschlossen ist.',
  },
  KEY_IN_USE: { vi: 'Khóa của người dùng khác', de: 'Schlüssel einer anderen Person' },
  USER_NOT_FOUND: { vi: 'Không tìm thấy người này.', de: 'Diese Person wurde nicht gefunden.' },
  SHARE_TOKEN_NOT_FOUND: {
    vi: 'Liên kết này không còn dùng được. Hãy xin liên kết mới.',
    de: 'Dieser Link gilt nicht mehr. Bitte um einen neuen.',
  },
  SHARE_TOKEN_EXPIRED: {
    vi: 'Liên kết này không còn dùng được. Hãy xin liên kết mới.',
    de: 'Dieser Link gilt nicht mehr. Bitte um einen neuen.',
  },
  SHARE_TOKEN_LIMIT: {
    vi: 'Bạn có quá nhiều liên kết. Hãy xóa bớt một liên kết trước.',
    de: 'Du hast zu viele Links. Entferne zuerst einen.',
  },
  REQUEST_NOT_FOUND: { vi: 'Lời mời này không còn hiệu lực.', de: 'Diese Anfrage ist nicht mehr offen.' },
  REQUEST_CLOSED: { vi: 'Lời mời này không còn hiệu lực.', de: 'Diese Anfrage ist nicht mehr offen.' },
  ALREADY_FRIENDS: { vi: 'Hai bạn đã là liên hệ của nhau.', de: 'Ihr seid schon Kontakte.' },
  SELF_REQUEST: { vi: 'Bạn không thể thêm chính mình.', de: 'Du kannst dich nicht selbst hinzufügen.' },
  CONTACT_LIMIT: {
    vi: 'Quá nhiều liên hệ. Hãy xóa bớt một liên hệ trước.',
    de: 'Zu viele Kontakte. Entferne zuerst einen.',
  },
  PENDING_LIMIT: {
    vi: 'Quá nhiều lời mời đang chờ. Hãy đợi trả lời hoặc rút lại một lời mời.',
    de: 'Zu viele Anfragen sind offen. Warte auf Antworten oder nimm eine zurück.',
  },
  USER_BLOCKED: {
    vi: 'Bạn đã chặn người này. Hãy bỏ chặn trước.',
    de: 'Du hast diese Person blockiert. Hebe die Blockierung zuerst auf.',
  },
  BLOCK_LIMIT: {
    vi: 'Bạn đã chặn quá nhiều người. Hãy bỏ chặn một người trước.',
    de: 'Du hast zu viele Personen blockiert. Hebe zuerst eine Blockierung auf.',
  },
  CALL_NOT_FOUND: { vi: 'Không tìm thấy cuộc gọi này.', de: 'Dieser Anruf wurde nicht gefunden.' },
  CALL_ENDED: { vi: 'Cuộc gọi này đã kết thúc.', de: 'Dieser Anruf ist beendet.' },
  CALL_NOT_ACTIVE: { vi: 'Cuộc gọi không hoạt động', de: 'Anruf nicht aktiv' },
  CALL_FULL: { vi: 'Cuộc gọi này đã đủ người.', de: 'In diesem Anruf ist kein Platz mehr.' },
  CALL_CROSSED: { vi: 'Người này đang gọi cho bạn', de: 'Diese Person ruft dich gerade an' },
  CALL_ID_TAKEN: { vi: 'Mã cuộc gọi đã được dùng', de: 'Anrufkennung vergeben' },
  ALREADY_IN_CALL: {
    vi: 'Bạn đang trong cuộc gọi khác. Hãy kết thúc cuộc gọi đó trước.',
    de: 'Du bist in einem anderen Anruf. Beende ihn zuerst.',
  },
  ROOM_IN_USE: { vi: 'Phòng đang được dùng', de: 'Raum belegt' },
  SIGN_IN_TOKEN_INVALID: {
    vi: 'Lần đăng nhập này không còn hiệu lực. Hãy bắt đầu lại.',
    de: 'Diese Anmeldung gilt nicht mehr. Beginne von vorn.',
  },
  ACCOUNT_SUSPENDED: {
    vi: 'Tài khoản này đã bị tạm khóa. Hãy liên hệ bộ phận hỗ trợ của ứng dụng.',
    de: 'Dieses Konto ist gesperrt. Wende dich an den Support der App.',
  },
  AUDIENCE_UNKNOWN: { vi: 'Không có đối tượng nhận này', de: 'Unbekannter Empfänger' },
  CONTACTS_BY_SERVER: {
    vi: 'Liên hệ của bạn được quản lý thay cho bạn. Bạn không thể tự thêm người.',
    de: 'Deine Kontakte werden für dich verwaltet. Du kannst niemanden selbst hinzufügen.',
  },
  SERVER_KEY_INVALID: { vi: 'Khóa máy chủ không được chấp nhận', de: 'Serverschlüssel nicht angenommen' },
  SERVER_KEY_EXPIRED: { vi: 'Khóa máy chủ đã hết hạn', de: 'Serverschlüssel abgelaufen' },
  SERVER_KEY_REVOKED: { vi: 'Khóa máy chủ đã bị thu hồi', de: 'Serverschlüssel widerrufen' },
  SERVER_KEY_NOT_FOUND: { vi: 'Không có khóa máy chủ này', de: 'Serverschlüssel nicht gefunden' },
  SCOPE_MISSING: { vi: 'Khóa máy chủ thiếu quyền này', de: 'Serverschlüssel ohne dieses Recht' },
  METHOD_IN_USE: { vi: 'Địa chỉ của tài khoản khác', de: 'Adresse eines anderen Kontos' },
  EXTERNAL_ID_IN_USE: { vi: 'Mã ngoài của người dùng khác', de: 'Externe Kennung eines anderen Nutzers' },
  USER_OWNS_SIGN_IN: {
    vi: 'Người dùng đăng nhập bằng cách của riêng họ',
    de: 'Der Nutzer meldet sich auf eigenen Wegen an',
  },
  CIRCLE_FULL: { vi: 'Quá nhiều thành viên hoặc nhóm', de: 'Zu viele Mitglieder oder Kreise' },
  REPORT_NOT_FOUND: { vi: 'Không có báo cáo này', de: 'Meldung nicht gefunden' },
  WEBHOOK_NOT_FOUND: { vi: 'Không có webhook này', de: 'Webhook nicht gefunden' },
  WEBHOOK_LIMIT: { vi: 'Quá nhiều webhook', de: 'Zu viele Webhooks' },
  CALLEE_NOT_CONTACT: {
    vi: 'Chưa thể gọi cho người này. Hãy trở thành liên hệ của nhau trước.',
    de: 'Du kannst diese Person noch nicht anrufen. Werdet zuerst Kontakte.',
  },
  DEVICE_LIST_MISMATCH: { vi: 'Danh sách thiết bị đã thay đổi', de: 'Geräte haben sich geändert' },
  PLAINTEXT_KEY_SUSPECTED: { vi: 'Khóa cuộc gọi chưa được mã hóa', de: 'Unverschlüsselter Anrufschlüssel' },
  NOT_HOST: { vi: 'Chỉ chủ cuộc gọi mới làm được việc này.', de: 'Das kann nur, wer den Anruf leitet.' },
  NOT_PARTICIPANT: { vi: 'Bạn không ở trong cuộc gọi này.', de: 'Du bist nicht in diesem Anruf.' },
  NO_ACTIVE_PARTICIPANT: { vi: 'Không có ai để hỏi', de: 'Niemand da, der gefragt werden kann' },
  REJOIN_REQUIRED: { vi: 'Trước hết hãy xin tham gia lại', de: 'Erst um Wiedereintritt bitten' },
  EPOCH_CONFLICT: { vi: 'Kỳ của khóa khác', de: 'Epoche eines anderen Schlüssels' },
  KEY_MEMBERS_NOT_FOUND: {
    vi: 'Không có danh sách thiết bị của khóa',
    de: 'Geräte dieses Schlüssels unbekannt',
  },
  TURN_NOT_CONFIGURED: { vi: 'Không có máy chủ chuyển tiếp', de: 'Kein Relay' },
  PROTOCOL_ERROR: { vi: 'Vi phạm quy tắc STOMP', de: 'STOMP-Regel verletzt' },
  DESTINATION_FORBIDDEN: { vi: 'Đích không dành cho bạn', de: 'Ziel nicht für dich offen' },
  CONNECTION_LIMIT: { vi: 'Quá nhiều trên một kết nối', de: 'Zu viel auf einer Verbindung' },
  CONNECTION_TIMED_OUT: { vi: 'Quá lâu không nhận được gì', de: 'Zu lange nichts gehört' },
  CONNECTION_REPLACED: { vi: 'Thiết bị có kết nối mới hơn', de: 'Neuere Verbindung des Geräts' },
  RESTRICTION_CHANGED: {
    vi: 'Quyền của thiết bị đã thay đổi',
    de: 'Die Rechte des Geräts haben sich geändert',
  },
  CONNECTION_SLOW: { vi: 'Đọc quá chậm', de: 'Liest zu langsam' },
  DRAINING: {
    vi: 'Máy chủ đang khởi động lại. Hãy thử lại sau giây lát.',
    de: 'Der Server startet neu. Versuche es gleich noch einmal.',
  },
  UNKNOWN_PUBLIC_KEY_HASH: { vi: 'Không có khóa với giá trị băm này', de: 'Kein Schlüssel zu diesem Hash' },
  IDENTITY_MISMATCH: {
    vi: 'Mục nhật ký không thuộc danh tính này',
    de: 'Logeintrag gehört nicht zu dieser Identität',
  },
  CHECKPOINT_INVALID: {
    vi: 'Nhật ký không chứng minh được trạng thái',
    de: 'Das Log kann seinen Stand nicht beweisen',
  },
  LOG_UNAVAILABLE: {
    vi: 'Máy chủ hiện chưa làm được việc này. Hãy thử lại sau giây lát.',
    de: 'Der Server kann das gerade nicht. Versuche es gleich noch einmal.',
  },
  INDEX_UNAVAILABLE: {
    vi: 'Hiện không có chỉ mục của nhật ký để trả lời',
    de: 'Es gibt gerade kein Verzeichnis des Logs, das antworten könnte',
  },
  TOO_MANY_KEYS: { vi: 'Quá nhiều khóa của một thiết bị', de: 'Zu viele Schlüssel eines Geräts' },
  OVERLOADED: {
    vi: 'Máy chủ đang quá tải. Hãy thử lại sau giây lát.',
    de: 'Der Server ist überlastet. Versuche es gleich noch einmal.',
  },
  DEADLINE_EXCEEDED: {
    vi: 'Việc này mất quá nhiều thời gian. Hãy thử lại.',
    de: 'Das hat zu lange gedauert. Versuche es noch einmal.',
  },
  OUTCOME_UNKNOWN: {
    vi: 'Chưa rõ việc này đã được thực hiện hay chưa. Hãy kiểm tra trước khi thử lại.',
    de: 'Es ist nicht bekannt, ob das ausgeführt wurde. Sieh nach, bevor du es noch einmal versuchst.',
  },
  STORE_UNAVAILABLE: {
    vi: 'Máy chủ hiện chưa làm được việc này. Hãy thử lại sau giây lát.',
    de: 'Der Server kann das gerade nicht. Versuche es gleich noch einmal.',
  },
  INTERNAL: FAULT,
}
