import htm from 'htm';
import { h } from 'preact';
import { useId } from 'preact/hooks';

/** Markup as a template. Interpolated values become text or attributes, never markup. */
export const html = htm.bind(h);

/** A question mark that explains a word on hover and focus. */
export function Explain({ what, text }: { what: string; text: string }) {
  const id = useId();
  return html`
    <span class="explain">
      <button type="button" aria-label=${`About ${what}`} aria-describedby=${id}>?</button>
      <span role="tooltip" id=${id}>${text}</span>
    </span>
  `;
}

/** What is explained wherever it is shown. */
export const TERMS = {
  READ: 'READ: the model reads the next word of the source. WRITE: it commits to the next word of the translation.',
  AL: 'Average lagging: how many source tokens the translation is behind an ideal one that keeps up with the speaker. Lower is faster.',
  AP: 'Average proportion: the share of the source that was read when a token was written, on average. 1 means that everything waited for the end of the source.',
  staircase:
    'A step to the right is a READ, a step up a WRITE. The further right of the dashed line, the later the translation.',
  reward: 'The change of the main task’s validation performance in an episode: what the scheduler learns from.',
  tasks: 'The share of each episode’s samples that was trained on each task.',
  scheduler:
    'Each chart moves one feature from two standard deviations below its mean to two above, with all others at their means, and shows the share of each task that the scheduler would choose.',
} as const;
