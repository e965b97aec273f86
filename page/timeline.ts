import { useEffect, useRef } from 'preact/hooks';
import { Explain, html, TERMS } from './html.js';
import type { TimedEvent } from './lane.js';

export interface TimelineProps {
  readonly lanes: readonly { readonly name: string; readonly events: readonly TimedEvent[] }[];
  /** Milliseconds at which words arrived, and the end of the sentence, counted from the first word. */
  readonly arrivals: readonly number[];
}

/**
 * Every READ and WRITE of all settings on one time axis: a column for each moment at which words arrived, and in it what
 * happened until the next.
 */
export function Timeline({ lanes, arrivals }: TimelineProps) {
  const box = useRef<HTMLDivElement>(null);
  const count = lanes.reduce((sum, { events }) => sum + events.length, 0);
  useEffect(() => {
    if (box.current !== null) box.current.scrollLeft = box.current.scrollWidth;
  }, [count]);
  if (arrivals.length === 0) return null;
  const columns = arrivals.filter((time, i) => i === 0 || time - arrivals[i - 1] > TOGETHER);
  const rows = lanes.flatMap(({ name, events }) => {
    const cells = cellsOf(events, columns);
    const of = (action: TimedEvent['action']) => ({
      action,
      name: lanes.length > 1 ? `${name.toUpperCase()} ${action}` : action,
      cells: cells.map((cell) => cell.filter((event) => event.action === action)),
    });
    return [of('READ'), of('WRITE')];
  });
  return html`
    <section class="card timeline-card">
      <div class="lane-head"><h2>Time</h2><${Explain} what="READ and WRITE" text=${TERMS.READ} /></div>
      <div class="timeline" ref=${box} tabindex="0" role="region" aria-label="READ and WRITE over time">
        <table>
          <thead>
            <tr>
              <th scope="row">seconds</th>
              ${columns.map((time) => html`<th scope="col">${(time / 1000).toFixed(1)}</th>`)}
            </tr>
          </thead>
          <tbody>
            ${rows.map(
              ({ name, action, cells }) => html`
                <tr class=${action === 'READ' ? 'read' : 'write'}>
                  <th scope="row">${name}</th>
                  ${cells.map((cell) => html`<td>${cell.map((event) => html`<${Token} event=${event} />`)}</td>`)}
                </tr>
              `,
            )}
          </tbody>
        </table>
      </div>
    </section>
  `;
}

/** Milliseconds within which words arrive together. */
const TOGETHER = 5;

function cellsOf(events: readonly TimedEvent[], columns: readonly number[]): TimedEvent[][] {
  const cells: TimedEvent[][] = columns.map(() => []);
  let column = 0;
  for (const event of events) {
    while (column + 1 < columns.length && columns[column + 1] <= event.at) column++;
    cells[column].push(event);
  }
  return cells;
}

function Token({ event: { action, token, read } }: { event: TimedEvent }) {
  const kind = action === 'READ' ? 'source' : 'target';
  const title = action === 'READ' ? `READ ${token}` : `WRITE ${token}, after ${read} source tokens`;
  return html`<span class=${isEnd(token) ? `${kind} token end` : `${kind} token`} title=${title}>${shown(token)}</span>`;
}

function isEnd(token: string): boolean {
  return token === '</s>';
}

/** A piece of a word that continues has a mark at its end. */
function shown(token: string): string {
  if (isEnd(token)) return 'end';
  return token.endsWith('@@') ? `${token.slice(0, -2)}‑` : token;
}
