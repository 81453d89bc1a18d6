export const PLAIN = 'plain CronJob';
export const ADDED = 'SingletonJobs.add';
export const DECORATED = '@SingletonCron';
