import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';

/** A folder that is there for the length of one test. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'tcts-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
