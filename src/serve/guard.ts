import type { IncomingHttpHeaders } from 'node:http';
import { isIP } from 'node:net';

export interface GuardOptions {
  /** The address that the server is bound to. */
  readonly host: string;
  /** Further names under which it may be reached. */
  readonly names: readonly string[];
}

/** Why a request is refused; undefined if it may pass. */
export type Guard = (headers: IncomingHttpHeaders) => string | undefined;

/**
 * Keeps other web sites out. A page of another site can make a browser send requests here, so `Origin` must be ours;
 * and its own name can be made to resolve to this machine (DNS rebinding), so `Host` must be a name that nobody else
 * controls: `localhost`, an IP address, or one that the user has given. Bound to loopback, only loopback addresses count.
 */
export function createGuard({ host, names }: GuardOptions): Guard {
  const known = new Set(['localhost', host, ...names].map((name) => name.toLowerCase()));
  const local = isLoopback(host);
  const trusted = (name: string): boolean => known.has(name) || (isIP(name) !== 0 && (!local || isLoopback(name)));
  return (headers) => {
    const host = headers.host ?? '';
    const name = hostName(host);
    if (name === undefined || !trusted(name)) return 'this name is not served here';
    const { origin } = headers;
    if (origin !== undefined && origin !== `http://${host}`) return 'requests of other sites are refused';
    const site = headers['sec-fetch-site'];
    if (site === 'cross-site' && headers['sec-fetch-mode'] !== 'navigate') return 'requests of other sites are refused';
    return undefined;
  };
}

/** Whether an address can only be reached from this machine. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'));
}

/** The name in a `Host` header, without port and brackets. */
function hostName(host: string): string | undefined {
  const [, bracketed, plain] = /^(?:\[([0-9a-f:.]+)\]|([a-z0-9._-]+))(?::\d{1,5})?$/i.exec(host) ?? [];
  return (bracketed ?? plain)?.toLowerCase();
}

/** Headers of every answer. The page needs nothing but its own files and the server it came from. */
export function securityHeaders(scriptHash: string, runsModels: boolean): Readonly<Record<string, string>> {
  const policy = [
    "default-src 'none'",
    // The hash is that of the import map; WebAssembly is allowed only where models run in the page.
    `script-src 'self' '${scriptHash}'${runsModels ? " 'wasm-unsafe-eval'" : ''}`,
    "style-src 'self'",
    "connect-src 'self'",
    "img-src 'self' data:",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ];
  return {
    'Content-Security-Policy': policy.join('; '),
    'X-Content-Type-Options': 'nosniff',
    'X-Frame-Options': 'DENY',
    'Referrer-Policy': 'no-referrer',
    'Cross-Origin-Opener-Policy': 'same-origin',
    'Cross-Origin-Resource-Policy': 'same-origin',
    'Cache-Control': 'no-cache',
  };
}
