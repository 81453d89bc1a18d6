import { type ArgumentsHost, Catch, type ExceptionFilter } from '@nestjs/common';
import { JobNotFoundError } from 'nestjs-redis-lock/schedule';

interface Reply {
  status(code: number): { json(body: unknown): unknown };
}

/** Answers with 404 and with what was probably meant. Names of jobs and instances are for operators only. */
@Catch(JobNotFoundError)
export class JobNotFoundFilter implements ExceptionFilter<JobNotFoundError> {
  catch({ message, code }: JobNotFoundError, host: ArgumentsHost): void {
    const reply = host.switchToHttp().getResponse<Reply>();
    reply.status(404).json({ statusCode: 404, error: 'Not Found', message, code });
  }
}
