import type { Words } from './shared-words.ts'

export const MEDIA_WORDS = {
  microphone: ['microphone', 'Mikrofon', 'micrô'],
  camera: ['camera', 'Kamera', 'camera'],
  'camera-or-microphone': ['camera or microphone', 'Kamera oder Mikrofon', 'camera hoặc micrô'],
  'no-camera-sound-only': [
    'No camera: sound only.',
    'Keine Kamera: nur Ton.',
    'Không có camera: chỉ có âm thanh.',
  ],
  'device-refused': [
    'The browser does not let this page use the {0}. Allow it beside the address, then switch it on here.',
    'Der Browser gibt dieser Seite nicht frei: {0}. Erlaube es neben der Adresse und schalte es dann hier ein.',
    'Trình duyệt không cho trang này dùng {0}. Hãy cho phép ở cạnh thanh địa chỉ rồi bật lại ở đây.',
  ],
  'device-held': [
    'Another program holds the {0}. Close it, then switch it on here.',
    'Ein anderes Programm benutzt gerade: {0}. Schließe es und schalte das Gerät dann hier ein.',
    'Một chương trình khác đang dùng {0}. Hãy đóng chương trình đó rồi bật lại ở đây.',
  ],
  'device-missing': ['No {0} was found.', 'Nicht gefunden: {0}.', 'Không tìm thấy {0}.'],
  'no-gateway': [
    'This server has no media gateway: the call has no sound and no picture. Its operator has to set one up.',
    'Dieser Server hat kein Media-Gateway: Der Anruf hat weder Ton noch Bild. Der Betreiber muss eines einrichten.',
    'Máy chủ này không có cổng truyền thông: cuộc gọi không có âm thanh và hình ảnh. Người vận hành cần thiết lập cổng.',
  ],
} as const satisfies Words
