/**
 * Loaded into every process that a sweep starts (`node --import`): when the sweep or worker behind it is gone, however
 * it went, the process saves itself and stops, as nobody waits for it any more and its run may be given to another.
 */
process.channel?.unref();
process.once('disconnect', () => process.kill(process.pid, 'SIGTERM'));
