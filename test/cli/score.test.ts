import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { oddDelay } from '../../src/metrics/index.js';
import { corpus } from '../metrics/corpora.js';
import { describeWithShared, readShared, readSharedJson } from '../shared.js';
import { score, scoreJson, scratch } from './score-run.js';

const file = scratch();
const text = (lines: readonly string[]) => lines.map((line) => `${line}\n`).join('');
type Missing = number | null;
const expectNumber = (ours: Missing, theirs: Missing, digits: number, label: string) => {
  if (theirs === null) expect(ours, label).toBeNull();
  else expect(ours, label).toBeCloseTo(theirs, digits);
};

describeWithShared('tcts score bleu', () => {
  const files = (id: string) => {
    const { hyp, refs } = corpus(id);
    return [file(`${id}.hyp`, text(hyp)), ...refs.map((ref, k) => file(`${id}.ref${k}`, text(ref)))];
  };

  it('prints what sacrebleu prints', async () => {
    interface Run {
      corpus: string;
      command: string;
      stdout: { score: number; signature: string; verbose_score: string };
    }
    for (const { corpus: id, command, stdout } of readSharedJson<Run[]>('vectors/bleu/sacrebleu_cli.json')) {
      const words = command.split(' ');
      const flags = ['--tokenize', words[words.indexOf('-tok') + 1]];
      if (words.includes('-s')) flags.push('--smooth', words[words.indexOf('-s') + 1]);
      if (words.includes('-lc')) flags.push('--lowercase');
      const signature = stdout.signature.replace('2.6.0', '2.6.0+tcts');
      const ours = await scoreJson<{ score: number; signature: string }>('bleu', ...files(id), ...flags);
      expect(ours.score, command).toBeCloseTo(stdout.score, 7);
      expect(ours.signature, command).toBe(signature);
      expect((await score('bleu', ...files(id), ...flags)).stdout, command).toBe(
        `BLEU|${signature} = ${stdout.score.toFixed(2)} ${stdout.verbose_score}\n`,
      );
    }
  });

  it('gives the figures of the vectors with lines that hold every odd separator', async () => {
    interface Table {
      rows: [string, string, string, null, boolean, number, number[], number[], number[], number, number, number][];
    }
    const { rows } = readSharedJson<Table>('vectors/bleu/sacrebleu_corpus.json');
    const odd = rows.filter(([id, , smooth, , lc]) => id.startsWith('edge_') && smooth === 'exp' && !lc);
    expect(odd.length).toBeGreaterThan(100);
    for (const [id, tokenize, , , , bleu, , , precisions, bp, sys, ref] of odd) {
      const ours = await scoreJson<Record<string, unknown>>('bleu', ...files(id), '--tokenize', tokenize);
      expect(ours, `${id} ${tokenize}`).toMatchObject({
        score: expect.closeTo(bleu, 8),
        precisions: precisions.map((p) => expect.closeTo(p, 8)),
        bp: expect.closeTo(bp, 10),
        sys_len: sys,
        ref_len: ref,
      });
    }
  });

  it('prints what multi-bleu.perl prints', async () => {
    interface Run {
      corpus: string;
      pretok: string;
      lc: boolean;
      exit: number;
      stdout: string;
    }
    const runs = readSharedJson<Run[]>('vectors/bleu/multi_bleu.json').filter(
      (run) => run.pretok === 'raw' && run.exit === 0,
    );
    for (const run of runs) {
      const flags = run.lc ? ['--multi-bleu', '--lowercase'] : ['--multi-bleu'];
      const { stdout } = await score('bleu', ...files(run.corpus), ...flags);
      expect(stdout, `${run.corpus} ${flags}`).toBe(`${run.stdout}\n`);
    }
  });

  it('prints a score for each segment where asked', async () => {
    const { rows } = readSharedJson<{ rows: { corpus: string; line: number; tok: string; bleu: { score: number } }[] }>(
      'vectors/bleu/sacrebleu_sentence.json',
    );
    const { sentences } = await scoreJson<{ sentences: number[] }>('bleu', ...files('en_drop05'), '--sentence');
    const expected = rows.filter((row) => row.corpus === 'en_drop05');
    expect(expected.length).toBeGreaterThan(0);
    for (const { line, bleu } of expected) expect(sentences[line]).toBeCloseTo(bleu.score, 8);
  });

  it('and its siblings chrf and ter give the figures of the vectors', async () => {
    const rows = readSharedJson<{ corpus: string; metric: string; score: number }[]>(
      'vectors/bleu/sacrebleu_chrf_ter_corpus.json',
    );
    const commands: Record<string, string[]> = {
      chrF2: ['chrf'],
      'chrF2++': ['chrf', '--word-order', '2'],
      chrF1: ['chrf', '--beta', '1'],
      TER: ['ter'],
      TER_asian_norm: ['ter', '--normalized', '--asian'],
      TER_nopunct: ['ter', '--no-punctuation'],
      TER_cs: ['ter', '--case-sensitive'],
    };
    for (const { corpus: id, metric, score: expected } of rows) {
      if (!(metric in commands) || !['en_mref4', 'zh_quotes', 'edge_unicode_punct'].includes(id)) continue;
      const ours = await scoreJson<{ score: number }>(...(commands[metric] as [string]), ...files(id));
      expect(ours.score, `${id} ${metric}`).toBeCloseTo(expected, 8);
    }
  });
});

