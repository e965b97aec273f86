#!/usr/bin/env node
import { program } from './program.js';
import { runCommand } from './report-errors.js';

await runCommand(() => program().parseAsync(process.argv));
