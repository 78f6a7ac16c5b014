import { putWholeManifest } from './manifest.ts';

/** After `npm pack`. */
putWholeManifest(process.cwd());
