import { readFileSync } from 'node:fs';
import { inflateRawSync } from 'node:zlib';

/** A file of a zip archive (PKWARE APPNOTE 4.3: the central directory at the end names the local headers). */
export function unzipped(archive: string, name: string): Buffer {
  const zip = readFileSync(archive);
  const end = zip.lastIndexOf('PK\x05\x06', undefined, 'latin1');
  let at = zip.readUInt32LE(end + 16);
  for (let n = zip.readUInt16LE(end + 10); n > 0; n--) {
    const [nameSize, extraSize, commentSize] = [28, 30, 32].map((field) => zip.readUInt16LE(at + field));
    if (zip.toString('latin1', at + 46, at + 46 + nameSize) === name) {
      const local = zip.readUInt32LE(at + 42);
      const begin = local + 30 + zip.readUInt16LE(local + 26) + zip.readUInt16LE(local + 28);
      return inflateRawSync(zip.subarray(begin, begin + zip.readUInt32LE(at + 20)));
    }
    at += 46 + nameSize + extraSize + commentSize;
  }
  throw new Error(`${archive} has no ${name}`);
}