describeWithShared('tcts score compare', () => {
  const [a, b, ref] = ['wmt17_ende_onlineB', 'wmt17_ende_uedin', 'wmt17_ende_onlineB'];
  const paths = () => [
    file('a', text(corpus(a).hyp)),
    file('b', text(corpus(b).hyp)),
    file('ref', text(corpus(ref).refs[0])),
  ];

  it('gives the scores, intervals and p-values of sacrebleu --paired-bs', async () => {
    const output = readShared('vectors/bleu/paired_bs_cli_wmt17.txt');
    type Entry = { score: number; p_value: Missing; mean: number; ci: number };
    const [baseline, system] = JSON.parse(output.slice(output.indexOf('['))) as Record<string, Entry>[];
    for (const [metric, name] of [
      ['bleu', 'BLEU'],
      ['chrf', 'chrF2'],
      ['ter', 'TER'],
    ]) {
      const ours = await scoreJson<{ a: Entry; b: Entry; p_value: number; difference: number }>(
        'compare',
        ...paths(),
        '--metric',
        metric,
      );
      expect(ours.p_value).toBeCloseTo(system[name].p_value!, 12);
      expect(ours.difference).toBeCloseTo(system[name].score - baseline[name].score, 8);
      expect(ours.a.mean).toBeCloseTo(baseline[name].mean, 4);
      expect(ours.b.ci).toBeCloseTo(system[name].ci, 4);
    }
  });

  it('gives the p-value of its approximate randomisation', async () => {
    interface Case {
      id: string;
      systems: string[][];
      refs: string[][];
      paired_ar_2000: { BLEU: { results: { p_value: Missing }[]; signature: string } };
    }
    const close = readSharedJson<Case[]>('vectors/bleu/paired_bs.json').find(({ id }) => id === 'wmt17_close')!;
    const reference = file('close.ref', text(close.refs[0]));
    const baseline = file('close.0', text(close.systems[0]));
    for (const [s, { p_value }] of close.paired_ar_2000.BLEU.results.entries()) {
      if (p_value === null) continue;
      const system = file(`close.${s}`, text(close.systems[s]));
      const flags = ['--test', 'randomisation', '--samples', '2000'];
      const ours = await scoreJson<{ p_value: number; signature: string }>(
        'compare',
        baseline,
        system,
        reference,
        ...flags,
      );
      expect(ours.p_value).toBeCloseTo(p_value, 12);
      expect(ours.signature).toBe(close.paired_ar_2000.BLEU.signature.replace('2.6.0', '2.6.0+tcts'));
    }
  });

  it('says which system is better, also where less is better', async () => {
    expect((await score('compare', ...paths())).stdout).toContain('B − A = +5.39 (B is better), p = 0.0010');
    expect((await score('compare', ...paths(), '--metric', 'ter')).stdout).toContain('B − A = −5.65 (B is better)');
  });

  it('says that two equal outputs leave nothing to test', async () => {
    const [first, , reference] = paths();
    const { stdout } = await score('compare', first, first, reference);
    expect(stdout).toContain('The two outputs are the same in every segment');
    expect(stdout).not.toContain('p =');
  });
});

