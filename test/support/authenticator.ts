import { createHash, generateKeyPairSync, randomBytes, sign } from 'node:crypto';

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
    attest({ challenge, origin, rpId, certificate }: Asked & { certificate?: Buffer }) {
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
      const dataLength = Buffer.alloc(2);
      dataLength.writeUInt16BE(data.length);
      // In CBOR, 0xa0 is an empty map, 0xa3 a map of three entries, 0x26 the number -7 (ES256), and 0x81 a list of one
      // element. 0x41 begins a byte string of length one. 0x58 and 0x59 begin byte strings whose length follows in one
      // or two bytes.
      const statement =
        certificate === undefined
          ? [text('none'), text('attStmt'), Buffer.from([0xa0])]
          : [
              text('packed'),
              text('attStmt'),
              Buffer.from([0xa3]),
              text('alg'),
              Buffer.from([0x26]),
              text('sig'),
              Buffer.from([0x41, 0]),
              text('x5c'),
              Buffer.from([0x81, 0x58, certificate.length]),
              certificate,
            ];
      const attestation = Buffer.concat([
        Buffer.from([0xa3]),
        text('fmt'),
        ...statement,
        text('authData'),
        Buffer.from([0x59]),
        dataLength,
        data,
      ]);
      return {
        credential_id: id.toString('base64url'),
        client_data: clientData('webauthn.create', challenge, origin).toString('base64url'),
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

/** Encodes a short text in CBOR. */
const text = (value: string) => Buffer.concat([Buffer.from([0x60 + value.length]), Buffer.from(value)]);
