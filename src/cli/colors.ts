import pc from 'picocolors';

/** Colours for a stream, where a person reads it: not in pipes and files, in CI neither, nor with NO_COLOR set. */
export function colorsFor(stream: NodeJS.WriteStream): ReturnType<typeof pc.createColors> {
  return pc.createColors(stream.isTTY === true && !process.env.NO_COLOR);
}
