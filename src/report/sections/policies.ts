import { groupBy } from '../../metrics/statistics.js';
import { kindOf } from '../../problems/index.js';
import type { PolicyFigures } from '../../run/index.js';
import { fixed } from '../../schedule/strategies/fixed.js';
import { attentionLabel, policyNamed } from '../../translate/policies/index.js';
import { type Block, type Cell, type Section, seedEstimate, slug, type Table, textColumn } from '../document.js';
import { type BleuLatencyCurve, bleuLatencyFigure } from '../figures/curves.js';
import { MOST_CURVES, stylesFor } from '../figures/figure.js';
import { isAblation } from '../labels.js';
import { commonDecoding } from '../measures.js';
import { corpusOf, type Setting } from '../settings.js';
import { isPapersMethod, type ReportView } from '../view.js';
import {
  decodingInWords,
  meansOf,
  signaturesOf,
  TRANSLATION_DETAILS,
  trainedSettings,
  waitPoints,
} from './translation.js';

/** One section for each corpus that was translated under other policies than wait-k, by any kind of model. */
export function policySections(views: readonly ReportView[]): Section[] {
  const translated = views.filter(({ data }) => kindOf(data)?.evaluations === 'translations');
  return [...groupBy(translated, ({ data }) => corpusOf(data)).values()].flatMap((members) => {
    const measured = members.flatMap(({ data }) => trainedSettings(data).flatMap(underPolicies));
    if (measured.length === 0) return [];
    const { title } = members[0].data;
    const id = slug(title);
    const blocks: Block[] = [
      ...policyFigures(title, id, members, measured).map((figure): Block => ({ kind: 'figure', figure })),
      { kind: 'table', table: policyTable(id, measured) },
    ];
    return [{ title: `Policies: ${title}`, blocks }];
  });
}

/** A setting under one policy, decoded in one way. */
interface Measured {
  readonly setting: Setting;
  /** One for each seed. */
  readonly figures: readonly PolicyFigures[];
}

function underPolicies(setting: Setting): Measured[] {
  const all = setting.runs.flatMap(({ evaluations }) => evaluations.policies);
  const ways = groupBy(all, (one) => `${one.policy} ${one.models.length} ${decodingInWords(one)}`);
  return [...ways.values()].map((figures) => ({ setting, figures }));
}

/** As many figures as the curves of all policies need, each with those of wait-k. */
function policyFigures(title: string, id: string, views: readonly ReportView[], measured: readonly Measured[]) {
  const known = measured.filter(({ figures: [one] }) => typeof one.k !== 'string');
  const named = [...groupBy(known, nameOf)].flatMap(([name, group]) => [...told(name, group)]);
  const others = named.map(([label, group]) => ({
    label,
    own: false,
    points: group
      .map(({ setting, figures }) => ({ k: pointOf(setting, figures[0]), ...meansOf(figures), ...WITHOUT_BAND }))
      .sort((a, b) => a.AL - b.AL),
  }));
  const waits = views.flatMap(waitCurves).slice(0, MOST_CURVES - 1);
  const room = MOST_CURVES - waits.length;
  const parts = Array.from({ length: Math.ceil(others.length / room) || 1 }, (_, part) =>
    others.slice(part * room, (part + 1) * room),
  );
  return parts.map((part, i) => {
    const curves = [...waits, ...part];
    const styles = stylesFor(
      curves.length,
      curves.findIndex(({ own }) => own),
    );
    const shown = curves.map(({ label, points }, c) => ({ label, points, style: styles[c] }));
    return bleuLatencyFigure(shown, {
      id: `${id}-policies-latency${i === 0 ? '' : `-${i + 1}`}`,
      title: `Policies, ${title}${parts.length === 1 ? '' : `, ${i + 1} of ${parts.length}`}`,
      caption:
        'sacreBLEU against average proportion (AP) and average lagging (AL), both of subwords and the length of the output; means over the seeds. ' +
        'Each curve goes through the settings of its policy, by latency; how each was decoded is in the table below.',
    });
  });
}

