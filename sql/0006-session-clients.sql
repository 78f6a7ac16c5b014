-- works-with: 5
-- Adds a column for the program that opened a session, by which people recognize their sessions.

-- a short name, for example `Firefox on Linux`; null if the program sent no name
alter table tokens add column client text collate "C";
