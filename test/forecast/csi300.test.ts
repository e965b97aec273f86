import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { beforeAll, expect, it } from 'vitest';
import { firstDayFrom, type SplitDates, splitSamples } from '../../src/forecast/data/calendar.js';
import { labelledSamples, labelTable } from '../../src/forecast/data/labels.js';
import { fitNormaliser } from '../../src/forecast/data/normaliser.js';
import { samplesBetween, summarise } from '../../src/forecast/data/panel.js';
import { readCsv, writeCsv } from '../../src/forecast/formats/csv.js';
import type { Reading } from '../../src/forecast/formats/format.js';
import { readQlib } from '../../src/forecast/formats/qlib.js';
import { describeWithShared, shared } from '../shared.js';
import { temporaryFolder } from './panels.js';

/** The paper's split (section 4.3). */
const PAPER_SPLIT: SplitDates = {
  train: ['2008-01-01', '2013-12-31'],
  validation: ['2014-01-01', '2015-12-31'],
  test: ['2016-01-01', '2020-08-01'],
};

describeWithShared('the CSI300', () => {
  const home = temporaryFolder();
  const path = join(home, 'cn_data');
  let whole: Reading;

  beforeAll(() => {
    execFileSync('tar', ['-xzf', shared('data/csi300_qlib/cn_data.tar.gz'), '-C', home]);
    whole = readQlib({ path, market: 'csi300', index: 'SH000300', maxMove: 0.3 });
  });

  it('is the market its description tells of', () => {
    const { panel, notes } = whole;
    // 4,943 days, 2 of them without a price; 683 stocks beside the index, 7 more without data.
    expect(panel.calendar.length).toBe(4941);
    expect(panel.calendar).not.toContain('2019-04-29');
    expect([panel.calendar[0], panel.calendar.at(-1)]).toEqual(['1999-11-10', '2020-09-25']);
    expect(panel.symbols.length).toBe(683);
    expect(notes.count('member without any prices')).toBe(7);
    expect(notes.count('day without any price dropped')).toBe(2);
    expect(notes.summary().length).toBeLessThan(6);
  });

  it('has 3.8 % of its member-days since 2008 lost to suspensions', () => {
    const { panel } = readQlib({ path, start: '2008-01-01' });
    expect(summarise(panel)).toMatchObject({ first: '2008-01-02', last: '2020-09-25', stocks: 683 });
    // Its description counts the 300 members of the two days without any price, which are dropped here, too.
    const { memberDays, withoutClose } = summarise(panel);
    expect((withoutClose * memberDays + 600) / (memberDays + 600)).toBeCloseTo(0.038, 3);
  });

  it('has the medians of its training features that numpy finds', () => {
    // numpy.nanmedian and the MAD of close(t − 59) / close(t), volume likewise, high(t − 10) / close(t), nothing clipped.
    const { panel } = readQlib({ path, start: '2007-06-01', end: '2013-12-31', maxMove: null });
    const training = samplesBetween(panel, firstDayFrom(panel.calendar, '2008-01-01'), panel.calendar.length - 1);
    const { centre, factor } = fitNormaliser(panel, { kind: 'ohlcv', window: 60 }, training);
    const columns = [1 * 60 + 0, 4 * 60 + 0, 2 * 60 + 49];
    columns.forEach((column, i) => {
      expect(centre[column]).toBe([1.0255212783813477, 1.0301021337509155, 1.0211726427078247][i]);
      expect(factor[column]! / [4.978666856186441, 1.2647529182215036, 12.655684049941971][i]!).toBeCloseTo(1, 6);
    });
  });

  it('gives the known numbers of samples before purging, and fewer after', () => {
    // Members with a close and a volume on day t, under the paper's split; counted independently.
    const all = splitSamples(whole.panel, PAPER_SPLIT, 0);
    expect([all.train.length, all.validation.length, all.test.length]).toEqual([411_849, 134_875, 318_529]);
    expect(all.test.dayStarts.length - 1).toBe(1095);
    expect(all.train.dayStarts.length - 1).toBe(1440);

    const purged = splitSamples(whole.panel, PAPER_SPLIT, 3);
    expect(purged.train.dayStarts.length - 1).toBe(1437);
    expect(purged.validation.dayStarts.length - 1).toBe(471);
    expect(purged.test.length).toBe(318_529);
  });

  it('has labels for nearly all samples', () => {
    const { test } = splitSamples(whole.panel, PAPER_SPLIT, 1);
    const labels = labelTable(whole.panel, test, { kind: 'daily', horizons: [1], transform: 'raw' });
    expect(labelledSamples(test, labels, 1).samples.length / test.length).toBeGreaterThan(0.99);
    // Six moves beyond 30 %, counted independently; the deepest fall is that of SZ000661 on 2020-05-27. A model that is
    // not to believe them sees none, and is scored with all of them.
    expect(labels.filter((x) => Math.abs(x) > 0.3).length).toBe(6);
    expect(labels.filter((x) => x < -0.5)).toEqual(Float32Array.of(-0.512071521903047));
    const seen = labelTable(whole.cleaned, test, { kind: 'daily', horizons: [1], transform: 'raw' });
    expect(Math.max(...seen.filter((x) => Math.abs(x) > 0.2).map(Math.abs))).toBeLessThan(0.30001);
  });

  it('is the same panel when it comes from a CSV made of it', async () => {
    const { panel } = readQlib({ path, index: 'SH000300', start: '2019-04-01', end: '2019-06-30' });
    const csv = join(home, 'prices.csv');
    const members = join(home, 'members.txt');
    writeCsv(panel, csv, members);
    const copy = (await readCsv({ path: csv, members, index: 'SH000300' })).panel;
    expect(copy.calendar).toEqual(panel.calendar);
    expect(copy.symbols).toEqual(panel.symbols);
    expect(copy.members).toEqual(panel.members);
    expect(copy.index).toEqual(panel.index);
    expect(
      Buffer.from(copy.values.buffer, copy.values.byteOffset, copy.values.byteLength).equals(
        Buffer.from(panel.values.buffer, panel.values.byteOffset, panel.values.byteLength),
      ),
    ).toBe(true);
    expect(samplesBetween(copy, 0, copy.calendar.length - 1).length).toBeGreaterThan(10_000);
  });
});
