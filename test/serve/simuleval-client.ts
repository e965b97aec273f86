/**
 * What SimulEval's evaluator does with a remote agent (simuleval/evaluator/remote.py and instance.py): a word a
 * segment, the last one marked as finished, and after each the output is fetched; it ends when that says finished.
 */
export async function evaluateRemotely(
  url: string,
  words: readonly string[],
): Promise<{ prediction: string[]; delays: number[] }> {
  await fetch(`${url}/reset`, { method: 'POST' });
  const [prediction, delays]: [string[], number[]] = [[], []];
  for (let step = 0, finished = false; !finished; ) {
    const segment =
      step < words.length
        ? { index: step, content: words[step], finished: step === words.length - 1, is_empty: false, data_type: 'text' }
        : { index: 0, content: [], finished: true, is_empty: true, data_type: null };
    if (step < words.length) step++;
    await fetch(`${url}/input`, { method: 'PUT', body: JSON.stringify({ ...segment, tgt_lang: null }) });
    const said = (await (await fetch(`${url}/output`)).json()) as {
      content: string;
      finished: boolean;
      is_empty: boolean;
    };
    finished = said.finished;
    if (said.is_empty) continue;
    const written = said.content.split(/\s+/u).filter((word) => word !== '');
    prediction.push(...written);
    delays.push(...written.map(() => step));
  }
  return { prediction, delays };
}
