import { createHash, createPrivateKey, generateKeyPairSync, randomBytes, sign } from 'node:crypto';

/**
 * The certificate of a maker of authenticators, valid from 2020 to 2120, and its key. The certificate says that
 * http://revoked.example/list lists revoked certificates.
 */
const CERTIFICATE = Buffer.from(
  'MIIB+DCCAZ6gAwIBAgIBATAKBggqhkjOPQQDAjBVMQswCQYDVQQGEwJTRTEQMA4GA1UECgwHRXhhbXBsZTEiMCAGA1UECwwZQXV0' +
    'aGVudGljYXRvciBBdHRlc3RhdGlvbjEQMA4GA1UEAwwHRXhhbXBsZTAgFw0yMDAxMDEwMDAwMDBaGA8yMTIwMDEwMTAwMDAwMFow' +
    'VTELMAkGA1UEBhMCU0UxEDAOBgNVBAoMB0V4YW1wbGUxIjAgBgNVBAsMGUF1dGhlbnRpY2F0b3IgQXR0ZXN0YXRpb24xEDAOBgNV' +
    'BAMMB0V4YW1wbGUwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAAQwuueMedepIvq/ZbAn7TOTAfEmv5ev2WH6dB9l1WP3rZLpYmu9' +
    'pgUynsx2sz4qNROfJ7Cuj+jKIt0gnHi0sKm/o10wWzAMBgNVHRMBAf8EAjAAMCwGA1UdHwQlMCMwIaAfoB2GG2h0dHA6Ly9yZXZv' +
    'a2VkLmV4YW1wbGUvbGlzdDAdBgNVHQ4EFgQUHHKQwQdsGPCTMT0dqYd2tsJFlscwCgYIKoZIzj0EAwIDSAAwRQIgZe33WuKInKb2' +
    'Q0puWZLESZ126ItRVEvCBc646tRx5BICIQDWAVI299PDmuIPL1bzlVwmwAlgv3tlYn9QLbPgMhFhkg==',
  'base64',
);
const CERTIFIED_KEY = createPrivateKey({
  key: Buffer.from(
    'MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgvE3bag/i0lVrpCFNTH0IXQPbvkNPYRhTQYZCP57dZFGhRANCAAQw' +
      'uueMedepIvq/ZbAn7TOTAfEmv5ev2WH6dB9l1WP3rZLpYmu9pgUynsx2sz4qNROfJ7Cuj+jKIt0gnHi0sKm/',
    'base64',
  ),
  format: 'der',
  type: 'pkcs8',
});

/** Creates the authenticator of a hostile client. It signs whatever it is given. */
export function newAuthenticator() {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const { x, y } = publicKey.export({ format: 'jwk' });
  const id = randomBytes(16);
  const authenticatorData = (rpId: string, flags: number, counter: number) => {
    const end = Buffer.alloc(5);
    end.writeUInt8(flags);
    end.writeUInt32BE(counter, 1);
    return Buffer.concat([createHash('sha256').update(rpId).digest(), end]);
  };
  const clientData = (type: string, challenge: string, origin: string) =>
    Buffer.from(JSON.stringify({ type, challenge, origin, crossOrigin: false }));
  return {
    credentialId: id.toString('base64url'),
    /** Returns the body of a request to `/web/login/passkey/add`. */
    attest({ challenge, origin, rpId, isCertified = false }: Asked & { isCertified?: boolean }) {
      // The COSE key is an ES256 key on P-256: {1: 2, 3: -7, -1: 1, -2: x, -3: y}.
      const key = Buffer.concat([
        Buffer.from('a5010203262001', 'hex'),
        Buffer.from('215820', 'hex'),
        Buffer.from(x!, 'base64url'),
        Buffer.from('225820', 'hex'),
        Buffer.from(y!, 'base64url'),
      ]);
      const credential = Buffer.concat([Buffer.alloc(16), Buffer.from([0, id.length]), id, key]);
      // These flags mean that a person was present and verified, and that the data contains the new credential.
      const flags = 0x45;
      const data = Buffer.concat([authenticatorData(rpId, flags, 0), credential]);
      const client = clientData('webauthn.create', challenge, origin);
      const signed = Buffer.concat([data, createHash('sha256').update(client).digest()]);
      // In CBOR, 0xa0 is an empty map, 0xa3 a map of three entries, 0x26 the number -7 (ES256), and 0x81 a list of one
      // element.
      const statement = isCertified
        ? [
            text('packed'),
            text('attStmt'),
            Buffer.from([0xa3]),
            text('alg'),
            Buffer.from([0x26]),
            text('sig'),
            bytes(sign('sha256', signed, CERTIFIED_KEY)),
            text('x5c'),
            Buffer.from([0x81]),
            bytes(CERTIFICATE),
          ]
        : [text('none'), text('attStmt'), Buffer.from([0xa0])];
      const attestation = Buffer.concat([
        Buffer.from([0xa3]),
        text('fmt'),
        ...statement,
        text('authData'),
        bytes(data),
      ]);
      return {
        credential_id: id.toString('base64url'),
        client_data: client.toString('base64url'),
        attestation: attestation.toString('base64url'),
      };
    },
    /** Returns the body of a request to `/web/login/passkey`. */
    assert({ challenge, origin, rpId, userId, counter = 0, flags = 0x05 }: Asked & Assertion) {
      const data = authenticatorData(rpId, flags, counter);
      const client = clientData('webauthn.get', challenge, origin);
      const signed = Buffer.concat([data, createHash('sha256').update(client).digest()]);
      return {
        credential_id: id.toString('base64url'),
        client_data: client.toString('base64url'),
        authenticator_data: data.toString('base64url'),
        signature: sign('sha256', signed, privateKey).toString('base64url'),
        user_handle: Buffer.from(String(userId)).toString('base64url'),
      };
    },
  };
}

interface Asked {
  challenge: string;
  origin: string;
  rpId: string;
}

interface Assertion {
  userId: number;
  counter?: number;
  /** The bits of the flags: 1 means that a person was present, and 4 that the person was verified. */
  flags?: number;
}

/** Encodes bytes in CBOR: 0x59 begins a byte string whose length follows in two bytes. */
function bytes(value: Buffer): Buffer {
  const head = Buffer.from([0x59, 0, 0]);
  head.writeUInt16BE(value.length, 1);
  return Buffer.concat([head, value]);
}

/** Encodes a short text in CBOR. */
const text = (value: string) => Buffer.concat([Buffer.from([0x60 + value.length]), Buffer.from(value)]);
