/**
 * Takes the pictures of the page for docs/serve.md, with `tcts serve runs` running at the address:
 *
 *     node docs/figures/serve.mjs URL RUN OTHER [OTHER…]
 *
 * Translation is shown with the first model, one run with all there is to see of it, and the others compared. Each view
 * is taken in light, dark and phone width, as a PNG with a palette, which is a third of the size.
 */
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { crc32, deflateSync, inflateSync } from 'node:zlib';
import { chromium } from 'playwright-core';

const [url, run, ...others] = process.argv.slice(2);
if (others.length === 0) throw new Error('expected an address, a run, and others to compare');
const wide = { width: 1100, height: 800 };
const contexts = {
  '': { viewport: wide },
  '-dark': { viewport: wide, colorScheme: 'dark' },
  '-phone': { viewport: { width: 390, height: 844 } },
};
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-gpu'],
});
for (const [name, options] of Object.entries(contexts)) {
  const page = await (await browser.newContext({ ...options, reducedMotion: 'reduce' })).newPage();
  const save = async (view, part) => {
    const picture = await (part ?? page).screenshot({ animations: 'disabled', ...(!part && { fullPage: true }) });
    writeFileSync(fileURLToPath(new URL(`${view}${name}.png`, import.meta.url)), withPalette(picture));
  };
  const played = () => page.getByRole('button', { name: 'Play' }).waitFor();
  await page.goto(url);
  await played();
  await save('serve-start');
  await page.getByRole('slider', { name: 'pace' }).fill('8');
  await page.getByRole('slider', { name: 'k =' }).fill('1');
  await page.locator('.chip').nth(1).click();
  await played();
  await save('serve-translate');
  await page.getByRole('button', { name: 'Compare two settings' }).click();
  await page.locator('.chip').nth(1).click();
  await played();
  await page.mouse.move(0, 0);
  await save('serve');
  await page.getByRole('textbox').fill('word '.repeat(20_000));
  await page.getByRole('alert').waitFor();
  await save('serve-refused');

  const choose = async (...runs) => {
    await page.goto(`${url}/#runs?${new URLSearchParams(runs.map((one) => ['run', one]))}`);
    await page.reload();
    await page.locator('.chart').first().waitFor();
    await page.locator('.pictures').first().waitFor();
  };
  await choose(run);
  await save('serve-run');
  await page.locator('.pictures figure > svg').first().press('ArrowRight');
  await save('serve-scheduler', page.locator('.scheduler').first());
  await choose(...others);
  // The values of all curves at a place.
  const chart = page.locator('.chart svg[role=img]').first();
  for (let i = 0; i < 100; i++) await chart.press('ArrowRight');
  await save('serve-runs');
  await page.close();
}
await browser.close();

/** A PNG of 8-bit RGB or RGBA with its 256 most frequent colours; the others become the nearest of them. */
function withPalette(png) {
  const { width, height, channels, pixels } = decode(png);
  const counts = new Map();
  const colorAt = (i) => (pixels[i * channels] << 16) | (pixels[i * channels + 1] << 8) | pixels[i * channels + 2];
  for (let i = 0; i < width * height; i++) counts.set(colorAt(i), (counts.get(colorAt(i)) ?? 0) + 1);
  const palette = [...counts].sort((a, b) => b[1] - a[1]).slice(0, 256).map(([color]) => color);
  const index = new Map(palette.map((color, i) => [color, i]));
  const rows = Buffer.alloc((width + 1) * height);
  for (let i = 0; i < width * height; i++) {
    const color = colorAt(i);
    if (!index.has(color)) index.set(color, nearest(palette, color));
    rows[Math.floor(i / width) * (width + 1) + 1 + (i % width)] = index.get(color);
  }
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([8, 3, 0, 0, 0], 8);
  const colors = Buffer.from(palette.flatMap((color) => [color >> 16, (color >> 8) & 255, color & 255]));
  const parts = [['IHDR', header], ['PLTE', colors], ['IDAT', deflateSync(rows, { level: 9 })], ['IEND', Buffer.alloc(0)]];
  return Buffer.concat([png.subarray(0, 8), ...parts.map(([type, data]) => chunk(type, data))]);
}

function nearest(palette, color) {
  const distance = (other) =>
    [16, 8, 0].reduce((sum, shift) => sum + (((color >> shift) & 255) - ((other >> shift) & 255)) ** 2, 0);
  let best = 0;
  for (let i = 1; i < palette.length; i++) if (distance(palette[i]) < distance(palette[best])) best = i;
  return best;
}

function chunk(type, data) {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data]);
  const frame = Buffer.alloc(8);
  frame.writeUInt32BE(data.length, 0);
  frame.writeUInt32BE(crc32(body), 4);
  return Buffer.concat([frame.subarray(0, 4), body, frame.subarray(4)]);
}

/** The pixels of a PNG without interlacing. */
function decode(png) {
  const [width, height] = [png.readUInt32BE(16), png.readUInt32BE(20)];
  const channels = { 2: 3, 6: 4 }[png[25]];
  const data = [];
  for (let at = 8; at < png.length; ) {
    const size = png.readUInt32BE(at);
    if (png.toString('latin1', at + 4, at + 8) === 'IDAT') data.push(png.subarray(at + 8, at + 8 + size));
    at += size + 12;
  }
  const raw = inflateSync(Buffer.concat(data));
  const stride = width * channels;
  const pixels = Buffer.alloc(stride * height);
  for (let y = 0; y < height; y++) {
    const filter = raw[y * (stride + 1)];
    for (let x = 0; x < stride; x++) {
      const left = x >= channels ? pixels[y * stride + x - channels] : 0;
      const up = y > 0 ? pixels[(y - 1) * stride + x] : 0;
      const corner = x >= channels && y > 0 ? pixels[(y - 1) * stride + x - channels] : 0;
      const guess = [0, left, up, (left + up) >> 1, paeth(left, up, corner)][filter];
      pixels[y * stride + x] = raw[y * (stride + 1) + 1 + x] + guess;
    }
  }
  return { width, height, channels, pixels };
}

function paeth(left, up, corner) {
  const guess = left + up - corner;
  const [a, b, c] = [left, up, corner].map((value) => Math.abs(guess - value));
  return a <= b && a <= c ? left : b <= c ? up : corner;
}
