/** Columns set apart by two spaces; numbers stand to the right, texts to the left. */
export function textTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = head.map((title, column) => Math.max(title.length, ...rows.map((row) => row[column].length)));
  const numeric = head.map((_, column) => rows.every((row) => Number.isFinite(Number(row[column]))));
  const line = (cells: readonly string[]) =>
    cells
      .map((cell, column) => (numeric[column] ? cell.padStart(widths[column]) : cell.padEnd(widths[column])))
      .join('  ')
      .trimEnd();
  return [line(head), line(widths.map((width) => '─'.repeat(width))), ...rows.map(line)].join('\n');
}

/** Four significant digits. */
export function formatFigure(value: number): string {
  return String(Number(value.toPrecision(4)));
}

/** Prose in lines of at most `width` characters, the later ones indented. */
export function wrapped(text: string, width = 80, indent = '  '): string {
  const lines = [''];
  for (const word of text.split(' ')) {
    const last = lines[lines.length - 1];
    if (last.trim() !== '' && last.length + 1 + word.length > width) lines.push(indent + word);
    else lines[lines.length - 1] = last === '' ? word : `${last} ${word}`;
  }
  return lines.join('\n');
}