describeWithShared('tcts score latency', () => {
  interface Sequence {
    delays: number[];
    src_len: number;
    ref: string | null;
    ref_len: Missing;
    simuleval_ref?: Record<string, number>;
    simuleval_hyp?: Record<string, number>;
  }
  interface Latency {
    AL: Missing;
    LAAL: Missing;
    AP: Missing;
    DAL: Missing;
  }
  interface Result extends Latency {
    counted: number;
    skipped: number;
    without_reference: number;
    instances: Latency[];
  }

  it.each([
    [
      'our own lines',
      ({ delays, src_len, ref_len }: Sequence) => ({ delays, source_length: src_len, reference_length: ref_len }),
    ],
    [
      "SimulEval's log",
      ({ delays, src_len, ref }: Sequence) => ({
        index: 0,
        prediction: '',
        delays,
        source_length: src_len,
        reference: ref,
      }),
    ],
  ])('gives the figures of the vectors from %s', async (_, entry) => {
    const all = readSharedJson<Sequence[]>('vectors/latency/sentences.json');
    // SimulEval measures delays beyond the source, too, which are rejected here; test/metrics has them.
    const sequences = all.filter(({ delays, src_len }) => oddDelay({ delays, sourceLength: src_len }) === undefined);
    expect(all.length - sequences.length).toBe(ODD);
    const path = file('instances.jsonl', text(sequences.map((sequence) => JSON.stringify(entry(sequence)))));
    for (const [convention, key] of [
      ['simuleval', 'simuleval_ref'],
      ['stacl', 'simuleval_hyp'],
    ] as const) {
      const ours = await scoreJson<Result>('latency', path, '--convention', convention, '--per-instance');
      expect(ours).toMatchObject({ counted: 116 - ODD, skipped: 1, without_reference: 1 });
      expect(ours.instances).toHaveLength(117 - ODD);
      for (const name of ['AL', 'LAAL', 'AP', 'DAL'] as const) {
        const values: number[] = [];
        for (const [i, sequence] of sequences.entries()) {
          const expected = sequence[key]?.[name] ?? null;
          expectNumber(ours.instances[i][name], expected, 9, `${convention} ${i} ${name}`);
          if (expected !== null) values.push(expected);
        }
        expect(ours[name]).toBeCloseTo(values.reduce((sum, value) => sum + value, 0) / values.length, 9);
      }
    }
  });

  const ODD = 4;

  it('says in words what was skipped', async () => {
    const path = file(
      'few.jsonl',
      '{"delays": [2, 3, 3], "source_length": 3, "reference_length": 3}\n{"delays": [], "source_length": 4}\n',
    );
    const { stdout } = await score('latency', path, '--per-instance');
    // Wait-2 with three words on both sides: AL = DAL = 2, AP = 8/9; the first word alone comes before the end, 2 late;
    // the words end at 3, 4, 5, two after the source words 1, 2, 3.
    expect(stdout).toBe(
      [
        '1\t2.000\t2.000\t0.889\t2.000\t2.000\t2.000',
        '2\t–\t–\t–\t–\t–\t–',
        'AL = 2.000  LAAL = 2.000  AP = 0.889  DAL = 2.000  YAAL = 2.000  ATD = 2.000',
        'simuleval convention, 1 instance, 1 without output skipped, 1 without reference measured by their own length',
        '',
      ].join('\n'),
    );
  });
});

describe('computation-aware latency', () => {
  it('is measured by elapsed, which must be there and in the unit of the delays', async () => {
    // Each word comes half a word after its delay: a first lag of 2.5, and 3.5 ≥ |x| ends AL: (2.5 + 3.5 − 1)/2.
    const line = { delays: [2, 3, 3], elapsed: [2.5, 3.5, 3.5], source_length: 3, reference_length: 3 };
    const path = file('elapsed.jsonl', `${JSON.stringify(line)}\n`);
    const { stdout } = await score('latency', path, '--computation-aware');
    expect(stdout).toContain('AL = 2.500  LAAL = 2.500');
    expect(stdout).toContain('simuleval convention, computation-aware, 1 instance');
    const zeros = file('zeros.jsonl', `${JSON.stringify({ ...line, elapsed: [0, 0, 0] })}\n`);
    expect(await score('latency', zeros, '--computation-aware')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(
        `${zeros}:1: elapsed: --computation-aware needs elapsed times, but none are recorded`,
      ),
    });
    const seconds = file('seconds.jsonl', `${JSON.stringify({ ...line, elapsed: [0.2, 0.3, 0.4] })}\n`);
    expect(await score('latency', seconds, '--computation-aware')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('found 0.2 for a delay of 2'),
    });
  });
});

