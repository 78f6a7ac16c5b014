// Provides libatomic.so.1. Node 26, from the npm package `node`, links to this library, which minimal systems lack. As
// root on Debian, the script installs it. Elsewhere it says what to install. The script runs on the Node that is
// installed on the machine, before packages are installed.
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';

function hasLibrary() {
  try {
    return execFileSync('/sbin/ldconfig', ['-p'], { encoding: 'utf8' }).includes('libatomic.so.1');
  } catch {
    // Without glibc or ldconfig, this script cannot check for the library, so it assumes that the library is there.
    return true;
  }
}

function aptGet(...args) {
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  execFileSync('apt-get', ['-q', '-y', ...args], { env, stdio: ['ignore', 'ignore', 'inherit'] });
}

function install() {
  try {
    aptGet('install', '--no-install-recommends', 'libatomic1');
  } catch {
    // A fresh machine has no package lists yet.
    aptGet('update');
    aptGet('install', '--no-install-recommends', 'libatomic1');
  }
}

if (process.platform === 'linux' && !hasLibrary()) {
  if (process.getuid() === 0 && existsSync('/usr/bin/apt-get')) {
    console.log('installing the system package libatomic1, which Node 26 needs');
    install();
  } else {
    console.error(
      'Node 26 needs the system library libatomic.so.1: install it first (Debian: apt-get install libatomic1)',
    );
    process.exitCode = 1;
  }
}
