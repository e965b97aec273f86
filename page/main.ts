import { render } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { siteFiles } from './api.js';
import { html } from './html.js';
import { readLink } from './link.js';
import { RunsTab } from './runs.js';
import { TranslateTab } from './translate.js';

const TABS = { translate: 'Translate', runs: 'Runs' } as const;
type Tab = keyof typeof TABS;

function currentTab(): Tab {
  return readLink().tab === 'runs' ? 'runs' : 'translate';
}

function App() {
  const [tab, setTab] = useState<Tab>(currentTab);
  useEffect(() => {
    const follow = () => setTab(currentTab());
    addEventListener('hashchange', follow);
    return () => removeEventListener('hashchange', follow);
  }, []);
  useEffect(() => {
    document.title = `${TABS[tab]} · tcts`;
  }, [tab]);
  if (siteFiles !== undefined) return html`<main><${TranslateTab} active /></main>`;
  // Both stay in the document: translation continues while the runs are shown.
  return html`
    <header>
      <h1>tcts</h1>
      <nav aria-label="Parts of the page">
        ${Object.entries(TABS).map(
          ([name, title]) => html`<a href=${`#${name}`} aria-current=${name === tab ? 'page' : undefined}>${title}</a>`,
        )}
      </nav>
    </header>
    <main>
      <div hidden=${tab !== 'translate'}><${TranslateTab} active=${tab === 'translate'} /></div>
      <div hidden=${tab !== 'runs'}><${RunsTab} active=${tab === 'runs'} /></div>
    </main>
  `;
}

const place = document.getElementById('app') ?? document.body;
place.replaceChildren();
render(html`<${App} />`, place);
