/**
 * Loaded into every process that a sweep starts (`node --import`): when its sweep or worker is gone, for any reason,
 * the process saves its state and stops, since its run may be given to another worker.
 */
process.channel?.unref();
process.once('disconnect', () => process.kill(process.pid, 'SIGTERM'));
