import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { readConfig } from '../src/config.ts';
import { listVariables } from './documents/project.ts';
import { provide } from './support/programs.ts';

// Checks the references, the settings and the proxy of compose.yaml, without a container engine. `npm run test:compose` runs it.

interface Service {
  image?: string;
  build?: string;
  command?: string[];
  environment?: Record<string, string>;
  depends_on?: Record<string, { condition: string }>;
}

const compose = parse(readFileSync(new URL('../compose.yaml', import.meta.url), 'utf8'), { merge: true });
const services = Object.entries<Service>(compose.services);
const own = services.filter(([, { build }]) => build !== undefined);

test('every image is pinned to a version, and every service that another one depends on exists', () => {
  for (const [name, { image, depends_on = {} }] of services) {
    if (image !== undefined) expect(image, name).toMatch(/:\d+\.\d+$/);
    for (const needed of Object.keys(depends_on)) expect(Object.keys(compose.services)).toContain(needed);
  }
});

test('the roles are those of the service, and the service accepts their settings', () => {
  const known = listVariables();
  expect(own.map(([, { command }]) => command)).toEqual([['migrate'], ['api'], ['worker']]);
  for (const [, { environment = {} }] of own) {
    expect(Object.keys(environment).filter((name) => !known.has(name) && name !== 'NODE_ENV')).toEqual([]);
    expect(readConfig({ ...environment, PUBLIC_URL: 'http://localhost:3000' })).toMatchObject({
      production: true,
      trustProxy: 1,
    });
  }
});

test('the database is migrated before anything is served', () => {
  for (const [name, { depends_on = {} }] of own.filter(([name]) => name !== 'migrate'))
    expect(depends_on.migrate, name).toEqual({ condition: 'service_completed_successfully' });
});

test('HAProxy accepts the configuration of the proxy', async () => {
  const haproxy = await provide('haproxy');
  const file = fileURLToPath(new URL('../compose.haproxy.cfg', import.meta.url));
  await promisify(execFile)(haproxy, ['-c', '-f', file]);
});
