import type { Random } from '../../random.js';
import { LinearProblem } from './linear.js';

/**
 * Which task to choose is known here: the labels of `clean` are those of the main task without its noise, and the
 * others point 60°, 120° and 180° away from it. With probabilities p the model tends to Σ p_T w_T, so that the best
 * distribution is all on `clean`: only `main` and `clean` lead to the right place, and only `clean` to rest there.
 */
export function knownAnswer(random: Random): LinearProblem {
  const [along, across] = orthogonalPair(random.fork('teachers'));
  const at = (degrees: number) => [rotated(along, across, degrees)];
  return new LinearProblem({
    random,
    main: 'main',
    answers: ['clean'],
    teachers: [
      { name: 'clean', slopes: at(0), noise: 0 },
      { name: 'main', slopes: at(0), noise: NOISE },
      { name: 'off-60', slopes: at(60), noise: 0 },
      { name: 'off-120', slopes: at(120), noise: 0 },
      { name: 'off-180', slopes: at(180), noise: 0 },
    ],
  });
}

/**
 * Which task to choose depends on the kind of the sample: the labels of `even` are right for samples of kind 0 and
 * have the wrong sign for those of kind 1; with `odd` it is the other way round. `main` is right for both, but noisy.
 */
export function contextual(random: Random): LinearProblem {
  const [along, across] = orthogonalPair(random.fork('teachers'));
  const [right, wrong] = [rotated(along, across, 0), rotated(along, across, 180)];
  return new LinearProblem({
    random,
    main: 'main',
    answers: ['even', 'odd'],
    teachers: [
      { name: 'main', slopes: [right, right], noise: NOISE },
      { name: 'even', slopes: [right, wrong], noise: 0 },
      { name: 'odd', slopes: [wrong, right], noise: 0 },
    ],
  });
}

/** D. */
const DIMENSION = 8;
/** ‖w_T‖ */
const LENGTH = 1.5;
const NOISE = 4;

function rotated(along: readonly number[], across: readonly number[], degrees: number): number[] {
  const angle = (degrees * Math.PI) / 180;
  return along.map((a, j) => LENGTH * (Math.cos(angle) * a + Math.sin(angle) * across[j]));
}

/** Two random directions at right angles, of length 1. */
function orthogonalPair(random: Random): [number[], number[]] {
  const direction = () => unit(Array.from({ length: DIMENSION }, () => random.normal()));
  const [along, other] = [direction(), direction()];
  const overlap = along.reduce((sum, a, j) => sum + a * other[j], 0);
  return [along, unit(other.map((b, j) => b - overlap * along[j]))];
}

function unit(vector: readonly number[]): number[] {
  const length = Math.hypot(...vector);
  return vector.map((x) => x / length);
}
