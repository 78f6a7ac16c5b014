import { expect, test } from 'vitest';
import { completeUrl, findUrl, readTypedUrl } from '../src/domain/typed-url.ts';

/** Tests how the page and the command line read urls that people type or share. */

test.each([
  ['example.org', 'https://example.org'],
  [' example.org/a:b ', 'https://example.org/a:b'],
  ['müller.example/weg', 'https://müller.example/weg'],
  ['日本語.例え:8080?q', 'https://日本語.例え:8080?q'],
  ['my_host.example.', 'https://my_host.example.'],
  ['localhost:3000/x', 'http://localhost:3000/x'],
  ['LOCALHOST', 'http://LOCALHOST'],
  ['127.0.0.1:8080', 'http://127.0.0.1:8080'],
  ['[::1]:3000/x', 'http://[::1]:3000/x'],
  ['192.168.1.1/router', 'https://192.168.1.1/router'],
  ['example.org/?next=https://other.example/', 'https://example.org/?next=https://other.example/'],
  ['http://example.org', 'http://example.org'],
  ['mailto:ann@example.org', 'mailto:ann@example.org'],
  ['localhosts', 'localhosts'],
  ['ann@example.org', 'ann@example.org'],
  ['two words.example', 'two words.example'],
])('%j is typed for %j', (typed, url) => {
  expect([completeUrl(typed), readTypedUrl(typed)]).toEqual([url, url]);
});

test.each([
  ['Look: https://example.org/a', 'https://example.org/a'],
  ['See https://example.org/a.', 'https://example.org/a'],
  ['(https://example.org/a)', 'https://example.org/a'],
  ['[A page](https://example.org/a), read it!', 'https://example.org/a'],
  ['<https://example.org/a>', 'https://example.org/a'],
  ['"https://example.org/a?b=1"…', 'https://example.org/a?b=1'],
  ["'https://example.org/a'?!", 'https://example.org/a'],
  ['“https://example.org/a”', 'https://example.org/a'],
  ['看（https://example.org/路）。', 'https://example.org/路'],
  ['見て「https://example.org/a」', 'https://example.org/a'],
  ['https://example.org/a。次の文', 'https://example.org/a'],
  ['https://example.org/a，', 'https://example.org/a'],
  ['(see https://en.wikipedia.org/wiki/C_(language))', 'https://en.wikipedia.org/wiki/C_(language)'],
  ['A title\nHTTPS://Example.org/a\n', 'HTTPS://Example.org/a'],
  ['https://first.example/ https://second.example/', 'https://first.example/'],
  ['https://en.wikipedia.org/wiki/Washington,_D.C.', 'https://en.wikipedia.org/wiki/Washington,_D.C.'],
])('the shared text %j has the url %j', (text, url) => {
  expect(findUrl(text)).toBe(url);
  // An argument that begins with the url and has no white space is the url as a whole.
  expect(readTypedUrl(text)).toBe(/^https:\S+$/.test(text) ? text : url);
});

test('a text without a url has none, and the scheme of another program stays', () => {
  expect(findUrl('no url, https:// only')).toBeUndefined();
  expect(readTypedUrl('no url here')).toBe('no url here');
  expect(readTypedUrl('view-source:https://example.org/')).toBe('view-source:https://example.org/');
  expect(readTypedUrl('javascript:open("https://example.org/")')).toBe(
    'javascript:open("https://example.org/")',
  );
});
