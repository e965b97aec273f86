import { figure } from './figure.js';
import { html } from './html.js';

export interface FiguresTableProps {
  readonly title: string;
  /** Figures of each row by the name of the column. */
  readonly rows: readonly { readonly name: string; readonly figures: Readonly<Record<string, number | null>> }[];
}

/** One row a run, one column a figure; nothing where there are no rows. */
export function FiguresTable({ title, rows }: FiguresTableProps) {
  if (rows.length === 0) return null;
  const columns = [...new Set(rows.flatMap(({ figures }) => Object.keys(figures)))];
  return html`
    <section class="card wide">
      <h3>${title}</h3>
      <div class="table" tabindex="0" role="region" aria-label=${title}>
        <table>
          <thead>
            <tr><th></th>${columns.map((column) => html`<th scope="col">${column}</th>`)}</tr>
          </thead>
          <tbody>
            ${rows.map(
              ({ name, figures }) => html`
                <tr><th scope="row">${name}</th>${columns.map((column) => html`<td>${figure(figures[column])}</td>`)}</tr>
              `,
            )}
          </tbody>
        </table>
      </div>
    </section>
  `;
}