describe('figures that would mislead', () => {
  it('of delays in characters and references in words come with a warning', async () => {
    // 20 characters after all of 8 words, against a reference that counts as one word: AL = 8, AP = 20 · 8 / (8 · 1).
    const line = JSON.stringify({ delays: Array(20).fill(8), source_length: 8, reference: '犬は公園で走る。' });
    const path = file('characters.jsonl', `${line}\n`);
    const { code, stdout, stderr } = await score('latency', path);
    expect({ code, stdout }).toMatchObject({ code: 0, stdout: expect.stringContaining('AP = 20.000') });
    expect(stderr).toBe(
      `tcts: warning: ${path}: 20 delays for references of 1 units: AL, LAAL and AP mean nothing unless both are counted ` +
        'in the same one (--unit word or char)\n',
    );
    // AP = 20 · 8 / (8 · 8): the reference has 8 characters.
    expect(await score('latency', path, '--unit', 'char')).toMatchObject({
      stdout: expect.stringContaining('AP = 2.500'),
      stderr: '',
    });
  });

  it('of delays that fall or go beyond the source are refused', async () => {
    const fine = '{"delays": [1, 2], "source_length": 2}\n';
    const falling = file('falling.jsonl', `${fine}{"delays": [2, 1], "source_length": 2}\n`);
    expect(await score('latency', falling)).toMatchObject({
      code: 1,
      stdout: '',
      stderr: `tcts: ${falling}:2: delays[1]: found 1 after 2: delays cannot decrease\n`,
    });
    // Characters of the source, where its length is counted in words.
    const beyond = file('beyond.jsonl', `${fine}{"delays": [1, 3], "source_length": 2}\n`);
    for (const convention of ['simuleval', 'stacl']) {
      expect(await score('latency', beyond, '--convention', convention)).toMatchObject({
        code: 1,
        stderr: expect.stringContaining(`${beyond}:2: delays[1]: found 3 for a source of length 2: delays and`),
      });
    }
  });

  it('of infinite delays are refused', async () => {
    const path = file('infinite.jsonl', '{"delays": [1, 1e999], "source_length": 2}\n');
    const { code, stdout, stderr } = await score('latency', path, '--json');
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toContain(`${path}:1: delays[1]: expected numbers from 0 to`);
  });

  it('of BLEU of text without spaces come with a warning, unless a tokeniser was chosen', async () => {
    const [hyp, ref] = [file('hyp.ja', '犬は公園で走る。\n'), file('ref.ja', '犬は公園を走る。\n')];
    expect((await score('bleu', hyp, ref)).stderr).toContain('warning: the references have no spaces');
    expect(await score('bleu', hyp, ref, '--tokenize', 'char')).toMatchObject({
      stdout: expect.stringContaining('tok:char'),
      stderr: '',
    });
  });
});

