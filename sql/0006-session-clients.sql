-- works-with: 5
-- Adds a column for the name of the program that opened a session. People recognize their sessions by this name.

-- a short name, for example `Firefox on Linux`; null if the program sent no name
alter table tokens add column client text collate "C";
