import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';
import { acquireLock, type LockHolder, LostLockError, lockHolder } from '../../src/run/index.js';
import { temporaryFolder } from './temporary.js';

const built = fileURLToPath(new URL('../../dist/run/index.js', import.meta.url));

describe('a lock', () => {
  test('is held by one at a time', () => {
    const path = lockPath();
    const lock = acquireLock(path);
    expect(() => acquireLock(path)).toThrow(`process ${process.pid} on host ${hostname()} is using this folder`);
    lock.release();
    expect(existsSync(path)).toBe(false);
    acquireLock(path).release();
  });

  test('of another living process is refused, and free once that has exited', async () => {
    const path = lockPath();
    const child = spawn(process.execPath, ['--input-type=module', '-e', holdLock(path)], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    onTestFinished(() => void child.kill('SIGKILL'));
    await once(child.stdout, 'data');
    expect(() => acquireLock(path)).toThrow(`process ${child.pid} on host ${hostname()} is using this folder`);
    expect(lockHolder(path)?.pid).toBe(child.pid);
    child.stdin.end();
    await once(child, 'exit');
    expect(existsSync(path)).toBe(false);
    acquireLock(path).release();
  });

  test('of a process that was killed is taken over', async () => {
    const path = lockPath();
    const child = spawn(process.execPath, ['--input-type=module', '-e', holdLock(path)], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    await once(child.stdout, 'data');
    child.kill('SIGKILL');
    await once(child, 'exit');
    expect(lockHolder(path)).toBeUndefined();
    const lock = acquireLock(path);
    expect(lockHolder(path)?.pid).toBe(process.pid);
    expect(readdirSync(join(path, '..'))).toEqual(['run.lock']);
    lock.release();
  });

  test.skipIf(!existsSync('/proc/self/stat'))(
    'of a dead process whose number was given to another is taken over',
    () => {
      const path = lockPath();
      forge(path, { started: '1' });
      acquireLock(path).release();
    },
  );

  test.skipIf(!existsSync('/proc/self/stat'))('of before the machine was started again is taken over', () => {
    const path = lockPath();
    forge(path, { boot: 'an earlier one' });
    acquireLock(path).release();
  });

  test('of a process in another container of this host is refused', () => {
    const path = lockPath();
    forge(path, { space: 'pid:[1]', pid: 2 ** 22 + 1 });
    expect(() => acquireLock(path)).toThrow('is using this folder');
  });

  test('of a process on another host is refused, unless the caller knows that it is dead', () => {
    const path = lockPath();
    forge(path, { host: 'elsewhere', pid: 7 });
    expect(() => acquireLock(path)).toThrow(/process 7 on host elsewhere is using this folder .*delete this file/);
    acquireLock(path, { takeOver: true }).release();
  });

  test('without content is being written right now, or is dead if it is old', () => {
    const path = lockPath();
    writeFileSync(path, '');
    expect(() => acquireLock(path)).toThrow('is being locked by another process');
    utimesSync(path, new Date(0), new Date(0));
    acquireLock(path).release();
  });

  test('whose taking over was itself killed is taken over', () => {
    const path = lockPath();
    forge(path, { pid: deadPid() });
    forge(`${path}.takeover`, { pid: deadPid() });
    acquireLock(path).release();
    expect(readdirSync(join(path, '..'))).toEqual([]);
  });

  test('that was taken away by force is not removed by its former holder', () => {
    const path = lockPath();
    const lock = acquireLock(path);
    forge(path, { token: 'another' });
    lock.release();
    expect(existsSync(path)).toBe(true);
  });

  test('that was taken over or removed is known to be lost', () => {
    const path = lockPath();
    const lock = acquireLock(path);
    lock.requireHeld();
    forge(path, { token: 'another', host: 'elsewhere', pid: 7 });
    expect(() => lock.requireHeld()).toThrow(
      /process 7 on host elsewhere has taken this folder over: this process ends/,
    );
    expect(() => lock.requireHeld()).toThrow(LostLockError);
    rmSync(path);
    expect(() => lock.requireHeld()).toThrow(/the lock is gone, .*: this process ends and writes nothing more/);
    writeFileSync(path, '');
    expect(() => lock.requireHeld()).toThrow('the lock can no longer be read');
  });

  test.each(['folder', 'pipe'])(
    'whose name is that of a %s is refused with a sentence, however old that is',
    (kind) => {
      const path = lockPath();
      if (kind === 'folder') mkdirSync(path);
      else expect(spawnSync('mkfifo', [path]).status).toBe(0);
      utimesSync(path, new Date(0), new Date(0));
      const what = kind === 'folder' ? 'a folder' : 'not a file';
      expect(() => acquireLock(path)).toThrow(`${path}: it is ${what}, but its name is that of the lock: remove it`);
      expect(lockHolder(path)).toBeUndefined();
    },
  );

  test('of a dead process is won by exactly one of many that want it at once', async () => {
    const path = lockPath();
    forge(path, { pid: deadPid() });
    const contender = `
      import { acquireLock } from ${JSON.stringify(built)};
      process.stdin.once('data', () => {
        try { acquireLock(${JSON.stringify(path)}); console.log('won'); } catch { console.log('lost'); }
        process.stdin.once('end', () => process.exit()).resume();
      });
      console.log('ready');`;
    const children = Array.from({ length: 6 }, () =>
      spawn(process.execPath, ['--input-type=module', '-e', contender], { stdio: ['pipe', 'pipe', 'inherit'] }),
    );
    onTestFinished(() => children.forEach((child) => void child.kill('SIGKILL')));
    await Promise.all(children.map((child) => once(child.stdout, 'data')));
    const answers = Promise.all(children.map(async (child) => String((await once(child.stdout, 'data'))[0]).trim()));
    for (const child of children) child.stdin.write('go\n');
    expect((await answers).filter((answer) => answer === 'won')).toHaveLength(1);
    for (const child of children) child.stdin.end();
    await Promise.all(children.map((child) => once(child, 'exit')));
  });
});

function lockPath(): string {
  return join(temporaryFolder(), 'run.lock');
}

/** A lock like one of this process, but for `changes`. */
function forge(path: string, changes: Partial<LockHolder>): void {
  const own = `${path}.own`;
  const lock = acquireLock(own);
  const holder = JSON.parse(readFileSync(own, 'utf8')) as LockHolder;
  lock.release();
  writeFileSync(path, JSON.stringify({ ...holder, ...changes }));
}

function deadPid(): number {
  return spawnSync(process.execPath, ['-e', '']).pid;
}

function holdLock(path: string): string {
  return `
    import { acquireLock } from ${JSON.stringify(built)};
    acquireLock(${JSON.stringify(path)});
    console.log('locked');
    process.stdin.on('end', () => process.exit()).resume();`;
}
