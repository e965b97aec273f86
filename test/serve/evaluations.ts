/** `scores.json` of a translation as `tcts evaluate` writes it, with some of its values. */
export function translationScores(values: object): object {
  return {
    split: 'test',
    k: 3,
    policy: undefined,
    models: [],
    beam: 1,
    earlyEnd: 'allow',
    sentences: 10,
    bleu: 20,
    sacrebleu: 20,
    signature: 'nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0+tcts',
    chrf: 40,
    lengthRatio: 1,
    endedEarly: 0,
    latency: { stacl: null, simuleval: null },
    speed: 100,
    ...values,
  };
}

/** The figures of one convention of latency. */
export function latencyScores(AL: number, AP: number): object {
  return { AP, AL, LAAL: AL, DAL: AL };
}

/** `scores.json` of a forecast as `tcts evaluate` writes it, with some of its values. */
export function forecastScores({ scores = {}, excessAfterCosts = {}, ...values }: ForecastValues): object {
  const risk = { annualReturn: 0.1, informationRatio: 1, maxDrawdown: -0.1 };
  return {
    split: 'test',
    samples: 10,
    scores: { IC: 0.1, ICIR: 0.1, RankIC: 0.1, RankICIR: 0.1, MSE: 1, zMSE: 1, days: 10, ...scores },
    quintiles: [0, 0, 0, 0, 0],
    backtest: {
      delay: 1,
      benchmark: 'mean',
      portfolio: risk,
      market: risk,
      excess: risk,
      excessAfterCosts: { ...risk, ...excessAfterCosts },
      turnover: 0.1,
    },
    ...values,
  };
}

interface ForecastValues {
  readonly split?: string;
  readonly data?: object;
  readonly scores?: object;
  readonly excessAfterCosts?: object;
}
