/** A thread that sends the same messages over many connections of one address, as fast as it can; ends when told to. */
import { once } from 'node:events';
import { parentPort, workerData } from 'node:worker_threads';
import { WebSocket } from 'ws';

const { url, from, connections, messages, count } = workerData;
const sockets = await Promise.all(
  Array.from({ length: connections }, async () => {
    const socket = new WebSocket(`${url.replace('http', 'ws')}/live`, { localAddress: from });
    socket.on('error', () => {});
    await once(socket, 'open');
    return socket;
  }),
);
for (const socket of sockets) {
  for (let i = 0; i < count; i++) socket.send(messages[i % messages.length]);
}
parentPort.postMessage('sent');
await once(parentPort, 'message');
for (const socket of sockets) socket.terminate();
