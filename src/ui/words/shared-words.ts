/** `{0}` and `{1}` are places of values. */
export type Words = Readonly<Record<string, readonly [en: string, de: string, vi: string]>>

export const SHARED_WORDS = {
  'go-on': ['Go on', 'Weiter', 'Tiếp tục'],
  'not-now': ['Not now', 'Jetzt nicht', 'Để sau'],
  'compare-a-code': ['Compare a code', 'Code vergleichen', 'So mã'],
  'code-to-compare': ['Code to compare', 'Code zum Vergleichen', 'Mã để so'],
} as const satisfies Words
