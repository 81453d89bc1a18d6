/** @returns the processor time that Redis has used since it was started, in milliseconds */
export async function redisCpuMs(redis) {
  const text = await redis.info('cpu');
  const seconds = (name) => Number(new RegExp(`^${name}:([\\d.]+)`, 'm').exec(text)[1]);
  return (seconds('used_cpu_user') + seconds('used_cpu_sys')) * 1000;
}
