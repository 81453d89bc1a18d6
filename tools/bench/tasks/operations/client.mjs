// An application with a decorated method.
import { Injectable } from '@nestjs/common';
import * as built from '../../../../dist/esm/index.js';
import { openApplication } from '../../contestants/ours.mjs';
import { Reports } from './decorated-methods.mjs';

Injectable()(Reports);

export async function connect(url, tuning = {}) {
  const app = await openApplication(built, url, tuning, [Reports]);
  return {
    locks: app.get(built.RedisLockService),
    reports: app.get(Reports),
    hasJobRecords: tuning.quorum === undefined,
    close: () => app.close(),
  };
}
