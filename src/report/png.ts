import { Resvg } from '@resvg/resvg-js';

/** The picture at twice its size, drawn with the fonts of this machine. */
export function pngOf(svg: string): Uint8Array {
  return new Resvg(svg, { font: FONTS, fitTo: { mode: 'zoom', value: 2 }, background: '#ffffff' }).render().asPng();
}

/** Whether this machine has fonts at all: without any, text is left out of the pictures. */
export function hasFonts(): boolean {
  const probe =
    '<svg xmlns="http://www.w3.org/2000/svg" width="20" height="20"><text y="16" font-size="16">H</text></svg>';
  const { pixels } = new Resvg(probe, { font: FONTS, background: '#ffffff' }).render();
  return pixels.some((byte) => byte < 128);
}

const FONTS = { loadSystemFonts: true };
