// The tables of a results page stand between two marks.
import { readFileSync, writeFileSync } from 'node:fs';

const [BEGIN, END] = ['<!-- tables: begin -->', '<!-- tables: end -->'];

/** Prints the tables, or puts them between the marks of a page. */
export function showTables(text, page) {
  if (page === undefined) {
    console.log(text);
    return;
  }
  const whole = readFileSync(page, 'utf8');
  const [from, to] = [whole.indexOf(BEGIN), whole.indexOf(END)];
  if (from < 0 || to < from) throw new Error(`${page}: expected the lines ${BEGIN} and ${END}`);
  writeFileSync(page, `${whole.slice(0, from + BEGIN.length)}\n${text}\n${whole.slice(to)}`);
}
