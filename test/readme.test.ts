import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { program } from '../src/cli/program.js';
import { temporaryFolder } from './run/temporary.js';

const root = fileURLToPath(new URL('..', import.meta.url));
const readme = readFileSync(join(root, 'README.md'), 'utf8');
const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { scripts: Record<string, string> };

describe('the README', () => {
  it('names only npm scripts and verbs that exist', () => {
    const npm = [...readme.matchAll(/npm run (\w+)/g)].map(([, script]) => script);
    expect(npm.filter((script) => scripts[script] === undefined)).toEqual([]);
    const verbs = [...readme.matchAll(/^(?:npx )?tcts (\w+)/gm)].map(([, verb]) => verb);
    const known = program().commands.map((command) => command.name());
    expect(verbs.length).toBeGreaterThan(4);
    expect(verbs.filter((verb) => !known.includes(verb))).toEqual([]);
  });

  it('has a picture that is drawn from the results as they are', () => {
    const folder = temporaryFolder();
    const [, command] = /Drawn by `node ([^`]+)`/.exec(readme) ?? [];
    const parts = (command ?? '').split(' ');
    const drawn = join(folder, 'drawn.svg');
    execFileSync(process.execPath, [...parts.slice(0, -1), drawn], { cwd: root });
    expect(readFileSync(join(root, parts.at(-1) ?? ''), 'utf8')).toBe(readFileSync(drawn, 'utf8'));
    // The means of the picture are those that its text tells.
    const [, described] = /aria-label="Test loss of ([^"]*)"/.exec(readFileSync(drawn, 'utf8')) ?? [];
    const [, told] = /!\[Test loss of six strategies over ten seeds: ([^\]]*)\]/.exec(readme) ?? [];
    for (const figure of told.split(', ')) expect(described.split(', ')).toContain(figure);
  });

  it('has a library example that runs and learns', () => {
    const code = /```ts\n([\s\S]*?)```/.exec(readme)![1];
    // The package refers to itself by its name from within its own folder.
    const folder = mkdtempSync(join(root, 'dist', 'readme-'));
    const file = join(folder, 'example.mjs');
    writeFileSync(file, code);
    const losses = execFileSync(process.execPath, [file], { encoding: 'utf8' }).trim().split('\n').map(Number);
    rmSync(folder, { recursive: true });
    expect(losses).toHaveLength(100);
    expect(losses.at(-1)!).toBeLessThan(losses[0] / 4);
  });
});
