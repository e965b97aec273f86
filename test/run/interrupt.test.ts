import { expect, test } from 'vitest';
import { listenForInterrupt } from '../../src/run/index.js';

test('the first signal asks to stop, the same keystroke again is ignored, a later one exits', () => {
  const announced: string[] = [];
  const exits: number[] = [];
  let time = 0;
  const before = process.listenerCount('SIGINT');
  const interrupt = listenForInterrupt({
    announce: (signal) => announced.push(signal),
    exit: (code) => exits.push(code),
    now: () => time,
  });
  expect(interrupt.signal).toBeUndefined();
  process.emit('SIGINT', 'SIGINT');
  time = 10;
  process.emit('SIGINT', 'SIGINT');
  expect([interrupt.signal, announced, exits]).toEqual(['SIGINT', ['SIGINT'], []]);
  time = 1000;
  process.emit('SIGINT', 'SIGINT');
  process.emit('SIGTERM', 'SIGTERM');
  // 128 plus the number of the signal, as shells have it.
  expect(exits).toEqual([130, 143]);
  interrupt.dispose();
  expect(process.listenerCount('SIGINT')).toBe(before);
});
