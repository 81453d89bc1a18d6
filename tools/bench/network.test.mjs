import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { describe, it } from './testing.mjs';
import { Network } from './network/network.mjs';
import { Trips } from './network/trips.mjs';

describe('the count of round trips', () => {
  const send = (trips, from, to) => trips.leave(from)(to);

  it('is one for a question and its answer, and two for the next one', () => {
    const trips = new Trips();
    send(trips, 'client', 'redis');
    send(trips, 'redis', 'client');
    assert.equal(trips.of('client'), 1);
    send(trips, 'client', 'redis');
    assert.equal(trips.of('redis'), 1.5);
    send(trips, 'redis', 'client');
    assert.equal(trips.of('client'), 2);
  });

  it('is one for questions that were on their way together', () => {
    const trips = new Trips();
    const sent = [1, 2, 3].map((server) => [trips.leave('client'), `redis ${server}`]);
    const replied = sent.map(([arrive, server]) => (arrive(server), trips.leave(server)));
    for (const arrive of replied) arrive('client');
    assert.equal(trips.of('client'), 1);
  });

  it('is one from a process to another by way of a server', () => {
    const trips = new Trips();
    send(trips, 'holder', 'redis');
    send(trips, 'redis', 'waiter');
    assert.equal(trips.of('waiter'), 1);
  });

  it('leaves out what was under way when it began', () => {
    const trips = new Trips();
    send(trips, 'client', 'redis');
    const late = trips.leave('redis');
    trips.begin();
    late('client');
    assert.equal(trips.of('client'), 0);
  });
});

describe('the network', () => {
  const PING = '*1\r\n$4\r\nPING\r\n';

  it('delays both ways, keeps the order, and counts commands and round trips', async () => {
    const server = createServer((socket) => socket.on('data', () => socket.write('+PONG\r\n')));
    await once(server.listen(0, '127.0.0.1'), 'listening');
    for (const delayMs of [0, 0.5, 20]) {
      const network = new Network({ delayMs });
      const url = await network.way('client', 'redis', `redis://127.0.0.1:${server.address().port}`);
      const socket = connect(Number(new URL(url).port), '127.0.0.1');
      await once(socket, 'connect');
      const startedAt = performance.now();
      for (let trip = 1; trip <= 3; trip++) {
        socket.write(PING);
        await once(socket, 'data');
        assert.equal(network.tripsOf('client'), trip);
      }
      // Timers and clocks differ by less than this.
      assert.ok(performance.now() - startedAt >= 3 * 2 * delayMs - 0.1, `${delayMs} ms`);
      assert.equal(network.commands, 3);
      network.begin();
      assert.equal(network.tripsOf('client'), 0);
      socket.destroy();
      network.stop();
    }
    server.close();
  });

  it('passes on a stream of bytes as it is', async () => {
    const server = createServer((socket) => socket.pipe(socket));
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const network = new Network({ delayMs: 1 });
    const url = await network.way('client', 'echo', `redis://127.0.0.1:${server.address().port}`);
    const socket = connect(Number(new URL(url).port), '127.0.0.1');
    const sent = Array.from({ length: 2_000 }, (_, index) => `*1\r\n$6\r\n${String(index).padStart(6, '0')}\r\n`);
    const text = sent.join('');
    let received = '';
    const all = new Promise((resolve) =>
      socket.on('data', (chunk) => {
        received += chunk;
        if (received.length === text.length) resolve();
      }),
    );
    for (const each of sent) socket.write(each);
    await all;
    assert.equal(received, text);
    assert.equal(network.commands, sent.length);
    socket.destroy();
    network.stop();
    server.close();
  });

  it('closes both ends when one of them closes', async () => {
    const server = createServer();
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const network = new Network();
    const url = await network.way('client', 'redis', `redis://127.0.0.1:${server.address().port}`);
    const accepted = once(server, 'connection');
    const socket = connect(Number(new URL(url).port), '127.0.0.1');
    const [ofServer] = await accepted;
    socket.destroy();
    await once(ofServer.resume(), 'close');
    network.stop();
    server.close();
  });
});
