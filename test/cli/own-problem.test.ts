import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { loadModule, trainConfigSchema, withModules } from '../../src/problems/index.js';
import { checkpointFolder, isRun, latestCheckpoint, loadConfig } from '../../src/run/index.js';
import { startServer } from '../../src/serve/index.js';
import { temporaryFolder } from '../run/temporary.js';
import { startTcts, tcts } from './train-process.js';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** What somebody would write: a module that names nothing but the package. */
const MODULE = `import { contextual, knownAnswer, problemKind, z } from 'tcts/schedule';
const teachers = { one: knownAnswer, two: contextual };
export default problemKind({
  schema: z.strictObject({
    kind: z.literal('mine').describe('A problem of my own.'),
    teachers: z.enum(['one', 'two']).default('one'),
  }),
  create: ({ teachers: which }, { random }) => teachers[which](random),
  evaluate: async (run, { threads }) => ({ json: { run, threads }, text: \`scored \${run}\` }),
});
`;

const CONFIG = `problem: {kind: module, module: ./lib/mine.js}
strategy: {name: learned, hidden: [4]}
training: {episodes: 60, steps: 7}
saving: {everySteps: 3, everySeconds: null}
`;

/** A project with tcts installed, a configuration in a folder and the module beside it. */
function project(): string {
  const folder = temporaryFolder();
  for (const name of ['node_modules', 'work/lib']) mkdirSync(join(folder, name), { recursive: true });
  symlinkSync(root, join(folder, 'node_modules/tcts'));
  writeFileSync(join(folder, 'package.json'), '{"type": "module"}');
  writeFileSync(join(folder, 'work/lib/mine.js'), MODULE);
  writeFileSync(join(folder, 'work/own.yaml'), CONFIG);
  writeFileSync(
    join(folder, 'work/grid.yaml'),
    'base: own.yaml\nset: {training.episodes: 5}\ngroups: [{name: own, grid: {problem.teachers: [one, two]}}]\n',
  );
  return folder;
}

describe("a problem of one's own from the command line", () => {
  it('is trained, killed, resumed, evaluated, swept, reported and shown', { timeout: 120_000 }, async () => {
    const folder = project();
    const train = (name: string, ...more: string[]) =>
      startTcts(folder, 'train', 'work/own.yaml', '--quiet', '--set', `name=${name}`, ...more);
    expect(await train('whole').ended).toMatchObject({ code: 0, stderr: '' });

    const run = join(folder, 'runs/killed');
    const { child, ended } = train('killed');
    while (!isRun(run) || latestCheckpoint(checkpointFolder(run), () => {}) === undefined) await sleep(10);
    child.kill('SIGKILL');
    await ended;
    // From another folder, and from the run folder alone: the path of the module is kept whole.
    expect(await tcts(join(folder, 'work'), 'train', '--resume', run, '--quiet')).toMatchObject({
      code: 0,
      stderr: '',
    });
    for (const file of ['metrics.jsonl', 'result.json']) {
      expect(readFileSync(join(run, file), 'utf8')).toBe(readFileSync(join(folder, 'runs/whole', file), 'utf8'));
    }
    expect(await tcts(folder, 'evaluate', 'runs/whole')).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^scored runs\/whole\nnext: (npx )?tcts report runs\/whole\n$/),
    });

    const swept = await tcts(folder, 'sweep', 'work/grid.yaml', '--json', '--quiet', '--cores', '4');
    expect(swept).toMatchObject({ code: 0, stderr: '' });
    const { runs } = JSON.parse(swept.stdout) as { runs: { name: string; state: string }[] };
    expect(runs.map(({ name, state }) => `${name} ${state}`).sort()).toEqual([
      'own,teachers=one,seed=1 done',
      'own,teachers=two,seed=1 done',
    ]);
    // The sweep evaluates what can be evaluated.
    const journal = readFileSync(join(folder, 'runs/grid/own,teachers=one,seed=1/job.json'), 'utf8');
    expect(JSON.parse(journal).done).toEqual([['evaluate', '--threads', '2']]);

    expect(await tcts(folder, 'report', 'runs/grid')).toMatchObject({ code: 0, stderr: '' });
    expect(readFileSync(join(folder, 'runs/grid/report/report.md'), 'utf8')).toContain('mine');

    const server = await startServer({ folder: join(folder, 'runs'), port: 0, host: '127.0.0.1', beam: 1, threads: 1 });
    try {
      const shown = await (await fetch(new URL('api/runs', server.url))).text();
      expect(shown).toContain('"kind":"mine"');
    } finally {
      await server.close();
    }
  });

  it('has its mistakes told with their place, as those of a built-in one', async () => {
    const folder = project();
    const file = join(folder, 'work/own.yaml');
    const load = (...set: string[]) => withModules(() => loadConfig(trainConfigSchema, file, { set }));
    expect((await load()).problem).toEqual({
      kind: 'module',
      module: join(folder, 'work/lib/mine.js'),
      teachers: 'one',
    });
    await expect(load('problem.teachers=three')).rejects.toThrow(
      '--set problem.teachers=three: problem.teachers: expected "one" or "two", found "three"',
    );
    await expect(load('problem.teacher=one')).rejects.toThrow('problem.teacher: unknown key; did you mean teachers?');
    await expect(load('problem.module=./nothing.js')).rejects.toThrow(
      /problem\.module: there is no file .*nothing\.js/,
    );
    await expect(load('problem.module=nothing-of-the-kind')).rejects.toThrow('there is no package nothing-of-the-kind');
    writeFileSync(join(folder, 'work/lib/other.js'), 'export const x = 1;\n');
    writeFileSync(join(folder, 'work/lib/broken.js'), 'export default {;\n');
    writeFileSync(file, CONFIG.replace('mine.js', 'other.js'));
    await expect(load()).rejects.toThrow(
      /own\.yaml:1: problem\.module: .*other\.js does not describe a problem: expected/,
    );
    writeFileSync(file, CONFIG.replace('mine.js', 'broken.js'));
    await expect(load()).rejects.toThrow(/problem\.module: .*broken\.js cannot be loaded/);
  });

  it('can be a package', async () => {
    const folder = project();
    const own = join(folder, 'node_modules/own-problem');
    mkdirSync(own);
    writeFileSync(join(own, 'package.json'), '{"type": "module", "exports": {".": {"import": "./mine.js"}}}');
    writeFileSync(join(own, 'mine.js'), MODULE);
    writeFileSync(join(folder, 'work/own.yaml'), CONFIG.replace('./lib/mine.js', 'own-problem'));
    expect(await tcts(folder, 'train', 'work/own.yaml', '--quiet', '--set', 'training.episodes=1')).toMatchObject({
      code: 0,
      stderr: '',
    });
  });

  it('is asked for once', async () => {
    const file = join(project(), 'work/lib/mine.js');
    expect(await loadModule(file)).toBe(await loadModule(file));
  });
});
