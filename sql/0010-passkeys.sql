-- works-with: 5
-- Passkeys: WebAuthn credentials that open a session.

create table passkeys (
  user_id bigint,
  -- base64url, as authenticators and browsers write it
  credential_id text collate "C",
  -- COSE key
  public_key bytea not null,
  -- the authenticator's count of signatures; always 0 if it does not count
  counter bigint not null,
  -- the program that created it, for example `Firefox on Linux`; null: unknown
  name text collate "C",
  created_at timestamptz not null default date_trunc('milliseconds', now()),
  -- null: not used yet
  last_used_at timestamptz,
  constraint passkeys_pkey primary key (user_id, credential_id),
  constraint passkeys_account foreign key (user_id) references accounts (user_id) on delete cascade
);

alter table passkeys alter column user_id set statistics 0;
