-- works-with: 5
-- Adds passkeys: WebAuthn credentials with which a user signs in.

create table passkeys (
  user_id bigint,
  -- in base64url, as browsers send it
  credential_id text collate "C",
  -- the key in COSE format
  public_key bytea not null,
  -- the number of signatures that the authenticator has made; always 0 if it does not count them
  counter bigint not null,
  -- the program that created the passkey, for example `Firefox on Linux`; null if it is unknown
  name text collate "C",
  created_at timestamptz not null default date_trunc('milliseconds', now()),
  -- null if the passkey has not been used yet
  last_used_at timestamptz,
  constraint passkeys_pkey primary key (user_id, credential_id),
  constraint passkeys_account foreign key (user_id) references accounts (user_id) on delete cascade
);

alter table passkeys alter column user_id set statistics 0;
