import { type Job, type JobType, Queue } from 'bullmq';
import { Redis } from 'ioredis';

/** Returns the import jobs in these states, oldest first. Asks Redis through BullMQ, as the runbook describes. */
export async function listJobs(redisUrl: string, prefix: string, states: JobType[]): Promise<Job[]> {
  const connection = new Redis(redisUrl);
  const queue = new Queue('imports', { connection, prefix: `{${prefix}}` });
  try {
    return await queue.getJobs(states, 0, -1, true);
  } finally {
    await queue.close();
    connection.disconnect();
  }
}
