import { Hono } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import { z } from 'zod';
import { InputError } from '../errors.js';
import { latencyUnit } from '../metrics/index.js';
import type { TextSide, TextStream } from '../translate/decode/text-stream.js';
import type { Policy } from '../translate/policies/policy.js';
import { arrivingWords } from '../translate/text/arriving.js';
import { type Address, listen } from './listen.js';
import { type LiveModel, type LiveModelOptions, openLiveModel } from './live-model.js';

/** Which model is served to SimulEval, with which policy. */
export interface AgentOptions extends Address, LiveModelOptions {
  readonly run: string;
  /** As `wait-k:3`. Default the one that the run was trained for. */
  readonly policy?: string;
}

/** A running agent for SimulEval. */
export interface AgentServer {
  readonly url: string;
  /** Stops the server and releases the model. */
  close(): Promise<void>;
}

/**
 * A run as a remote agent of SimulEval (Ma et al. 2020; simuleval/agents/service.py and evaluator/remote.py of version
 * 1.1): `POST /reset` begins a sentence, `PUT /input` brings a segment of the source, `GET /output` fetches what has
 * been written since. As there, one evaluator at a time.
 */
export async function startAgent(options: AgentOptions): Promise<AgentServer> {
  const model = await openLiveModel(options.run, options);
  try {
    const policy = model.policy(options.policy);
    const agent = new Agent(model, policy);
    const { server, url } = await listen(agentApp(agent, `tcts, ${options.run}, ${policy.name}`), options, {
      wasm: false,
      limited: false,
    });
    return {
      url,
      async close() {
        server.close();
        await agent.settled();
        server.closeAllConnections();
        await model.close();
      },
    };
  } catch (error) {
    await model.close();
    throw error;
  }
}

function agentApp(agent: Agent, info: string): Hono {
  const app = new Hono();
  app.get('/', (c) => c.json({ info }));
  app.post('/reset', async (c) => {
    await agent.reset();
    return c.body(null, 200);
  });
  app.put('/input', bodyLimit({ maxSize: SEGMENT_BYTES }), async (c) => {
    // Not by its content type: the evaluator sends none.
    await agent.push(segmentOf(await c.req.text()));
    return c.body(null, 200);
  });
  app.get('/output', async (c) => c.json(await agent.pop()));
  app.onError((error, c) => {
    const expected = error instanceof InputError;
    console.error(expected ? `input refused: ${error.message}` : error);
    return c.text(`${expected ? error.message : 'internal error'}\n`, expected ? 400 : 500);
  });
  return app;
}

const SEGMENT_BYTES = 1_000_000;

/** What of a segment of text matters here; a segment without content is `[]` or `''`, and has no data type. */
const segmentSchema = z.looseObject({
  content: z.union([z.string(), z.array(z.string())]).nullish(),
  finished: z.boolean().default(false),
  data_type: z.literal('text').nullish(),
});

type Segment = z.output<typeof segmentSchema>;

/** The fields that every version of SimulEval knows; it rejects others. */
interface TextSegment {
  readonly index: number;
  readonly content: string;
  readonly finished: boolean;
  readonly is_empty: boolean;
  readonly data_type: 'text';
}

function segmentOf(text: string): Segment {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new InputError('expected a segment in JSON');
  }
  const parsed = segmentSchema.safeParse(value);
  if (parsed.success) return parsed.data;
  const [{ path, message }] = parsed.error.issues;
  throw new InputError(`expected a segment of text: ${message}`, { key: path.join('.') });
}

/**
 * What of a text can be handed over: SimulEval takes each piece for separate words, so that a comma or a clitic must
 * come together with the word that it belongs to. A word is complete when the next one begins. Characters always are.
 */
function completeText(text: string, { pipeline }: TextSide): string {
  if (!pipeline.attaches || latencyUnit(pipeline.config.language) === 'char') return text;
  return text.slice(0, text.search(/\S*$/u));
}

/** The sentence under evaluation. Requests are answered one after the other. */
class Agent {
  private stream: TextStream;
  /** Text that is written and not yet fetched. */
  private written = '';
  private finished = false;
  /** Something of the source has arrived. */
  private begun = false;
  private index = 0;
  private work: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly model: LiveModel,
    private readonly policy: Policy,
  ) {
    this.stream = this.begin();
  }

  reset(): Promise<void> {
    return this.next(async () => {
      this.stream = this.begin();
      this.written = '';
      this.finished = false;
      this.begun = false;
      this.index = 0;
    });
  }

  push({ content, finished }: Segment): Promise<void> {
    return this.next(async () => {
      if (this.finished) return;
      try {
        const { byCharacter } = this.model.source.pipeline;
        for (const { word } of arrivingWords([content ?? []].flat().join(' '), byCharacter)) {
          // The evaluator cuts at spaces, which such a text has only for the evaluator's sake.
          this.written += await this.stream.push(word, byCharacter && this.begun);
          this.begun = true;
        }
        const over = finished || this.stream.done;
        if (over) this.written += await this.stream.end();
        this.finished = over;
      } catch (error) {
        // The evaluator does not look at the answer: without an end it would wait for this sentence forever.
        this.finished = true;
        throw error;
      }
    });
  }

  pop(): Promise<TextSegment> {
    return this.next(async () => {
      const content = this.finished ? this.written : completeText(this.written, this.model.target);
      this.written = this.written.slice(content.length);
      return { index: this.index++, content, finished: this.finished, is_empty: content === '', data_type: 'text' };
    });
  }

  settled(): Promise<unknown> {
    return this.work;
  }

  private begin(): TextStream {
    return this.model.stream(this.policy);
  }

  private next<T>(step: () => Promise<T>): Promise<T> {
    const result = this.work.then(step);
    this.work = result.catch(() => undefined);
    return result;
  }
}
