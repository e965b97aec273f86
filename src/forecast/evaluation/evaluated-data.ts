import { dataDigest, dataName, type EvaluatedData } from '../../run/index.js';
import { FIELDS, type PricePanel } from '../data/panel.js';
import { type DataConfig, madeUpData } from '../formats/index.js';

/**
 * Which data the figures are of: prices, members and index, whatever factors and groups a model reads beside them.
 *
 * @param path other data than those of the configuration
 */
export function evaluatedData(config: DataConfig, panel: PricePanel, path: string | undefined): EvaluatedData {
  const { calendar, symbols, members, index } = panel;
  const { fields, values } = pricesOf(panel);
  const bytes = ({ buffer, byteOffset, byteLength }: Float32Array): Uint8Array =>
    new Uint8Array(buffer, byteOffset, byteLength);
  const names = [calendar, symbols, fields, [index?.symbol ?? '']].map((list) => list.join('\n'));
  const digest = dataDigest([...names, bytes(values), members, ...(index === undefined ? [] : [bytes(index.close)])]);
  return { name: path ?? dataName(config, madeUpData), digest, own: path === undefined };
}

/** A panel without its columns of factors and groups, which follow the prices. */
function pricesOf({ fields, values }: PricePanel): { fields: readonly string[]; values: Float32Array } {
  const prices = fields.filter((field) => field === 'vwap' || (FIELDS as readonly string[]).includes(field));
  const [all, kept] = [fields.length, prices.length];
  if (kept === all) return { fields, values };
  const rows = values.length / all;
  const own = new Float32Array(rows * kept);
  for (let row = 0; row < rows; row++) own.set(values.subarray(row * all, row * all + kept), row * kept);
  return { fields: prices, values: own };
}
