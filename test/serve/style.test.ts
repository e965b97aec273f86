import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

const style = readFileSync(new URL('../../page/style.css', import.meta.url), 'utf8');

/** Linear light of the channels of `#rrggbb`. */
function linear(color: string): [number, number, number] {
  const [r, g, b] = [1, 3, 5].map((at) => {
    const share = Number.parseInt(color.slice(at, at + 2), 16) / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return [r, g, b];
}

/** OKLab (Ottosson 2020), in which equal distances look equally different. */
function oklab(color: string): number[] {
  const [r, g, b] = linear(color);
  const l = Math.cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b);
  const m = Math.cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b);
  const s = Math.cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b);
  return [
    0.2104542553 * l + 0.793617785 * m - 0.0040720468 * s,
    1.9779984951 * l - 2.428592205 * m + 0.4505937099 * s,
    0.0259040371 * l + 0.7827717662 * m - 0.808675766 * s,
  ];
}

function contrast(a: string, b: string): number {
  const [dark, light] = [a, b]
    .map((color) => linear(color))
    .map(([r, g, b]) => 0.2126 * r + 0.7152 * g + 0.0722 * b)
    .sort((x, y) => x - y);
  return (light + 0.05) / (dark + 0.05);
}

describe('the colours of runs', () => {
  const all = [...style.matchAll(/--series: (#[0-9a-f]{6})/g)].map(([, color]) => color);
  const [light, dark] = [...style.matchAll(/--card: (#[0-9a-f]{6})/g)].map(([, color]) => color);

  it.each([
    ['light', all.slice(0, 12), light],
    ['dark', all.slice(12), dark],
  ])('are twelve in %s, distinct from each other and from the ground', (_, colors, ground) => {
    expect(colors).toHaveLength(12);
    for (const [i, color] of colors.entries()) {
      expect(contrast(color, ground)).toBeGreaterThan(3);
      for (const other of colors.slice(0, i)) {
        const [a, b] = [oklab(color), oklab(other)];
        // A difference of 0.02 is just noticeable; this is eight times as much.
        expect(Math.hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]), `${color} ${other}`).toBeGreaterThan(0.15);
      }
    }
  });
});
