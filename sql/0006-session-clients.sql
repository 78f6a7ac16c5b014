-- works-with: 5
-- The program that a session was opened with, so that people recognize their sessions.

-- a short name, for example `Firefox on Linux`; null: the program did not name itself
alter table tokens add column client text collate "C";
