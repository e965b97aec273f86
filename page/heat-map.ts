import { html } from './html.js';

export interface HeatMapProps {
  readonly title: string;
  /** Names of the rows, from top to bottom. */
  readonly rows: readonly string[];
  /** For each column its share of each row. */
  readonly columns: readonly { readonly name: string; readonly shares: readonly number[] }[];
}

/** The share of each task in each episode: the darker, the larger. */
export function HeatMap({ title, rows, columns }: HeatMapProps) {
  if (rows.length === 0 || columns.length === 0) return null;
  const most = Math.max(...columns.flatMap(({ shares }) => shares));
  const [width, height] = [(WIDTH - LEFT) / columns.length, Math.min(22, 200 / rows.length)];
  const bottom = rows.length * height;
  const every = Math.ceil(columns.length / 8);
  return html`
    <figure class="card chart">
      <h3>${title}</h3>
      <svg viewBox=${`0 0 ${WIDTH} ${bottom + 22}`} role="img" aria-label=${`${title}, largest share ${percent(most)}`}>
        ${rows.map((name, r) => html`<text x=${LEFT - 6} y=${(r + 0.5) * height + 4} text-anchor="end">${name}</text>`)}
        ${columns.map(({ name, shares }, c) =>
          shares.map(
            (share, r) => html`
              <rect
                class="cell"
                x=${LEFT + c * width} y=${r * height} width=${width} height=${height}
                fill-opacity=${(share / most).toFixed(3)}
              ><title>${`episode ${name}, ${rows[r]}: ${percent(share)}`}</title></rect>
            `,
          ),
        )}
        ${columns.map(
          ({ name }, c) =>
            c % every === 0 &&
            html`<text x=${LEFT + (c + 0.5) * width} y=${bottom + 15} text-anchor="middle">${name}</text>`,
        )}
        <text x=${LEFT - 6} y=${bottom + 15} text-anchor="end">episode</text>
      </svg>
    </figure>
  `;
}

function percent(share: number): string {
  return `${(100 * share).toFixed(1)} %`;
}

const WIDTH = 460;
const LEFT = 58;
