import { InputError } from '../errors.js';
import type { Arena } from '../optim/index.js';
import { partOf } from '../schedule/index.js';
import { horizonsOf } from './config.js';
import { openForecastRun } from './forecast-run.js';

/**
 * Fills the arena with the best parameters of another run. An output layer of another number of tasks starts with the
 * other's row of its main task in every row; embeddings of tasks that it has not stay as they are.
 */
export function warmStart(arena: Arena, run: string): void {
  const { config, problem } = openForecastRun(run);
  if (config.model.name === 'trees') throw new InputError('expected a network, found boosted trees', { file: run });
  const { tensors } = partOf(problem, 'model');
  for (const name of arena.names) {
    const source = tensors.get(name);
    if (source === undefined) {
      if (name === 'task.weight') continue;
      throw new InputError(`that run has no parameter ${name}: expected one of the same model`, { file: run });
    }
    const target = arena.value(name);
    const values = source.data as Float32Array;
    const [rows] = arena.shape(name);
    const inner = target.length / rows;
    const sameRow = source.shape.slice(1).join() === arena.shape(name).slice(1).join();
    if (source.shape.join() === arena.shape(name).join()) {
      target.set(values);
    } else if (name.startsWith('output.') && sameRow) {
      const row = source.shape[0] === 1 ? 0 : horizonsOf(config).indexOf(config.main);
      for (let k = 0; k < rows; k++) target.set(values.subarray(row * inner, (row + 1) * inner), k * inner);
    } else {
      const shapes = `[${source.shape.join(', ')}] and here [${arena.shape(name).join(', ')}]`;
      throw new InputError(`the parameter ${name} has the shape ${shapes}: expected the same model`, { file: run });
    }
  }
}
