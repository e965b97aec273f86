import { join, resolve } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { toolVersion } from '../../src/run/index.js';
import type { Job } from '../../src/sweep/job.js';
import {
  jobIdentity,
  jobOf,
  messageOf,
  parseJobMessage,
  requireSameVersion,
} from '../../src/sweep/queue/connection.js';

const job: Job = {
  name: 'mtl-1',
  folder: 'runs/grid/mtl-1',
  config: 'seed: 1\n',
  after: [['evaluate', '--k', '1,3']],
  cores: 2,
};

describe('a job in the queue', () => {
  it('names its folder relative to the shared one, and is found wherever that is mounted', () => {
    const message = messageOf(job, 'runs', 'id');
    expect(message.folder).toBe('grid/mtl-1');
    expect(JSON.stringify(message)).not.toContain(resolve('.'));
    expect(jobOf(message, '/mnt/other')).toEqual({ ...job, folder: '/mnt/other/grid/mtl-1' });
  });

  it('survives the way through Redis', () => {
    const message = messageOf(job, 'runs', 'id');
    expect(parseJobMessage(JSON.parse(JSON.stringify(message)))).toEqual(message);
  });

  it('outside the shared folder is refused', () => {
    expect(() => messageOf({ ...job, folder: 'elsewhere/mtl-1' }, 'runs', 'id')).toThrow(
      /^elsewhere\/mtl-1: the run is not in the shared folder runs$/,
    );
    expect(() => messageOf({ ...job, folder: 'runs' }, 'runs', 'id')).toThrow('not in the shared folder');
  });

  it('that would lead out of the shared folder, or is something else, is not accepted from Redis', () => {
    const message = messageOf(job, 'runs', 'id');
    for (const folder of ['../up', '/etc', 'a/../../up', '', 'a\\..\\..\\up']) {
      expect(parseJobMessage({ ...message, folder })).toBeUndefined();
    }
    for (const data of [undefined, null, 'text', {}, { ...message, cores: 0 }, { ...message, more: 1 }]) {
      expect(parseJobMessage(data)).toBeUndefined();
    }
  });
});

describe('the identity of a job', () => {
  const identity = (changed: Partial<Job>, runs = 'runs') => jobIdentity(messageOf({ ...job, ...changed }, runs, 'id'));

  it('is the same whenever the same is asked of the same run, wherever the folder is mounted', () => {
    expect(identity({})).toBe(identity({ cores: 4 }));
    expect(identity({})).toBe(identity({ folder: '/mnt/other/grid/mtl-1' }, '/mnt/other'));
    expect(identity({})).toMatch(/^grid-mtl-1-[0-9a-f]{16}$/);
  });

  it('is another one if the folder, the configuration or the verbs are', () => {
    const all = [{}, { folder: 'runs/grid-mtl-1' }, { config: 'seed: 2\n' }, { after: [] }].map((job) => identity(job));
    expect(new Set(all).size).toBe(all.length);
  });

  it('is one that BullMQ takes and that can be the name of a file', () => {
    fc.assert(
      fc.property(fc.string({ minLength: 1, maxLength: 400 }), (name) => {
        fc.pre(!/^\.*$/.test(name) && !/[/\\]/.test(name));
        expect(identity({ folder: join('runs', `x${name}`) })).toMatch(/^[\w.=,+-]{1,200}$/);
      }),
    );
  });
});

describe('versions', () => {
  it('of one series may work together', () => {
    const [major, minor] = toolVersion.split('.');
    expect(() => requireSameVersion({ version: `${major}.${minor}.99` })).not.toThrow();
  });

  it('of another series are refused with both', () => {
    expect(() => requireSameVersion({ version: '99.0.1' })).toThrow(
      `the sweep in this queue was started by tcts 99.0.1, but this worker is tcts ${toolVersion}: install the same version`,
    );
  });
});
