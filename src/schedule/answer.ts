/**
 * The oracle of a problem in which some tasks are spoilt for some samples, [size, K]. Where nothing is: half the main
 * task, half the others alike, which is no worse than either alone on the problems here. Where something is: the tasks
 * that are left, alike.
 */
export function oracleRows(
  size: number,
  K: number,
  main: number,
  isSpoilt: (sample: number, task: number) => boolean,
): Float32Array {
  const rows = new Float32Array(size * K);
  for (let i = 0; i < size; i++) {
    const left = Array.from({ length: K }, (_, task) => task).filter((task) => !isSpoilt(i, task));
    if (left.length === 0) throw new RangeError(`every task of sample ${i} is spoilt`);
    for (const task of left) {
      const clean = task === main ? 0.5 : 0.5 / (K - 1);
      rows[i * K + task] = left.length < K || K === 1 ? 1 / left.length : clean;
    }
  }
  return rows;
}
