import type { DeviceName } from '../devices.js';

/** A GRU that `tcts doctor` measures with. */
export interface MeasuredGru {
  readonly steps: number;
  readonly batch: number;
  readonly hidden: number;
  readonly layers: number;
  readonly workers?: number;
  readonly device?: DeviceName;
}

/** Its training on random numbers: `step` makes one Adam update and returns the loss. */
export async function startGru({ steps, batch, hidden, layers, workers, device }: MeasuredGru) {
  const [{ gru, linear }, { Training }, { Random }, { f32, mul, square, squeeze, sub, sum }] = await Promise.all([
    import('../nn/index.js'),
    import('../optim/index.js'),
    import('../random.js'),
    import('../tensor/index.js'),
  ]);
  const training = await Training.create({
    model: (p, { x, y }) => {
      const { last } = gru(p.under('gru'), x, { hidden, layers });
      const error = sub(squeeze(linear(p.under('out'), last[layers - 1], 1), 1), y);
      return { loss: mul(sum(square(error)), 1 / batch) };
    },
    inputs: { x: f32(steps, 'B', 5), y: f32('B') },
    random: new Random('doctor'),
    optimizer: { name: 'adam' },
    workers,
    device,
  });
  const random = new Random('data');
  const normal = (...shape: number[]): { data: Float32Array; shape: number[] } => {
    const data = new Float32Array(shape.reduce((a, b) => a * b, 1));
    random.fillNormal(data, 0, 1);
    return { data, shape };
  };
  const data = { x: normal(steps, batch, 5), y: normal(batch) };
  return {
    step: async (): Promise<number> => (await training.step(data, 1e-3)).loss,
    close: () => training.close(),
  };
}