describeWithShared('tcts score forecast', () => {
  interface Panel {
    name: string;
    days: { date: string; instruments: string[]; pred: Missing[]; label: Missing[] }[];
    ic_by_day: Record<string, Missing>;
    rank_ic_by_day: Record<string, Missing>;
    n_days_ic: number;
    metrics: Record<string, Missing>;
    mse_sklearn_valid_pairs: number;
  }

  it.each([
    [',', 'date,instrument,prediction,label', []],
    [
      '"',
      'when,who,guess,"the, truth"',
      ['--date', 'when', '--instrument', 'who', '--prediction', 'guess', '--label', 'the, truth'],
    ],
  ])('gives the figures of the vectors (columns %s)', async (style, header, flags) => {
    for (const panel of readSharedJson<Panel[]>('vectors/forecast/qlib_ic.json')) {
      const rows = panel.days.flatMap(({ date, instruments, pred, label }) =>
        instruments.map((instrument, i) => [date, instrument, pred[i] ?? '', label[i] ?? '']),
      );
      const quote = (cell: string | number) => (style === '"' ? `"${cell}"` : `${cell}`);
      const path = file('forecast.csv', text([header, ...rows.map((row) => row.map(quote).join(','))]));
      const ours = await scoreJson<
        Record<string, Missing> & { daily: { date: string; IC: Missing; RankIC: Missing }[] }
      >('forecast', path, '--per-day', ...flags);
      const { IC, ICIR, 'Rank IC': RankIC, 'Rank ICIR': RankICIR } = panel.metrics;
      for (const [name, value] of Object.entries({ IC, ICIR, RankIC, RankICIR, MSE: panel.mse_sklearn_valid_pairs })) {
        expectNumber(ours[name], value, 10, `${panel.name} ${name}`);
      }
      expect(ours.days).toBe(panel.n_days_ic);
      expect(ours.zMSE).toBeCloseTo(2 * (1 - IC!), 10);
      for (const { date, IC: ic, RankIC: rank } of ours.daily) {
        expectNumber(ic, panel.ic_by_day[date], 10, `${panel.name} ${date}`);
        expectNumber(rank, panel.rank_ic_by_day[date], 10, `${panel.name} ${date}`);
      }
    }
  });
});

describe('tcts score forecast', () => {
  it('has null where a figure is undefined, and exactly the keys that are promised', async () => {
    const rows = ['A,1,', 'B,NaN,2', 'C,null,2', 'D,1,NA', 'E,.,2'].map((cells) => `2020-01-02,${cells}\n`);
    const path = file('one.csv', `date,instrument,prediction,label\n${rows.join('')}`);
    expect(await scoreJson('forecast', path)).toEqual({
      IC: null,
      ICIR: null,
      RankIC: null,
      RankICIR: null,
      MSE: null,
      zMSE: null,
      days: 0,
    });
    expect((await score('forecast', path)).stdout).toContain('IC        undefined');
  });

  it('reads any order of columns, extra ones, blank lines, CRLF and a byte order mark', async () => {
    const rows = [
      '\ufefflabel,note,date,prediction,instrument',
      '1,x,d1,1,A',
      '2,"a ""b"", c",d1,2,B',
      '',
      '3,,d1,3,C',
      '',
    ];
    const ours = await scoreJson<{ IC: number; days: number; MSE: number }>(
      'forecast',
      file('order.csv', rows.join('\r\n')),
    );
    expect(ours).toMatchObject({ IC: expect.closeTo(1, 12), days: 1, MSE: 0 });
  });

  it('scores values whose squares no double holds as it does any other', async () => {
    const rows = (scale: string) =>
      ['date,instrument,prediction,label', ...['1', '3', '2'].map((x, i) => `d1,${i},${x}${scale},${i}`)].join('\n');
    const plain = await scoreJson<Record<string, number>>('forecast', file('plain.csv', rows('')));
    for (const scale of ['e-200', 'e-320', 'e120', 'e149']) {
      const ours = await scoreJson<Record<string, number>>('forecast', file('scaled.csv', rows(scale)));
      // 1e-320 is a subnormal number with four digits. IC is .5, as of (1, 3, 2) and (0, 1, 2).
      const digits = scale === 'e-320' ? 3 : 12;
      for (const name of ['IC', 'RankIC', 'zMSE']) expect(ours[name]).toBeCloseTo(plain[name], digits);
      expect(ours.IC).toBeCloseTo(0.5, digits);
      expect(Number.isFinite(ours.MSE)).toBe(true);
    }
  });
});

