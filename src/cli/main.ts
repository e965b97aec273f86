#!/usr/bin/env node
import { program } from './program.js';
import { endWithoutReader, runCommand } from './terminal.js';

endWithoutReader();
await runCommand(() => program().parseAsync(process.argv));
