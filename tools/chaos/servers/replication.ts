import type { Redis } from 'ioredis';
import { eventually } from '../../../test/support/expect/eventually.js';
import { insist } from '../../../test/support/redis/admin-client.js';

const PATIENCE_MS = 45_000;

/** A field of what a server says of its replication. */
async function replication(admin: Redis, name: string): Promise<string | undefined> {
  return new RegExp(`^${name}:(.*)\r$`, 'm').exec(await admin.info('replication'))?.[1];
}

export async function isPrimary(admin: Redis): Promise<boolean> {
  return (await insist(() => replication(admin, 'role'))) === 'master';
}

export async function untilPrimary(admin: Redis, withinMs = PATIENCE_MS): Promise<void> {
  await eventually(async () => {
    if ((await replication(admin, 'role')) !== 'master') throw new Error('It is still a replica');
  }, withinMs);
}

/** Resolves when the replica has had all that its primary has now. */
export async function untilCaughtUp(replica: Redis, primary: Redis): Promise<void> {
  const offset = Number(await insist(() => replication(primary, 'master_repl_offset')));
  await eventually(async () => {
    const link = await replication(replica, 'master_link_status');
    const own = Number(await replication(replica, 'slave_repl_offset'));
    if (link !== 'up' || own < offset) throw new Error(`The replica is at ${own} of ${offset}, link ${link}`);
  }, PATIENCE_MS);
}
