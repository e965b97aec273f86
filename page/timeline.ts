import { useEffect, useRef } from 'preact/hooks';
import { html } from './html.js';
import type { LiveEvent } from './session.js';

/**
 * Every READ and WRITE in the order in which it happens, from left to right: what is read stands above, and the first
 * token that is written after it stands below it.
 */
export function Timeline({ events }: { events: readonly LiveEvent[] }) {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (box.current !== null) box.current.scrollLeft = box.current.scrollWidth;
  }, [events.length]);
  return html`
    <div class="timeline">
      <span class="row-name">READ</span>
      <span class="row-name">WRITE</span>
      <div class="track" ref=${box} tabindex="0" role="region" aria-label="READ and WRITE in the order in which they happen">
        <ol>
          ${events.map(
            ({ action, token, read }, i) => html`
              <li class=${action === 'READ' ? 'source' : 'target'} key=${i} title=${titleOf(action, token, read)}>
                <span class=${isEnd(token) ? 'token end' : 'token'}>${shown(token)}</span>
              </li>
            `,
          )}
        </ol>
      </div>
    </div>
  `;
}

function titleOf(action: string, token: string, read: number): string {
  return action === 'READ' ? `READ ${token}` : `WRITE ${token}, after ${read} source tokens`;
}

function isEnd(token: string): boolean {
  return token === '</s>';
}

/** A piece of a word that goes on has a mark at its end. */
function shown(token: string): string {
  if (isEnd(token)) return 'end';
  return token.endsWith('@@') ? `${token.slice(0, -2)}‑` : token;
}
