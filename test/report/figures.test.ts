import { parseHTML } from 'linkedom';
import { describe, expect, it } from 'vitest';
import { forestFigure, quintileFigure, shownEpisodes, taskDistributionFigure } from '../../src/report/figures/bars.js';
import { bleuLatencyFigure, dailyFigure, learningCurvesFigure, movingMean } from '../../src/report/figures/curves.js';
import type { Figure } from '../../src/report/figures/figure.js';
import { hasFonts, pngOf } from '../../src/report/files.js';
import { transferFigure } from '../../src/report/probe.js';
import { curves, differences, distributions, learning, quintiles, rankIC, returns, transfer } from './figures-data.js';

const about = (id: string, title: string) => ({ id, title, caption: '' });

const figures: Figure[] = [
  bleuLatencyFigure(curves, about('bleu-latency', 'Quality against latency')),
  learningCurvesFigure(
    learning,
    { name: 'validation loss', better: 'lower' },
    about('learning-curves', 'Learning curves'),
  ),
  dailyFigure(rankIC, about('rank-ic', 'RankIC over time'), { label: 'RankIC' }),
  dailyFigure(returns, about('cumulative-return', 'Cumulative return'), { label: 'return', percent: true }),
  quintileFigure(quintiles, about('quintile-returns', 'Returns by predicted fifth')),
  taskDistributionFigure(distributions, about('task-distribution', 'Distribution of tasks')),
  transferFigure(transfer, about('transfer', 'Transfer on the main task'), (value) => value.toFixed(2)),
  forestFigure(differences, about('forest', 'Test loss against fixed'), 'test loss minus that of fixed'),
];

describe.each(figures.map((figure) => [figure.id, figure] as const))('the figure %s', (id, figure) => {
  it('looks as it did', async () => {
    await expect(figure.svg).toMatchFileSnapshot(`../../docs/figures/report/${id}.svg`);
  });

  it('needs nothing but itself', () => {
    expect(figure.svg).not.toMatch(/url\(|href|<style|<script|\sid=|currentColor|var\(/);
    expect(figure.svg).not.toContain('NaN');
  });

  it('keeps all its text inside', () => {
    const { document } = parseHTML(`<html><body>${figure.svg}</body></html>`);
    const root = document.querySelector('svg')!;
    const outside = [...root.querySelectorAll('text')].map((node) => extent(node as unknown as Positioned, root));
    const [width, height] = ['width', 'height'].map((name) => Number(root.getAttribute(name)));
    for (const { text, left, right, baseline } of outside) {
      expect({ text, fits: left >= 0 && right <= width && baseline > 0 && baseline <= height }).toEqual({
        text,
        fits: true,
      });
    }
  });

  it('gives its numbers', () => {
    expect(figure.data.rows.length).toBeGreaterThan(0);
    for (const row of figure.data.rows) expect(row).toHaveLength(figure.data.columns.length);
  });

  it.runIf(hasFonts())('becomes a picture', () => {
    const png = pngOf(figure.svg);
    expect([...png.subarray(1, 4)].map((byte) => String.fromCharCode(byte)).join('')).toBe('PNG');
    // Bytes 16 to 19 of a PNG are its width.
    const width = new DataView(png.buffer, png.byteOffset).getUint32(16);
    expect(width).toBe(2 * Number(/width="(\d+)/.exec(figure.svg)![1]));
  });
});

describe('figures', () => {
  it('escape what runs are called', () => {
    const label = '<script>"&\'</script>';
    const { svg } = bleuLatencyFigure([{ ...curves[0], label }], about('x', label));
    expect(svg).not.toContain('<script');
    expect(svg).toContain('&lt;script&gt;');
  });

  it('give every line a colour, a dash and a symbol of its own', () => {
    const lines = [...figures[0].svg.matchAll(/<g [^>]*aria-label="line">/g)].map(([tag]) => tag);
    const panels = 2;
    expect(lines).toHaveLength(panels * curves.length);
    for (const attribute of ['stroke', 'stroke-dasharray']) {
      const values = lines.map((tag) => new RegExp(` ${attribute}="([^"]+)"`).exec(tag)?.[1] ?? 'none');
      expect(new Set(values).size).toBe(curves.length);
    }
    // The legend has one symbol for each.
    const legend = figures[0].svg.slice(0, figures[0].svg.indexOf('(a)'));
    const symbols = [...legend.matchAll(/aria-label="dot">(.*?)<\/g>/g)].map(
      ([, shape]) => /\sd="([^"]+)"|<(circle)/.exec(shape)?.[0],
    );
    expect(new Set(symbols).size).toBe(curves.length);
  });
});

describe('the moving mean', () => {
  it('is that of the last values, without those that are undefined', () => {
    // (1 + 2) / 2, then (2 + 4) / 2: the NaN between them does not count.
    expect(movingMean([1, 2, Number.NaN, 4], 2)).toEqual([Number.NaN, 1.5, 1.5, 3]);
  });
});

describe('the episodes shown', () => {
  it('are the first, the last and some between that lie ever further apart', () => {
    // 40^(0, ¼, ½, ¾, 1) = 1, 2.51, 6.32, 15.9, 40
    expect(shownEpisodes(40)).toEqual([1, 3, 6, 16, 40]);
    expect(shownEpisodes(3)).toEqual([1, 2, 3]);
  });
});

interface Positioned {
  readonly textContent: string | null;
  readonly tagName: string;
  readonly parentElement: Positioned | null;
  getAttribute(name: string): string | null;
}

/** Where a text lies in the whole figure: the sum of all translations and positions above it. */
function extent(node: Positioned, root: unknown): { text: string; left: number; right: number; baseline: number } {
  const text = node.textContent ?? '';
  let [x, y, anchor] = [0, 0, undefined as string | undefined];
  for (let at: Positioned | null = node; at !== null && at !== root; at = at.parentElement) {
    const moved = /translate\((-?[\d.]+)(?:,(-?[\d.]+))?\)/.exec(at.getAttribute('transform') ?? '');
    x += Number(moved?.[1] ?? 0);
    y += Number(moved?.[2] ?? 0);
    for (const name of ['x', 'y']) {
      const value = at.getAttribute(name);
      if (value === null || value.endsWith('em')) continue;
      if (name === 'x') x += Number(value);
      else y += Number(value);
    }
    anchor ??= at.getAttribute('text-anchor') ?? undefined;
  }
  // Liberation Sans is on average about half as wide as it is high.
  const width = 6 * [...text].length;
  const left = anchor === 'start' ? x : anchor === 'end' ? x - width : x - width / 2;
  return { text, left, right: left + width, baseline: y };
}
