import { isMainThread } from 'node:worker_threads';

/**
 * The runtime returns a copy of every output, even of one that it was told where to write: for an update as many bytes as
 * the parameters. How these copies are freed and allocated again decides whether they cost page faults; measured in
 * docs/performance.md.
 */

/**
 * Frees the memory of an array that nobody uses, which the garbage collector would do much later. A buffer that is
 * transferred belongs to its message, which a closed port drops at once.
 */
export function freeNow(buffer: ArrayBuffer): void {
  closedPort.postMessage(undefined, [buffer]);
}

const closedPort = new MessageChannel().port1;
closedPort.close();

/** Just below the largest size to which glibc adapts its thresholds on 64-bit systems. */
const LARGEST = 2 ** 25 - 2 ** 16;

/**
 * Makes glibc keep up to 64 MiB of freed memory instead of returning it to the system, which would have to fill it with
 * zeros page by page when it is allocated again. Freeing an array that was mapped on its own sets the size from which
 * arrays are mapped to that array's, and the memory kept to twice as much; its pages are never touched. Other C libraries
 * just allocate and free. The thresholds are those of the process: doing it again in another thread would use the heap.
 */
if (isMainThread) freeNow(new ArrayBuffer(LARGEST));
