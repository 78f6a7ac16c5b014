import { putWholeManifest } from './manifest.ts';

/** Runs after `npm pack`. Restores the manifest and the README of the repository. */
putWholeManifest(process.cwd());
