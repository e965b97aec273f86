/** The tab and its settings that are in a link, as in `#translate?text=…&a.run=…`. */
export interface Link {
  readonly tab: string;
  readonly settings: URLSearchParams;
}

export function readLink(): Link {
  const [tab, settings = ''] = location.hash.slice(1).split(/\?(.*)/su);
  return { tab, settings: new URLSearchParams(settings) };
}

/** Puts settings into the address, without a new entry in the history, and returns it. */
export function writeLink({ tab, settings }: Link): string {
  const text = settings.toString();
  history.replaceState(null, '', text === '' ? `#${tab}` : `#${tab}?${text}`);
  return location.href;
}
