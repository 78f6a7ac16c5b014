import { Cluster, type Redis } from 'ioredis';

/**
 * Handles the rejections of ASKING, a command that the cluster client of ioredis 6.0.0 sends by itself. ioredis ignores
 * the promise of this command (redis/ioredis#1140). Without this handler, the loss of the connection before the reply
 * would end the process. ioredis has no option and no event for it. Does nothing for a client of a single server.
 */
export function guardAsking<Client>(client: Client): Client {
  if (!(client instanceof Cluster)) return client;
  const guard = (node: Redis) => {
    const sendAsking = node.asking.bind(node);
    node.asking = () => {
      const reply = sendAsking();
      reply.catch(() => {});
      return reply;
    };
  };
  client.nodes().forEach(guard);
  client.on('+node', guard);
  return client;
}
