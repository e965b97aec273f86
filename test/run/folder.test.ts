import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { InputError } from '../../src/errors.js';
import { checkpointFolder, createRun, isRun, isRunning, openRun, resumeRun } from '../../src/run/index.js';
import { temporaryFolder } from './temporary.js';

const config = { seed: 5, name: undefined, saving: { everySteps: 10 }, optimizer: { rate: 0.1 } };

describe('making a run', () => {
  test('leaves its configuration and its description', () => {
    const path = join(temporaryFolder(), 'runs', 'first');
    const run = createRun(path, { config, seed: 5, command: ['tcts', 'train'] });
    expect(isRun(path)).toBe(true);
    expect(isRunning(path)).toBe(true);
    expect(readFileSync(join(path, 'config.yaml'), 'utf8')).toBe(
      'seed: 5\nsaving:\n  everySteps: 10\noptimizer:\n  rate: 0.1\n',
    );
    expect(JSON.parse(readFileSync(join(path, 'run.json'), 'utf8'))).toEqual({
      name: 'first',
      seed: 5,
      version: packageVersion('../../package.json'),
      node: process.versions.node,
      onnxruntime: packageVersion('../../node_modules/onnxruntime-node/package.json'),
      created: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
      state: 'running',
      command: ['tcts', 'train'],
    });
    run.lock.release();
    expect(isRunning(path)).toBe(false);
    expect(readdirSync(path).sort()).toEqual(['checkpoints', 'config.yaml', 'run.json']);
  });

  test('is refused where a run is, or anything else', () => {
    const path = finishedRun();
    expect(() => createRun(path, { config, seed: 5 })).toThrow(/there is already a run: resume it/);
    const other = temporaryFolder();
    writeFileSync(join(other, 'thesis.tex'), '');
    expect(() => createRun(other, { config, seed: 5 })).toThrow(/not empty \(it holds thesis.tex\)/);
    expect(readdirSync(other)).toEqual(['thesis.tex']);
  });

  test('works where making one was cut off', () => {
    const path = temporaryFolder();
    mkdirSync(join(path, 'checkpoints'));
    writeFileSync(join(path, 'config.yaml'), 'seed: 4\n');
    writeFileSync(join(path, '.0123456789abcdef.tmp'), '{"na');
    createRun(path, { config, seed: 5 }).lock.release();
    expect(openRun(path).config).toMatchObject({ seed: 5 });
    expect(readdirSync(path).sort()).toEqual(['checkpoints', 'config.yaml', 'run.json']);
  });

  test('is refused with a sentence where no folder can be made', () => {
    const file = join(temporaryFolder(), 'file');
    writeFileSync(file, '');
    expect(() => createRun(join(file, 'run'), { config, seed: 5 })).toThrow(InputError);
    expect(() => createRun('/proc/tcts/run', { config, seed: 5 })).toThrow(InputError);
  });
});

describe('opening a run', () => {
  test('needs a run', () => {
    expect(() => openRun(temporaryFolder())).toThrow('not a run folder: it has no run.json');
    const path = finishedRun();
    writeFileSync(join(path, 'run.json'), '{"name"');
    expect(() => openRun(path)).toThrow(/run.json: expected the description of a run/);
  });

  test('works while another process is at it', () => {
    const path = join(temporaryFolder(), 'run');
    const run = createRun(path, { config, seed: 5 });
    expect(openRun(path).info.state).toBe('running');
    run.lock.release();
  });
});

describe('resuming a run', () => {
  test('locks it and says that it is running', () => {
    const path = finishedRun();
    const run = resumeRun(path, { config, command: ['tcts', 'train', '--resume'] });
    expect(openRun(path).info).toMatchObject({ state: 'running', command: ['tcts', 'train', '--resume'] });
    expect(() => resumeRun(path)).toThrow(`process ${process.pid}`);
    run.lock.release();
  });

  test('with another configuration is refused by the names of the keys', () => {
    const path = finishedRun();
    const changed = { seed: 6, saving: { everySteps: 10 }, optimizer: { rate: 0.1, beta: 0.9 } };
    expect(() => resumeRun(path, { config: changed })).toThrow(
      /another configuration: seed was 5 and is now 6; optimizer.beta was absent and is now 0.9$/,
    );
    expect(isRunning(path)).toBe(false);
  });

  test('may save at other times, and remembers it', () => {
    const path = finishedRun();
    resumeRun(path, { config: { ...config, saving: { everySteps: 20 } } }).lock.release();
    expect(openRun(path).config).toEqual({ seed: 5, saving: { everySteps: 20 }, optimizer: { rate: 0.1 } });
  });

  test('of another version is refused, of another patch it is not', () => {
    const path = finishedRun();
    const [major, minor, patch] = packageVersion('../../package.json').split('.').map(Number);
    setVersion(path, `${major}.${minor + 1}.${patch}`);
    expect(() => resumeRun(path)).toThrow(
      /run.json: it was written by tcts \d+\.\d+\.\d+, which tcts .* cannot resume/,
    );
    setVersion(path, `${major}.${minor}.${patch + 1}`);
    resumeRun(path).lock.release();
  });

  test('clears away what a killed process was writing', () => {
    const path = finishedRun();
    const leftovers = [join(path, '.00112233445566aa.tmp'), join(checkpointFolder(path), '.00112233445566bb.tmp')];
    for (const leftover of leftovers) writeFileSync(leftover, 'half');
    resumeRun(path).lock.release();
    expect(readdirSync(path).sort()).toEqual(['checkpoints', 'config.yaml', 'run.json']);
    expect(readdirSync(checkpointFolder(path))).toEqual([]);
  });

  test('needs a run', () => {
    expect(() => resumeRun(join(temporaryFolder(), 'none'))).toThrow('there is no run to resume');
  });
});

function finishedRun(): string {
  const path = join(temporaryFolder(), 'run');
  createRun(path, { config, seed: 5 }).lock.release();
  return path;
}

function setVersion(path: string, version: string): void {
  const file = join(path, 'run.json');
  writeFileSync(file, JSON.stringify({ ...JSON.parse(readFileSync(file, 'utf8')), version }));
}

function packageVersion(path: string): string {
  return JSON.parse(readFileSync(new URL(path, import.meta.url), 'utf8')).version;
}
