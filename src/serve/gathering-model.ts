import {
  type Answers,
  answerRow,
  type Question,
  stackedAnswers,
  type TokenModel,
} from '../translate/decode/token-model.js';
import { Together } from './together.js';

type Listening = Parameters<NonNullable<TokenModel['listen']>>[0];

/** A model that answers the questions of all streams that wait for it in one call. */
export class GatheringModel implements TokenModel {
  readonly listen: TokenModel['listen'];
  private readonly proposals: Together<readonly Question[], Answers>;

  /** `most`: streams in one call. Default 64. */
  constructor(
    private readonly model: TokenModel,
    most = 64,
  ) {
    this.proposals = new Together((all) => this.proposeTogether(all), most);
    if (model.listen === undefined) return;
    const listening = new Together<Listening, undefined>(async (all) => {
      await model.listen?.(all.flat());
      return all.map(() => undefined);
    }, most);
    this.listen = (sentences) => listening.ask(sentences);
  }

  get beam(): number {
    return this.model.beam;
  }

  get maxPositions(): number {
    return this.model.maxPositions;
  }

  begin(): object {
    return this.model.begin();
  }

  propose(questions: readonly Question[]): Promise<Answers> {
    return this.proposals.ask(questions);
  }

  private async proposeTogether(all: readonly (readonly Question[])[]): Promise<Answers[]> {
    const answers = await this.model.propose(all.flat());
    let row = 0;
    return all.map((questions) => stackedAnswers(questions.map(() => answerRow(answers, row++))));
  }
}
