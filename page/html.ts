import htm from 'htm';
import { h } from 'preact';

/** Markup as a template. What is put into it becomes text or attributes, never markup. */
export const html = htm.bind(h);
