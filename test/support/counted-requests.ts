/** A `fetch` that counts the requests and the received bytes, and calls functions before and after requests. */
export class CountedRequests {
  /** The paths of all requests, in order. */
  readonly paths: string[] = [];
  /** The length of all bodies of responses, after decompression. */
  receivedBytes = 0;
  /** Called before each request of a path, with its body. A function that returns a response replaces the request. */
  readonly before: Record<string, (body: never) => Promise<unknown>> = {};
  /** Called after each request of a path, with the body of its response. */
  readonly after: Record<string, (response: never) => Promise<unknown>> = {};

  readonly fetch: typeof fetch = async (input, init) => {
    const path = new URL(String(input)).pathname.slice('/api/v1'.length);
    this.paths.push(path);
    const replaced = await this.before[path]?.(JSON.parse(String(init!.body)) as never);
    if (replaced instanceof Response) return replaced;
    const response = await fetch(input, init);
    const bytes = await response.arrayBuffer();
    this.receivedBytes += bytes.byteLength;
    await this.after[path]?.(JSON.parse(new TextDecoder().decode(bytes)) as never);
    return new Response(bytes, response);
  };

  count(path: string): number {
    return this.paths.filter((each) => each === path).length;
  }
}
