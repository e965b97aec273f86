import { utimesSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { LiveModels } from '../../src/serve/live-models.js';
import { randomTranslationRun, type TranslationRun } from '../cli/translation-run.js';

let runs: TranslationRun[];

beforeAll(async () => {
  runs = [await randomTranslationRun(1), await randomTranslationRun(2)];
});

afterAll(() => {
  for (const run of runs) run.remove();
});

describe('the models that are open', () => {
  it('are shared, kept while used, and make room for others when not', async () => {
    const models = new LiveModels(1);
    const [first, again] = await Promise.all([models.lease(runs[0].folder), models.lease(runs[0].folder)]);
    expect(again.model).toBe(first.model);
    expect(models.users).toBe(2);
    await expect(models.lease(runs[1].folder)).rejects.toThrow('1 models are in use');
    first.release();
    first.release();
    expect(models.users).toBe(1);
    again.release();
    const other = await models.lease(runs[1].folder);
    expect(other.model).not.toBe(first.model);
    other.release();
    await models.close();
  });

  it('are opened anew when training has saved better parameters', async () => {
    const models = new LiveModels(2);
    const before = await models.lease(runs[0].folder);
    utimesSync(join(runs[0].folder, 'checkpoints', 'best.safetensors'), new Date(), new Date(Date.now() + 5000));
    const used = await models.lease(runs[0].folder);
    expect(used.model).toBe(before.model);
    before.release();
    used.release();
    const after = await models.lease(runs[0].folder);
    expect(after.model).not.toBe(before.model);
    after.release();
    await models.close();
  });

  it('do not include one that cannot be opened', async () => {
    const models = new LiveModels(1);
    await expect(models.lease('/nowhere')).rejects.toThrow('not a run folder');
    expect(models.users).toBe(0);
    const lease = await models.lease(runs[0].folder);
    lease.release();
    await models.close();
  });
});
