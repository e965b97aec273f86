/** Text that may stand between tags or in a quoted attribute of HTML or SVG; characters that XML has no place for are dropped. */
export function escapeMarkup(text: string): string {
  return text
    .replace(/[&<>"']/g, (character) => ENTITIES[character])
    .replace(/\p{Cc}/gu, (character) => (character === '\n' || character === '\t' ? character : ''));
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};
