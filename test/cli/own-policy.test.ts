import { readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { program } from '../../src/cli/program.js';
import { writeReport } from '../../src/report/index.js';
import { startServer } from '../../src/serve/server.js';
import { evaluateTranslation } from '../../src/translate/evaluate.js';
import { type PolicyDescription, policies } from '../../src/translate/policies/index.js';
import { makeTranslation } from '../report/run-folders.js';
import { temporaryFolder } from '../run/temporary.js';
import { randomTranslationRun, type TranslationRun } from './translation-run.js';

/** Reads n tokens for each that it writes. */
const pairs: PolicyDescription = {
  name: 'n-for-one',
  title: 'n for one',
  label: 'N:1',
  help: 'read n tokens for each that is written',
  settings: { n: { kind: 'whole', default: 2, slider: { label: 'n', max: 4, start: 3 } } },
  models: ['wait-k', 'full'],
  create: ({ n = 2 }) => ({
    name: `n-for-one:n=${n}`,
    decide: ({ read, written, ended }) => (!ended && read < Number(n) * (written + 1) ? 'READ' : 'WRITE'),
  }),
};

describe('a policy that is added to the list', () => {
  let run: TranslationRun;
  beforeAll(async () => {
    policies.push(pairs);
    run = await randomTranslationRun(4);
  });
  afterAll(() => {
    policies.splice(policies.indexOf(pairs), 1);
    run.remove();
  });

  it.each(['translate', 'evaluate', 'serve'])('is in the help of %s', (verb) => {
    let shown = '';
    const command = program().commands.find((one) => one.name() === verb)!;
    command.configureOutput({ writeOut: (text) => (shown += text) }).outputHelp();
    expect(shown).toContain('  n-for-one:n=2                         read n tokens for each that is written\n');
    expect(shown).toContain('  wait-if-diff:initial=3,step=1         write what another read has not changed\n');
  });

  it('is evaluated by its name and settings', async () => {
    // To read one token for each that is written is wait-1.
    const [own, waitOne] = await evaluateTranslation(run.folder, { policies: ['n-for-one:n=1', 'wait-k:1'], beam: 1 });
    expect([own.policy, own.k]).toEqual(['n-for-one:n=1', null]);
    expect(own.latency).toEqual(waitOne.latency);
    const output = ({ folder }: { folder: string }) => readFileSync(join(folder, 'output.txt'), 'utf8');
    expect(output(own)).toBe(output(waitOne));
  });

  it('is in the menu of the page, with its slider, for the models that it runs over', async () => {
    // The server's threads have their own modules: what adds the policy there is a file.
    const file = join(temporaryFolder(), 'policy.mjs');
    const built = pathToFileURL(resolve('dist/translate/policies/index.js')).href;
    const { create: _, ...described } = pairs;
    writeFileSync(
      file,
      `import { policies } from ${JSON.stringify(built)};
policies.push({ ...${JSON.stringify(described)}, create: ({ n = 2 }) => ({
  name: \`n-for-one:n=\${n}\`,
  decide: ({ read, written, ended }) => (!ended && read < Number(n) * (written + 1) ? 'READ' : 'WRITE'),
}) });
`,
    );
    const server = await startServer({ folder: run.folder, port: 0, modules: [pathToFileURL(file).href] });
    try {
      const answer = await fetch(new URL('/api/translation', server.url));
      const offered = (await answer.json()) as { policies: { name: string }[]; runs: { policies: string[] }[] };
      expect(offered.policies.at(-1)).toEqual({
        name: 'n-for-one',
        title: 'n for one',
        help: 'read n tokens for each that is written',
        knobs: [{ name: 'n', label: 'n', min: 1, max: 4, step: 1, start: 3 }],
      });
      expect(offered.runs[0].policies).toEqual([
        ...['wait-k', 'wait-if-worse', 'wait-if-diff', 'adaptive', 'alignatt', 'edatt'],
        'n-for-one',
      ]);
    } finally {
      await server.close();
    }
  });

  it('has its label in reports', async () => {
    const folder = temporaryFolder();
    makeTranslation(join(folder, 'full'), {
      ...{ strategy: 'fixed', seed: 1, set: { 'problem.waits': 'full' } },
      policies: [{ policy: 'n-for-one:n=3', bleu: 30, AL: 6 }],
    });
    const files = await writeReport(folder);
    const figure = readFileSync(join(files.folder, 'figures/multi30k-policies-latency.csv'), 'utf8');
    expect(figure.trim().split('\n')[1]).toMatch(/^N:1,/);
  });
});
