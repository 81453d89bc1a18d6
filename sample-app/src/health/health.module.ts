import { Module } from '@nestjs/common';
import { TerminusModule } from '@nestjs/terminus';
import { RedisLockHealth } from 'nestjs-redis-lock/health';
import { HealthController } from './health.controller.js';

@Module({ imports: [TerminusModule], controllers: [HealthController], providers: [RedisLockHealth] })
export class HealthModule {}
