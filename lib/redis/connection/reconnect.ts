import type { Redis } from 'ioredis';

/** Makes a connection anew. One that is just being made is given up when it is: before that ioredis would end it for good. */
export function reconnect(client: Redis): void {
  if (client.status === 'ready' || client.status === 'connect') return client.disconnect(true);
  if (client.status !== 'connecting') return;
  const giveUp = (): void => client.disconnect(true);
  client.once('connect', giveUp).once('close', () => client.off('connect', giveUp));
}
