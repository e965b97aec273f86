import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readingWithin } from '../regular-file.js';
import { exportTranslation } from '../translate/export.js';

/** Models as files for the page, exported when they are first asked for, and removed in the end. */
export class BrowserModels {
  private folder: string | undefined;
  /** By run: paths of the files by their names. */
  private readonly exported = new Map<string, ReadonlyMap<string, string>>();

  /** Names of the files of a run's model. */
  files(run: string): string[] {
    return [...this.of(run).keys()];
  }

  /** Path of one of them. */
  path(run: string, name: string): string | undefined {
    return this.of(run).get(name);
  }

  close(): void {
    if (this.folder !== undefined) rmSync(this.folder, { recursive: true, force: true });
  }

  private of(run: string): ReadonlyMap<string, string> {
    const known = this.exported.get(run);
    if (known !== undefined) return known;
    this.folder ??= mkdtempSync(join(tmpdir(), 'tcts-serve-'));
    const folder = join(this.folder, String(this.exported.size));
    readingWithin(run, () => exportTranslation(run, folder, { beam: 1 }));
    const files = new Map(readdirSync(folder).map((name) => [name, join(folder, name)]));
    this.exported.set(run, files);
    return files;
  }
}
