/** A JSON-RPC message that calls the tool `list_tags`. */
export const LIST_TAGS = {
  jsonrpc: '2.0',
  id: 1,
  method: 'tools/call',
  params: { name: 'list_tags', arguments: {} },
};

/** Sends a message or a batch to `/mcp`. Resolves with the status and the body of the response. */
export async function sendMcp(
  origin: string,
  token: string,
  body: object,
): Promise<{ status: number; text: string }> {
  const response = await fetch(`${origin}/mcp`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
    body: JSON.stringify(body),
  });
  return { status: response.status, text: await response.text() };
}
