/** Limits on what one client, and all of them together, can make the server hold or do. */
export const limits = {
  /** Bytes of a message of a client. */
  messageBytes: 4096,
  /** Messages per second of a connection, and the burst; and for all connections of an address together. */
  messagesPerSecond: 50,
  messageBurst: 400,
  addressMessagesPerSecond: 500,
  addressMessageBurst: 1000,
  /** Concurrent sentences of a connection, for settings side by side. */
  lanes: 4,
  /** Concurrent sentences on the whole server. */
  streams: 200,
  /** Connections to the server, and from one address. */
  connections: 256,
  connectionsOfAddress: 128,
  /** Requests per second from one address, and the burst. */
  requestsPerSecond: 100,
  requestBurst: 300,
  /** Words of a message, or characters of a source that is read by characters; and of a sentence. */
  wordsOfMessage: 64,
  sentenceWords: 256,
  /** Characters of a word. */
  wordLength: 100,
  /** Source tokens of a sentence, counting word pieces, which bounds its caches. */
  sentenceTokens: 256,
  /** Words of a sentence that have arrived and are still waiting. */
  waitingWords: 400,
  /** Bytes that a client may leave unread before it is disconnected. */
  unreadBytes: 1_000_000,
  /** Milliseconds after which a connection without a message or an answer to a ping is ended. */
  silence: 60_000,
  /** Models that are open at a time. */
  models: 3,
  /** Bytes of the description of a run, of its configuration, and of other files in it, logs and models aside. */
  descriptionBytes: 64_000,
  /** YAML takes long to parse: ten times as large as ours are, it takes 30 ms. */
  configBytes: 16_000,
  fileBytes: 4_000_000,
} as const;

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

/** A rate limit for each address: one client cannot use up that of another. */
export function rateLimitByAddress(
  perSecond: number,
  burst: number,
  now: () => number = () => performance.now(),
): (address: string) => boolean {
  const buckets = new Map<string, { within: () => boolean; used: number }>();
  return (address) => {
    const time = now();
    let bucket = buckets.get(address);
    if (bucket === undefined) {
      // Buckets that have refilled can be dropped.
      if (buckets.size >= MOST_ADDRESSES) {
        for (const [name, { used }] of buckets) if (time - used > (1000 * burst) / perSecond) buckets.delete(name);
        if (buckets.size >= MOST_ADDRESSES) return false;
      }
      bucket = { within: rateLimit(perSecond, burst, now), used: time };
      buckets.set(address, bucket);
    }
    bucket.used = time;
    return bucket.within();
  };
}

const MOST_ADDRESSES = 10_000;