/** Wait-k with models of single tasks and with the scheduler's: what other policies have to beat. */
function waitCurves({ data }: ReportView): (Omit<BleuLatencyCurve, 'style'> & { own: boolean })[] {
  const decoding = commonDecoding(data);
  if (decoding === undefined) return [];
  const compared = trainedSettings(data).filter(
    (setting) => setting.strategy === fixed.name || (isPapersMethod(setting) && !isAblation(setting)),
  );
  return [...groupBy(compared, ({ label }) => label)].flatMap(([label, settings]) => {
    const points = waitPoints(settings, decoding).map(({ all, ...point }) => ({ ...point, ...WITHOUT_BAND }));
    return points.length === 0 ? [] : [{ label, points, own: isPapersMethod(settings[0]) }];
  });
}

/** The policy's name in the paper; for models that decide themselves, the kind of attention. */
function nameOf({ setting, figures: [one] }: Measured): string {
  const policy = nameIn(one);
  const { label = policy, labels } = policyNamed(policy) ?? {};
  return labels === undefined ? label : attentionLabel(String(setting.keys.get('problem.attention') ?? policy));
}

/** Of `wait-k:3`, `wait-k`. */
function nameIn({ policy = '' }: PolicyFigures): string {
  return policy.split(':')[0];
}

/** Curves of one name, distinguished by their models and decoding if these differ. */
function told(name: string, group: readonly Measured[]): Map<string, Measured[]> {
  const modelOf = ({ setting, figures: [one] }: Measured) =>
    one.models.length > 0 ? `${one.models.length + 1} models` : setting.label;
  const decodingOf = ({ figures: [one] }: Measured) => decodingInWords(one);
  const aspects = [modelOf, decodingOf].filter(
    (aspect) => !(aspect === modelOf && group.every(hasPointPerModel)) && new Set(group.map(aspect)).size > 1,
  );
  return groupBy(group, (one) => {
    const words = aspects.map((aspect) => aspect(one));
    // "ITST (latencyWeight 1)" already names ITST.
    return (words[0]?.startsWith(name) ? words : [name, ...words]).join(', ');
  });
}

/** Whether the curve of its policy goes through models that were trained for different latencies. */
function hasPointPerModel({ figures: [one] }: Measured): boolean {
  return policyNamed(nameIn(one))?.latencyKeys !== undefined;
}

/** What makes a point of a curve early or late: settings of the policy, and keys of the training. */
function pointOf({ keys }: Setting, one: PolicyFigures): string {
  const { policy = '' } = one;
  const { latencyKeys = {}, settings = {} } = policyNamed(nameIn(one)) ?? {};
  const trained = Object.entries(latencyKeys).map(([name, paths]) => {
    const path = paths.find((candidate) => keys.has(candidate));
    return `${name}=${path === undefined ? 'default' : keys.get(path)}`;
  });
  const ownSettings = trained.length > 0 && Object.keys(settings).length === 0 ? [] : [policy];
  return [...ownSettings, ...trained].join(' ');
}

/** More bands would hide each other. */
const WITHOUT_BAND = { low: Number.NaN, high: Number.NaN };

/** What was measured under policies other than wait-k. */
function policyTable(id: string, measured: readonly Measured[]): Table {
  return {
    id: `${id}-policies`,
    title: 'Other policies',
    caption: `Translations under other policies than wait-k. sacreBLEU: ${signaturesOf(measured.flatMap(({ figures }) => figures))}. AP and AL: of subwords and the length of the output. Mean ± standard deviation over the seeds.`,
    columns: [
      textColumn('Method'),
      textColumn('policy'),
      textColumn('decoding'),
      ...TRANSLATION_DETAILS.map(({ name }) => ({ title: name, measures: [name] })),
    ],
    rows: measured.map(({ setting, figures }) => ({
      cells: [
        setting.label,
        policyInWords(figures[0]),
        decodingInWords(figures[0]),
        ...TRANSLATION_DETAILS.map(({ digits, of }): Cell => [seedEstimate(figures.map(of), digits)]),
      ],
    })),
  };
}

function policyInWords({ policy = 'wait-k:full', models }: PolicyFigures): string {
  return models.length === 0 ? policy : `${policy}, ${models.length + 1} models`;
}
