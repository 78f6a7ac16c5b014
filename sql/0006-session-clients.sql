-- works-with: 5
-- Adds the program that opened a session, so that people recognize their sessions.

-- a short name, for example `Firefox on Linux`; null if the program sent no name
alter table tokens add column client text collate "C";
