import { Command } from 'commander';
import { toolVersion } from '../run/versions.js';
import { registerDemo } from './demo.js';
import { registerDoctor } from './doctor.js';
import { registerEvaluate } from './evaluate.js';
import { registerExport } from './export.js';
import { registerForecast } from './forecast.js';
import { registerImport } from './import.js';
import { registerInit } from './init.js';
import { registerPrepare } from './prepare.js';
import { registerProbe } from './probe.js';
import { registerReport } from './report.js';
import { registerReproduce } from './reproduce.js';
import { registerScore } from './score.js';
import { registerServe } from './serve.js';
import { registerSweep } from './sweep.js';
import { fittedHelp } from './terminal.js';
import { registerTrain } from './train.js';
import { registerTranslate } from './translate.js';
import { registerWorker } from './worker.js';

/** The whole command line. Each verb lives in its own file and adds itself here. */
export function program(): Command {
  const tcts = new Command('tcts')
    .description('Temporally correlated task scheduling for sequence learning.')
    .version(toolVersion)
    .configureHelp({ sortSubcommands: false });
  registerDemo(tcts);
  registerInit(tcts);
  registerPrepare(tcts);
  registerProbe(tcts);
  registerTrain(tcts);
  registerTranslate(tcts);
  registerEvaluate(tcts);
  registerForecast(tcts);
  registerSweep(tcts);
  registerReproduce(tcts);
  registerWorker(tcts);
  registerReport(tcts);
  registerScore(tcts);
  registerExport(tcts);
  registerImport(tcts);
  registerServe(tcts);
  registerDoctor(tcts);
  arrangeOutput(tcts);
  return tcts;
}

/** Help fits 80 columns, and usage errors are printed below it, where they are seen. */
function arrangeOutput(command: Command): void {
  command.configureOutput({
    writeOut: (text) => void process.stdout.write(fittedHelp(text)),
    writeErr: (text) => void process.stderr.write(fittedHelp(text)),
    outputError(message) {
      command.outputHelp({ error: true });
      process.stderr.write(`\n${message}`);
    },
  });
  for (const inner of command.commands) arrangeOutput(inner);
}
