/** One or two rows of the table: the time and, where it has a target, the peak memory. */
export function rowsOf({ what, target, memoryTarget }, { ours, peer }) {
  const time = row(what, 'ms', ours.best, peer?.best, target);
  if (peer !== undefined) {
    time.medianRatio = ours.median / peer.median;
    time.processorRatio = ours.processor / peer.processor;
  }
  if (memoryTarget === undefined) return [time];
  return [time, row(`${what}: peak memory`, 'MB', ours.memory, peer?.memory, memoryTarget)];
}

function row(what, unit, ours, peer, target) {
  const ratio = peer === undefined ? undefined : ours / peer;
  return { what, unit, ours, peer, ratio, target, ok: ratio === undefined ? undefined : ratio <= target };
}

export function formatTable(rows) {
  const cells = rows.map(({ what, unit, ours, peer, ratio, medianRatio, processorRatio, target, ok }) => [
    what,
    quantity(ours, unit),
    quantity(peer, unit),
    fixed(ratio, 3),
    fixed(medianRatio, 3),
    fixed(processorRatio, 3),
    `≤ ${target}`,
    ok === undefined ? '–' : ok ? 'yes' : 'no',
  ]);
  const lines = [['what', 'ours', 'peer', 'ratio (best)', 'ratio (median)', 'processor', 'target', 'ok'], ...cells];
  const widths = lines[0].map((_, column) => Math.max(...lines.map((line) => line[column].length)));
  const format = (line) =>
    line.map((cell, i) => (i === 0 ? cell.padEnd(widths[i]) : cell.padStart(widths[i]))).join(' | ');
  return [format(lines[0]), widths.map((width) => '-'.repeat(width)).join('-|-'), ...cells.map(format)].join('\n');
}

function quantity(value, unit) {
  return value === undefined ? '–' : `${value.toFixed(unit === 'MB' ? 0 : value < 100 ? 2 : 1)} ${unit}`;
}

function fixed(value, digits) {
  return value === undefined ? '–' : value.toFixed(digits);
}
