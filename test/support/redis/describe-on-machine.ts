const IN_CONTAINERS = process.env.REDIS_SERVER_IMAGE !== undefined && process.env.REDIS_SERVER_BIN === undefined;

/** For servers that have to find one another, or that need files and further ports of this machine: not those in containers. */
export const describeOnMachine = IN_CONTAINERS ? describe.skip : describe;
