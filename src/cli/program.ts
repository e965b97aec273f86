import { Command } from 'commander';
import { toolVersion } from '../run/versions.js';
import { registerDemo } from './demo.js';
import { registerDoctor } from './doctor.js';
import { registerEvaluate } from './evaluate.js';
import { registerExport } from './export.js';
import { registerForecast } from './forecast.js';
import { registerPrepare } from './prepare.js';
import { registerScore } from './score.js';
import { registerTrain } from './train.js';
import { registerTranslate } from './translate.js';

/** The whole command line. Each verb lives in a file of its own and adds itself here. */
export function program(): Command {
  const tcts = new Command('tcts')
    .description('Temporally correlated task scheduling for sequence learning.')
    .version(toolVersion)
    .showHelpAfterError()
    .configureHelp({ sortSubcommands: false });
  registerDemo(tcts);
  registerPrepare(tcts);
  registerTrain(tcts);
  registerTranslate(tcts);
  registerEvaluate(tcts);
  registerForecast(tcts);
  registerScore(tcts);
  registerExport(tcts);
  registerDoctor(tcts);
  return tcts;
}
