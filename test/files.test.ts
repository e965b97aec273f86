import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { InputError } from '../src/errors.js';
import { fileError, readBytes, readText, removeAbandoned, writeFileAtomic } from '../src/files.js';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tcts-files-'));
});
afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
});

describe('writeFileAtomic', () => {
  it('writes text, bytes and pieces, and leaves no other file', () => {
    writeFileAtomic(join(folder, 'text'), 'Grüße');
    writeFileAtomic(join(folder, 'bytes'), Uint8Array.of(0, 255, 7));
    writeFileAtomic(join(folder, 'pieces'), [Uint8Array.of(65), 'B', new Uint8Array(0), 'C']);
    expect(readFileSync(join(folder, 'text'), 'utf8')).toBe('Grüße');
    expect([...readFileSync(join(folder, 'bytes'))]).toEqual([0, 255, 7]);
    expect(readFileSync(join(folder, 'pieces'), 'utf8')).toBe('ABC');
    expect(readdirSync(folder).sort()).toEqual(['bytes', 'pieces', 'text']);
  });

  it('replaces the content as a whole', () => {
    const path = join(folder, 'file');
    writeFileAtomic(path, 'a long old content');
    writeFileAtomic(path, 'new');
    expect(readFileSync(path, 'utf8')).toBe('new');
  });

  it('takes names as long as the file system allows', () => {
    const path = join(folder, 'n'.repeat(255));
    writeFileAtomic(path, 'x');
    expect(readFileSync(path, 'utf8')).toBe('x');
  });

  it('keeps the old content and leaves nothing behind when the data fails halfway', () => {
    const path = join(folder, 'file');
    writeFileAtomic(path, 'old');
    function* failing() {
      yield 'new';
      throw new Error('no more data');
    }
    expect(() => writeFileAtomic(path, failing())).toThrow('no more data');
    expect(readFileSync(path, 'utf8')).toBe('old');
    expect(readdirSync(folder)).toEqual(['file']);
  });

  it('refuses a missing folder, a file as folder and a folder as file, naming the path', () => {
    writeFileSync(join(folder, 'file'), '');
    mkdirSync(join(folder, 'folder'));
    for (const [path, reason] of [
      [join(folder, 'missing', 'x'), 'no such file or folder'],
      [join(folder, 'file', 'x'), 'a part of the path is a file'],
      [join(folder, 'folder'), 'it is a folder'],
    ]) {
      let caught: unknown;
      try {
        writeFileAtomic(path, 'x');
      } catch (error) {
        caught = error;
      }
      expect(caught).toBeInstanceOf(InputError);
      expect((caught as InputError).message).toContain(`${path}: cannot write it: ${reason}`);
    }
    expect(readdirSync(folder).sort()).toEqual(['file', 'folder']);
  });
});

describe('fileError', () => {
  it('tells a full disk, missing rights and a read-only file system in words', () => {
    for (const [code, words] of [
      ['ENOSPC', 'the disk is full'],
      ['EACCES', 'permission denied'],
      ['EROFS', 'the file system is read-only'],
      ['EXDEV', 'the operating system answered EXDEV to write'],
    ]) {
      const error = fileError(Object.assign(new Error(code), { code, syscall: 'write' }), 'write', 'runs/a/model');
      expect(error).toBeInstanceOf(InputError);
      expect((error as InputError).message).toBe(`runs/a/model: cannot write it: ${words}`);
    }
  });

  it('leaves errors of the program as they are', () => {
    const bug = new TypeError('x is undefined');
    expect(fileError(bug, 'read', 'a')).toBe(bug);
  });
});

describe('reading', () => {
  it('returns what was written', () => {
    const path = join(folder, 'file');
    const bytes = Uint8Array.from({ length: 70_000 }, (_, i) => i % 251);
    writeFileAtomic(path, bytes);
    expect(Buffer.compare(readBytes(path), bytes)).toBe(0);
    writeFileAtomic(path, '\ufeffä');
    expect(readText(path)).toBe('ä');
  });

  it.skipIf(process.platform === 'win32')('reads a pipe to its end', () => {
    const pipe = join(folder, 'pipe');
    execFileSync('mkfifo', [pipe]);
    const writer = spawn('sh', ['-c', `printf 'through a pipe' > "$0"`, pipe]);
    expect(readText(pipe)).toBe('through a pipe');
    writer.unref();
  });

  it('names a missing file, a folder and text that is not UTF-8', () => {
    expect(() => readBytes(join(folder, 'none'))).toThrow(`${join(folder, 'none')}: cannot read it: no such file`);
    expect(() => readBytes(folder)).toThrow(InputError);
    const latin1 = join(folder, 'latin1');
    writeFileSync(latin1, Uint8Array.of(0x47, 0xfc));
    expect(() => readText(latin1)).toThrow(`${latin1}: the file is not UTF-8 text`);
  });
});

it('where abandoned files would be looked for, a file instead of a folder is refused with a sentence', () => {
  const path = join(folder, 'evaluation');
  writeFileSync(path, '');
  expect(() => removeAbandoned(path)).toThrow(InputError);
  removeAbandoned(join(folder, 'absent'));
});
