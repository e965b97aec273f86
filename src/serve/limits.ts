/** What one client, and all of them together, can make the server hold or do. */
export const limits = {
  /** Bytes of a message of a client. */
  messageBytes: 4096,
  /** Messages a second of a client, and how many at once. */
  messagesPerSecond: 50,
  messageBurst: 400,
  /** Sentences that a connection can have under way: settings side by side. */
  lanes: 4,
  /** Sentences under way on the whole server. */
  streams: 200,
  /** Connections to the server. */
  connections: 256,
  /** Characters of a word. */
  wordLength: 100,
  /** Source tokens of a sentence, its words' pieces counted: what its caches are bounded by. */
  sentenceTokens: 256,
  /** Words of a sentence that have arrived and are not worked on yet. */
  waitingWords: 400,
  /** Bytes that a client may leave unread before it is cut off. */
  unreadBytes: 1_000_000,
  /** Milliseconds after which a connection without a message or an answer to a ping is ended. */
  silence: 60_000,
  /** Models that are open at a time. */
  models: 3,
} as const;