describe('tcts score on bad input says in one sentence, with the place, what is wrong', () => {
  const two = file('two', 'a\nb\n');
  const three = file('three', 'a\nb\nc\n');
  const empty = file('empty', '');
  const latin = file('latin', Buffer.from([0x61, 0x0a, 0xe4, 0x0a]));
  const broken = file('broken.gz', gzipSync('a\nb\n').subarray(0, 15));
  const csv = (name: string, ...lines: string[]) => file(name, text(['date,instrument,prediction,label', ...lines]));

  it.each<[string, string[], string]>([
    ['lengths', ['bleu', two, three], `${two} has 2 lines, ${three} 3: expected the same number of lines`],
    [
      'second reference',
      ['bleu', two, two, three],
      `${two} has 2 lines, ${three} 3: expected the same number of lines`,
    ],
    [
      'lengths of systems',
      ['compare', two, three, two],
      `${two} has 2 lines, ${three} 3: expected the same number of lines`,
    ],
    ['empty file', ['bleu', empty, two], `${empty}: the file is empty`],
    ['no file', ['bleu', two, '/no/such/file'], '/no/such/file: cannot read it: no such file or folder'],
    ['a folder', ['bleu', '/', two], '/: cannot read it: it is a folder'],
    ['not UTF-8', ['bleu', latin, two], `${latin}:2: the line is not UTF-8 text`],
    ['damaged gzip', ['bleu', broken, two], `${broken}: the gzip data are damaged (unexpected end of file)`],
    ['standard input twice', ['bleu', '-', '-'], 'standard input (-) can be used for one file only'],
    [
      'smoothing value',
      ['bleu', two, two, '--smooth-value', '1'],
      '--smooth-value needs --smooth floor or --smooth add-k',
    ],
    [
      'flag of BLEU',
      ['compare', two, two, two, '--metric', 'ter', '--tokenize', 'zh'],
      '--tokenize is an option of BLEU, not of ter',
    ],
    ['not JSON', ['latency', two], `${two}:1: expected a JSON object, found a`],
    [
      'no output at all',
      ['latency', file('none.jsonl', '{"delays": [], "source_length": 3}\n')],
      'no instance has an output: latency is undefined',
    ],
    [
      'late bad line',
      ['latency', file('late.jsonl', '{"delays": [1], "source_length": 3}\n{"delays": 3}\n')],
      'late.jsonl:2: delays: expected an array of numbers, found 3',
    ],
    [
      'missing column',
      ['forecast', file('columns.csv', 'date,instrument,score,label\n')],
      'columns.csv:1: column prediction is missing: found date, instrument, score, label',
    ],
    [
      'column twice',
      ['forecast', file('twice.csv', 'date,instrument,prediction,label,label\n')],
      'twice.csv:1: column label appears twice in the header',
    ],
    ['no rows', ['forecast', csv('header.csv')], 'header.csv: the file has a header but no rows'],
    [
      'text in a number',
      ['forecast', csv('text.csv', 'd,A,1,2', 'd,B,up,2')],
      'text.csv:3: prediction: expected a number or an empty cell, found up',
    ],
    [
      'a prediction too large to square',
      ['forecast', csv('large.csv', 'd,A,1,2', 'd,B,-1e308,2')],
      'large.csv:3: prediction: -1e308 is too large, expected at most 1e+150 in size',
    ],
    [
      'a label too large to square',
      ['forecast', csv('huge.csv', 'd,A,1,1e999')],
      'huge.csv:2: label: 1e999 is too large, expected at most 1e+150 in size',
    ],
    [
      'infinity',
      ['forecast', csv('inf.csv', 'd,A,1,inf')],
      'inf.csv:2: label: expected a number or an empty cell, found inf',
    ],
    [
      'short row',
      ['forecast', csv('short.csv', 'd,A,1,2', 'd,B,1')],
      'short.csv:3: expected 4 cells as in the header, found 3',
    ],
    [
      'same row twice',
      ['forecast', csv('same.csv', 'd,A,1,2', 'e,A,1,2', 'd,A,1,2')],
      'same.csv:4: A on d is already in line 2: expected one row for each',
    ],
    [
      'no date',
      ['forecast', csv('undated.csv', ',A,1,2')],
      'undated.csv:2: date: expected a date, found an empty cell',
    ],
    ['open quote', ['forecast', csv('quote.csv', 'd,"A,1,2')], 'quote.csv: the file is not CSV: '],
  ])('%s', async (_, args, sentence) => {
    const { code, stdout, stderr } = await score(...args);
    expect(stderr).toContain(sentence);
    expect(stderr).toMatch(/^\S*tcts:\S* [^\n]+\n$/);
    expect(stdout).toBe('');
    expect(code).toBe(1);
  });
});
