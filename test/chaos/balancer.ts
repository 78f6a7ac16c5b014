import { type Balancer, runHaproxy } from '../support/haproxy.ts';

export interface Backend {
  name: string;
  port: number;
}

/**
 * Starts HAProxy in front of the replicas. It tells clients which replica responded, and never sends a request twice.
 */
export const startBalancer = (backends: readonly Backend[]): Promise<Balancer> =>
  runHaproxy((port) => describe(port, backends));

// When a client disconnects during a poll, HAProxy also ends the poll at the replica. `retry-on` keeps its default, so
// only requests that got no connection go to another replica.
const describe = (port: number, backends: readonly Backend[]): string => `
defaults
  mode http
  timeout connect 2s
  timeout check 2s
  timeout client 200s
  timeout server 200s
  retries 3
  option redispatch 1
  option abortonclose
frontend service
  bind 127.0.0.1:${port}
  maxconn 4000
  default_backend replicas
backend replicas
  balance leastconn
  option httpchk GET /readyz
  http-response set-header x-served-by %s
  default-server check inter 500ms fall 3 rise 1
${backends.map((each) => `  server ${each.name} 127.0.0.1:${each.port}`).join('\n')}
`;
