/** A bucket of tokens: `burst` at once, then `perSecond`. Says for each event whether it is still within the limit. */
export function rateLimit(
  perSecond: number,
  burst: number,
  now: () => number = () => performance.now(),
): () => boolean {
  let left = burst;
  let last = now();
  return () => {
    const time = now();
    left = Math.min(burst, left + ((time - last) / 1000) * perSecond);
    last = time;
    if (left < 1) return false;
    left--;
    return true;
  };
}
