import { html } from './html.js';
import type { LiveEvent } from './session.js';

/** How far writing is behind reading: a step to the right for each READ, one up for each WRITE. */
export function Staircase({ events }: { events: readonly LiveEvent[] }) {
  const last = events.at(-1);
  const size = Math.max(8, last?.read ?? 0, last?.written ?? 0);
  const unit = SIDE / size;
  const points = [
    '0,0',
    ...events.map(({ read, written }) => `${(read * unit).toFixed(1)},${(-written * unit).toFixed(1)}`),
  ];
  const behind = last === undefined ? 'nothing read yet' : `${last.read} tokens read, ${last.written} written`;
  return html`
    <svg class="staircase" viewBox=${`-3 ${-SIDE - 3} ${SIDE + 6} ${SIDE + 6}`} role="img" aria-label=${behind}>
      <line class="ideal" x1="0" y1="0" x2=${SIDE} y2=${-SIDE} />
      <path class="axis" d=${`M0 ${-SIDE} V0 H${SIDE}`} />
      <polyline points=${points.join(' ')} />
    </svg>
  `;
}

const SIDE = 100;
