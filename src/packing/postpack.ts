import { putWholeManifest } from './manifest.ts';

/** Runs after `npm pack`. */
putWholeManifest(process.cwd());
