import { copyFileSync, rmSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { LiveModels } from '../../src/serve/live-models.js';
import { startServer } from '../../src/serve/server.js';
import type { CheckpointChoice } from '../../src/translate/index.js';
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

  it('are opened anew when training has saved a newer checkpoint, where the latest is served', async () => {
    const checkpoints = join(runs[0].folder, 'checkpoints');
    const reopened = async (checkpoint: CheckpointChoice, change: () => void): Promise<boolean> => {
      const models = new LiveModels(2, { checkpoint });
      const before = await models.lease(runs[0].folder);
      before.release();
      change();
      const after = await models.lease(runs[0].folder);
      after.release();
      await models.close();
      return after.model !== before.model;
    };
    const touchBest = () => utimesSync(join(checkpoints, 'best.safetensors'), new Date(), new Date(Date.now() + 9000));
    let step = 7;
    const saveNext = () =>
      copyFileSync(
        join(checkpoints, 'step-000000007.safetensors'),
        join(checkpoints, `step-${String(++step).padStart(9, '0')}.safetensors`),
      );
    expect(await reopened('latest', saveNext)).toBe(true);
    expect(await reopened('average:2', saveNext)).toBe(true);
    expect(await reopened('latest', touchBest)).toBe(false);
    expect(await reopened('best', saveNext)).toBe(false);
    expect(await reopened('best', () => rmSync(join(checkpoints, 'best.safetensors')))).toBe(true);
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

describe('a model for the page', () => {
  it('is sent compressed and once, and again when training has saved other parameters', async () => {
    const folder = runs[1].folder;
    const server = await startServer({ folder, port: 0, browser: true });
    const get = (file: string, etag = '') =>
      fetch(`${server.url}/model?run=run&file=${file}`, { headers: { 'if-none-match': etag } });
    const names = (await (await fetch(`${server.url}/api/model?run=run`)).json()) as string[];
    expect(names).toEqual(expect.arrayContaining(['settings.json', 'encoder-step.onnx', 'decoder-step.onnx']));
    const first = await get('settings.json');
    expect(first.headers.get('content-encoding')).toBe('gzip');
    expect(await first.json()).toMatchObject({ format: 'tcts translation model' });
    const etag = first.headers.get('etag')!;
    expect((await get('settings.json', etag)).status).toBe(304);
    const later = new Date(Date.now() + 60_000);
    utimesSync(join(folder, 'checkpoints', 'best.safetensors'), later, later);
    const renewed = await get('settings.json', etag);
    expect([renewed.status, renewed.headers.get('etag') === etag]).toEqual([200, false]);
    expect((await get('../run.json')).status).toBe(404);
    // Programs for WebGPU take 32-bit integers.
    const tokens = async (device: string) =>
      ((await (await get(`settings.json${device}`)).json()) as Settings).encoderStep.inputs.tokens;
    expect([await tokens(''), await tokens('&device=webgpu')]).toEqual(['i64[N, B]', 'i32[N, B]']);
    const other = await get('settings.json&device=tpu');
    expect([other.status, await other.json()]).toEqual([404, { message: 'device: expected cpu or webgpu' }]);
    await server.close();
  });
});

interface Settings {
  readonly encoderStep: { readonly inputs: Readonly<Record<string, string>> };
}
